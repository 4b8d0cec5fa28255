"""Save a session to one file and load it again."""
