"""Sessions: a tree of stages, how they are run, and all that can be asked of them; no widgets."""
