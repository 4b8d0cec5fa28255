"""The controls of the panels' forms."""

import threading
from types import SimpleNamespace

import ipywidgets as widgets
import pytest

from irviz.explorer.panels.panel import Panel, offer


@pytest.mark.parametrize("control", [widgets.Dropdown, widgets.Select])
def test_what_is_offered_and_what_is_chosen_reach_the_browser_together(control, monkeypatch):
    menu = control()
    messages = []
    monkeypatch.setattr(menu, "send_state", lambda keys=(): messages.append(sorted(keys)))
    offer(menu, [("–", ""), ("1  LegalizeOps", "1")], "1")
    assert messages == [["_options_labels", "index"]]
    assert menu.value == "1"


def test_what_the_user_changes_while_another_thread_sets_widgets_is_passed_on():
    lock, field, taken = threading.RLock(), widgets.Text(), []
    panel = Panel(SimpleNamespace(runner=SimpleNamespace(lock=lock)))
    panel.on_change(field, taken.append)
    user = threading.Thread(target=setattr, args=(field, "value", "typed"))
    with lock, panel.setting_traits():
        user.start()
        user.join(0.2)
        assert not taken
    user.join()
    assert taken == ["typed"]
