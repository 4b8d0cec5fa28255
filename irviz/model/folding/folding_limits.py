"""Limits for when a graph is folded, and how much of it is shown."""

AUTOMATIC = 150
"""The most nodes shown before the user has expanded anything."""
FIRST_NODES = 60
"""The same for a model with layers."""
FIRST_RANKS = 11
"""The most nodes above each other in that case: as many as fit on a screen."""
FRAME_RANKS = 0.5
"""The height of a frame's border, in nodes."""
LIMIT = 300
"""The most nodes that are ever laid out."""
MIN_NODES = 8
"""The fewest nodes in a first picture, if the function has as many."""
MAX_INPUTS = 8
"""The most parameters or constants with the same users that are not merged into one node."""
MAX_CHILDREN = 120
"""The most children of a container; longer sequences are divided into parts."""
PART_CHILDREN = 40
"""The approximate number of children of such a part; more if the sequence is still too long."""
MIN_LOOSE = 3
"""The fewest consecutive steps between layers that form a container; two on a long path."""
MIN_STAGED = 8
"""The fewest sublayers from which runs with one class and result type form containers."""
SMALL_GRAPH = 60
"""The most nodes of a graph in which repeats are shown as they are."""
SMALL_INPUTS = 6
"""The most parameters and constants of such a graph."""
MIN_REPEAT = 16
"""The fewest steps of a repeat over all copies; shorter ones are easier to read unfolded."""
