# ruff: noqa: N815 - fields have the names that the page has
"""The protocol between Python and the page: records, traits, and messages from the page.

`write_schema.py` generates the page's side, `src/schema.ts`, from this module, and `widget.py` the
traits. Messages are actions: a message has the action's name as `action`, and all its fields but
those that Python adds. `Annotated` has the page's type where it is another.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict, cast, get_args, get_type_hints

import msgspec

from irviz.explorer import actions
from irviz.explorer.state import Side
from irviz.session.run_overlays import OverlayKind

PaneName = Literal["toolbar", "stages", "graph", "script", "node", "status"]
"""A part of the viewer that can be shown."""


class Heading(TypedDict):
    """A pass that encloses the recorded stages below it."""

    name: str
    depth: int


class StageRow(TypedDict):
    """A stage in the tree; `depth` is how far it is indented.

    `verdict` says how its results compare, after a sign, and `verdictKind` is "good", "warn",
    "bad", "running" or "". `time` is how long the pass took, or an input of the run. `speed` says
    how many times as fast as before its schedule a PrimFunc is, "" where that was not measured, and
    `share` is that of the fastest stage. `changes` is the number of changes to its parent, -1 where
    unknown.
    """

    id: str
    label: str
    parent: str
    depth: int
    isBranch: bool
    headings: list[Heading]
    verdict: str
    verdictKind: str
    time: str
    speed: str
    share: float
    title: str
    changes: int
    isShown: bool
    isSame: bool


class FunctionRow(TypedDict):
    """A function of the module: `kind` is "Relax", "PrimFunc" or another class.

    `words` says what became of it, "" for nothing, and `changes` how much, -1 where unknown.
    """

    name: str
    kind: str
    words: str
    changes: int


class NodeFacts(TypedDict):
    """The description of a drawn node.

    `facts` is HTML; a link in it is a button that has `data-function` and `data-goto`. `group` is
    the frame around it, "" for none, and `groupName` what that is called; `isOpenable` tells that
    there is something in it to show. `isOwn` tells that it is one of the current stage's function
    itself, so that it can be an end of `LookAround`. `container` is the repeat that it is in, with
    the node's `copy`, counted from 0, of `copies`. `layer` is the name of the layer that it serves.
    """

    name: str
    kind: str
    operator: str
    type: str
    value: str
    facts: str
    function: str
    inner: str
    source: str
    group: str
    groupName: str
    isOpenable: bool
    isOwn: bool
    container: str
    copy: int
    copies: int
    layer: str


class Group(TypedDict):
    """A group that is open; `parent` is the id of the one around it, "" for none.

    The name of a dataflow block is "": nearly all of a function is in one.
    """

    name: str
    parent: str


class Picture(TypedDict):
    """The picture of a stage; `svg` is "" where it cannot be drawn, and `error` says why.

    `instead` are functions to look at where the stage lacks the one that is looked at. `nodes` has
    each drawn node by its id, in the order of the text, and `groups` each group that is open.
    """

    stage: str
    label: str
    name: str
    svg: str
    error: str
    instead: list[str]
    note: str
    facts: list[str]
    dimmed: list[str]
    nodes: dict[str, NodeFacts]
    groups: dict[str, Group]


class Loops(TypedDict):
    """The loops of a PrimFunc.

    `svg` has the nest before, if there is one, beside that after, which begins at `after` px. Each
    row has a node of the picture as `data-node`, and as `data-loop` the id of the loop or block
    that a step can be done with. `error` says why there is none.
    """

    svg: str
    after: float
    error: str


class StepField(TypedDict):
    """A parameter of a primitive; `values` are all that can be chosen, [] for any text."""

    name: str
    value: str
    values: list[str]
    example: str
    isRequired: bool


class OfferedStep(TypedDict):
    """A primitive that takes what is chosen; `summary` says what it does.

    It can be done with each of `targets`, of which "" is nothing else; with none of them for the
    `reason`. With `isTried` these are legal, or else it needs values that only the user knows.
    """

    primitive: str
    summary: str
    targets: list[str]
    fields: list[StepField]
    isTried: bool
    reason: str


class Schedule(TypedDict):
    """What can be done with the loops and blocks that are chosen in the shown PrimFunc.

    `chosen` are their ids, `refused` those that TVM's last error is about. `function` is the
    PrimFunc, "" for none, `title` what is chosen, and `facts` what it is. `isTried` tells whether
    all `steps` are there.
    """

    function: str
    chosen: list[str]
    refused: list[str]
    title: str
    facts: str
    isTried: bool
    steps: list[OfferedStep]


class Change(TypedDict):
    """What became of nodes: their ids in the two pictures; `sign` is one of + − ~ ⊃ ⊂ → ↕."""

    sign: str
    words: str
    reference: list[str]
    current: list[str]


class LegendEntry(TypedDict):
    """A line of the legend: `sample` is SVG."""

    sample: str
    words: str


class Scene(TypedDict):
    """What is looked at; `key` is `function/stage/reference`.

    Two scenes of the same `key` are the same stages and function, perhaps with something opened or
    closed. `moved` is how far that was moved, [dx, dy], or [] where it is not known. `part` says
    what `LookAround` shows, "" for the whole function. `loops` are there where the function is a
    PrimFunc.
    """

    key: str
    function: str
    current: Picture | None
    reference: Picture | None
    loops: Loops | None
    summary: str
    changes: list[Change]
    legend: list[LegendEntry]
    moved: list[float]
    part: str


class ScriptFunction(TypedDict):
    """A function in a script, from its first line to its last."""

    name: str
    first: int
    last: int


class NumPyText(TypedDict):
    """A function as loops over NumPy arrays, or a comment on why it cannot be written.

    `lines` has for each line how many lines below the function's `def` what it was made of begins
    in the TVMScript, -1 for nothing. Without a function it is what the others need.
    """

    function: str
    text: str
    lines: list[int]


class BlamedLine(TypedDict):
    """The stage whose pass changed a line last, and what is bound there in it.

    `stage` is "" where that is not known, `node` where nothing is bound.
    """

    stage: str
    function: str
    node: str


class Script(TypedDict):
    """The TVMScript of a stage's module.

    `lines` has the line of each node of Relax, by function and node. Its functions as NumPy and the
    pass that changed each line last are there where they are shown.
    """

    stage: str
    label: str
    text: str
    functions: list[ScriptFunction]
    lines: dict[str, dict[str, int]]
    numpy: list[NumPyText]
    blame: list[BlamedLine]


BlockLines = dict[str, dict[str, dict[str, int]]]
"""The lines of PrimFuncs' parameters and blocks in the text, by stage, function and node."""


