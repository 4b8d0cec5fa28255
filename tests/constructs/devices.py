# ruff: noqa: N803, N805, N812, RET504
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""Modules whose values are on a device, or on several."""

from tvm.relax.script import parser as D
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T


@I.ir_module
class Sharded:
    """Distributed tensors, with the operators of relax.dist."""

    I.module_attrs({"device_num": 2})
    I.module_global_infos({"mesh": [D.device_mesh((2,), I.Range(0, 2))]})

    @T.prim_func(s_tir=True)
    def double(X: T.Buffer((2, 4), "float32"), Y: T.Buffer((2, 4), "float32")):
        for i, j in T.grid(2, 4):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] + X[vi, vj]

    @R.function
    def main(x: D.DTensor((4, 4), "float32", "mesh[0]", "S[0]")):
        cls = Sharded
        local = D.dist.call_tir_local_view(
            cls.double, (x,), D.DTensor((4, 4), "float32", "mesh[0]", "S[0]")
        )
        whole = D.dist.redistribute(local, "mesh[0]", "R")
        table = R.add(
            whole,
            D.dist.const([[1.0] * 4] * 4, D.DTensor((4, 4), "float32", "mesh[0]", "R")),
        )
        return table


@I.ir_module
class Annotated:
    """A tensor told how to be sharded, before the sharding is carried out."""

    I.module_attrs({"device_num": 2})
    I.module_global_infos({"mesh": [D.device_mesh((2,), I.Range(0, 2))]})

    @R.function
    def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
        there = D.dist.annotate_sharding(x, "mesh[0]", "S[0]")
        product = R.matmul(there, y)
        part = D.dist.redistribute_replica_to_shard(product, num_workers=2, axis=0)
        return part


@I.ir_module
class OnDevices:
    """Values that go from one device to another."""

    I.module_global_infos(
        {"vdevice": [I.vdevice("llvm", 0), I.vdevice({"kind": "llvm", "mcpu": "generic"}, 0)]}
    )

    @R.function
    def main(x: R.Tensor((2,), "float32", "llvm:0"), y: R.Tensor((2,), "float32")):
        there = R.to_vdevice(x, "llvm:1")
        hinted = R.hint_on_device(y, R.device("cpu"))
        both = R.add(hinted, hinted)
        return (there, both)


DEVICES = {"sharded": Sharded, "annotated shardings": Annotated, "devices": OnDevices}
