"""Count which operators of PyTorch and ONNX irviz imports right, and write the table of the docs.

    python bench/operators.py --write docs/operators.md

The operators are torch's core ATen operators, on calls that the samples of torch's own tests
(OpInfo) make, and those of one opset of ONNX, on ONNX's own tests of single nodes. Each call is a
model, which is opened and run, and whose results are compared with torch's or the test's. It ends
with code 1 if less than 95 % of the core ATen operators are right or computed by torch, or if a
wrong result is not said.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
import tempfile
import types
import unittest
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
import tvm
from onnx.defs import get_all_schemas_with_history, get_schema
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

import irviz
from irviz.errors import IrvizError, LoadError, RunError, UnsupportedOperatorError
from irviz.ir.framework_calls import computed_by
from irviz.loaders.loaded_model import Missing
from irviz.model.graph.graph import Resolution
from irviz.session.session import Session

OPSET = 18
SHARE = 0.95
_CALLS = 4
"""The most calls of each operator."""
_LARGEST = 10_000
_TOLERANCE = 1e-4


class Verdict(Enum):
    """What became of a call, the best first."""

    RIGHT = "right"
    COMPUTED = "by framework"
    DRAWN = "drawn"
    REFUSED = "refused"
    FAILED = "fails"
    DIFFERS = "differs, and irviz says so"
    WRONG = "wrong"


GOOD = (Verdict.RIGHT, Verdict.COMPUTED)


@dataclass(frozen=True)
class Finding:
    """The verdict on an operator's calls, the worst one, and words on it."""

    verdict: Verdict
    words: str = ""


Load = Callable[[Missing], Session]


def judged(load: Load, expected: Sequence[np.ndarray], *, is_random: bool = False) -> Finding:
    """Open and run a model, and compare its results, of random operators only shapes and dtypes."""
    opaque = False
    try:
        try:
            session = load("error")
        except UnsupportedOperatorError:
            session, opaque = load("opaque"), True
    except LoadError as failure:
        return Finding(Verdict.REFUSED, str(failure))
    if any(node.resolution is Resolution.UNKNOWN for node in session.graph().nodes):
        return Finding(Verdict.DRAWN)
    try:
        result = session.run()
    except RunError as failure:
        return Finding(Verdict.FAILED, str(failure))
    found = [output[0] for output in result.outputs]
    if words := _difference(found, expected, is_random):
        is_said = result.origin is not None and result.origin.is_different
        return Finding(Verdict.DIFFERS if is_said else Verdict.WRONG, words)
    if not opaque:
        return Finding(Verdict.RIGHT)
    computed = sum(computed_by(node.callee) != "" for node in session.graph().nodes)
    return Finding(Verdict.COMPUTED, f"{computed} calls")


def _difference(
    found: Sequence[np.ndarray], expected: Sequence[np.ndarray], is_random: bool
) -> str:
    """Return how results differ, "" if they are equal within the tolerance."""
    if len(found) != len(expected):
        return f"{len(found)} results, and not {len(expected)}"
    for one, other in zip(found, expected, strict=True):
        is_number = not other.shape and one.dtype.kind == other.dtype.kind
        if one.shape != other.shape or not (one.dtype == other.dtype or is_number):
            return f"{one.dtype}{one.shape}, and not {other.dtype}{other.shape}"
        if not is_random and one.dtype.kind not in "biu":
            wide = [each.astype("float64") for each in (one, other)]
            if not np.allclose(*wide, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True):
                return f"numbers differ by {np.nanmax(np.abs(wide[0] - wide[1])):.3g}"
        elif not is_random and not np.array_equal(one, other):
            return "integers differ"
    return ""


# --- torch ---------------------------------------------------------------------------------------


Operator = torch._ops.OpOverload


