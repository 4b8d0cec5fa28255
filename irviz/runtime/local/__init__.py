"""Build and call modules in this process, with traces and Python callees."""
