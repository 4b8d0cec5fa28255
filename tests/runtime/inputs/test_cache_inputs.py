"""Functions that take a cache run: irviz makes it, and calls what fills it before."""

import re

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax

import irviz
from irviz.errors import InputError, LoadError, RunError
from irviz.ir.parameter_values import CacheArgument
from irviz.model.runs.run_result import Verdict
from irviz.session.reduce_module import input_expression
from irviz.transforms.export_python import PythonScript, UnwritableError
from irviz.transforms.stage import Stage
from tests.cached_models import CREATE, LAYERS, SCALE, WIDTH, PagedModel, effects, paged, paged_spec

pytestmark = [pytest.mark.worker, pytest.mark.build]

LEGALIZE = relax.transform.LegalizeOps()


def tokens(count):
    return np.random.default_rng(3).standard_normal((1, count, WIDTH)).astype("float32")


def as_steps(x):
    return np.ascontiguousarray(x[0, :, None, None])


def session_of(mod, function="decode", **options):
    return irviz.Session(mod, **options).select_function(function)


# --- what is computed ---------------------------------------------------------------------------


def test_each_step_of_a_paged_cache_is_the_end_of_a_longer_prompt():
    x, others = tokens(7), {"packed_params": "random"}
    steps = {"embedded": as_steps(x[:, 5:]), "prefill.embedded": x[:, :5]}
    found = session_of(paged()).run({**steps, **others}).outputs
    assert [one.shape for one in found] == [(2, 1, 1, 50)]
    for step, one in enumerate(found[0], start=1):
        prompt = {"embedded": x[:, : 5 + step], **others}
        (whole,) = session_of(paged(), "prefill").run(prompt).outputs
        np.testing.assert_allclose(one, whole[0], atol=1e-6)


def attended(arguments, x, seen):
    """Return the model with effects in NumPy, and add to what it has seen."""
    for layer, cache in enumerate(seen):
        named = (f"layers.{layer}.{name}" for name in ("qkv.weight", "qkv.bias"))
        weight, bias = (arguments[one] for one in named)
        q, k, v = np.split(x @ weight.T + bias, 3, axis=-1)
        cache.append((k, v))
        k, v = (np.concatenate(all_of, axis=0) for all_of in zip(*cache, strict=True))
        scores = np.exp(q @ k.T * SCALE)
        out = scores / scores.sum(axis=-1, keepdims=True) @ v
        weight, bias = (arguments[f"layers.{layer}.out.{name}"] for name in ("weight", "bias"))
        x = x + out @ weight.T + bias
    return x


@pytest.mark.parametrize("mode", ["plain", "packed", "debug"])
def test_steps_of_effects_are_those_that_numpy_computes(mode):
    mod = effects("plain" if mode == "debug" else mode, debug=mode == "debug")
    session = session_of(mod)
    names = [param.name for param in effects()["decode"].params]
    weights = [name for name in names if name.endswith(("weight", "bias"))]
    cases = session.call_inputs.cases(mod, "decode")
    values = cases[0][-1] if mode == "packed" else cases[0][-len(weights) :]
    arguments, x = dict(zip(weights, values, strict=True)), tokens(7)
    given = {"packed_params": values} if mode == "packed" else arguments
    prompt, steps = x[:, :4], as_steps(x[:, 4:])
    inputs = {"x": steps, "total": "random", "prefill.x": prompt, **given}
    found = session.run(inputs)
    seen = [[] for _ in range(LAYERS)]
    attended(arguments, prompt[0], seen)
    expected = [attended(arguments, one[0], seen) for one in steps]
    np.testing.assert_allclose(found.outputs[0][:, 0], expected, atol=1e-5)
    assert found.caches == ("4 KV caches: 7 tokens",)


@pytest.mark.parametrize("model", [paged, effects])
def test_without_inputs_a_prompt_and_three_other_tokens_are_random(model):
    result = session_of(model()).run()
    (found,) = result.outputs
    assert len(found) == 3
    assert len(np.unique(found.round(3), axis=0)) == 3
    assert all(line.endswith("11 tokens") or "11 tokens, " in line for line in result.caches)


def test_a_cache_is_shown_in_words():
    found = session_of(paged()).run({"packed_params": "random", "embedded": tokens(1)})
    line = "paged KV cache of 2 layers, with 16 tokens a page: 9 tokens, 1 pages free"
    assert found.caches == (line,)
    assert line in repr(found)
    assert session_of(paged(), CREATE).run().caches[0].startswith("paged KV cache: 0 tokens")