@dataclass(frozen=True)
class Call:
    """A call of an operator, with its arguments."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """The tensors among the arguments."""
        leaves = _pytree.tree_leaves((self.args, dict(self.kwargs)))
        return tuple(one for one in leaves if isinstance(one, torch.Tensor))

    @property
    def key(self) -> str:
        """What calls that test the same have in common."""

        def shown(one: Any) -> Any:
            return (one.shape, one.dtype) if isinstance(one, torch.Tensor) else one

        return repr(_pytree.tree_map(shown, (self.args, dict(self.kwargs))))


class _Calls(torch.nn.Module):
    """Makes calls with the tensors that it is given."""

    def __init__(self, operator: Operator, calls: Sequence[Call]) -> None:
        super().__init__()
        self._operator, self._calls = operator, calls

    def forward(self, *tensors: torch.Tensor) -> Any:
        given = iter(tensors)

        def filled(one: Any) -> Any:
            return next(given) if isinstance(one, torch.Tensor) else one

        results = []
        for call in self._calls:
            args, kwargs = _pytree.tree_map(filled, (call.args, dict(call.kwargs)))
            results.append(self._operator(*args, **kwargs))
        return results


def core_operators() -> list[Operator]:
    """Return torch's core ATen operators, without those that tell a size or write to arguments."""
    found = []
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        packet = getattr(torch.ops.aten, name) if space == "aten" else None
        operator = getattr(packet, schema.overload_name or "default", None)
        is_core = torch.Tag.core in getattr(operator, "tags", ()) and not name.startswith("sym_")
        if is_core and not operator._schema.is_mutable:
            found.append(operator)
    return sorted(dict.fromkeys(found), key=str)


_UNSTABLE = ("topk", "sort")


