"""Create the explorer that the page shows."""

from __future__ import annotations

from irviz.cli.demo import demo_session
from irviz.cli.page_request import DEMO, PageRequest
from irviz.explorer.explorer import Explorer, explore


def explorer_of_page(request: PageRequest) -> Explorer:
    """Return the explorer for a page request."""
    if request.what == DEMO:
        return explore(demo_session(), height=0)
    return explore(request.what, name=request.name, function=request.function, height=0)
