"""Each way to call something is read as its kind of node, described in one line."""

from tvm import relax

from irviz.model.graph.graph import Literal, NodeKind, RegionKind


def test_a_direct_call_says_what_is_called_and_where_it_is(read):
    assert read("direct calls").all() == {
        "an_op": "operator `relax.add`: x 0, x 1",
        "a_function": "call_function `twice` -> function: an_op 0",
        "out": "operator `relax.builtin.alloc_tensor`: ",
        "a_prim_func": "call_function `double` -> prim_func !: a_function 0, out 1",
        "a_library": "call_packed `env.relu` -> library !: out 0, x 1",
        "nothing": "call_packed `env.nowhere` -> unknown !: a_library 0",
        "mine": "call_packed `twice` -> function !: a_library 0",
    }


def test_every_operator_that_calls_a_prim_func_is_a_call_tir(read):
    graph = read("call_tir")
    assert graph.all() == {
        "plain": "call_tir `double` by relax.call_tir -> prim_func: x 0",
        "inplace": "call_tir `add_to` by relax.call_tir_inplace -> prim_func: plain 0, y 1",
        "grad": "call_tir `double` by relax.call_tir_with_grad -> prim_func: inplace 0",
    }
    assert ("inplace_indices", "(0,)") in graph["inplace"].attributes
    assert ("te_grad_name", "double_grad") in graph["grad"].attributes


def test_call_tir_dyn_is_a_call_tir_with_a_shape_written_out(read):
    graph = read("call_tir_dyn")
    assert graph.describe("done") == (
        "call_tir `double` by relax.vm.call_tir_dyn -> prim_func !: x 0, out 1"
    )
    assert graph["done"].literals == (Literal((2,), "(n,)"),)


def test_call_tir_local_view_is_a_call_tir_of_sharded_tensors(read):
    assert read("sharded").all() == {
        "local": "call_tir `double` by relax.dist.call_tir_local_view -> prim_func: x 0",
        "whole": "operator `relax.dist.redistribute`: local 0",
        "table[1]": "constant: ",
        "table": "operator `relax.add`: whole 0, table[1] 1",
    }


def test_a_number_among_the_arguments_is_an_edge_at_its_position(read):
    graph = read("numbers as arguments")
    assert graph.all() == {
        "by_n": "call_tir `times` by relax.call_tir -> prim_func: x 0, n 1",
        "by_m": "call_tir `times` by relax.call_tir -> prim_func: by_n 0",
        "by_both": "call_tir `times` by relax.call_tir -> prim_func: by_m 0, n 1.0",
        "by_three": "call_tir `times` by relax.call_tir -> prim_func: by_both 0",
    }
    assert graph["by_m"].literals == (Literal((1,), "m"),)
    assert graph["by_both"].literals == (Literal((1,), "n * 2 + m + n"),)
    assert graph["by_three"].literals == (Literal((1,), "3"),)


def test_every_operator_that_calls_by_name_says_which_it_is(read):
    graph = read("library calls")
    assert graph.all(NodeKind.TUPLE_GET_ITEM) == {
        "dps": "call_dps_packed `env.relu` by relax.call_dps_packed -> library: x 0",
        "pair": (
            "call_dps_packed `env.split` by relax.call_dps_packed -> unknown: dps 0, y 1.0, x 1.1"
        ),
        "pure": "call_packed `env.relu` by relax.call_pure_packed -> library: first 0",
        "inplace": "call_packed `env.relu` by relax.call_inplace_packed -> library: pure 0, y 1",
        "context": (
            "call_packed `vm.builtin.alloc_shape_heap` by relax.call_builtin_with_ctx"
            " -> library !: "
        ),
        "impure": "call_packed `env.relu` -> library !: inplace 0, context 1",
    }
    assert graph["pure"].literals == (Literal((1,), "2.0"),)
    assert ("inplace_indices", "(0,)") in graph["inplace"].attributes


def test_calls_without_arguments_use_nothing(read):
    assert read("no arguments").all() == {
        "a": "call_function `one` -> function: ",
        "b": "call_packed `env.nothing` by relax.call_pure_packed -> unknown: ",
        "c": "call_dps_packed `env.nothing` by relax.call_dps_packed -> unknown: ",
        "d": "operator `relax.null_value`: ",
        "e": "operator `relax.ones`: ",
    }


def test_a_python_function_of_the_module_is_told_from_one_that_is_not_there(read):
    assert read("python functions").all() == {
        "said": "call_packed `shout` by relax.call_py_func -> python: x 0",
        "lost": "call_packed `nobody` by relax.call_py_func -> unknown: said 0, x 1",
    }


