"""Write the page's declarations, `src/schema.ts`."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import cleandoc
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from irviz.explorer.viewer import schema

TARGET = Path(__file__).parent / "src" / "schema.ts"
_HEADER = (
    "// Generated from schema.py by `python -m irviz.explorer.viewer.write_schema`. Do not edit."
)
_NAMES = {str: "string", bool: "boolean", int: "number", float: "number", object: "unknown"}
_ALIASES = [(name, one) for name, one in vars(schema).items() if get_origin(one) in (Literal, dict)]
"""The types that have a name in the page, too."""


def typescript() -> str:
    """Return the declarations of the page's types, traits and messages."""
    aliases = (f"export type {name} = {_written(one)};" for name, one in _ALIASES)
    own = (one for one in vars(schema).values() if isinstance(one, type))
    records = (_record(one) for one in own if one.__module__ == schema.__name__)
    traits = "".join(f'\n  "{name}",' for name in get_type_hints(schema.ViewerTraits))
    names = f"export const TRAITS: readonly (keyof ViewerTraits)[] = [{traits}\n];"
    messages = (_message(kind) for kind in schema.MESSAGES)
    union = "".join(f"\n  | {kind.__name__}" for kind in schema.MESSAGES)
    parts = (*aliases, *records, names, *messages, f"export type ViewerMessage ={union};")
    return "\n\n".join((_HEADER, *parts)) + "\n"


def _record(kind: type) -> str:
    hints = get_type_hints(kind, include_extras=True)
    return _interface(kind, (f"{name}: {_type(hint)};" for name, hint in hints.items()))


def _message(kind: type) -> str:
    """Return the declaration of an action, without the fields that JSON cannot hold."""
    fields = (
        f"{field.encode_name}: {_type(field.type)};"
        for field in msgspec.structs.fields(kind)
        if field.type is not bytes and get_origin(field.type) is not tuple
    )
    return _interface(kind, (f'action: "{kind.__name__}";', *fields))


def _interface(kind: type, fields: Iterable[str]) -> str:
    words = cleandoc(kind.__doc__ or "").replace("\n", "\n * ").replace(" * \n", " *\n")
    body = "".join(f"\n  {field}" for field in fields)
    return f"/** {words} */\nexport interface {kind.__name__} {{{body}\n}}"


def _type(hint: Any) -> str:
    """Return a type, by its name where it has one."""
    return next((name for name, one in _ALIASES if one == hint), "") or _written(hint)


def _written(hint: Any) -> str:
    """Return a type as TypeScript."""
    arguments = get_args(hint)
    match get_origin(hint):
        case None:
            kind = getattr(hint, "__supertype__", hint)  # that of a NewType
            return "null" if kind is NoneType else _NAMES.get(kind) or str(kind.__name__)
        case origin if origin is Annotated:
            return _type(arguments[1])
        case origin if origin is Literal:
            return " | ".join(f'"{one}"' for one in arguments)
        case origin if origin is list:
            element = _type(*arguments)
            return f"({element})[]" if "|" in element else f"{element}[]"
        case origin if origin is dict:
            return f"Record<{', '.join(map(_type, arguments))}>"
        case origin if origin in (Union, UnionType):
            return " | ".join(map(_type, arguments))
    raise TypeError(f"the page has no type for {hint}")


if __name__ == "__main__":
    TARGET.write_text(typescript(), encoding="utf-8")
