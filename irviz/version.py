"""The version of irviz."""

__version__ = "0.1.0"
