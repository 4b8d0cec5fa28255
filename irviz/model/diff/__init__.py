"""The differences between two modules, as plain data."""
