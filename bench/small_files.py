"""Measure what small files cost that were made to be large, with the bars.

    python bench/small_files.py                         every construction and operation
    python bench/small_files.py doubled_tuples chain    only these constructions

Each operation runs in a process of its own, on a file of less than 100 kB that was opened. It must
end within 10 seconds and 500 MB more than before, with a result or with an error of irviz's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import irviz
from irviz.session.session import Session

SECONDS, BYTES = 10.0, 500 << 20
_MOST_SECONDS = 15
"""When an operation is ended."""
_HEAD = "from tvm.script import ir as I, relax as R, tirx as T\n\n@I.ir_module\nclass Module:\n"
_TENSOR = 'R.Tensor((2, 2), "float32")'


def main() -> None:
    """Run the constructions that were asked for, all of them by default."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(CONSTRUCTIONS)}")
    options = parser.parse_args()
    missed = 0
    irviz.Session  # noqa: B018 (imported before the first fork)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or CONSTRUCTIONS:
            file = Path(folder, f"{name}.py")
            file.write_text(CONSTRUCTIONS[name](), encoding="utf-8")
            missed += _construction(name, file)
    print(f"{missed} missed")
    raise SystemExit(bool(missed))


def _construction(name: str, file: Path) -> int:
    missed = 0
    size = file.stat().st_size
    sessions: list[Session] = []
    results = {"load": _measured_here(lambda: sessions.append(irviz.load(file)))}
    for session in sessions:
        for operation, work in _operations(session, file).items():
            results[operation] = _measured(work)
    for operation, (seconds, nbytes, error, is_fault) in results.items():
        is_missed = is_fault or seconds > SECONDS or nbytes > BYTES
        missed += is_missed
        end = "   MISSED" if is_missed else ""
        if is_missed or error:
            what = f"{name} ({size:,} bytes): {operation}"
            print(f"{what}: {seconds:.1f} s, {nbytes >> 20} MB {error[:150]}{end}", flush=True)
    slowest = max(results, key=lambda one: results[one][0])
    print(f"{name}: {len(results)} operations, {slowest} {results[slowest][0]:.1f} s", flush=True)
    return missed


def _measured_here(work: Callable[[], object]) -> tuple[float, int, str, bool]:
    start = time.perf_counter()
    error, is_fault = _outcome(work)
    return time.perf_counter() - start, 0, error, is_fault


