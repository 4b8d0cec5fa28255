"""The controls of the panels' forms."""

import ipywidgets as widgets
import pytest

from irviz.explorer.panels.panel import offer


@pytest.mark.parametrize("control", [widgets.Dropdown, widgets.Select])
def test_what_is_offered_and_what_is_chosen_reach_the_browser_together(control, monkeypatch):
    menu = control()
    messages = []
    monkeypatch.setattr(menu, "send_state", lambda keys=(): messages.append(sorted(keys)))
    offer(menu, [("–", ""), ("1  LegalizeOps", "1")], "1")
    assert messages == [["_options_labels", "index"]]
    assert menu.value == "1"
