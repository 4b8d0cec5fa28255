"""Measure the first paint of irviz, Netron and Model Explorer on the same decoder stack.

Netron and Model Explorer are no dependencies of irviz. Put them into an environment of their own:

    python -m venv peers
    peers/bin/pip install netron onnx ai-edge-model-explorer model-explorer-onnx
    python bench/other_explorers.py --peers peers/bin/python

All open the same ONNX file. Its weights are initialisers in a file of their own, as exporters
write those of large models. irviz also opens the stack as a module in TVM's JSON, and shows it
from memory in a notebook. Each round measures each of them once.

One time is from the request of the page, another from the start of the command that serves it.
Both end with the first frame that has the picture: of Netron with all of the graph's nodes in it,
of irviz with the folded graph, of Model Explorer with one box for the whole graph. It draws with
WebGL, here without a GPU. Netron's question about cookies counts as answered, and nothing that is
asked for from elsewhere is sent. What does not come within two minutes is said.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import tvm
from lab_in_chromium import PAINTED, Lab, lab
from large_modules_page import CELL, MODULE, SETUP
from made_modules import decoder
from measurement_table import against, end, heading

_AIMS = {200: 1.0, 2_000: 0.6, 10_000: 0.5}
"""What irviz takes of Netron's time from the command, by the bindings of the graph."""
_PATIENCE = 120
_COMMAND = "command -> painted"

_WRITE = """
import math, os, sys
from onnx import TensorProto, helper
W = 256
nodes, inputs, weights, written = [], [], [], 0
beside = sys.argv[2] + ".weights"
def emit(op, *inputs, **attributes):
    nodes.append(helper.make_node(op, list(inputs), [f"v{len(nodes)}"], **attributes))
    return nodes[-1].output[0]
def weight(name, *shape):
    global written
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)
    tensor.data_location = TensorProto.EXTERNAL
    length = 4 * math.prod(shape)
    place = {"location": os.path.basename(beside), "offset": written, "length": length}
    for key, value in place.items():
        tensor.external_data.add(key=key, value=str(value))
    written += length
    weights.append(tensor)
    return name
def linear(h, name, rows, columns):
    return emit("MatMul", h, emit("Transpose", weight(name, rows, columns)))
def heads(h):
    return emit("Transpose", emit("Reshape", h, "split"), perm=[0, 2, 1, 3])
h = "x"
inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64, W]))
for name, shape in (("split", [1, 64, 8, 32]), ("join", [1, 64, W])):
    weights.append(helper.make_tensor(name, TensorProto.INT64, [len(shape)], shape))
weights.append(helper.make_tensor("scale", TensorProto.FLOAT, [1], [32**-0.5]))
for layer in range(round(int(sys.argv[1]) / 33)):
    n = emit("RMSNormalization", h, weight(f"{layer}.norm1", W))
    q, k, v = (heads(linear(n, f"{layer}.{one}", W, W)) for one in ("query", "key", "value"))
    scores = emit("MatMul", q, emit("Transpose", k, perm=[0, 1, 3, 2]))
    mixed = emit("MatMul", emit("Softmax", emit("Mul", scores, "scale")), v)
    joined = emit("Reshape", emit("Transpose", mixed, perm=[0, 2, 1, 3]), "join")
    h = emit("Add", h, linear(joined, f"{layer}.out", W, W))
    n = emit("RMSNormalization", h, weight(f"{layer}.norm2", W))
    gate = linear(n, f"{layer}.gate", 1024, W)
    inner = emit("Mul", emit("Mul", gate, emit("Sigmoid", gate)), linear(n, f"{layer}.up", 1024, W))
    h = emit("Add", h, linear(inner, f"{layer}.down", W, 1024))
h = emit("RMSNormalization", h, weight("norm", W))
result = helper.make_tensor_value_info(h, TensorProto.FLOAT, [1, 64, W])
graph = helper.make_graph(nodes, "main", inputs, [result], initializer=weights)
with open(sys.argv[2], "wb") as file:
    opset = [helper.make_opsetid("", 24)]
    file.write(helper.make_model(graph, opset_imports=opset).SerializeToString())
with open(beside, "wb") as file:
    file.truncate(written)
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
    && document.querySelectorAll('#canvas g.node[transform]').length >= %d"""
_MODEL_EXPLORER_SHOWS = "document.querySelector('webgl-renderer canvas.main')?.clientWidth > 0"
_IRVIZ_SHOWS = "sized(document.querySelector('#main svg.irviz'))"
_SHOWN = f"""(async () => {{ {PAINTED}
    await until(() => %s, {_PATIENCE});
    await painted();
    return performance.now() / 1e3;
}})()"""


