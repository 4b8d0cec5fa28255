"""The command line, with one module per command, and the server of the page."""
