"""The parameters of a pass are read from its signature, with what its docstring says of them."""

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Optional

import numpy as np
import pytest
import tvm
from tvm import ir, relax

from irviz.transforms.passes import pass_metadata
from irviz.transforms.passes.catalog import catalog, find
from irviz.transforms.passes.parameters import (
    ParameterHint,
    ParameterKind,
    PassParameter,
    first_sentence,
    parameter_sentences,
    read_parameters,
)

Kind = ParameterKind


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


def of(annotation, *default):
    """Return the parameter of a function that is annotated so."""

    def make(given):
        pass

    make.__annotations__ = {"given": annotation}
    make.__defaults__ = default or None
    (parameter,) = read_parameters(make)
    return parameter


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        (bool, Kind.BOOL),
        (int, Kind.INT),
        (int | None, Kind.INT),
        (Optional[int], Kind.INT),  # noqa: UP045 - as older code has it
        (float, Kind.FLOAT),
        (str, Kind.STR),
        ("str", Kind.STR),
        (Literal["a", "b"], Kind.CHOICE),
        (Level, Kind.CHOICE),
        (list[str], Kind.LIST),
        (Sequence[int], Kind.LIST),
        (tvm.target.Target, Kind.TARGET),
        (str | tvm.target.Target, Kind.TARGET),
        (relax.VDevice, Kind.DEVICE),
        (relax.Var, Kind.VARS),
        (relax.Var | list[relax.Var] | None, Kind.VARS),
        (list[relax.Var], Kind.VARS),
        (dict[str, tvm.runtime.Tensor], Kind.PARAMS),
        (dict[str, np.ndarray], Kind.PARAMS),
        (Mapping[str | ir.Var, ir.Expr], Kind.DIMS),
        (dict[str, int], Kind.DIMS),
        (dict[str, list[str]], Kind.LAYOUTS),
        (list[relax.transform.FusionPattern | tuple], Kind.PATTERNS),
        (Callable[[relax.Var], relax.Type], Kind.CODE),
        (dict, Kind.CODE),
        (list, Kind.CODE),
        (list[Level], Kind.CODE),
        (int | str, Kind.CODE),
        ("NobodyKnowsThis", Kind.CODE),
    ],
    ids=str,
)
def test_the_annotation_says_the_kind(annotation, kind):
    assert of(annotation).kind is kind


@pytest.mark.parametrize(
    ("default", "kind"),
    [(True, Kind.BOOL), (2, Kind.INT), (0.5, Kind.FLOAT), ("text", Kind.STR), (None, Kind.CODE)],
)
def test_without_an_annotation_the_default_does(default, kind):
    def make(given=default):
        pass

    assert read_parameters(make) == (PassParameter("given", kind, default),)


def test_a_parameter_without_a_default_is_required():
    assert of(int).is_required
    assert not of(int, 3).is_required
    assert of(int, 3).default == 3
    assert of(int | None, None).default is None


def test_an_enum_is_chosen_from_by_the_names_of_its_members():
    parameter = of(Level, Level.HIGH)
    assert (parameter.choices, parameter.default, parameter.item) == (
        ("LOW", "HIGH"),
        "HIGH",
        Level,
    )
    assert of(Literal["a", "b"]).choices == ("a", "b")


def test_a_list_says_what_it_holds():
    assert of(list[int]).item is int
    assert of(list[str]).item is str


def test_names_say_what_is_meant_where_the_annotation_is_only_text():
    def make(func_name: str, entry_functions: list[str], other: str):
        pass

    assert [one.kind for one in read_parameters(make)] == [Kind.FUNCTION, Kind.FUNCTIONS, Kind.STR]


def test_a_hint_says_what_the_signature_does_not():
    def make(scope, level: int):
        pass

    chosen = read_parameters(
        make, {"scope": ParameterHint(choices=("a", "b")), "level": ParameterHint(first=7)}
    )
    assert (chosen[0].kind, chosen[0].choices) == (Kind.CHOICE, ("a", "b"))
    assert (chosen[1].kind, chosen[1].begins_with) == (Kind.INT, 7)


def test_what_takes_anything_has_no_parameters():
    def make(*args, **kwargs):
        pass

    assert read_parameters(make) == ()


def test_the_first_sentence_is_whole_however_its_lines_are_broken():
    def make():
        """Do this and
        that. And more.

        Not this.
        """

    def plain():
        """Do this"""

    assert first_sentence(make) == "Do this and that."
    assert first_sentence(plain) == "Do this"
    assert first_sentence(lambda: None) == ""


def test_each_parameter_has_the_first_sentence_that_is_said_of_it():
    def make():
        """Do it.

        Parameters
        ----------
        one : int
            What it is
            for. And more.
        two: Optional[str]

            After an empty line.

        Returns
        -------
        three : int
            No parameter.
        """

    assert parameter_sentences(make) == {
        "one": "What it is for.",
        "two": "After an empty line.",
    }


def test_tvms_own_signatures_are_read_as_they_are_meant():
    def kinds(name):
        return {one.name: one.kind for one in find(name).parameters}

    assert kinds("Gradient") == {
        "func_name": Kind.FUNCTION,
        "require_grads": Kind.VARS,
        "target_index": Kind.INT,
    }
    assert kinds("BindParams") == {"func_name": Kind.FUNCTION, "params": Kind.PARAMS}
    assert kinds("BindSymbolicVars") == {"binding_map": Kind.DIMS, "func_name": Kind.FUNCTION}
    assert kinds("ConvertLayout") == {"desired_layouts": Kind.LAYOUTS, "layout_cb": Kind.CODE}
    assert kinds("BindTarget") == {"target": Kind.TARGET}
    assert kinds("LegalizeOps") == {
        "customize_legalize_map": Kind.CODE,
        "skip_ops": Kind.LIST,
        "enable_warning": Kind.BOOL,
    }
    (shared,) = find("LiftTransformParams").parameters
    assert (shared.kind, shared.also) == (Kind.BOOL, Kind.FUNCTIONS)


def test_what_is_said_of_a_pass_is_about_passes_that_are_there():
    """A later TVM may call them otherwise."""
    entries = {entry.name: entry for entry in catalog()}
    for name, parameters in pass_metadata.PARAMETERS.items():
        assert parameters.keys() <= {one.name for one in entries[name].parameters}, name
    for names in (
        pass_metadata.FOR_OPERATORS,
        pass_metadata.MEASURED,
        pass_metadata.AROUND,
        pass_metadata.ANNOTATED,
    ):
        assert set(names) <= entries.keys()


def test_choices_are_those_that_tvm_knows():
    mod = ir.IRModule({})
    chosen = [(e, one) for e in catalog() for one in e.parameters if one.choices]
    assert len(chosen) >= 8
    for entry, parameter in chosen:
        for choice in parameter.choices:
            entry.make(**{parameter.name: choice})(mod)


def test_most_parameters_are_explained():
    parameters = [one for entry in catalog() for one in entry.parameters]
    assert sum(bool(one.summary) for one in parameters) > 0.9 * len(parameters)
