"""The command line and the server of the page."""
