"""Declarations of figures, the TOML files that hold them, and words in other languages."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from irviz.errors import DrawError, LoadError
from irviz.session.run_overlays import OVERLAYS, OverlayKind

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Kind = Literal[
    "graph",
    "arguments",
    "buffers",
    "stages",
    "parts",
    "code",
    "numpy",
    "loops",
    "history",
    "picture",
]
Language = Literal["en", "zh", "ko"]
Words: TypeAlias = "str | Mapping[str, str]"
"""Words in all languages alike, or by language."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_FORMATS = ("svg", "pdf", "png")


@dataclass(frozen=True)
class Declaration:
    """The content of a figure; each attribute is a key of the TOML file and an option of `figure`.

    Attributes:
        name: The name of its file, without a suffix.
        program: `package.module:attribute`, or a file: what `irviz.load` takes.
        kind: "graph": the computational graph. "arguments": allocations and calls as a graph that
            has an edge for each argument, a failed attempt, because outputs are arguments too.
            "buffers": the same with what a call writes as its output. "stages": a graph after each
            transform. "parts": what a function is made of. "code": functions as text. "numpy":
            functions beside what they are as loops over NumPy arrays. "loops": a loop nest, or what
            each step of a schedule does to it. "history": what the passes made of the node
            `around`, which has this name in the last of the `stages`. "picture": the Figure that
            the program, a function, returns, as it is: it is not fitted to a slide.
        module: Which module of a file that has several.
        function: Which function; by default that of the session.
        functions: For "code" and "numpy": which functions, in order; by default the one.
        transforms: Names of passes, or `package.module:attribute` of a pass, applied in order.
        stages: The stages that are drawn, by their numbers; by default the last one, and for
            "stages" all.
        columns: For "graph": in how many columns it is broken, where it is too long for a slide.
        groups: The ids of groups, calls and frames that are expanded, "open", or not, "closed".
        names: Other names of nodes, by their ids or by what they call, and of frames, by their ids.
        variables: Other names of variables in code, such as of those that a pass named.
        overlay: For "graph": what the colours of nodes stand for, as in `Session.draw_overlay`.
        around: A variable, to draw only the nodes at most `uses` uses away from it.
        uses: How many uses.
        captions: For "stages": the words above each stage; for "loops": the title of each step.
        arrows: The words above each arrow between panels, by default what a transform is called;
            one more, the first, for an arrow before the first panel.
        schedule: For "loops": `package.module:attribute` of a function that takes a Schedule.
        step: Which of its steps, from 1; 0 for a figure of each.
        callouts: What to show beside nodes, or below the last of the `stages`: "binding" for their
            line of TVMScript, "callee" for the function that they call, "numpy" for its loops.
        notes: A few words beside nodes; for "code", by the beginnings of lines, behind these.
        highlight: The nodes with a thick outline.
        hide: The beginnings of lines of TVMScript, Python and loop nests that are left out; the
            frames of dataflow blocks are, where it has "with R.dataflow(".
        source: References to the Python functions whose text is drawn at the left, such as those
            that built the program.
        pairs: For "code": a list of the beginnings of lines for each number. These lines, and those
            indented below them, have the number and its colour, also in the `source`.
        target: For "stages": what the last stage is built for, such as "llvm"; the parts of the
            executable are drawn behind it.
        title: The line above the picture.
        description: What screen readers read; by default it is made of the program.
        direction: Where data flows, "up" or "down".
        theme: "course", "light", "dark" or "print".
        size: The width and height that the figure may take of a slide, in points; by default all
            of one of 16:9.
        min_text: The smallest size of text that is accepted, in points on the slide; by default
            what is readable from the last row.
        languages: Those to draw it in: "en", "zh", "ko". The file of the first has the name alone.
    """

    name: str
    program: object
    kind: Kind = "graph"
    module: str = ""
    function: str = ""
    functions: Sequence[str] = ()
    transforms: Sequence[object] = ()
    stages: Sequence[str] = ()
    columns: int = 1
    groups: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    overlay: OverlayKind | Literal[""] = ""
    around: str = ""
    uses: int = 1
    captions: Sequence[Words] = ()
    arrows: Sequence[Words] = ()
    schedule: object = ""
    step: int = 0
    callouts: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Words] = field(default_factory=dict)
    highlight: Sequence[str] = ()
    hide: Sequence[str] = ("T.reads(", "T.writes(", '# with T.sblock("root")', "T.func_attr(")
    source: Sequence[object] = ()
    pairs: Sequence[Sequence[str]] = ()
    target: str = ""
    title: Words = ""
    description: Words = ""
    direction: str = "up"
    theme: str = "course"
    size: Sequence[float] = (960.0, 540.0)
    min_text: float = 14.0
    languages: Sequence[Language] = ("en",)

    def __post_init__(self) -> None:
        """Check what has a few choices; raise DrawError for another one."""
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise DrawError(
                f"{self.name!r} is not a name for a figure: use letters, digits, - and _"
            )
        chosen = [("kind", self.kind, get_args(Kind)), ("direction", self.direction, _DIRECTIONS)]
        chosen += [("language", one, get_args(Language)) for one in self.languages]
        chosen += [("callout", one, _CALLOUTS) for one in self.callouts.values()]
        chosen += [("state of a group", one, _GROUPS) for one in self.groups.values()]
        if self.overlay:
            chosen.append(("overlay", self.overlay, tuple(OVERLAYS)))
        for what, value, known in chosen:
            if value not in known:
                raise DrawError(
                    f"figure {self.name!r}: there is no {what} {value!r}; choose one of "
                    f"{', '.join(known)}"
                )
        if not self.languages:
            raise DrawError(f"figure {self.name!r}: give at least one language")
        if len(self.size) != 2 or min(self.size) <= 0:
            raise DrawError(f"figure {self.name!r}: size is [width, height] in points")


