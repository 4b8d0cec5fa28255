"""What the tests of models share."""

collect_ignore = ["architectures.py"]  # no tests: what the tests share
