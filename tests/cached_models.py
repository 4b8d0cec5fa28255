"""Two small language models with a cache: paged as in LLMs, and of `nn.KVCache`, as effects."""

from functools import lru_cache

import tvm
from tvm import relax, te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op
from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache, RopeMode, TIRPagedKVCache

LAYERS, WIDTH, HEADS, KV_HEADS, SIZE, WORDS = 2, 64, 4, 2, 16, 50
SCALE = SIZE**-0.5
CUDA = {"kind": "cuda", "arch": "sm_80", "max_num_threads": 256, "thread_warp_size": 32}
CREATE = "create_tir_paged_kv_cache"
_SIZES = (
    *("max_batch_size", "max_total_seq_len", "prefill_chunk_size", "page_size"),
    "support_sliding_window",
)


class PagedLayer(nn.Module):
    """Attention with a paged cache, and two linear layers."""

    def __init__(self):
        self.norms = nn.ModuleList([nn.RMSNorm(WIDTH, -1, 1e-5, bias=False) for _ in range(2)])
        self.qkv = nn.Linear(WIDTH, (HEADS + 2 * KV_HEADS) * SIZE, bias=False)
        self.out = nn.Linear(HEADS * SIZE, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 96, bias=False), nn.Linear(96, WIDTH, bias=False)

    def forward(self, x, cache, layer):
        batch, length, _ = x.shape
        qkv = op.reshape(self.qkv(self.norms[0](x)), (batch, length, HEADS + 2 * KV_HEADS, SIZE))
        seen = cache.attention_with_fused_qkv(layer, qkv, HEADS, SCALE)
        x = x + self.out(op.reshape(seen, (batch, length, HEADS * SIZE)))
        return x + self.down(op.silu(self.up(self.norms[1](x))))


class PagedModel(nn.Module):
    """A LLaMA of two layers."""

    def __init__(self, target):
        self._target = target
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList([PagedLayer() for _ in range(LAYERS)])
        self.norm = nn.RMSNorm(WIDTH, -1, 1e-5, bias=False)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def embed(self, tokens: nn.Tensor):
        return self.embedding(tokens)

    def prefill(self, embedded: nn.Tensor, cache: PagedKVCache):
        def last(x):
            batch, length, width = x.shape
            return te.compute((batch, 1, width), lambda b, _, w: x[b, length - 1, w], name="last")

        x = op.tensor_expr_op(last, "last", [self._body(embedded, cache)])
        return self.head(self.norm(x)), cache

    def decode(self, embedded: nn.Tensor, cache: PagedKVCache):
        return self.head(self.norm(self._body(embedded, cache))), cache

    def _body(self, x, cache):
        for number, layer in enumerate(self.layers):
            x = layer(x, cache, number)
        return x

    def create_tir_paged_kv_cache(
        self,
        max_batch_size: tirx.Var,
        max_total_seq_len: tirx.Var,
        prefill_chunk_size: tirx.Var,
        page_size: tirx.Var,
        support_sliding_window: tirx.Var,
    ):
        return TIRPagedKVCache(
            attn_kind="mha",
            max_batch_size=max_batch_size,
            max_total_seq_len=max_total_seq_len,
            prefill_chunk_size=prefill_chunk_size,
            page_size=page_size,
            support_sliding_window=support_sliding_window,
            layer_partition=relax.ShapeExpr([0, LAYERS]),
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            num_key_value_heads=KV_HEADS,
            qk_head_dim=SIZE,
            v_head_dim=SIZE,
            mla_original_qk_head_dim=0,
            mla_original_v_head_dim=0,
            rope_mode=RopeMode.NORMAL,
            rope_scale=1,
            rope_theta=10000,
            rope_scaling={},
            rope_ext_factors=relax.prim_value(0),
            rotary_dim=SIZE,
            enable_disaggregation=False,
            dtype="float32",
            target=tvm.target.Target(self._target),
        )


def paged_spec(weights="packed"):
    """Return the specs of the paged model's methods."""
    modes = {"$": {"param_mode": weights, "effect_mode": "none"}}
    alone = {"$": {"param_mode": "none" if weights == "packed" else weights, "effect_mode": "none"}}
    cache = nn.spec.Object(object_type=PagedKVCache)
    prompt, token = (nn.spec.Tensor([1, size, WIDTH], "float32") for size in ("length", 1))
    return {
        "embed": {"tokens": nn.spec.Tensor(["length"], "int32"), **modes},
        "prefill": {"embedded": prompt, "cache": cache, **modes},
        "decode": {"embedded": token, "cache": cache, **modes},
        CREATE: {**dict.fromkeys(_SIZES, int), **alone},
    }


@lru_cache
def paged(weights="packed", *, is_for_gpu=False):
    """Return the paged model as a module."""
    model = PagedModel(CUDA if is_for_gpu else "llvm")
    return model.export_tvm(paged_spec(weights))[0]


class EffectLayer(nn.Module):
    """Attention of one head with two `nn.KVCache`."""

    def __init__(self):
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.keys, self.values = (nn.KVCache(8, [WIDTH]) for _ in range(2))

    def forward(self, x, total, scale):
        q, k, v = op.split(self.qkv(x), 3, axis=-1)
        seen = []
        for cache, new in ((self.keys, k), (self.values, v)):
            cache.append(op.reshape(new, (x.shape[1], WIDTH)))
            seen.append(op.reshape(cache.view(total), (1, total, WIDTH)))
        scores = op.softmax(op.matmul(q, op.permute_dims(seen[0], [0, 2, 1])) * scale)
        return x + self.out(op.matmul(scores, seen[1]))


class EffectModel(nn.Module):
    """Two layers of attention, without a mask: the last token sees all that came before."""

    def __init__(self, prompt_scale):
        self.layers = nn.ModuleList([EffectLayer() for _ in range(LAYERS)])
        self._scale = prompt_scale

    def prefill(self, x: nn.Tensor, total: tirx.Var):
        return self._body(x, total, self._scale)

    def decode(self, x: nn.Tensor, total: tirx.Var):
        return self._body(x, total, SCALE)

    def _body(self, x, total, scale):
        for layer in self.layers:
            x = layer(x, total, scale)
        return x


@lru_cache
def effects(mode="plain", prompt_scale=SCALE, *, debug=False):
    """Return the model with effects as a module; "packed" passes them as one tuple."""
    modes = {"$": {"param_mode": mode, "effect_mode": mode}}
    spec = {
        "prefill": {"x": nn.spec.Tensor([1, "length", WIDTH], "float32"), "total": int, **modes},
        "decode": {"x": nn.spec.Tensor([1, 1, WIDTH], "float32"), "total": int, **modes},
    }
    return EffectModel(prompt_scale).export_tvm(spec, debug=debug)[0]