def test_a_python_function_is_found_in_what_files_and_passes_keep_of_it(read, constructs):
    line = "call_packed `shout` by relax.call_py_func -> python: x 0"
    assert read("python functions by name").describe("y") == line
    after = relax.transform.ToNonDataflow()(constructs.construct("python functions"))
    assert read(after).describe("said") == line


def test_a_closure_that_is_invoked_is_a_value_that_is_used(read):
    graph = read("made closures")
    assert graph.all() == {
        "closure": "operator `relax.make_closure`: x 1.0",
        "pure": "call_function `closure` by relax.invoke_pure_closure: closure (), x 0",
        "impure": "call_function `closure` by relax.invoke_closure !: closure (), pure 0, x 1",
        "straight": (
            "call_function `lifted` by relax.invoke_pure_closure -> function: x 0, impure 1"
        ),
    }
    assert graph["closure"].literals == (Literal((0,), "lifted"),)


def test_effects_are_kept_in_their_order(read):
    graph = read("effects")
    assert list(graph.all().items()) == [
        ("y", "operator `relax.add`: x 0, x 1"),
        ("checked", "operator `relax.assert_op` !: ok 0, x 2, y 3"),
        ("bare", "operator `relax.print` !: "),
        ("buffer", "operator `relax.builtin.alloc_tensor`: "),
        ("called", "call_function `shout` -> function !: y 0"),
        ("said", "operator `relax.print` !: called 1"),
        ("r_then", "operator `relax.add`: called 0, y 1"),
        ("r_else", "operator `relax.add`: called 0, called 1"),
        ("r", "if !: ok 0, r_then 1, r_else 2"),
        ("kept", "operator `relax.builtin.stop_lift_params`: r 0"),
    ]
    assert graph.regions[graph["y"].region].kind is RegionKind.DATAFLOW_BLOCK
    assert graph.regions[graph["checked"].region].kind is RegionKind.BINDING_BLOCK


def test_functions_call_themselves_and_each_other_by_name(read):
    assert read("recursion").describe("a") == "call_function `odd` -> function: x 0"
    assert read("recursion").describe("b") == "call_function `down` -> function: a 0, c 1"
    assert read("recursion", "odd").describe("y") == "call_function `even` -> function: x 0"
    assert read("recursion", "even").describe("y") == "call_function `odd` -> function: x 0"
    assert (
        read("recursion", "down").describe("r_then") == "call_function `down` -> function: x 0, c 1"
    )


def test_devices_and_shardings_are_operators_with_attributes(read):
    graph = read("devices")
    assert graph.describe("there") == "operator `relax.to_vdevice`: x 0"
    assert "generic" in dict(graph["there"].attributes)["dst_vdevice"]
    annotated = read("annotated shardings")
    assert annotated.describe("there") == "operator `relax.dist.annotate_sharding`: x 0"
    assert "S[0]" in dict(annotated["there"].attributes)["placement"]


def test_what_the_memory_planner_leaves_is_calls_of_operators_and_prim_funcs(read, constructs):
    graph = read(constructs.PIPELINES["planned"](constructs.construct("network")))
    assert graph.describe("storage") == "operator `relax.memory.alloc_storage`: "
    assert graph.describe("alloc") == "operator `relax.memory.alloc_tensor`: storage 0"
    assert graph.describe("turned") == "value: alloc 0"
    called = [graph.describe(node.id) for node in graph.nodes if node.callee == "matmul"]
    assert called == [
        "call_function `matmul` -> prim_func !: x 0, turned 1, alloc1 2",
        "call_function `matmul` -> prim_func !: active 0, turned 1, alloc4 2",
    ]


def test_what_the_vm_gets_is_calls_of_its_builtins(read, constructs):
    graph = read(constructs.PIPELINES["lowered"](constructs.construct("symbolic network")))
    assert graph.describe("shape_heap") == (
        "call_packed `vm.builtin.alloc_shape_heap` by relax.call_builtin_with_ctx -> library !: "
    )
    assert graph.describe("gv") == "call_packed `vm.builtin.make_shape` -> library !: shape_heap 0"
    assert graph.describe("storage") == "operator `relax.vm.alloc_storage`: gv 0"
    assert "operator `relax.vm.kill_object` !: storage 0" in graph.all().values()


def test_an_operator_may_write_over_its_arguments(read):
    graph = read("in place")
    assert graph.describe("b") == (
        "call_tir `multiply_inplace` by relax.call_tir_inplace -> prim_func: a 0, a 1"
    )
    assert ("inplace_indices", "(1,)") in graph["b"].attributes
