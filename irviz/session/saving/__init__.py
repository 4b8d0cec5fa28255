"""Session files: the archive, its index, and how values and transforms are stored."""
