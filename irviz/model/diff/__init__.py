"""What differs between two modules, as plain data."""
