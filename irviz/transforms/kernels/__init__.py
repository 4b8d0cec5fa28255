"""Change what calls call: library kernels, TE definitions, and which are equal."""
