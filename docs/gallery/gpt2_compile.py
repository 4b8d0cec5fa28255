"""The whole compile of a GPT-2.

A small one, with the layers of GPT-2: the recording has each pass of `tvm.compile`. The explorer
steps through them, compares neighbours, and tells which pass last changed a line.
"""

import tvm
from tvm.relax.frontend import nn

import irviz

WIDTH, HEADS, LAYERS, WORDS, LENGTH = 64, 4, 3, 256, 16


class Attention(nn.Module):
    def __init__(self):
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.c_proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        heads = nn.op.reshape(self.c_attn(x), (1, LENGTH, 3 * HEADS, WIDTH // HEADS))
        q, k, v = nn.op.split(heads, 3, axis=2)
        found = nn.op.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(nn.op.reshape(found, (1, LENGTH, WIDTH)))


class MLP(nn.Module):
    def __init__(self):
        self.c_fc = nn.Linear(WIDTH, 4 * WIDTH)
        self.c_proj = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.c_proj(nn.op.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self):
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn, self.mlp = Attention(), MLP()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self):
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.h = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens, positions):
        return self.lm_head(self.ln_f(self.h(self.wte(tokens) + self.wpe(positions))))


of_ids = nn.spec.Tensor((1, LENGTH), "int32")
mod, _ = GPT2().export_tvm({"forward": {"tokens": of_ids, "positions": of_ids}})
with irviz.record() as recording:
    tvm.compile(mod, "llvm")
session = recording.session()
figure = session.draw("0")
