"""A pass that is a plain Python function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tvm import ir

from irviz.runtime.local.pickle_by_value import PortableFunction
from irviz.transforms.passes.user_function_source import define_function
from irviz.transforms.python_script import PythonScript
from irviz.transforms.transform import Transform


@dataclass(frozen=True)
class FunctionPass(Transform):
    """A function from a module to a module, which the worker tries first."""

    function: Callable[[ir.IRModule], object]
    name: str

    @property
    def label(self) -> str:
        """The name of the function."""
        return self.name

    @property
    def tried_as(self) -> FunctionPass:
        """The same pass, with the function's code."""
        return replace(self, function=PortableFunction(self.function))

    @property
    def evaluates_code(self) -> bool:
        """Always true, because what the function does is unknown."""
        return True

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Call the function; raise TypeError unless it returns a module."""
        made = self.function(mod)
        if not isinstance(made, ir.IRModule):
            raise TypeError(
                f"{self.name} returned {type(made).__name__}, not an IRModule: a pass is a "
                "function that takes a module and returns one"
            )
        return made

    def write(self, script: PythonScript, *_: object) -> None:
        """Write the function, if a script can have all that it uses."""
        self.write_failing(script)

    def write_failing(self, script: PythonScript) -> None:
        """Write the function, if a script can have all that it uses."""
        script.add(f"mod = {define_function(self.function, script)}(mod)")
