"""The modules of the MLC course's chapter on end-to-end model execution, in TVM 0.27's dialect.

One network throughout: (1, 784) -> linear -> relu -> linear -> (1, 10), float32, weights as
(out, in). ``main`` takes ``x, w0, b0, w1, b1``. Each module is a step of the chapter. The modules
that call ``env.linear`` and ``env.relu`` run only where kernels with these names are registered;
building them needs none.

TVM takes 0.2 s to parse a file of modules, so each is imported at its first use.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tvm import IRModule

    MyModule: IRModule
    MyModuleStatic: IRModule
    MyModuleTwoBlocks: IRModule
    MyModuleWithExternCall: IRModule
    MyModuleMixture: IRModule
    MyModuleHighLevel: IRModule
    MODULES: dict[str, IRModule]

_HOMES: Final = {
    "MyModule": "mlp_symbolic",
    "MyModuleStatic": "mlp_static",
    "MyModuleTwoBlocks": "mlp_symbolic",
    "MyModuleWithExternCall": "mlp_symbolic",
    "MyModuleMixture": "mlp_symbolic",
    "MyModuleHighLevel": "mlp_high_level",
}


def __getattr__(name: str) -> object:
    if name == "MODULES":  # all of them, by the names of the chapter
        return {each: __getattr__(each) for each in _HOMES}
    if name in _HOMES:
        return resolve_name(f"irviz.course.{_HOMES[name]}:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
