# ruff: noqa: F841, N805, N812, RET504
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""What a function holds is what TVM's virtual machine holds when it runs, step by step."""

import ctypes

import numpy as np
import pytest
import tvm
import tvm_ffi
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tvm import IRModule, relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from irviz.course.mlp import MODULES
from irviz.errors import InputError, RunError
from irviz.ir.function_graph import extract
from irviz.ir.module_functions import NoFunctionError
from irviz.model.graph.graph import inlined_id
from irviz.runtime.call_inputs import plan_inputs
from irviz.runtime.simulate_memory import SimulatedMemory, memory_use
from irviz.worker.supervisor import CrashedError

pytestmark = pytest.mark.worker

ANYTHING = "irviz.test.memory.anything"
tvm.register_global_func(ANYTHING, lambda *_: None, override=True)


@I.ir_module
class Calls:
    """A function that is called twice with other sizes, a tuple, views and what follows them."""

    @R.function
    def twice(x: R.Tensor(("n", "n"), "float32")) -> R.Tensor(("n", "n"), "float32"):
        n = T.int64()
        a = R.exp(x)
        b = R.add(a, x)
        return b

    @R.function
    def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((8, 8), "float32")):
        cls = Calls
        e = cls.twice(x)
        t = (e, y)
        g = R.exp(t[0])
        h = cls.twice(y)
        with R.dataflow():
            flat = R.reshape(h, (64,))
            s = R.exp(flat)
            R.output(s)
        k = R.exp(s)
        return (k, g)


