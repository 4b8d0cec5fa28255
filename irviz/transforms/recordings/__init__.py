"""Record the passes that a block of code runs, as stages."""
