"""One difference, and what it is a difference of."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Aspect(Enum):
    """What differs between a node, a function or a module before and after."""

    CALLEE = "callee"
    BODY = "callee's body"
    LOWERED = "operator lowered to a PrimFunc"
    OPERATION = "operation"
    OPERAND = "operand"
    SHAPE = "shape"
    DTYPE = "dtype"
    TYPE = "type"
    DEVICE = "virtual device"
    ATTRIBUTE = "attribute"
    PURITY = "purity"
    VALUE = "value of the constant"
    BOUND = "parameter bound to a constant"
    BLOCK = "block"
    ORDER = "order"
    RESULT = "result"
    NAME = "name"
    KIND = "kind of function"
    LOOPS = "loops and blocks"
    AXES = "axes"
    STATEMENT = "statement"
    READS = "reads"
    WRITES = "writes"
    PREDICATE = "condition"
    SCOPE = "storage scope"


class Difference(NamedTuple):
    """One difference, as text; "" stands for nothing.

    Attributes:
        what: Which operand or attribute it is: `(0,)` is written `0`, `(1, 2)` is `1.2`.
    """

    aspect: Aspect
    before: str
    after: str
    what: str = ""

    def __str__(self) -> str:
        """Return the difference in words, such as `operand 1: lv2 → lv3`."""
        what = f"{self.aspect.value} {self.what}".strip()
        if not self.before and not self.after:
            return what
        return f"{what}: {self.before or 'none'} → {self.after or 'none'}"
