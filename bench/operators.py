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
import itertools
import sys
import tempfile
import types
import unittest
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx.defs import SchemaError, get_all_schemas_with_history, get_schema
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

import irviz
from irviz.errors import IrvizError, LoadError, RunError, UnsupportedOperatorError
from irviz.loaders.loaded_model import Missing
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
    TORCH = "by torch"
    DRAWN = "drawn"
    REFUSED = "refused"
    FAILED = "fails"
    DIFFERS = "differs, and irviz says so"
    WRONG = "wrong"


GOOD = (Verdict.RIGHT, Verdict.TORCH)


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
    if any(node.callee.startswith("onnx.") for node in session.graph().nodes):
        return Finding(Verdict.DRAWN)
    try:
        result = session.run()
    except RunError as failure:
        return Finding(Verdict.FAILED, str(failure))
    found = [output[0] for output in result.outputs]
    if words := _difference(found, expected, is_random):
        is_said = result.origin is not None and result.origin.is_different
        return Finding(Verdict.DIFFERS if is_said else Verdict.WRONG, words)
    return Finding(Verdict.TORCH if opaque else Verdict.RIGHT)


def _difference(
    found: Sequence[np.ndarray], expected: Sequence[np.ndarray], is_random: bool
) -> str:
    """Return how results differ, "" if they are equal within the tolerance."""
    if len(found) != len(expected):
        return f"{len(found)} results, and not {len(expected)}"
    for one, other in zip(found, expected, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
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

    def module(self, operator: Operator) -> torch.nn.Module:
        """Return a module that makes this call with the tensors that it is given."""
        leaves, structure = _pytree.tree_flatten((self.args, dict(self.kwargs)))

        class Calling(torch.nn.Module):
            def forward(self, *tensors: torch.Tensor) -> Any:
                left = iter(tensors)
                given = [next(left) if isinstance(one, torch.Tensor) else one for one in leaves]
                args, kwargs = _pytree.tree_unflatten(given, structure)
                return operator(*args, **kwargs)

        return Calling()


def core_operators() -> list[Operator]:
    """Return torch's core ATen operators on tensors, without those that only tell sizes."""
    found = []
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        packet = getattr(torch.ops.aten, name) if space == "aten" else None
        operator = getattr(packet, schema.overload_name or "default", None)
        if torch.Tag.core in getattr(operator, "tags", ()) and not name.startswith("sym_"):
            found.append(operator)
    return sorted(dict.fromkeys(found), key=str)


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
            copied = _pytree.tree_map(_copied, (tuple(args), dict(kwargs or {})))
            call = Call(*copied)
            if all(0 < one.numel() <= _LARGEST and one.layout is torch.strided for one in call.tensors):
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

    recorder = _Recorder(operators)
    for info in op_db:
        for dtype in (torch.float32, torch.int64, torch.bool):
            if dtype not in info.dtypes:
                continue
            grad = dtype.is_floating_point and info.supports_autograd
            try:
                samples = list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=grad), 6))
            except Exception:  # a sample that needs another package or device
                continue
            for sample in samples:
                try:
                    with recorder:
                        result = info.op(sample.input, *sample.args, **sample.kwargs)
                        if grad:
                            _pytree.tree_leaves(result)[0].abs().sum().backward()
                except Exception:  # an operator that cannot be observed
                    continue
    for operator, call in _others().items():
        if operator in recorder.calls:
            recorder.calls[operator].setdefault(call.key, call)
    return {operator: list(calls.values()) for operator, calls in recorder.calls.items()}


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
    """Return the worst finding of an operator's calls, by module or by .pt2."""
    name = operator.overloadpacket.__name__
    is_random = torch.Tag.nondeterministic_seeded in operator.tags or name in _UNSET
    found = []
    for call in calls:
        module, tensors = call.module(operator), call.tensors
        with torch.no_grad():
            results = _pytree.tree_leaves(module(*map(torch.clone, tensors)))
        expected = [_array(one) for one in results if isinstance(one, torch.Tensor)]

        def load(missing: Missing, module: Any = module, tensors: Any = tensors) -> Session:
            if not as_file:
                return irviz.load(module, inputs=tensors, missing=missing)
            named = {f"tensors_{at}": _array(one) for at, one in enumerate(tensors)}
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "call.pt2")
                torch.export.save(torch.export.export(module, tensors), path)
                return irviz.load(path, inputs=named or None, missing=missing)

        found.append(_tried(lambda: judged(load, expected, is_random=is_random)))
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

    names = {one.name for one in get_all_schemas_with_history() if one.domain == ""}
    found: dict[str, list[Any]] = {}
    for name in sorted(names):
        try:
            if not get_schema(name, OPSET).deprecated:
                found[name] = []
        except SchemaError:  # it is newer
            continue
    for case in collect_testcases(None):
        nodes = case.model.graph.node
        known = found.get(nodes[0].op_type)
        if len(nodes) == 1 and known is not None and len(known) < _CALLS and _is_valid(case.model):
            known.append(case)
    return found


def _is_valid(model: onnx.ModelProto) -> bool:
    """Give a model the opset, and return whether it is valid in it."""
    if len(model.opset_import) != 1 or model.opset_import[0].domain:
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
    found = []
    for case in cases:
        inputs, outputs = case.data_sets[0]
        names = [one.name for one in case.model.graph.input]
        if not all(isinstance(one, np.ndarray) for one in (*inputs, *outputs)):
            continue
        given = dict(zip(names, inputs, strict=False))
        load = lambda missing: irviz.load(case.model, inputs=given or None, missing=missing)
        found.append(_tried(lambda: judged(load, outputs)))
    order = list(Verdict)
    if not found:
        return Finding(Verdict.REFUSED, "no test")
    return max(found, key=lambda one: order.index(one.verdict))


def main():
    warnings.simplefilter("ignore")
    only = sys.argv[1:]
    ops = core_operators()
    calls = recorded_calls(ops)
    print("no call", [str(o) for o in ops if not calls[o]])
    import collections, time
    n = collections.Counter()
    for o in ops:
        if not calls[o] or (only and not any(x in str(o) for x in only)): continue
        t=time.time()
        f = torch_finding(o, calls[o])
        n[f.verdict]+=1
        if f.verdict is not Verdict.RIGHT: print(o, len(calls[o]), f.verdict.value, f.words[:300], round(time.time()-t,1), flush=True)
    print(n)
main()