class _Recorder(TorchDispatchMode):
    """Records calls of operators, those that differ in shapes, dtypes or other arguments."""

    def __init__(self, operators: Iterable[Operator]) -> None:
        super().__init__()
        self.calls: dict[Operator, dict[str, Call]] = {one: {} for one in operators}

    def __torch_dispatch__(
        self, operator: Any, kinds: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        known = self.calls.get(operator)
        if known is not None and len(known) < _CALLS:
            name = operator.overloadpacket.__name__
            copied = _pytree.tree_map(_copied, (tuple(args), dict(kwargs or {})))
            call = Call(*copied)
            if name in _UNSTABLE and args[0].dtype is not torch.float32:
                pass  # which of several equal numbers comes first is free
            elif all(
                0 < one.numel() <= _LARGEST and one.layout is torch.strided for one in call.tensors
            ):
                known.setdefault(call.key, call)
        return operator(*args, **(kwargs or {}))


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def recorded_calls(operators: Sequence[Operator]) -> dict[Operator, list[Call]]:
    """Return calls that the samples of torch's tests make, forwards and backwards."""
    stub = types.ModuleType("expecttest")  # which torch's tests import, and samples do not need
    stub.TestCase = unittest.TestCase  # type: ignore[attr-defined]
    sys.modules.setdefault("expecttest", stub)
    from torch.testing._internal.common_methods_invocations import op_db

    torch.manual_seed(0)
    recorder = _Recorder(operators)
    for info in op_db:
        for dtype in (torch.float32, torch.int64, torch.bool):
            if dtype not in info.dtypes:
                continue
            grad = dtype.is_floating_point and info.supports_autograd
            with contextlib.suppress(Exception):  # samples that need another package or device
                samples = info.sample_inputs("cpu", dtype, requires_grad=grad)
                for sample in itertools.islice(samples, 6):
                    _record(recorder, info, sample, with_gradients=grad)
    for operator, call in _others().items():
        if operator in recorder.calls:
            recorder.calls[operator].setdefault(call.key, call)
    return {operator: list(calls.values()) for operator, calls in recorder.calls.items()}


def _record(recorder: _Recorder, info: Any, sample: Any, *, with_gradients: bool) -> None:
    with contextlib.suppress(Exception), recorder:  # what cannot be observed
        result = info.op(sample.input, *sample.args, **sample.kwargs)
        if with_gradients:
            _pytree.tree_leaves(result)[0].abs().sum().backward()


def _others() -> dict[Operator, Call]:
    """Return calls of operators that the samples do not call."""
    aten = torch.ops.aten
    x, image, volume = torch.randn(2, 3, 8), torch.randn(1, 2, 6, 6), torch.randn(1, 2, 4, 4, 4)
    return {
        aten._adaptive_avg_pool2d.default: Call((image, [3, 2]), {}),
        aten._adaptive_avg_pool3d.default: Call((volume, [2, 2, 2]), {}),
        aten.adaptive_avg_pool1d.default: Call((x, [4]), {}),
        aten._native_batch_norm_legit_no_training.default: Call(
            (image, torch.ones(2), torch.zeros(2), torch.zeros(2), torch.ones(2), 0.1, 1e-5), {}
        ),
        aten._native_batch_norm_legit.no_stats: Call(
            (image, torch.ones(2), torch.zeros(2), True, 0.1, 1e-5), {}
        ),
        **{
            operator: Call((torch.arange(6), 3), {})
            for operator in (
                *(aten.bitwise_and.Scalar, aten.bitwise_or.Scalar, aten.bitwise_xor.Scalar),
                aten.fmod.Scalar,
            )
        },
        aten.col2im.default: Call(
            (torch.randn(1, 8, 9), [4, 4], [2, 2], [1, 1], [0, 0], [1, 1]), {}
        ),
        aten.div.Scalar_mode: Call((x, 0.3), {"rounding_mode": "floor"}),
        aten.native_dropout.default: Call((x, 0.5, False), {}),
        aten.reflection_pad2d.default: Call((image, [1, 2, 0, 3]), {}),
        aten.reflection_pad3d.default: Call((volume, [1, 2, 0, 3, 1, 1]), {}),
        aten.replication_pad3d.default: Call((volume, [1, 2, 0, 3, 1, 1]), {}),
        aten.arange.start_step: Call((2, 9, 3), {}),
        aten.avg_pool1d.default: Call((x, [2]), {}),
        aten.copy.default: Call((x, torch.randn(8)), {}),
        aten.full.default: Call(([2, 3], 1.5), {}),
        aten.rand.default: Call(([2, 3],), {}),
        aten.randn.default: Call(([2, 3],), {}),
        aten.randperm.default: Call((8,), {}),
        aten.scalar_tensor.default: Call((1.5,), {}),
        aten.split_with_sizes.default: Call((x, [3, 5], 2), {}),
        aten.upsample_bilinear2d.vec: Call((image, [9, 9], False, None), {}),
        aten.upsample_nearest2d.vec: Call((image, [9, 9], None), {}),
        aten.var.dim: Call((x, [1], True), {}),
    }


_UNSET = ("empty", "empty_strided", "resize_")
"""Operators whose results nothing sets."""


def torch_finding(operator: Operator, calls: Sequence[Call], *, as_file: bool = False) -> Finding:
    """Return the worst finding of an operator's calls, by module or by .pt2.

    All calls are one model, and each is its own only where that has a fault.
    """
    together = _tried(lambda: _model_finding(operator, calls, as_file=as_file))
    if together.verdict in GOOD or len(calls) == 1:
        return together
    one = partial(_model_finding, operator, as_file=as_file)
    return _worst([_tried(partial(one, [call])) for call in calls])


def _model_finding(operator: Operator, calls: Sequence[Call], *, as_file: bool) -> Finding:
    name = operator.overloadpacket.__name__
    is_random = torch.Tag.nondeterministic_seeded in operator.tags or name in _UNSET
    model = _Calls(operator, calls)
    tensors = tuple(one for call in calls for one in call.tensors)
    with torch.no_grad():
        results = _pytree.tree_leaves(model(*map(torch.clone, tensors)))
    expected = [
        _array(one) if isinstance(one, torch.Tensor) else np.asarray(one)
        for one in results
        if one is not None
    ]

    def load(missing: Missing) -> Session:
        if not as_file:
            return irviz.load(model, inputs=tensors, missing=missing)
        named = {f"tensors_{at}": _array(one) for at, one in enumerate(tensors)}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "call.pt2")
            torch.export.save(torch.export.export(model, tensors), path)
            return irviz.load(path, inputs=named or None, missing=missing, trust=True)

    return judged(load, expected, is_random=is_random)


