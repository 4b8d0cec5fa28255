"""Call a stage as the first one is called: by the position of the arguments.

The name of the function, its parameters and the dtypes of its results are its interface. A pass may
turn parameters into constants or into fields of a tuple; callers notice any other change.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from tvm import ir, relax

from irviz.errors import RunError
from irviz.ir.check_arguments import Argument, TypeMismatchError, check_argument
from irviz.ir.labels import type_label
from irviz.ir.module_functions import relax_functions
from irviz.ir.symbolic_shapes import parameter_types
from irviz.runtime.argument_lists import Cases

INTERFACE = "another interface"
"""What the words begin with if a stage cannot be called as the first one is."""


class InterfaceError(RunError):
    """A stage cannot be called as the first one is."""


class UnfitSizesError(Exception):
    """A stage has made a size fixed, and the arguments have another one."""


def fitted(cases: Cases, before: ir.BaseFunc, after: ir.BaseFunc) -> Cases:
    """Return the arguments of a function for those of the function that it was made of.

    Raises InterfaceError if they cannot be given to it, UnfitSizesError if it takes other sizes.
    """
    _check_results(before, after)
    wanted, types = parameter_types(before), parameter_types(after)
    columns, names = dict(zip(wanted, cases.columns, strict=True)), list(types)
    if names != list(wanted) and set(names) == set(wanted):
        raise _changed_parameters(before, after)
    left = [name for name in wanted if name in types]
    if len(types) == len(wanted) and _all_alike(wanted.values(), types.values()):
        chosen = list(columns.values())
    elif left == names and _all_alike((wanted[name] for name in names), types.values()):
        chosen = [columns[name] for name in names]
    else:
        rows = [_regrouped(case, list(types.values())) for case in cases]
        whole = [row for row in rows if row is not None]
        if not whole:
            raise _changed_parameters(before, after)
        chosen = [list(column) for column in zip(*whole, strict=True)]
    dims: dict[str, int] = {}
    made = Cases(chosen)
    try:
        for value, (name, type_) in zip(made[0], types.items(), strict=True):
            check_argument(name, value, type_, dims)
    except TypeMismatchError:
        raise UnfitSizesError from None
    return made


def renamed(first: ir.IRModule, mod: ir.IRModule, function: str) -> str:
    """Return the new name of a public Relax function that a module lacks, "" if there is none."""
    old = relax_functions(first).get(function)
    if old is None or function in mod or not _is_public(old):
        return ""
    before = relax_functions(first)
    return next(
        (
            name
            for name, one in relax_functions(mod).items()
            if name not in before
            and _is_public(one)
            and len(one.params) == len(old.params)
            and all(_are_alike(a.ty, b.ty) for a, b in zip(one.params, old.params, strict=True))
            and _are_alike(one.ret_ty, old.ret_ty)
        ),
        "",
    )


def _is_public(function: relax.Function) -> bool:
    return bool(function.attrs) and "global_symbol" in function.attrs.keys()  # noqa: SIM118


def _check_results(before: ir.BaseFunc, after: ir.BaseFunc) -> None:
    if isinstance(before, relax.Function) and isinstance(after, relax.Function):
        old, new = before.ret_ty, after.ret_ty
        if not _are_alike(old, new):
            raise InterfaceError(
                f"{INTERFACE}: it returns {type_label(new)}, and returned {type_label(old)}"
            )


def _are_alike(one: ir.Type, other: ir.Type) -> bool:
    """Return whether types have the same form and dtypes, as far as that is known of both."""
    if isinstance(one, ir.TupleType) and isinstance(other, ir.TupleType):
        pairs = zip(one.fields, other.fields, strict=False)
        return len(one.fields) == len(other.fields) and all(itertools.starmap(_are_alike, pairs))
    if isinstance(one, ir.TupleType | relax.TensorType) and isinstance(
        other, ir.TupleType | relax.TensorType
    ):
        if not (isinstance(one, relax.TensorType) and isinstance(other, relax.TensorType)):
            return False
        dtypes = {str(type_.dtype) for type_ in (one, other) if type_.dtype is not None}
        ranks = {type_.ndim for type_ in (one, other) if type_.ndim >= 0}
        return len(dtypes) < 2 and len(ranks) < 2
    return True


def _all_alike(some: Iterable[ir.Type], others: Iterable[ir.Type]) -> bool:
    return all(itertools.starmap(_are_alike, zip(some, others, strict=True)))


def _changed_parameters(before: ir.BaseFunc, after: ir.BaseFunc) -> InterfaceError:
    texts = [
        ", ".join(f"{name}: {type_label(type_)}" for name, type_ in parameter_types(one).items())
        for one in (after, before)
    ]
    return InterfaceError(f"{INTERFACE}: its parameters are {texts[0]}; they were {texts[1]}")


def _leaves(value: Argument) -> list[Argument]:
    if isinstance(value, tuple):
        return [leaf for one in value for leaf in _leaves(one)]
    return [value]


def _regrouped(values: Sequence[Argument], types: Sequence[ir.Type]) -> list[Argument] | None:
    """Return values in tuples as types have them, None if there are others."""
    left = iter([leaf for value in values for leaf in _leaves(value)])

    def taken(type_: ir.Type) -> Argument:
        if isinstance(type_, ir.TupleType):
            return tuple(taken(one) for one in type_.fields)
        return next(left)

    try:
        made = [taken(type_) for type_ in types]
        for value, type_ in zip(made, types, strict=True):
            dtype = getattr(type_, "dtype", None)
            if isinstance(value, np.ndarray) and str(value.dtype) != str(dtype or value.dtype):
                return None
    except (StopIteration, RuntimeError):
        return None
    return made if next(left, None) is None else None
