"""A file is dropped onto the viewer, in a real JupyterLab."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect

from .conftest import SCRIPT

DROP = """(element, [name, text, kinds]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name));
    for (const kind of kinds) {
        const event = new DragEvent(kind, {
            bubbles: true, cancelable: true, dataTransfer: data,
        });
        element.dispatchEvent(event);
    }
}"""


def test_a_dropped_file_is_a_stage_of_its_own_and_is_not_run(lab: Any) -> None:
    viewer = lab.show("mlp")
    viewer.picture().evaluate(DROP, ["dropped.py", SCRIPT, ["dragover"]])
    expect(viewer.root.get_by_text("Drop a file to open it")).to_be_visible()
    viewer.picture().evaluate(DROP, ["dropped.py", SCRIPT, ["drop"]])
    expect(viewer.current_stage).to_contain_text("opened dropped.py")
    expect(viewer.current_stage).to_have_attribute("title", re.compile("not run"))
    expect(viewer.node("y")).to_be_visible()
    expect(viewer.root.get_by_text("Drop a file to open it")).to_be_hidden()
    assert lab.value("len(explorer.session.stages)") == 2


def test_a_dropped_file_that_is_refused_is_named_with_the_place(lab: Any) -> None:
    viewer = lab.show("mlp")
    hostile = SCRIPT.replace("(2, 2)", "(__import__('os').getpid(), 2)")
    viewer.picture().evaluate(DROP, ["bad.py", hostile, ["dragover", "drop"]])
    expect(viewer.said).to_contain_text("bad.py")
    expect(viewer.said).to_contain_text("line 7")
    assert lab.value("len(explorer.session.stages)") == 1
