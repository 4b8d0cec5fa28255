"""Rewrite Python in the TVM dialects of earlier years to today's, text to text."""
