"""From which sizes on a graph is folded, and how much of it is shown."""

AUTOMATIC = 150
"""The most nodes that are shown before the reader has expanded anything."""
FIRST_NODES = 60
"""The most nodes that are shown of a model with layers before the reader has expanded anything."""
FIRST_RANKS = 11
"""The most nodes one above the other then: as many as fit on a screen."""
FRAME_RANKS = 0.5
"""The height of a frame's border, in nodes."""
LIMIT = 300
"""The most nodes that are ever laid out."""
MIN_NODES = 8
"""The fewest nodes of a first picture, if the function has as many."""
MAX_INPUTS = 8
"""More parameters or constants with the same users than this are drawn as one node."""
MAX_CHILDREN = 120
"""The most children of a container; longer sequences are divided into parts."""
PART_CHILDREN = 40
"""About how many children such a part has; more in a sequence that is still too long."""
MIN_LOOSE = 3
"""So many consecutive steps between the layers of a model are a container, two on a long path."""
MIN_STAGED = 8
"""Of so many layers in one, consecutive ones of a class that give the same type are a container."""
SMALL_GRAPH = 60
"""The most nodes of a graph in which repeats are shown as they are."""
SMALL_INPUTS = 6
"""The most parameters and constants of such a graph."""
MIN_REPEAT = 16
"""The fewest steps of all copies of a repeat; shorter ones are easier to read as they are."""