class Scripts(TypedDict):
    """The scripts of both sides; none while the text is hidden."""

    current: Script | None
    reference: Script | None


class Selection(TypedDict):
    """The selected node, "" for none."""

    node: str
    side: Side


class HistoryStep(TypedDict):
    """A stage that changed a node: what it was called there, and what the pass did.

    `names` are all nodes that it was, and `node` the first that the pass changed; "" where it is
    gone.
    """

    stage: str
    label: str
    function: str
    node: str
    names: str
    words: str


class Details(TypedDict):
    """What is known of a node beside its facts: its value and its code, as HTML, and its history.

    `key` is the scene's. With no node, `value` tells what the module is, and `code` is that of the
    function.
    """

    key: str
    node: str
    side: Side
    value: str
    code: str
    history: list[HistoryStep]


class FoundNode(TypedDict):
    """A node or group that was found: its title in the picture and its layer, then the rest.

    `shown` is what the current picture shows for it, "" for nothing.
    """

    function: str
    node: str
    shown: str
    line: str
    rest: str


class Found(TypedDict):
    """The first nodes that were found, of `count`."""

    words: str
    nodes: list[FoundNode]
    count: int
    errors: list[str]


class Status(TypedDict):
    """What was said last, what is being done, and what is asked; `progress` is words.

    `making` is the name of a file that is being made, `drawing` the id of a stage that is being
    drawn; "" for none. `answer` is what the stage's last run gave, and `answerKind` is "good",
    "warn", "bad" or "". `found` says which pass or difference was looked for and found.
    """

    words: str
    isError: bool
    job: str
    progress: str
    waiting: int
    making: str
    drawing: str
    verdict: str
    answer: str
    answerKind: str
    found: str
    question: str
    canDiffer: bool
    isDimmed: bool


class PassTime(TypedDict):
    """A pass in the flame graph, before those inside it; `left` and `width` are shares of all.

    `stage` is what it made, "" where that is not known. `own` and `total` are times in words.
    """

    name: str
    stage: str
    depth: int
    left: float
    width: float
    own: str
    total: str
    isChanged: bool
    error: str


class ColourChoice(TypedDict):
    """A quantity to colour nodes by."""

    kind: OverlayKind
    label: str


class Clipboard(TypedDict):
    """A text for the clipboard; `serial` changes with each."""

    text: str
    serial: int


class WrittenTraits:
    """The traits that the page writes as well, each into the state's field of its name."""

    search: str
    tab: str = "Node"
    hasScript: bool
    hasNumpy: bool
    hasBlame: bool
    isDark: bool


