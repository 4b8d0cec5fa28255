"""The command line, one module a command, and the server of the page."""
