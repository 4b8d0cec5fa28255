"""Read Relax functions."""
