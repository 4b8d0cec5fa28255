"""Run functions of a module: on this machine, in the worker, or on another machine."""
