"""For the tests of other projects: an assertion about modules, and a fixture for pytest."""
