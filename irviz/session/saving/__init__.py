"""A session as a file: the archive, its index, and the values and transforms in it."""