def main() -> None:
    """Measure irviz and the others; each round measures each of them once."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", metavar="PYTHON", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    heading()
    with tempfile.TemporaryDirectory() as folder, lab("--use-angle=swiftshader") as place:
        for nodes, aim in _AIMS.items():
            path = Path(folder) / f"{nodes}.onnx"
            written = [options.peers, "-c", _WRITE, str(nodes), str(path)]
            count = int(subprocess.run(written, capture_output=True, check=True).stdout)
            module = Path(folder) / f"{nodes}.json"
            module.write_text(tvm.ir.save_json(decoder(nodes)), encoding="utf-8")
            found = _rounds(options, place, path, module, count)
            for what, seconds in found.items():
                against(f"{count:,} nodes: {what}", seconds, "s")
            rounds = zip(*(found[f"{one}, {_COMMAND}"] for one in ("irviz", "Netron")), strict=True)
            ratios = [own / netron for own, netron in rounds]
            against(f"{count:,} nodes: irviz over Netron, {_COMMAND}", ratios, "x", aim)
    end()


def _rounds(
    options: argparse.Namespace, place: Lab, path: Path, module: Path, count: int
) -> dict[str, list[float]]:
    """Return the seconds of each round, without what did not come."""
    asked = "?data=" + quote(json.dumps({"models": [{"url": str(path)}]}))
    peer = [options.peers, "-c"]
    irviz = [sys.executable, "-m", "irviz.cli.main", "open"]
    opened = {
        "irviz": ([*irviz, str(path), "--no-browser", "--port"], "", _IRVIZ_SHOWS),
        "irviz, TVM's JSON": ([*irviz, str(module), "--no-browser", "--port"], "", _IRVIZ_SHOWS),
        "Netron": ([*peer, _NETRON, str(path)], "", _NETRON_SHOWS % count),
        "Model Explorer": ([*peer, _MODEL_EXPLORER, str(path)], asked, _MODEL_EXPLORER_SHOWS),
    }
    seconds: dict[str, list[float]] = defaultdict(list)
    with place.notebook() as tab:
        tab.run(SETUP + MODULE.format("decoder", count))
        tab.first_paint(CELL)  # the first cell of a kernel also imports
        for _ in range(options.rounds):
            tab.clear()
            tab.run(MODULE.format("decoder", count))
            tab.clear()
            seconds["irviz, cell run -> painted"].append(tab.first_paint(CELL)["seconds"])
            for name, (command, query, shows) in opened.items():
                painted = _painted(place.browser, command, query, shows)
                if not painted:
                    print(f"{count:,} nodes: {name}: not within {_PATIENCE} s")
                for what, value in painted.items():
                    seconds[f"{name}, {what} -> painted"].append(value)
    return seconds


def _painted(chromium: Any, command: list[str], query: str, shows: str) -> dict[str, float]:
    """Serve a file and open its page in a fresh tab; return no times when no graph comes."""
    began = time.perf_counter()
    with _served(command) as url:
        context = chromium.new_context(viewport={"width": 1400, "height": 900})
        context.add_cookies([{"name": "consent", "value": "1", "url": url}])
        context.route(lambda asked: not asked.startswith(url[:20]), lambda route: route.abort())
        page = context.new_page()
        page.goto(url + query, wait_until="commit")
        # Playwright's own evaluate() uses window.eval, which Netron forbids
        asked = {"expression": _SHOWN % shows, "awaitPromise": True, "returnByValue": True}
        found = context.new_cdp_session(page).send("Runtime.evaluate", asked)
        ended = time.perf_counter()
        context.close()
    if "exceptionDetails" in found:
        return {}  # it was waited for in vain
    return {"its page": float(found["result"]["value"]), "command": ended - began}


@contextlib.contextmanager
def _served(command: list[str]) -> Iterator[str]:
    """Start a server and yield its address: the one that it prints, or that of its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    prints = "--port" in command
    process = subprocess.Popen(
        [*command, str(port)],
        stdout=subprocess.PIPE if prints else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        if process.stdout is not None:
            yield process.stdout.readline().split()[3]
        else:
            _wait_for_port(port)
            yield f"http://127.0.0.1:{port}/"
    finally:
        process.send_signal(signal.SIGINT if prints else signal.SIGKILL)
        process.wait()


def _wait_for_port(port: int) -> None:
    for _ in range(1_000):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.02)
    raise TimeoutError(f"nothing listens on port {port}")


if __name__ == "__main__":
    main()
