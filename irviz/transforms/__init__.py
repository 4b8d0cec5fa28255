"""Transforms from one module to another, each of which can write itself as Python."""