_DIRECTIONS = ("up", "down")
_CALLOUTS = ("binding", "callee", "numpy")
_GROUPS = ("open", "closed")


@dataclass(frozen=True)
class FigureList:
    """The figures of a file.

    Attributes:
        root: The folder of the file: programs are found from there.
        folder: The folder that the figures are written to.
        formats: The suffixes of the written files, without dots; only "svg" is checked.
    """

    root: Path
    folder: Path
    declarations: Sequence[Declaration]
    formats: Sequence[str] = ("svg",)


def read_declarations(path: Path) -> FigureList:
    """Read a `figures.toml`; nothing that it names is imported or read yet.

    Raises:
        LoadError: It is not TOML, or a key or a value is not one of a declaration.
        DrawError: As `Declaration` does.
        OSError: It cannot be read.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LoadError(
            f"there is no {path}: declare figures in it, as docs/figures.md shows, or name another "
            "file with --file"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LoadError(f"{path} is not TOML: {error}") from None
    known = {"folder": str, "formats": list, "defaults": dict, "figure": list}
    _check(str(path), data, known)
    formats = tuple(data.get("formats", ["svg"]))
    for one in formats:
        if one not in _FORMATS:
            raise LoadError(f"{path}: there is no format {one!r}: use {', '.join(_FORMATS)}")
    defaults = data.get("defaults", {})
    declarations: list[Declaration] = []
    for number, table in enumerate(data.get("figure", []), start=1):
        if not isinstance(table, dict):
            raise LoadError(f"{path}: write each figure as a table that begins with [[figure]]")
        where = f"{path}, figure {table.get('name', number)!r}"
        options = {**defaults, **table}
        _check(where, options, _TYPES)
        for key in ("name", "program"):
            if key not in options:
                raise LoadError(f"{where}: there is no {key!r}")
        declarations.append(Declaration(**options))
    names = [one.name for one in declarations]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise LoadError(f"{path}: two figures are called {twice!r}")
    root = path.absolute().parent
    return FigureList(root, root / data.get("folder", "figures"), declarations, formats)


def _toml_type(annotation: str) -> Any:
    """Return what a value of TOML may be for the annotation of an attribute."""
    if annotation.startswith("Sequence"):
        return list
    if annotation.startswith("Mapping"):
        return dict
    return {"Words": (str, dict), "int": int, "float": (int, float)}.get(annotation, str)


_TYPES = {one.name: _toml_type(str(one.type)) for one in fields(Declaration)}


def _check(where: str, table: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for key, value in table.items():
        if key not in known:
            raise LoadError(f"{where}: there is no key {key!r}; known are {', '.join(known)}")
        kinds = known[key] if isinstance(known[key], tuple) else (known[key],)
        if not isinstance(value, kinds) or isinstance(value, bool):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise LoadError(f"{where}: {key} is {value!r}, which is no {wanted}")


_WORDS: Mapping[str, Mapping[str, str]] = {
    "function": {"zh": "函数", "ko": "함수"},
    "loop nest": {"zh": "循环嵌套", "ko": "루프 중첩"},
    "block": {"zh": "块", "ko": "블록"},
    "initial value": {"zh": "初始值", "ko": "초깃값"},
    "writes": {"zh": "写入", "ko": "쓰기"},
    "computational graph of {0}": {"zh": "{0} 的计算图", "ko": "{0}의 계산 그래프"},
    "calls of {0}, with all arguments as inputs": {
        "zh": "{0} 的调用，所有参数都作为输入",
        "ko": "{0}의 호출, 모든 인자를 입력으로",
    },
    "buffers of {0}, and the calls that write them": {
        "zh": "{0} 的缓冲区，以及写入它们的调用",
        "ko": "{0}의 버퍼와 그것에 쓰는 호출",
    },
    "{0} after each transform": {"zh": "每次变换后的 {0}", "ko": "각 변환 후의 {0}"},
    "parts of {0}": {"zh": "{0} 的组成部分", "ko": "{0}의 구성 요소"},
    "{0} as text": {"zh": "{0} 的代码", "ko": "{0}의 코드"},
    "{0} in TVMScript and in NumPy": {
        "zh": "{0} 的 TVMScript 与 NumPy",
        "ko": "TVMScript와 NumPy로 쓴 {0}",
    },
    "loop nest of {0}": {"zh": "{0} 的循环嵌套", "ko": "{0}의 루프 중첩"},
    "… {0} unchanged": {"zh": "… {0} 行未改变", "ko": "… {0}개 행 변경 없음"},
    "… {0} added": {"zh": "… {0} 行新增", "ko": "… {0}개 행 추가"},
    "… {0} removed": {"zh": "… {0} 行删除", "ko": "… {0}개 행 삭제"},
    "… {0} more rows": {"zh": "… {0} 行未显示", "ko": "… {0}개 행 생략"},
    "added": {"zh": "新增", "ko": "추가"},
    "removed": {"zh": "删除", "ko": "삭제"},
    "changed": {"zh": "改变", "ko": "변경"},
    "several became one": {"zh": "多变一", "ko": "여럿이 하나로"},
    "one became several": {"zh": "一变多", "ko": "하나가 여럿으로"},
    "reordered or moved": {"zh": "重排或移动", "ko": "순서 변경 또는 이동"},
    "(R): reduction axis": {"zh": "(R)：归约轴", "ko": "(R): 축소 축"},
    "pale: unchanged": {"zh": "浅色：未改变", "ko": "흐림: 변경 없음"},
    "split": {"zh": "拆分", "ko": "분할"},
    "fused": {"zh": "融合", "ko": "융합"},
    "fused and split": {"zh": "融合并拆分", "ko": "융합 후 분할"},
    "reordered": {"zh": "重排", "ko": "순서 변경"},
    "in another order": {"zh": "遍历顺序不同", "ko": "다른 순서로"},
    "in reverse order": {"zh": "遍历顺序相反", "ko": "역순으로"},
    "moved": {"zh": "移动", "ko": "이동"},
    "renamed": {"zh": "重命名", "ko": "이름 변경"},
    "axes": {"zh": "轴", "ko": "축"},
    "bindings": {"zh": "绑定", "ko": "바인딩"},
    "extent": {"zh": "范围", "ko": "범위"},
    "start": {"zh": "起点", "ko": "시작"},
    "step": {"zh": "步长", "ko": "간격"},
    "serial": {"zh": "串行", "ko": "순차"},
    "annotations": {"zh": "注解", "ko": "어노테이션"},
    "inlined": {"zh": "内联", "ko": "인라인"},
    "inlined into {0}": {"zh": "内联到 {0}", "ko": "{0}에 인라인"},
    "shape": {"zh": "形状", "ko": "형태"},
    "dtype": {"zh": "数据类型", "ko": "자료형"},
    "memory layout": {"zh": "内存布局", "ko": "메모리 배치"},
    "storage scope": {"zh": "存储作用域", "ko": "저장 범위"},
    "loop {1} of {0}": {"zh": "{0} 的循环 {1}", "ko": "{0}의 루프 {1}"},
    "loops {1} of {0}": {"zh": "{0} 的循环 {1}", "ko": "{0}의 루프 {1}"},
    "history of {0}": {"zh": "{0} 的变换历史", "ko": "{0}의 변환 이력"},
}


def say(words: str, language: str, *values: str) -> str:
    """Return words in a language, with values in the places of {0}, {1} …"""
    text = words if language == "en" else _WORDS[words][language]
    return text.format(*values) if values else text


_LOOPS = re.compile(r"(loops?) (\d+(?:, \d+)*) of (\w+)")
_COUNT = re.compile(r"… ([\d,]+) (\w.*)")
_INLINED = "inlined into "


def say_each(text: str, language: str) -> str:
    """Return what the picture of a loop nest says in a language: words between commas, and loops.

    Names, and what irviz has no words for, stay as they are.
    """
    if language == "en":
        return text
    if counted := _COUNT.fullmatch(text):
        return say(f"… {{0}} {counted[2]}", language, counted[1])
    if text.startswith(_INLINED):
        return say("inlined into {0}", language, text.removeprefix(_INLINED))
    text = ", ".join(_WORDS.get(one, {}).get(language, one) for one in text.split(", "))
    return _LOOPS.sub(lambda one: say(f"{one[1]} {{1}} of {{0}}", language, one[3], one[2]), text)


def in_language(words: Words, language: str) -> str:
    """Return the words of a declaration in a language, in English where it has none in this."""
    if isinstance(words, str):
        return words
    return words.get(language) or words.get("en") or next(iter(words.values()), "")