def _measured(work: Callable[[], object]) -> tuple[float, int, str, bool]:
    """Return seconds, bytes, the words of an error, and whether it is none of irviz's."""
    reads, writes = os.pipe()
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        signal.alarm(_MOST_SECONDS)
        os.setpgid(0, 0)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answer = (*_outcome(work), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        os.write(writes, json.dumps(answer).encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        content = pipe.read()
    seconds = time.perf_counter() - start
    os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not content:
        return seconds, 0, "ended without an answer", True
    error, is_fault, kilobytes = json.loads(content)
    return seconds, kilobytes << 10, error, is_fault


def _outcome(work: Callable[[], object]) -> tuple[str, bool]:
    try:
        work()
    except irviz.IrvizError as failure:
        return " ".join(str(failure).split())[:300], False
    except BaseException as failure:
        place = traceback.extract_tb(failure.__traceback__)[-1]
        return (
            f"{type(failure).__name__}: {str(failure)[:80]} ({place.filename}:{place.lineno})",
            True,
        )
    return "", False


def _operations(session: Session, file: Path) -> dict[str, Callable[[], object]]:
    """Return what is done with an opened file, by name."""
    run = session.trust().with_run_config(seconds=SECONDS - 3)  # starting and ending take 2 s

    def lowered() -> object:
        found = session.apply("LegalizeOps")
        first, last = found.stages[0].id, found.stages[-1].id
        return found.diff(first, last).text(), found.history(found.graph(first).nodes[0].id)

    return {
        "draw": lambda: session.draw().svg,
        "every function": lambda: [
            session.select_function(name).draw().svg for name in session.functions[:20]
        ],
        "text": lambda: session.script().text,
        "diff": lambda: irviz.diff(file, file).text(),
        "lowered": lowered,
        "memory": lambda: session.draw_memory().svg,
        "values": run.trace,
        "run": run.run,
        "to_numpy": lambda: irviz.to_numpy(session.stages[0].module).source,
        "to_python": session.to_python,
        "save": lambda: session.save(file.with_suffix(".irviz")),
        "html": lambda: session.save_html(file.with_suffix(".html")),
        "destination passing": lambda: session.draw_destination_passing().svg,
    }


def _module(*functions: str) -> str:
    return _HEAD + "\n".join(functions)


def _relax(
    lines: Iterable[str], result: str, params: str = f"x: {_TENSOR}", name: str = "main"
) -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return f"    @R.function\n    def {name}({params}):\n{body}        return {result}\n"


def _prim_func(lines: Iterable[str], name: str = "kernel", shape: str = "(2, 2)") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    params = ", ".join(f'{one}: T.Buffer({shape}, "float32")' for one in "AB")
    return f"    @T.prim_func\n    def {name}({params}):\n{body}"


_CALL = f"        y = R.call_tir(cls.kernel, (x,), out_ty={_TENSOR})\n"
_MAIN = (
    f"    @R.function\n    def main(x: {_TENSOR}) -> {_TENSOR}:\n        cls = Module\n{_CALL}"
    "        return y\n"
)
_ADD = [
    "for i, j in T.grid(2, 2):",
    '    with T.sblock("C"):',
    '        vi, vj = T.axis.remap("SS", [i, j])',
    "        B[vi, vj] = A[vi, vj] + T.float32(1)",
]


def _doubled_tuples(count: int = 17) -> str:
    lines = ["t0 = (x, x)", *(f"t{at} = (t{at - 1}, t{at - 1})" for at in range(1, count))]
    return _module(_relax(lines, f"t{count - 1}"))


def _doubled_tuples_of_block() -> str:
    lines = ["with R.dataflow():", "    t0 = (x, x)"]
    lines += [f"    t{at} = (t{at - 1}, t{at - 1})" for at in range(1, 16)]
    return _module(_relax([*lines, "    gv = t15", "    R.output(gv)"], "gv"))


def _calls(each: int, depth: int) -> str:
    """Return functions each of which calls the next several times."""
    functions = []
    for at in range(depth):
        name = "main" if at == 0 else f"f{at}"
        lines = ["cls = Module", "y0 = x"]
        if at + 1 < depth:
            lines += [f"y{n + 1}: {_TENSOR} = cls.f{at + 1}(y{n})" for n in range(each)]
        else:
            lines += [f"y{n + 1} = R.exp(y{n})" for n in range(each)]
        functions.append(
            _relax(lines, f"y{each}", f"x: {_TENSOR}", name).replace(
                "):\n", f") -> {_TENSOR}:\n", 1
            )
        )
    return _module(*functions)


def _prim_funcs(count: int) -> str:
    short = ["for i in T.serial(2):", "    B[i] = A[i]"]
    return _module(
        _MAIN.replace("kernel", "k0").replace("(2, 2)", "(2,)"),
        *(_prim_func(short, f"k{at}", "(2,)") for at in range(count)),
    )


def _nested_ifs(depth: int) -> str:
    lines, indent = [], ""
    for _ in range(depth):
        lines.append(f"{indent}if c:")
        indent += "    "
    lines.append(f"{indent}y = R.exp(x)")
    for _ in range(depth):
        indent = indent[:-4]
        lines += [f"{indent}else:", f"{indent}    y = R.tanh(x)"]
    return _module(_relax(lines, "y", f'x: {_TENSOR}, c: R.Tensor((), "bool")'))


def _sequential_ifs(count: int) -> str:
    lines = ["y0 = x"]
    for at in range(count):
        lines += [
            "if c:",
            f"    y{at + 1} = R.exp(y{at})",
            "else:",
            f"    y{at + 1} = R.tanh(y{at})",
        ]
    return _module(_relax(lines, f"y{count}", f'x: {_TENSOR}, c: R.Tensor((), "bool")'))


def _nested_loops(depth: int, extent: int = 1) -> str:
    lines = [f"{' ' * at}for i{at} in T.serial({extent}):" for at in range(depth)]
    return _module(_MAIN, _prim_func([*lines, f"{' ' * depth}B[0, 0] = A[0, 0]"]))


def _chain(count: int) -> str:
    return _module(
        _relax(
            ["y0 = x", *(f"y{at} = R.exp(y{at - 1})" for at in range(1, count))], f"y{count - 1}"
        )
    )


def _layers(width: int, depth: int) -> str:
    """Return layers in which each value uses all of the layer before."""
    lines = [f"v0_{n} = R.exp(x)" for n in range(width)]
    for at in range(1, depth):
        operands = ", ".join(f"v{at - 1}_{n}" for n in range(width))
        lines += [f"v{at}_{n} = R.concat(({operands}), axis={n % 2})" for n in range(width)]
    return _module(_relax(lines, f"v{depth - 1}_0"))


def _pairs(width: int) -> str:
    """Return values that are all added in pairs."""
    lines = [f"v{n} = R.exp(x)" for n in range(width)]
    lines += [f"w{n}_{m} = R.add(v{n}, v{m})" for n in range(width) for m in range(n)]
    return _module(_relax(lines, "w1_0"))


def _wide_tuple(count: int) -> str:
    return _module(_relax([f"t = ({'x, ' * count})"], "t"))


def _params(count: int) -> str:
    params = ", ".join(f"p{at}: {_TENSOR}" for at in range(count))
    return _module(_relax(["y = R.exp(p0)"], "y", params))


def _nested_tuple(depth: int) -> str:
    return _module(_relax([f"t = {'(' * depth}x{',)' * depth}"], "t"))


def _chained_tuples(depth: int) -> str:
    return _module(
        _relax(
            ["t0 = (x,)", *(f"t{at} = (t{at - 1}, x)" for at in range(1, depth))], f"t{depth - 1}"
        )
    )


def _items(depth: int) -> str:
    lines = ["t0 = (x, x)"]
    for at in range(1, depth):
        lines += [f"a{at} = t{at - 1}[0]", f"b{at} = t{at - 1}[1]", f"t{at} = (b{at}, a{at})"]
    return _module(_relax(lines, f"t{depth - 1}"))


def _expression(count: int) -> str:
    return _module(_MAIN, _prim_func([f"B[0, 0] = {' + '.join(['A[0, 0]'] * count)}"]))


def _doubled_shapes(count: int) -> str:
    lines = ["n = T.int64()", 'y0 = R.match_cast(x, R.Tensor((n, 2), "float32"))']
    lines += [f"y{at} = R.concat((y{at - 1}, y{at - 1}), axis=0)" for at in range(1, count)]
    return _module(_relax(lines, f"y{count - 1}", 'x: R.Tensor(ndim=2, dtype="float32")'))


def _doubled_lets(count: int) -> str:
    lines = ["x0 = A[0, 0]", *(f"x{at}: T.let = x{at - 1} + x{at - 1}" for at in range(1, count))]
    lines[0] = "x0: T.let = A[0, 0]"
    return _module(_MAIN, _prim_func([*lines, f"B[0, 0] = x{count - 1}"]))


def _large_loops() -> str:
    return _module(
        _MAIN,
        _prim_func(
            ["for i, j, k in T.grid(1048576, 1048576, 1048576):", "    B[0, 0] = B[0, 0] + A[0, 0]"]
        ),
    )


def _large_block_domain() -> str:
    lines = [
        "for i, j, k in T.grid(2, 2, 1099511627776):",
        '    with T.sblock("C"):',
        '        vi, vj, vk = T.axis.remap("SSR", [i, j, k])',
        "        B[vi, vj] = B[vi, vj] + A[vi, vj]",
    ]
    return _module(_MAIN, _prim_func(lines))


def _large_zeros() -> str:
    return _module(
        _relax(['y = R.zeros(R.shape([1048576, 1048576]), "float32")', "z = R.sum(y)"], "z")
    )


def _large_input() -> str:
    return _module(_relax(["y = R.exp(x)"], "y", 'x: R.Tensor((1048576, 1048576), "float32")'))


def _blocks(count: int) -> str:
    lines = [
        line
        for at in range(count)
        for line in (_ADD[0], _ADD[1].replace('"C"', f'"C{at}"'), *_ADD[2:])
    ]
    return _module(_MAIN, _prim_func(lines))


def _dataflow_blocks(count: int) -> str:
    lines = ["y0 = x"]
    for at in range(count):
        lines += ["with R.dataflow():", f"    y{at + 1} = R.exp(y{at})", f"    R.output(y{at + 1})"]
    return _module(_relax(lines, f"y{count}"))


def _long_name() -> str:
    name = "y" * 40_000
    return _module(_relax([f"{name} = R.exp(x)"], name))


def _long_string() -> str:
    return _module(_relax([f'R.func_attr({{"text": "{"t" * 90_000}"}})', "y = R.exp(x)"], "y"))


def _outputs(count: int) -> str:
    types = ", ".join(["R.Tensor((2, 2), 'float32')"] * count)
    kernel = ", ".join(f'B{at}: T.Buffer((2, 2), "float32")' for at in range(count))
    function = (
        f'    @T.prim_func\n    def kernel(A: T.Buffer((2, 2), "float32"), {kernel}):\n'
        "        B0[0, 0] = A[0, 0]\n"
    )
    return _module(
        _relax(
            [
                "cls = Module",
                f"y = R.call_tir(cls.kernel, (x,), out_ty=[{types}])",
                *(f"z{at} = y[{at}]" for at in range(count)),
            ],
            "y",
        ),
        function,
    )


def _constants(count: int) -> str:
    return _module(
        _relax(
            [
                "y0 = x",
                *(
                    f'y{at} = R.add(y{at - 1}, R.const({at}.5, "float32"))'
                    for at in range(1, count)
                ),
            ],
            f"y{count - 1}",
        )
    )


def _recursive() -> str:
    both = ["cls = Module", f"y: {_TENSOR} = cls.OTHER(x)", f"z: {_TENSOR} = cls.OTHER(y)"]
    functions = []
    for name, other in (("main", "f"), ("f", "main")):
        lines = [line.replace("OTHER", other) for line in both]
        functions.append(
            _relax(lines, "z", f"x: {_TENSOR}", name).replace("):\n", f") -> {_TENSOR}:\n", 1)
        )
    return _module(*functions)


def _everybody_calls_everybody(count: int) -> str:
    functions = []
    for at in range(count):
        lines = ["cls = Module", "y0 = x"]
        callees = range(at + 1, count)
        lines += [f"y{n - at}: {_TENSOR} = cls.f{n}(y{n - at - 1})" for n in callees]
        name = "main" if at == 0 else f"f{at}"
        functions.append(
            _relax(lines, f"y{len(callees)}", f"x: {_TENSOR}", name).replace(
                "):\n", f") -> {_TENSOR}:\n", 1
            )
        )
    return _module(*functions)


def _local_functions(depth: int) -> str:
    lines, indent = [], ""
    for at in range(depth):
        lines += [f"{indent}@R.function", f"{indent}def f{at}(x{at}: {_TENSOR}) -> {_TENSOR}:"]
        indent += "    "
    lines.append(f"{indent}return x{depth - 1}")
    for at in reversed(range(depth)):
        indent = indent[:-4]
        before = "x" if at == 0 else f"x{at - 1}"
        lines += [f"{indent}y{at}: {_TENSOR} = f{at}({before})"]
        lines += [f"{indent}return y{at}"] if at else []
    return _module(_relax(lines, "y0"))


def _fused(count: int) -> str:
    return _module(
        _relax(
            [
                "y0 = x",
                *(f"y{at} = R.matmul(R.exp(R.add(y{at - 1}, x)), x)" for at in range(1, count)),
            ],
            f"y{count - 1}",
        )
    )


def _dimensions(count: int) -> str:
    shape = ", ".join(["1"] * count)
    return _module(_relax(["y = R.exp(x)"], "y", f'x: R.Tensor(({shape}), "float32")'))


def _allocations(count: int) -> str:
    lines = [
        f'y{at} = R.builtin.alloc_tensor(R.shape([2, 2]), R.dtype("float32"), 0)'
        for at in range(count)
    ]
    return _module(_relax([*lines, f"t = ({', '.join(f'y{at}' for at in range(count))})"], "t"))


CONSTRUCTIONS: dict[str, Callable[[], str]] = {
    "doubled_tuples": _doubled_tuples,
    "doubled_tuples_more": lambda: _doubled_tuples(30),
    "doubled_tuples_of_block": _doubled_tuples_of_block,
    "chained_tuples": lambda: _chained_tuples(300),
    "nested_tuple": lambda: _nested_tuple(80),
    "wide_tuple": lambda: _wide_tuple(20_000),
    "items": lambda: _items(500),
    "calls_twice": lambda: _calls(2, 30),
    "calls_thirty_times": lambda: _calls(30, 6),
    "calls_everybody": lambda: _everybody_calls_everybody(30),
    "calls_in_a_chain": lambda: _calls(1, 470),
    "recursive": _recursive,
    "local_functions": lambda: _local_functions(25),
    "prim_funcs": lambda: _prim_funcs(680),
    "blocks": lambda: _blocks(400),
    "dataflow_blocks": lambda: _dataflow_blocks(900),
    "nested_ifs": lambda: _nested_ifs(60),
    "sequential_ifs": lambda: _sequential_ifs(500),
    "nested_loops": lambda: _nested_loops(98),
    "nested_loops_of_two": lambda: _nested_loops(60, 2),
    "large_loops": _large_loops,
    "large_block_domain": _large_block_domain,
    "large_zeros": _large_zeros,
    "large_input": _large_input,
    "chain": lambda: _chain(3_400),
    "fused_chain": lambda: _fused(1_000),
    "layers": lambda: _layers(30, 13),
    "pairs": lambda: _pairs(60),
    "params": lambda: _params(2_500),
    "constants": lambda: _constants(1_500),
    "outputs": lambda: _outputs(500),
    "allocations": lambda: _allocations(1_000),
    "expression": lambda: _expression(3_000),
    "doubled_shapes": lambda: _doubled_shapes(60),
    "doubled_lets": lambda: _doubled_lets(60),
    "long_name": _long_name,
    "long_string": _long_string,
    "dimensions": lambda: _dimensions(5_000),
    "unused_functions": lambda: (
        _calls(1, 2) + "\n".join(_relax(["y = R.exp(x)"], "y", name=f"g{at}") for at in range(500))
    ),
    "same_names": lambda: _module(_relax([*("y = R.exp(x)" for _ in range(2_500))], "y")),
}


if __name__ == "__main__":
    main()
