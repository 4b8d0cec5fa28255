"""The catalog of TVM's passes and the user's own, called with plain arguments."""
