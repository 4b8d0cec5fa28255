"""A package, so that pytest ends the browser with the last test that uses it."""
