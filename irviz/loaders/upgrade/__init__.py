"""Rewrite the source of Python for earlier versions of TVM for the current one."""
