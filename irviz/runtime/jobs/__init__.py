"""The jobs that are performed in this process or sent to the worker."""
