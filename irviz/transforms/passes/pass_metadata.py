"""Facts about TVM's passes that signatures do not give, from docstrings and experiments."""

from __future__ import annotations

from collections.abc import Mapping

from irviz.transforms.passes.parameters import ParameterHint, ParameterKind

_CORES = '{"kind": "llvm", "num-cores": 4}'  # tuning needs the number of cores
_TUNERS = ("MetaScheduleApplyDatabase", "MetaScheduleTuneIRMod", "MetaScheduleTuneTIR")

PARAMETERS: Mapping[str, Mapping[str, ParameterHint]] = {
    "FP8ComputeLegalize": {"promote_dtype": ParameterHint(choices=("float32", "float16"))},
    "BindTarget": {"target": ParameterHint(ParameterKind.TARGET, first="llvm")},
    "FuseOpsByPattern": {"patterns": ParameterHint(ParameterKind.PATTERNS, first="cublas")},
    "HoistIfThenElse": {"variant": ParameterHint(choices=(None, "basic"))},
    "IPCAllReduceRewrite": {"allreduce_strategy": ParameterHint(choices=(1, 2))},
    "MetaScheduleTuneIRMod": {
        "max_trials_global": ParameterHint(first=16),
        "params": ParameterHint(first=()),
    },
    "MetaScheduleTuneTIR": {"max_trials_global": ParameterHint(first=16)},
    "NarrowDataType": {"target_bits": ParameterHint(choices=(32, 64))},
    "ThreadSync": {
        "storage_scope": ParameterHint(choices=("shared", "shared.dyn", "warp", "global"))
    },
    "ToMixedPrecision": {
        "out_dtype": ParameterHint(choices=("float32", "float16")),
        "fp16_input_names": ParameterHint(ParameterKind.NAMES),
    },
    "TopologicalSort": {
        "order": ParameterHint(choices=("depth-first", "breadth-first")),
        "direction": ParameterHint(choices=("from-inputs", "from-outputs")),
    },
    "UpdateVDevice": {"new_vdevice": ParameterHint(first="llvm"), "index": ParameterHint(first=0)},
    "VerifyVTCMLimit": {"default_target": ParameterHint(ParameterKind.TARGET)},
    "static_shape_tuning": {
        "total_trials": ParameterHint(first=16),
        "target": ParameterHint(first=_CORES),
    },
}

NO_ENTRY = frozenset({"VMBuiltinLower"})
"""Passes that TVM declares deprecated; they have successors under other names."""

_OPERATOR_PASSES = """
    AdjustMatmulOrder CombineParallelMatmul ConvertLayout DecomposeOpsForInference
    DecomposeOpsForTraining ExpandMatmulOfSum FastMathTransform FoldBatchnormToConv2D
    FuseTransposeMatmul OptimizeLayoutTransform RemoveRedundantReshape ReorderPermuteDimsAfterConcat
    ReorderTakeAfterMatmul
"""
FOR_OPERATORS = frozenset(_OPERATOR_PASSES.split())
"""Relax passes that rewrite particular operators."""

AROUND: Mapping[str, str] = {
    "DefaultGPUSchedule": "cuda",
    **dict.fromkeys(_TUNERS, _CORES),
    **dict.fromkeys(("LowerTIRx", "TilePrimitiveDispatch", "default", "default_build"), "llvm"),
}
"""Passes and pipelines that need a target context, with a default where there is none."""

AROUND_OBJECTS: Mapping[str, str] = {
    **AROUND,
    **dict.fromkeys(
        ("ApplyDefaultSchedule", "DispatchSampling", "DispatchSortScan", "_pipeline"), "llvm"
    ),
}
"""The same by the names of pass objects, of which the catalog does not have all.

Every pipeline of TVM is called `_pipeline`.
"""

ANNOTATED: Mapping[str, str] = dict.fromkeys(
    ("LowerIntrin", "LowerThreadAllreduce", "LowerWarpMemory", "MakePackedAPI", "SplitHostDevice"),
    "llvm",
)
"""Passes that need a target attribute on each PrimFunc, with a default target."""

MEASURED = frozenset({*_TUNERS, "static_shape_tuning"})
"""Passes that measure or read measurements, and give another module each time."""

EVALUATES_CODE = frozenset({"FoldConstant", "RunCodegen"}) | MEASURED
"""Passes that run code of the module, or of files."""

ONLY_LOWERING = frozenset({"default", "default_build"})
"""TVM's pipelines that contain none of these; the others fold constants."""

PATHS = frozenset({"work_dir"})
"""The parameters that name a path on disk."""

TRIALS = ("max_trials_global", "total_trials")
"""The parameters for the number of measurements."""