@I.ir_module
class View:
    """A view that is used when the name of what it looks at is not any more."""

    @R.function
    def main(x: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            e = R.exp(x)
            flat = R.reshape(e, (16,))
            s = R.exp(flat)
            t = R.add(s, flat)
            u = R.exp(t)
            R.output(u)
        return u


@I.ir_module
class Branches:
    """Branches that hold more and less; what the first holds is of no use to the other."""

    @R.function
    def main(x: R.Tensor((4, 4), "float32"), c: R.Tensor((), "bool")):
        e = R.exp(x)
        if c:
            z = R.add(e, x)
            k = R.concat((z, z), axis=0)
            w = R.exp(k)
            q = R.sum(w)
        else:
            q = R.sum(e)
        last = R.exp(q)
        return last


@I.ir_module
class SharedByBranches:
    """Branches of which TVM plans both to use the storage that only the first allocates."""

    @R.function
    def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")):
        e = R.exp(x)
        if c:
            z = R.add(e, x)
            k = R.add(z, e)
        else:
            z1 = R.multiply(e, x)
            k = R.exp(z1)
        return k


@I.ir_module
class EndlessCalls:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = EndlessCalls
        y = R.exp(x)
        z = cls.main(y)
        return z


def held_by_machine(mod, arguments, function="main"):
    """Run a module and return what is held at each call of a kernel, and at most at any call.

    Storages are counted while somebody but this function refers to them; what they take is what
    they were asked for with.
    """
    machine = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    inner = {gvar.name_hint for gvar, f in mod.functions.items() if isinstance(f, relax.Function)}
    storages, live, peak = [], [], 0

    def watch(_, name, before, result, *values):
        nonlocal peak
        if not before:
            if name == "vm.builtin.alloc_storage":
                storages.append((result, int(values[1][0])))
            return
        held = sum(size for storage, size in storages if _references(storage) > 1)
        peak = max(peak, held)
        if not name.startswith("vm.builtin.") and name not in inner and name != "shape_func":
            live.append(held)

    machine.set_instrument(watch)
    machine[function](*arguments)
    return tuple(live), peak


def _references(value):
    """Return how many references there are: the lower half of what an object begins with."""
    return ctypes.c_uint64.from_address(value.__chandle__()).value & 0xFFFFFFFF


def tensors(mod, inputs=None):
    (case,) = plan_inputs(mod["main"], inputs, {}).argument_lists()
    return [tvm.runtime.tensor(np.asarray(array)) for array in case]


def resized(mod):
    """Let all library calls call a function that takes whatever it is given."""
    return IRModule(
        {
            gvar: tvm_ffi.structural_map(
                function, (relax.ExternFunc, lambda _: relax.ExternFunc(ANYTHING))
            )
            for gvar, function in mod.functions.items()
        }
    )


# --- against the virtual machine -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["MyModuleStatic", "MyModuleHighLevel"])
def test_the_lectures_modules_hold_what_the_machine_holds(name):
    use = memory_use(MODULES[name])
    assert (use.live, use.peak) == held_by_machine(MODULES[name], tensors(MODULES[name]))


@pytest.mark.parametrize("name", ["SameTwice", "ReturnedConstants", "TwoOutputs", "Dtypes"])
def test_small_modules_hold_what_the_machine_holds(modules, name):
    mod = getattr(modules, name)
    use = memory_use(mod)
    assert (use.live, use.peak) == held_by_machine(mod, tensors(mod))


def test_a_stack_of_layers_holds_what_the_machine_holds(modules):
    mod = modules.stack(8)
    use = memory_use(mod)
    assert (use.live, use.peak) == held_by_machine(mod, tensors(mod))
    assert len(use.steps) == 50
    assert use.peak < use.unplanned / 8


def test_called_functions_and_views_hold_what_the_machine_holds():
    use = memory_use(Calls)
    assert (use.live, use.peak) == held_by_machine(Calls, tensors(Calls))


def test_a_view_holds_what_it_looks_at():
    use = memory_use(View)
    assert (use.live, use.peak) == held_by_machine(View, tensors(View))
    assert [step.name for step in use.steps].count("reshape") == 0


@pytest.mark.parametrize(
    ("condition", "steps"), [(True, [0, 1, 2, 3, 4, 6]), (False, [0, 5, 6])], ids=["then", "else"]
)
def test_each_branch_holds_what_the_machine_holds_there(condition, steps):
    use = memory_use(Branches)
    inputs = {"x": np.ones((4, 4), "float32"), "c": np.array(condition)}
    live, peak = held_by_machine(Branches, tensors(Branches, inputs))
    assert tuple(use.live[step] for step in steps) == live
    assert use.peak >= peak


def test_of_an_if_the_peak_is_the_larger_branchs():
    use = memory_use(Branches)
    assert use.steps[use.peak_step].node == "k"
    assert use.peak == 64 + 128 + 128  # e, a storage for z and then w, and k
    assert use.unplanned == 64 + (64 + 128 + 128 + 4) + 4


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_is_written_holds_what_the_machine_holds(modules, data):
    mod = resized(data.draw(modules.programs()))
    use = memory_use(mod)
    arguments = [tvm.runtime.tensor(np.ones((2, 2), "float32")) for _ in mod["main"].params]
    assert (use.live, use.peak) == held_by_machine(mod, arguments)
    known = extract(mod).index
    assert all(step.node in known for step in use.steps)


def test_symbolic_sizes_are_those_that_were_given(modules):
    mod = modules.StaticAndSymbolic
    inputs = {"x": np.ones(4, "float32"), "y": np.ones(7, "float32")}
    use = memory_use(mod, "main", {"n": 7})
    assert (use.live, use.peak) == held_by_machine(mod, tensors(mod, inputs))
    assert memory_use(mod, "main", {"n": 70}).peak == 16 + 280


@pytest.mark.filterwarnings(
    r"ignore:`isinstance\(treespec, LeafSpec\)` is deprecated:FutureWarning"
)
@pytest.mark.torch
def test_a_transformer_from_torch_holds_what_the_machine_holds():
    mod = _transformer()
    use = memory_use(mod)
    assert (use.live, use.peak) == held_by_machine(mod, tensors(mod))
    assert {step.node for step in use.steps} <= extract(mod).index.keys()


def _transformer():
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2).eval()
    exported = torch.export.export(model, (torch.zeros(1, 6, 16),))
    return from_exported_program(exported, keep_params_as_input=False)


# --- what is told --------------------------------------------------------------------------------


