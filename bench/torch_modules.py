"""Modules of torch.nn as PyTorch's users write them, imported with their weights as parameters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from tvm import ir, relax
from tvm.relax.frontend.torch import from_exported_program

_WIDTH = 16


class _Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(_WIDTH, _WIDTH), nn.Linear(_WIDTH, _WIDTH)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        gated = torch.sigmoid(self.one(x)) * torch.tanh(self.two(x))
        return (gated + x).softmax(-1), gated.sum(-1), gated.to(torch.float64).mean()


class _Rounded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(_WIDTH, _WIDTH), nn.Linear(_WIDTH, _WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        rounded = self.one(x).to(torch.float16).to(torch.float32)
        return torch.exp(-rounded.abs()) + self.two(rounded).clamp(0, 1)


class _Masked(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        at = torch.arange(x.shape[1])
        is_past = (at[:, None] <= at[None]).float()
        scores = (x @ x.transpose(1, 2)).masked_fill(is_past == 0, -1e9)
        return scores.softmax(-1) @ x


class _Divided(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.all = nn.Linear(_WIDTH, 3 * _WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        one, two, three = self.all(x).chunk(3, -1)
        both = torch.stack([one, two]).mean(0)
        return torch.cat([one * two, torch.relu(three), both], -1)


_ACTIVATIONS = (
    *(nn.ELU, nn.GELU, nn.Hardsigmoid, nn.Hardswish, nn.LeakyReLU, nn.Mish, nn.PReLU, nn.ReLU),
    *(nn.ReLU6, nn.SELU, nn.Sigmoid, nn.SiLU, nn.Softplus, nn.Softsign, nn.Tanh, nn.Tanhshrink),
)


def _modules() -> Mapping[str, tuple[nn.Module, tuple[Tensor, ...]]]:
    x, image = torch.randn(2, 8, _WIDTH), torch.randn(1, 4, 16, 16)
    encoder = nn.TransformerEncoderLayer(2 * _WIDTH, 4, 64, batch_first=True)
    norm_first = nn.TransformerEncoderLayer(_WIDTH, 2, 32, batch_first=True, norm_first=True)
    found: dict[str, tuple[nn.Module, tuple[Tensor, ...]]] = {
        "encoder": (nn.TransformerEncoder(encoder, 3), (torch.randn(1, 5, 2 * _WIDTH),)),
        "encoder, norm first": (norm_first, (x,)),
        "decoder": (nn.TransformerDecoderLayer(_WIDTH, 2, 32, batch_first=True), (x, x)),
        "attention": (nn.MultiheadAttention(_WIDTH, 4, batch_first=True), (x, x, x)),
        "LSTM": (nn.LSTM(_WIDTH, 8, batch_first=True), (x,)),
        "GRU": (nn.GRU(_WIDTH, 8, batch_first=True), (x,)),
        "embedding": (
            nn.Sequential(nn.Embedding(50, _WIDTH), nn.Linear(_WIDTH, _WIDTH)),
            (torch.randint(0, 50, (2, 5)),),
        ),
        "norms": (
            nn.Sequential(nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, _WIDTH), nn.RMSNorm(_WIDTH)),
            (x,),
        ),
        "convolutions": (
            nn.Sequential(
                *(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
                *(nn.Conv2d(8, 8, 3, groups=2), nn.InstanceNorm2d(8), nn.ReLU()),
            ),
            (image,),
        ),
        "image norms": (
            nn.Sequential(
                *(nn.ZeroPad2d(1), nn.GroupNorm(2, 4), nn.SiLU(), nn.Upsample(scale_factor=2)),
                *(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
            ),
            (image,),
        ),
        "convolutions of sequences": (
            nn.Sequential(
                nn.Conv1d(8, 4, 3), nn.ReLU(), nn.ConvTranspose1d(4, 8, 3), nn.AvgPool1d(2)
            ),
            (x,),
        ),
        "pixel shuffle": (
            nn.Sequential(nn.PixelShuffle(2), nn.Conv2d(1, 1, 1), nn.PixelUnshuffle(2)),
            (image,),
        ),
        "cosine similarity": (nn.CosineSimilarity(-1), (x, x)),
        "log softmax": (nn.Sequential(nn.Linear(_WIDTH, 4), nn.LogSoftmax(-1)), (x,)),
        "dropout": (nn.Sequential(nn.Linear(_WIDTH, 4), nn.Dropout(), nn.Softmax(-1)), (x,)),
        "gated": (_Gated(), (x,)),
        "rounded": (_Rounded(), (x,)),
        "masked": (_Masked(), (x,)),
        "divided": (_Divided(), (x,)),
    }
    for activation in _ACTIVATIONS:
        layers = nn.Linear(_WIDTH, _WIDTH), activation(), nn.Linear(_WIDTH, 4), activation()
        found[activation.__name__] = nn.Sequential(*layers), (x,)
    for depth in range(1, 6):
        layers = [each for _ in range(depth) for each in (nn.Linear(_WIDTH, _WIDTH), nn.ReLU())]
        found[f"MLP of {depth} layers"] = nn.Sequential(*layers), (x,)
    return found


def torch_modules() -> dict[str, ir.IRModule]:
    """Return the modules by name; their weights are drawn at random, the same ones each time."""
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    found = {}
    for name, (module, arguments) in _modules().items():
        program = torch.export.export(module.eval(), arguments)
        mod = from_exported_program(program, keep_params_as_input=True)
        found[name] = relax.frontend.detach_params(mod)[0]
    return found
