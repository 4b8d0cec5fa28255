"""What the signatures of TVM's passes do not say: found in its docstrings, and by trying."""

from __future__ import annotations

from collections.abc import Mapping

from irviz.transforms.passes.parameter import Hint, ParameterKind

_CORES = '{"kind": "llvm", "num-cores": 4}'  # tuning wants to know how many there are

PARAMETERS: Mapping[str, Mapping[str, Hint]] = {
    "FP8ComputeLegalize": {"promote_dtype": Hint(choices=("float32", "float16"))},
    "BindTarget": {"target": Hint(ParameterKind.TARGET, first="llvm")},
    "FuseOpsByPattern": {"patterns": Hint(ParameterKind.PATTERNS, first="cublas")},
    "HoistIfThenElse": {"variant": Hint(choices=(None, "basic"))},
    "IPCAllReduceRewrite": {"allreduce_strategy": Hint(choices=(1, 2))},
    "MetaScheduleTuneIRMod": {"max_trials_global": Hint(first=16), "params": Hint(first=())},
    "MetaScheduleTuneTIR": {"max_trials_global": Hint(first=16)},
    "NarrowDataType": {"target_bits": Hint(choices=(32, 64))},
    "ThreadSync": {"storage_scope": Hint(choices=("shared", "shared.dyn", "warp", "global"))},
    "ToMixedPrecision": {
        "out_dtype": Hint(choices=("float32", "float16")),
        "fp16_input_names": Hint(ParameterKind.NAMES),
    },
    "TopologicalSort": {
        "order": Hint(choices=("depth-first", "breadth-first")),
        "direction": Hint(choices=("from-inputs", "from-outputs")),
    },
    "UpdateVDevice": {"new_vdevice": Hint(first="llvm"), "index": Hint(first=0)},
    "VerifyVTCMLimit": {"default_target": Hint(ParameterKind.TARGET)},
    "static_shape_tuning": {"total_trials": Hint(first=16), "target": Hint(first=_CORES)},
}

NO_ENTRY = frozenset({"VMBuiltinLower"})
"""What TVM itself calls outdated; it has it under another name."""

FOR_OPERATORS = frozenset(
    {
        "AdjustMatmulOrder",
        "CombineParallelMatmul",
        "ConvertLayout",
        "DecomposeOpsForInference",
        "DecomposeOpsForTraining",
        "ExpandMatmulOfSum",
        "FastMathTransform",
        "FoldBatchnormToConv2D",
        "FuseTransposeMatmul",
        "OptimizeLayoutTransform",
        "RemoveRedundantReshape",
        "ReorderPermuteDimsAfterConcat",
        "ReorderTakeAfterMatmul",
    }
)
"""Relax passes that rewrite particular operators."""

AROUND: Mapping[str, str] = {
    "DefaultGPUSchedule": "cuda",
    "LowerTIRx": "llvm",
    "MetaScheduleApplyDatabase": _CORES,
    "MetaScheduleTuneIRMod": _CORES,
    "MetaScheduleTuneTIR": _CORES,
    "TilePrimitiveDispatch": "llvm",
}
"""Passes that fail unless they are applied under a target, and one to begin with."""

ANNOTATED: Mapping[str, str] = {
    "LowerIntrin": "llvm",
    "LowerThreadAllreduce": "llvm",
    "LowerWarpMemory": "llvm",
    "MakePackedAPI": "llvm",
    "SplitHostDevice": "llvm",
}
"""Passes that fail unless each PrimFunc is annotated with its target, and one to begin with."""

MEASURED = frozenset(
    {
        "MetaScheduleApplyDatabase",
        "MetaScheduleTuneIRMod",
        "MetaScheduleTuneTIR",
        "static_shape_tuning",
    }
)
"""What makes something else each time, because it measures or reads what was measured."""

TRIALS = ("max_trials_global", "total_trials")
"""The parameters that say how often is measured."""

PATTERN_MODULES: Mapping[str, str] = {
    "cublas": "tvm.relax.backend.cuda.cublas",
    "cudnn": "tvm.relax.backend.cuda.cudnn",
    "cutlass": "tvm.relax.backend.cuda.cutlass",
    "hipblas": "tvm.relax.backend.rocm.hipblas",
    "tensorrt": "tvm.relax.backend.contrib.tensorrt",
    "nnapi": "tvm.relax.backend.contrib.nnapi",
    "coreml": "tvm.relax.backend.metal.coreml",
    "openclml": "tvm.relax.backend.adreno.clml",
    "example_npu": "tvm.relax.backend.contrib.example_npu",
}
"""The modules that register the patterns of a backend when they are imported."""