def _worst(found: Sequence[Finding]) -> Finding:
    order = list(Verdict)
    return max(found, key=lambda one: order.index(one.verdict))


def _tried(judge: Callable[[], Finding]) -> Finding:
    try:
        return judge()
    except IrvizError as failure:
        return Finding(Verdict.FAILED, str(failure))
    except Exception as failure:  # an error of irviz, which is a fault
        return Finding(Verdict.FAILED, f"{type(failure).__name__}: {failure}")


def _array(tensor: torch.Tensor) -> np.ndarray:
    plain = tensor.detach().resolve_conj().resolve_neg()
    return (torch.view_as_real(plain) if plain.is_complex() else plain).numpy()


# --- ONNX ----------------------------------------------------------------------------------------


def onnx_cases() -> dict[str, list[Any]]:
    """Return ONNX's tests of single nodes that are valid in the opset, by operator."""
    from onnx.backend.test.case.node import collect_testcases

    schemas = (one for one in get_all_schemas_with_history() if one.domain == "")
    names = sorted({one.name for one in schemas if one.since_version <= OPSET})
    found = {name: list[Any]() for name in names if not get_schema(name, OPSET).deprecated}
    for case in collect_testcases(None):
        nodes = case.model.graph.node
        known = found.get(nodes[0].op_type, [None] * _CALLS)
        if len(nodes) == 1 and len(known) < _CALLS and _is_valid(case):
            known.append(case)
    return found


def _is_valid(case: Any) -> bool:
    """Give a test's model the opset, and return whether it is valid in it and takes arrays."""
    model = case.model
    arrays = all(
        isinstance(one, np.ndarray | np.generic) for each in case.data_sets[0] for one in each
    )
    if not arrays or len(model.opset_import) != 1 or model.opset_import[0].domain:
        return False
    model.opset_import[0].version = OPSET
    model.ir_version = min(model.ir_version, 8)
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception:  # its classes are several
        return False
    return True


def onnx_finding(cases: Sequence[Any]) -> Finding:
    """Return the worst finding of an operator's tests."""
    found = [_tried(partial(_case_finding, case)) for case in cases]
    worst, computed = _worst(found), sum(one.verdict is Verdict.COMPUTED for one in found)
    return Finding(worst.verdict, f"{computed} calls") if worst.verdict in GOOD else worst


def _case_finding(case: Any) -> Finding:
    inputs, outputs = ([np.asarray(one) for one in each] for each in case.data_sets[0])
    names = [one.name for one in case.model.graph.input]
    given = dict(zip(names, inputs, strict=False)) or None
    return judged(
        lambda missing: irviz.load(case.model, inputs=given, missing=missing),
        outputs,
        is_random=case.model.graph.node[0].op_type == "Bernoulli",
    )


# --- the page ------------------------------------------------------------------------------------


_PAGE = """# Operators

`python bench/operators.py --write docs/operators.md` makes this page, with torch {torch},
ONNX {onnx} and TVM {tvm}.

- **right**: TVM computes the same as torch, or as ONNX's tests say.
- **by framework**: TVM lacks the operator, or some of its arguments. `missing="opaque"` opens such
  a model, and torch or ONNX's reference evaluator computes these calls.
- **drawn**: the model opens with `missing="opaque"`, but does not run.
- **refused**: an error names the operator.
- **fails**: the model opens, and the build or the run ends with an error.
- **differs**: the results are others, and the run's comparison with torch or ONNX says so.

{counts}

## Core ATen operators of torch

Each operator is called a few times, as the samples of torch's own tests call it: by a module, and
by a `.pt2` file. Operators that only tell a size, or write to their arguments, are left out. Of
random operators only shapes and dtypes are compared. Where torch computes only some of the calls,
their number is given: TVM lacks, for example, reductions of tensors without dimensions.

| operator | calls | module | `.pt2` |
| --- | --- | --- | --- |
{torch_rows}

## ONNX's operators of opset {opset}

Each operator is tried on up to {calls} of ONNX's own tests of single nodes that are valid in this
opset. The worst of them counts. Tests often give as inputs what is constant in models, such as
axes.

| operator | tests | `.onnx` |
| --- | --- | --- |
{onnx_rows}
"""