def test_a_trace_of_a_step_has_the_values_of_that_step_alone():
    session = session_of(paged())
    trace = session.trace(case=2)
    assert {visit.count for visit in trace.visits.values()} == {1}
    assert trace["cache"].value.text.startswith("paged KV cache: 11 tokens")
    last = session.trace(case=2).visits
    result = session.run().outputs[0][2]
    assert any(
        array is not None and array.shape == result.shape and np.array_equal(array, result)
        for visit in last.values()
        for array in visit.value.arrays
    )


# --- sizes --------------------------------------------------------------------------------------


def test_sizes_of_the_cache_and_of_the_prompt_can_be_given():
    session = session_of(paged(), sizes={"length": 20, "max_total_seq_len": 128})
    assert "23 tokens, 7 pages free" in session.run().caches[0]
    line = session.call_inputs.plan(paged(), "decode").lines()[-1]
    assert line == f"cache: made by {CREATE}(1, 128, 32, 16, 0), after prefill of 20 tokens"
    found = session_of(paged()).run({"max_total_seq_len": 64})
    assert "11 tokens, 4 pages free" in found.caches[0]


def test_a_name_that_nothing_has_is_named():
    with pytest.raises(InputError, match=r"no parameter 'max_len'.*'max_total_seq_len'.*prefill"):
        session_of(paged()).run({"max_len": 3})


# --- stages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [paged, effects])
def test_stages_are_compared_over_the_steps(model):
    session = session_of(model()).apply(LEGALIZE).apply(relax.transform.FuseOps())
    comparison = session.compare("2", "0")
    assert (comparison.verdict, comparison.cases) == (Verdict.EQUAL, 3)
    assert str(session.measure("0", "2")).count("µs to") == 2


def test_a_prefill_that_is_wrong_makes_the_steps_differ():
    other = effects(prompt_scale=2 * SCALE)
    assert tvm_ffi.structural_equal(effects()["decode"], other["decode"], map_free_vars=True)
    session = irviz.Session.from_stages([Stage("0", effects()), Stage("1", other, parent="0")])
    comparison = session.select_function("decode").compare("1", "0")
    assert (comparison.verdict, comparison.cases) == (Verdict.DIFFERENT, 3)


def test_a_pass_that_merges_the_caches_is_found():
    session = session_of(effects()).apply(relax.transform.EliminateCommonSubexpr())
    with pytest.raises(RunError, match=r"'prefill' failed as it ran: .* the filled count"):
        session.run()


def test_the_pass_that_merges_the_caches_is_found_among_others():
    passes = [LEGALIZE, relax.transform.EliminateCommonSubexpr(), relax.transform.FuseOps()]
    found = irviz.bisect(session_of(effects()), passes)
    assert "EliminateCommonSubexpr" in str(found)
    assert "total" not in str(found).partition("checked with")[2]


def test_a_script_with_tvm_alone_cannot_contain_a_cache():
    with pytest.raises(UnwritableError, match="'cache' takes a cache"):
        input_expression("cache", CacheArgument(), PythonScript())


# --- other exports, and what cannot be run --------------------------------------------------------


def test_a_model_is_loaded_with_its_cache():
    model = PagedModel("llvm")
    model.to("float32")
    for _, one in model.named_parameters():
        one.data = np.full([int(size) for size in one.shape], 0.01, "float32")
    spec = {name: {n: s for n, s in one.items() if n != "$"} for name, one in paged_spec().items()}
    session = irviz.load(model, inputs=spec).select_function("decode")
    x = tokens(6)
    inputs = {"embedded": as_steps(x[:, 2:]), "prefill.embedded": x[:, :2]}
    assert session.run(inputs).cases == 4
    assert session.apply("LegalizeOps").compare("1", "0").verdict is Verdict.EQUAL


def test_a_cache_that_nothing_makes_is_refused():
    functions = {g: f for g, f in paged().functions.items() if g.name_hint != CREATE}
    with pytest.raises(InputError, match=r"cache: Any; .* such as create_paged_kv_cache"):
        session_of(tvm.IRModule(functions)).run()


def test_a_cache_with_kernels_for_a_gpu_is_refused():
    with pytest.raises(RunError, match=re.escape("threadIdx.x of a GPU. Export the module again")):
        session_of(paged(is_for_gpu=True)).run()


def test_a_cache_is_not_made_on_another_machine():
    with pytest.raises(InputError, match=r"'decode' takes a cache, .* run without device"):
        session_of(paged(), device="127.0.0.1:9").run()


def test_a_text_that_tvm_does_not_read_back_says_what_to_save_instead(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(tvm.IRModule({"main": paged()["batch_decode_paged_kv_cpu"]}).script())
    with pytest.raises(LoadError, match=r"already defined .* session.save or tvm.ir.save_json"):
        irviz.load(path)
    path.with_suffix(".json").write_text(tvm.ir.save_json(paged()))
    assert irviz.load(path.with_suffix(".json")).select_function("decode").run().cases == 3
