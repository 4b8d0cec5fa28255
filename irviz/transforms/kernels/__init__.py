"""Change the callees of calls: library kernels, TE definitions, and their equivalence."""

from irviz.transforms.kernels import library as library