def main() -> int:
    """Count, print and write; return 1 if an aim is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument("--only", default="", help="operators whose names contain this")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    operators = [one for one in core_operators() if options.only in str(one)]
    calls = recorded_calls(operators)
    found: dict[str, dict[str, tuple[int, Finding]]] = {"module": {}, ".pt2": {}, ".onnx": {}}
    for operator in operators:
        for kind, is_file in (("module", False), (".pt2", True)):
            finding = torch_finding(operator, calls[operator], as_file=is_file)
            _note(found, kind, str(operator), len(calls[operator]), finding)
    for name, cases in onnx_cases().items():
        if options.only in name and cases:
            _note(found, ".onnx", name, len(cases), onnx_finding(cases))
    counts = {
        kind: Counter(one.verdict for _, one in findings.values())
        for kind, findings in found.items()
    }
    good = sum(counts["module"][one] for one in GOOD)
    wrong = sum(one[Verdict.WRONG] for one in counts.values())
    print(_counted(counts))
    print(
        f"right or by framework: {good} of {len(operators)}, at least {SHARE:.0%}; "
        f"wrong: {wrong}, none"
    )
    if options.write:
        options.write.write_text(_page(found, counts), encoding="utf-8")
    return int(good < SHARE * len(operators) or wrong > 0)


def _note(found: Any, kind: str, name: str, calls: int, finding: Finding) -> None:
    found[kind][name] = calls, finding
    if finding.verdict is not Verdict.RIGHT:
        print(f"{name} ({kind}): {finding.verdict.value} {finding.words[:300]}", flush=True)


def _counted(counts: Mapping[str, Counter[Verdict]]) -> str:
    used = [one for one in Verdict if any(count[one] for count in counts.values())]
    head = " | ".join(one.value for one in used)
    rows = [
        f"| {kind} | {' | '.join(str(count[one]) for one in used)} | {count.total()} |"
        for kind, count in counts.items()
    ]
    return "\n".join([f"| by | {head} | all |", f"|{' --- |' * (len(used) + 2)}", *rows])


def _page(
    found: Mapping[str, Mapping[str, tuple[int, Finding]]], counts: Mapping[str, Counter[Verdict]]
) -> str:
    torch_rows = [
        f"| `{name}` | {calls} | {_cell(one, calls)} | {_cell(found['.pt2'][name][1], calls)} |"
        for name, (calls, one) in found["module"].items()
    ]
    onnx_rows = [
        f"| `{name}` | {calls} | {_cell(one, calls)} |"
        for name, (calls, one) in found[".onnx"].items()
    ]
    return _PAGE.format(
        torch=torch.__version__.partition("+")[0],
        onnx=onnx.__version__,
        tvm=tvm.__version__,
        calls=_CALLS,
        opset=OPSET,
        counts=_counted(counts),
        torch_rows="\n".join(torch_rows),
        onnx_rows="\n".join(onnx_rows),
    )


def _cell(finding: Finding, calls: int) -> str:
    computed = int(finding.words.split()[0]) if finding.verdict is Verdict.COMPUTED else calls
    words = f", {computed} of {calls}" if computed < calls else ""
    return finding.verdict.value.partition(",")[0] + words


if __name__ == "__main__":
    raise SystemExit(main())
