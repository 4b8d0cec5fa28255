"""Shapes and symbolic sizes."""
