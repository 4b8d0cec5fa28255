"""Schedule a PrimFunc step by step, with TVM's primitives."""
