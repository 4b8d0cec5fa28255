"""Write TVM's functions as loops over NumPy arrays: readable Python that can be run."""
