"""What the tests of TVM's passes share: a pass applied in a session, with all that it promises."""

from collections.abc import Callable

import pytest
import tvm
from tvm_ffi import structural_equal

from irviz.session.session import Session
from irviz.transforms.apply_transform import apply_transform
from irviz.transforms.passes.as_transform import as_transform
from irviz.transforms.stage import Stage
from irviz.worker.supervisor import TRIES


@pytest.fixture(scope="session")
def makes() -> Callable[..., Session]:
    """Return the function that applies a pass to Before and holds the new stage against Expected.

    The stage it was applied to must be as before. A pass given by name is run in the worker too:
    what comes back from there is as expected.
    """

    def makes(before: tvm.IRModule, transform: object, expected: tvm.IRModule, **arguments: object):
        assert not structural_equal(before, expected)  # else a pass that does nothing would do
        was = tvm.ir.save_json(before)
        wrapped = as_transform(transform, arguments)
        given = Session(before)
        session = given.apply(transform, **arguments)

        assert session.current.error == ""
        tvm.ir.assert_structural_equal(session.current.module, expected)
        here = apply_transform(Stage("0", before), wrapped, "1", isolate=False)
        assert here.error == ""
        tvm.ir.assert_structural_equal(here.module, expected)
        if isinstance(transform, str):
            tvm.ir.assert_structural_equal(
                TRIES.call(wrapped, before, answer=tvm.IRModule), expected
            )

        assert (session.current.id, session.current.parent) == ("1", "0")
        assert session.stages == (given.current, session.current)
        assert session.stage("0").module is before
        assert tvm.ir.save_json(before) == was
        return session

    return makes
