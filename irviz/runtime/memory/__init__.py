"""The memory that a function holds as it runs, from its lowered module."""
