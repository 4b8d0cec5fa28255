"""See, transform and rerun Apache TVM's IRModules.

`explore`, `draw` and `load` take a module, a model or a file; a `Session` holds the stages.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

from irviz.errors import CancelledRunError as CancelledRunError
from irviz.errors import DrawError as DrawError
from irviz.errors import InputError as InputError
from irviz.errors import IrvizError as IrvizError
from irviz.errors import LimitError as LimitError
from irviz.errors import LoadError as LoadError
from irviz.errors import NotFoundError as NotFoundError
from irviz.errors import NumPyError as NumPyError
from irviz.errors import RunError as RunError
from irviz.errors import SaveError as SaveError
from irviz.errors import StageError as StageError
from irviz.errors import TransformError as TransformError
from irviz.errors import UnsupportedOperatorError as UnsupportedOperatorError
from irviz.errors import UntrustedError as UntrustedError
from irviz.version import __version__ as __version__

if os.path.expanduser("~") == "~":  # noqa: PTH111 - pathlib raises here, and so would TVM's import
    os.environ["HOME"] = "/"  # as containers set it, where nothing can be kept

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from irviz import figures as figures
    from irviz.explorer.explorer import Explorer as Explorer
    from irviz.explorer.explorer import explore as explore
    from irviz.explorer.explorer import record as record
    from irviz.explorer.save_html import save_html as save_html
    from irviz.figures.figure_files import figure as figure
    from irviz.ir.module_to_numpy import NumPyProgram as NumPyProgram
    from irviz.ir.module_to_numpy import to_numpy as to_numpy
    from irviz.model.graph.graph import Graph as Graph
    from irviz.model.runs.array_diff import Tolerance as Tolerance
    from irviz.model.runs.execution_trace import Divergence as Divergence
    from irviz.model.runs.execution_trace import Trace as Trace
    from irviz.model.runs.memory_timeline import MemoryUse as MemoryUse
    from irviz.model.runs.run_result import Comparison as Comparison
    from irviz.model.runs.run_result import RunResult as RunResult
    from irviz.runtime.call_inputs import CallInputs as CallInputs
    from irviz.runtime.run import forget_kernels as forget_kernels
    from irviz.runtime.run_config import RunConfig as RunConfig
    from irviz.session.bisect import Bisection as Bisection
    from irviz.session.bisect import bisect as bisect
    from irviz.session.compare_pipelines import PipelineComparison as PipelineComparison
    from irviz.session.node_history import Blame as Blame
    from irviz.session.node_history import NodeHistory as NodeHistory
    from irviz.session.open_session import diff as diff
    from irviz.session.open_session import draw as draw
    from irviz.session.open_session import graph as graph
    from irviz.session.open_session import load as load
    from irviz.session.reduce_module import Reduction as Reduction
    from irviz.session.reduce_module import reduce as reduce
    from irviz.session.run_stages import DivergenceReport as DivergenceReport
    from irviz.session.session import Session as Session
    from irviz.session.stage_view import ViewState as ViewState
    from irviz.testing.assert_ir_equal import assert_ir_equal as assert_ir_equal
    from irviz.transforms.kernels import library as library
    from irviz.transforms.passes.catalog import register_pass as register_pass
    from irviz.transforms.passes.catalog import register_rewrite as register_rewrite
    from irviz.transforms.recording import Recording as Recording
    from irviz.transforms.stage import Stage as Stage
    from irviz.view.figure import Figure as Figure
    from irviz.view.module_diff import Diff as Diff
    from irviz.view.pass_times import PassTimes as PassTimes
    from irviz.view.run_result_html import ErrorTable as ErrorTable
    from irviz.view.run_result_html import StageTable as StageTable
    from irviz.view.run_result_html import TimingTable as TimingTable


# TVM takes a second to load: each name is imported when it is first used.
_LAZY = {
    "Blame": "irviz.session.node_history:Blame",
    "Bisection": "irviz.session.bisect:Bisection",
    "CallInputs": "irviz.runtime.call_inputs:CallInputs",
    "Comparison": "irviz.model.runs.run_result:Comparison",
    "Diff": "irviz.view.module_diff:Diff",
    "Divergence": "irviz.model.runs.execution_trace:Divergence",
    "DivergenceReport": "irviz.session.run_stages:DivergenceReport",
    "Explorer": "irviz.explorer.explorer:Explorer",
    "ErrorTable": "irviz.view.run_result_html:ErrorTable",
    "Figure": "irviz.view.figure:Figure",
    "Graph": "irviz.model.graph.graph:Graph",
    "MemoryUse": "irviz.model.runs.memory_timeline:MemoryUse",
    "NodeHistory": "irviz.session.node_history:NodeHistory",
    "NumPyProgram": "irviz.ir.module_to_numpy:NumPyProgram",
    "PassTimes": "irviz.view.pass_times:PassTimes",
    "PipelineComparison": "irviz.session.compare_pipelines:PipelineComparison",
    "Recording": "irviz.transforms.recording:Recording",
    "Reduction": "irviz.session.reduce_module:Reduction",
    "RunConfig": "irviz.runtime.run_config:RunConfig",
    "RunResult": "irviz.model.runs.run_result:RunResult",
    "Session": "irviz.session.session:Session",
    "Stage": "irviz.transforms.stage:Stage",
    "StageTable": "irviz.view.run_result_html:StageTable",
    "TimingTable": "irviz.view.run_result_html:TimingTable",
    "Tolerance": "irviz.model.runs.array_diff:Tolerance",
    "Trace": "irviz.model.runs.execution_trace:Trace",
    "ViewState": "irviz.session.stage_view:ViewState",
    "assert_ir_equal": "irviz.testing.assert_ir_equal:assert_ir_equal",
    "bisect": "irviz.session.bisect:bisect",
    "diff": "irviz.session.open_session:diff",
    "draw": "irviz.session.open_session:draw",
    "explore": "irviz.explorer.explorer:explore",
    "figure": "irviz.figures.figure_files:figure",
    "figures": "irviz.figures",
    "forget_kernels": "irviz.runtime.run:forget_kernels",
    "graph": "irviz.session.open_session:graph",
    "library": "irviz.transforms.kernels.library",
    "load": "irviz.session.open_session:load",
    "record": "irviz.explorer.explorer:record",
    "reduce": "irviz.session.reduce_module:reduce",
    "register_pass": "irviz.transforms.passes.catalog:register_pass",
    "register_rewrite": "irviz.transforms.passes.catalog:register_rewrite",
    "save_html": "irviz.explorer.save_html:save_html",
    "to_numpy": "irviz.ir.module_to_numpy:to_numpy",
}

__all__ = [
    "CancelledRunError",
    "DrawError",
    "InputError",
    "IrvizError",
    "LimitError",
    "LoadError",
    "NotFoundError",
    "NumPyError",
    "RunError",
    "SaveError",
    "StageError",
    "TransformError",
    "UnsupportedOperatorError",
    *_LAZY,
]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        from pkgutil import resolve_name

        from irviz.gc_pause import gc_paused

        with gc_paused():  # an import makes much that lasts, and hardly any garbage
            return resolve_name(_LAZY[name])
    raise AttributeError(f"module 'irviz' has no attribute {name!r}")


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the cell magic `%%tvmscript`; IPython calls this for `%load_ext irviz`."""
    importlib.import_module("irviz.explorer.cell_magic").register(shell)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
