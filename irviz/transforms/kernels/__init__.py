"""Change the callees of calls: library kernels, TE definitions, and their equivalence."""
