"""Measure the first paint of Netron and of Model Explorer on the same decoder stack, as ONNX.

They are no dependencies of irviz. To measure them, put them into an environment of their own:

    python -m venv peers
    peers/bin/pip install netron onnx ai-edge-model-explorer model-explorer-onnx
    python bench/large_modules.py --peers peers/bin/python

The weights are initialisers in a file of their own, as exporters write those of large models.

The time is from the request of the page, which reads the file from this machine, to the first
frame with the picture: of Netron with all of the graph's nodes in it, of Model Explorer with what
it shows at first, which is one box for the whole graph. It draws with WebGL, here without a GPU.
Netron's question about cookies counts as answered, and nothing that is asked for from elsewhere
is sent. A graph that does not come within two minutes is said to be so, and is not tried again.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lab_in_chromium import PAINTED, browser
from table import against

_SIZES = (200, 2_000, 10_000)
_ROUNDS = 3
_PATIENCE = 120

_WRITE = """
import sys
from onnx import TensorProto, helper
W = 256
nodes, inputs, weights = [], [], []
def emit(op, *inputs, **attributes):
    nodes.append(helper.make_node(op, list(inputs), [f"v{len(nodes)}"], **attributes))
    return nodes[-1].output[0]
def weight(name, *shape):
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights")
    weights.append(tensor)
    return name
def linear(h, name, rows, columns):
    return emit("MatMul", h, emit("Transpose", weight(name, rows, columns)))
def heads(h):
    return emit("Transpose", emit("Reshape", h, "split"), perm=[0, 2, 1, 3])
h = "x"
inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64, W]))
weight("split", 4), weight("join", 3), weight("scale", 1)
for layer in range(round(int(sys.argv[1]) / 33)):
    n = emit("RMSNormalization", h, weight(f"{layer}.norm1", W))
    q, k, v = (heads(linear(n, f"{layer}.{one}", W, W)) for one in ("query", "key", "value"))
    scores = emit("MatMul", q, emit("Transpose", k, perm=[0, 1, 3, 2]))
    mixed = emit("MatMul", emit("Softmax", emit("Mul", scores, "scale")), v)
    joined = emit("Reshape", emit("Transpose", mixed, perm=[0, 2, 1, 3]), "join")
    h = emit("Add", h, linear(joined, f"{layer}.out", W, W))
    n = emit("RMSNormalization", h, weight(f"{layer}.norm2", W))
    gate = emit("Swish", linear(n, f"{layer}.gate", 1024, W))
    inner = emit("Mul", gate, linear(n, f"{layer}.up", 1024, W))
    h = emit("Add", h, linear(inner, f"{layer}.down", W, 1024))
h = emit("RMSNormalization", h, weight("norm", W))
result = helper.make_tensor_value_info(h, TensorProto.FLOAT, [1, 64, W])
graph = helper.make_graph(nodes, "main", inputs, [result], initializer=weights)
with open(sys.argv[2], "wb") as file:
    file.write(helper.make_model(graph).SerializeToString())
print(len(nodes))
"""
_NETRON = """
import sys, netron
netron.start(sys.argv[1], ("127.0.0.1", int(sys.argv[2])), browse=False)
netron.wait()
"""
_MODEL_EXPLORER = """
import sys, model_explorer
from model_explorer import server
config = model_explorer.config()
config.add_model_from_path(sys.argv[1])
server.start("127.0.0.1", int(sys.argv[2]), config, True, ["model_explorer_onnx"])
"""
_NETRON_SHOWS = """document.body?.classList.contains('default')
    && document.querySelectorAll('#canvas g.node[transform]').length >= count"""
_MODEL_EXPLORER_SHOWS = "document.querySelector('webgl-renderer canvas.main')?.clientWidth > 0"
_SHOWN = f"""async count => {{ {PAINTED}
    await until(() => %s, {_PATIENCE});
    await painted();
    return performance.now() / 1e3;
}}"""


def measure(python: str) -> None:
    """Measure with the explorers of that Python."""
    with tempfile.TemporaryDirectory() as folder, browser("--use-angle=swiftshader") as chromium:
        for bindings in _SIZES:
            path = Path(folder) / f"{bindings}.onnx"
            command = [python, "-c", _WRITE, str(bindings), str(path)]
            count = int(subprocess.run(command, capture_output=True, check=True).stdout)
            asked = "?data=" + quote(json.dumps({"models": [{"url": str(path)}]}))
            for name, serve, query, shows in (
                ("Netron", _NETRON, "", _NETRON_SHOWS),
                ("Model Explorer", _MODEL_EXPLORER, asked, _MODEL_EXPLORER_SHOWS),
            ):
                with _served([python, "-c", serve, str(path)]) as url:
                    seconds = _painted(chromium, url, query, f"({_SHOWN % shows})({count})")
                what = f"{name}, {count:,} nodes: its page -> painted"
                if seconds:
                    against(what, seconds, "ms")
                else:
                    print(f"{what:58} not within {_PATIENCE} s")


def _painted(chromium: Any, url: str, query: str, shown: str) -> list[float]:
    """Open the page in fresh tabs; return no times when the graph does not come."""
    seconds = []
    for _ in range(_ROUNDS):
        context = chromium.new_context(viewport={"width": 1400, "height": 900})
        context.add_cookies([{"name": "consent", "value": "1", "url": url}])
        context.route(lambda asked: not asked.startswith(url), lambda route: route.abort())
        page = context.new_page()
        page.goto(url + query, wait_until="commit")
        # Playwright's own evaluate() uses window.eval, which Netron forbids
        asked = {"expression": shown, "awaitPromise": True, "returnByValue": True}
        found = context.new_cdp_session(page).send("Runtime.evaluate", asked)
        context.close()
        if "exceptionDetails" in found:
            return []  # it was waited for in vain
        seconds.append(float(found["result"]["value"]))
    return seconds


@contextlib.contextmanager
def _served(command: list[str]) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = subprocess.Popen(
        [*command, str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.kill()
        process.wait()
