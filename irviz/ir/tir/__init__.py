"""Read PrimFuncs."""
