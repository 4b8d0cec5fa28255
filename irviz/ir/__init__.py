"""Read TVM's IR: the only code that knows its expressions and statements."""