WRITTEN: Mapping[str, actions.FieldName] = {
    name: cast(actions.FieldName, re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name))
    for name in get_type_hints(WrittenTraits)
}
"""The fields of the state that these traits set."""


class ViewerTraits(WrittenTraits):
    """The traits of the viewer; those without a default are empty at first.

    `still` is the class of the picture that a notebook shows where there is no viewer. `panes` are
    the parts that are shown. `height` is in px, 0 to fill the window. The page writes `selection`,
    too. `marked` are nodes of the current picture that a transform would change. `forms` are
    widgets by the name of their tab, which the page gets as references once a tab has been opened.
    """

    title: str
    still: str
    panes: list[PaneName] = list(get_args(PaneName))  # noqa: RUF012 - a viewer copies it
    height: int = 560
    rows: list[StageRow]
    canUndo: bool
    canRedo: bool
    functions: list[FunctionRow]
    scene: Scene
    scripts: Scripts
    blockLines: BlockLines
    selection: Selection
    details: Details
    marked: list[str]
    schedule: Schedule
    found: Found
    status: Status
    times: list[PassTime]
    colours: list[ColourChoice]
    colour: str
    tabs: list[str]
    forms: Annotated[dict[str, Any], dict[str, str]]
    clipboard: Clipboard


class Card(TypedDict):
    """A pass that can be chosen: its unique `name`, its `title`, its group and what it does.

    `would` says what it would change, "" where that is not known.
    """

    name: str
    title: str
    tag: str
    summary: str
    would: str


class PassPickerTraits:
    """The traits of the choice of a pass.

    The page writes `value`, which is what is typed, and `chosen`, the name of a card, "" for none.
    `cards` are those that fit the words `answered`.
    """

    value: str
    chosen: str
    cards: list[Card]
    answered: str
    placeholder: str


class ChipTraits:
    """The traits of a choice of several names; the page writes `value`."""

    options: list[str]
    value: list[str]
    label: str


class RecordedView(TypedDict):
    """The traits that change with the function, the stage and the stage compared with."""

    rows: list[StageRow]
    functions: list[FunctionRow]
    scene: Scene
    status: Status


class ToggledView(RecordedView):
    """A recorded view in which one more container is open, or one less.

    "+" has all groups open, as far as there is room, and "-" all closed.
    """

    container: str


class SearchedNode(TypedDict):
    """A node or group that can be found: words are looked for in `text`, the rest is shown."""

    node: str
    text: str
    line: str
    rest: str


class Recording(TypedDict):
    """A session that was recorded for a file without a kernel: `traits` is how it is opened.

    A scene's key is `function/stage/reference`, with the stages' ids, "" for no reference. The key
    of what is asked for is that of the view that it leads to, unless `leads` has another. What can
    be opened or closed in a view is in `toggled`, each container by itself, as far as there was
    room. `searched` has the nodes of each view without a reference, by its key; at most `mostFound`
    of them are listed.
    """

    traits: Annotated[dict[str, object], ViewerTraits]
    views: list[RecordedView]
    leads: dict[str, str]
    toggled: list[ToggledView]
    searched: dict[str, list[SearchedNode]]
    mostFound: int
    scripts: list[Script]
    details: list[Details]


class Download(TypedDict):
    """A file for the browser to save: a message to the page, whose only buffer is the content."""

    action: Literal["Download"]
    name: str
    type: str


MESSAGES: tuple[type[actions.Action], ...] = (
    *(actions.Checkout, actions.Rename, actions.Drop, actions.Undo, actions.Redo),
    *(actions.OpenFile, actions.Focus, actions.Toggle, actions.ToggleAll, actions.ShowCopy),
    *(actions.CompareCopies, actions.CompareLayers, actions.LookAround, actions.Reveal),
    actions.Compare,
    *(actions.ColourBy, actions.ShowFirstDifference, actions.Run, actions.RecordValues),
    *(actions.ChooseLoop, actions.DoStep, actions.Cancel, actions.Answer, actions.Say),
)
"""The actions that the viewer sends."""


_MESSAGE: Any = functools.reduce(operator.or_, MESSAGES)


def action_of(content: object, file: bytes | None = None) -> actions.Action | None:
    """Return a message of the page as one of these actions, None if it is none.

    Fields that have a default may be left out. The content of a file comes beside the message.
    """
    if isinstance(content, dict) and content.get("action") == actions.OpenFile.__name__:
        content = {"content": file, **content}
    try:
        # bytes are bytes: a text in their place is not read as base64
        action: actions.Action = msgspec.convert(content, _MESSAGE, builtin_types=[bytes])
    except msgspec.ValidationError:
        return None
    return action
