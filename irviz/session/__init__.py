"""Sessions: trees of stages, how they are run, and queries on them; no widgets."""