def test_buffers_share_storages_and_have_the_nodes_of_their_values():
    use = memory_use(MODULES["MyModuleHighLevel"])
    assert [one.node for one in use.allocations] == [
        *("w0_t", "lv0", "lv1", "lv2", "w1_t", "lv3", "out")
    ]
    by_name = {one.name: one for one in use.allocations}
    assert by_name["lv0"].storage == by_name["lv2"].storage != by_name["lv1"].storage
    assert len(use.storages) == 5
    assert use.unplanned == 401408 + 3 * 512 + 5120 + 2 * 40
    assert use.given == 4 * (784 + 128 * 784 + 128 + 10 * 128 + 10)


def test_what_a_called_function_allocates_has_the_ids_it_has_in_place_of_the_call():
    use = memory_use(Calls)
    assert [step.node for step in use.steps][:2] == [inlined_id("e", "a"), inlined_id("e", "b")]
    assert [one.name for one in use.allocations][:2] == ["e/a", "e/b"]


def test_buffers_that_one_call_writes_are_told_apart(modules):
    use = memory_use(modules.TwoOutputs)
    assert [(one.name, one.node) for one in use.allocations] == [
        ("both[0]", "both"),
        ("both[1]", "both"),
    ]


def test_values_that_calls_allocate_by_themselves_are_named_and_not_counted(modules):
    use = memory_use(modules.Impure)
    assert use.unseen == ("env.effect",)
    assert use.unplanned == 16


def test_a_plan_that_ends_the_process_is_warned_of():
    (warning,) = memory_use(SharedByBranches).warnings
    assert "'z1' is in memory that only the other branch allocates" in warning


def test_a_buffer_that_nobody_uses_is_a_step_of_its_own(modules):
    use = memory_use(modules.AllocatedByDtype)
    assert (use.peak, len(use.steps)) == (8, 1)


def test_what_is_let_go_behind_an_allocation_was_there_together_with_it():
    ledger = SimulatedMemory()
    first = ledger.storage(8)
    ledger.hold(first)
    ledger.step("one")
    second = ledger.storage(16)
    ledger.hold(second)
    ledger.release(first)
    ledger.step("two")
    use = ledger.finish()
    assert [step.name for step in use.steps] == ["one", "storage 2", "two"]
    assert use.live == (8, 24, 16)
    assert [(one.start, one.stop) for one in use.storages] == [(0, 2), (1, 3)]


# --- what is refused -----------------------------------------------------------------------------


def test_a_size_that_is_missing_is_asked_for(modules):
    with pytest.raises(InputError, match=r"size of 'n', 'm' in 'main' is not known.*sizes="):
        memory_use(modules.Symbolic)


def test_a_size_that_is_not_there_is_refused(modules):
    with pytest.raises(InputError, match="no symbolic size 'q'; it has 'n'"):
        memory_use(modules.StaticAndSymbolic, "main", {"n": 3, "q": 4})


@pytest.mark.parametrize("size", [-1, 2.5, "4"])
def test_a_size_that_is_no_size_is_refused(modules, size):
    with pytest.raises(InputError, match=f"'n' is {size!r}: give an integer"):
        memory_use(modules.StaticAndSymbolic, "main", {"n": size})


def test_a_function_that_is_not_there_is_refused(modules):
    with pytest.raises(NoFunctionError, match="'nowhere'"):
        memory_use(modules.SameTwice, "nowhere")


def test_what_tvm_cannot_lower_is_said_in_its_words(modules):
    with pytest.raises(RunError, match=r"could not be planned.*LambdaLift"):
        memory_use(modules.Closure)


def test_a_function_that_calls_itself_is_refused():
    with pytest.raises(RunError, match="'main' calls itself"):
        memory_use(EndlessCalls)


def test_a_pass_that_ends_its_process_ends_only_that(modules, monkeypatch):
    def crash(*_, **__):
        raise CrashedError("it ended the process that tried it (SIGSEGV)")

    monkeypatch.setattr("irviz.runtime.simulate_memory.TRIES.call", crash)
    with pytest.raises(RunError, match=r"could not be planned: it ended.*SIGSEGV"):
        memory_use(modules.SameTwice)
