from pathlib import Path

STATIC = Path(__file__).parent / "static"
"""The bundles: a script and a style sheet for each widget, made from `src` by `npm run build`."""
