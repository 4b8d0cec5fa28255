"""Nine well-known models in plain torch.nn: their own architectures, with few channels."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class ResidualBlock(nn.Module):
    """The basic block of ResNet-18 and 34."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inner != outer:
            projection = nn.Conv2d(inner, outer, 1, stride, bias=False)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(outer))

    def forward(self, x: Tensor) -> Tensor:
        here = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(here)) + self.shortcut(x))


def resnet18(width: int = 8) -> nn.Module:
    """ResNet-18 (He et al. 2015)."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, width, 7, 2, 3, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    inner = width
    for outer, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
        layers += [ResidualBlock(inner, outer, stride), ResidualBlock(outer, outer, 1)]
        inner = outer
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, 10))


class SqueezeExcitation(nn.Module):
    """Scale each channel by what the means of all channels say."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        squeezed = max(8, channels // 4)
        self.fc1, self.fc2 = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        scale = self.fc2(functional.relu(self.fc1(functional.adaptive_avg_pool2d(x, 1))))
        return x * functional.hardsigmoid(scale)


class InvertedResidual(nn.Module):
    """Expand, convolve each channel by itself, squeeze and excite, project."""

    def __init__(
        self,
        inner: int,
        kernel: int,
        expanded: int,
        outer: int,
        stride: int,
        *,
        has_se: bool,
        is_hard: bool,
    ) -> None:
        super().__init__()
        activation = nn.Hardswish if is_hard else nn.ReLU
        layers: list[nn.Module] = []
        if expanded != inner:
            layers += [
                nn.Conv2d(inner, expanded, 1, bias=False),
                nn.BatchNorm2d(expanded),
                activation(),
            ]
        layers += [
            nn.Conv2d(expanded, expanded, kernel, stride, kernel // 2, groups=expanded, bias=False),
            nn.BatchNorm2d(expanded),
            activation(),
        ]
        if has_se:
            layers.append(SqueezeExcitation(expanded))
        layers += [nn.Conv2d(expanded, outer, 1, bias=False), nn.BatchNorm2d(outer)]
        self.block = nn.Sequential(*layers)
        self.is_residual = stride == 1 and inner == outer

    def forward(self, x: Tensor) -> Tensor:
        return x + self.block(x) if self.is_residual else self.block(x)


_SMALL = (  # kernel, expanded, outer, squeeze-and-excitation, hard swish, stride
    (3, 16, 16, True, False, 2),
    (3, 72, 24, False, False, 2),
    (3, 88, 24, False, False, 1),
    (5, 96, 40, True, True, 2),
    (5, 240, 40, True, True, 1),
    (5, 240, 40, True, True, 1),
    (5, 120, 48, True, True, 1),
    (5, 144, 48, True, True, 1),
    (5, 288, 96, True, True, 2),
    (5, 576, 96, True, True, 1),
    (5, 576, 96, True, True, 1),
)


def mobilenet_v3() -> nn.Module:
    """MobileNetV3-Small (Howard et al. 2019, table 2), with a quarter of its channels."""
    inner = 4
    layers: list[nn.Module] = [
        nn.Conv2d(3, inner, 3, 2, 1, bias=False),
        nn.BatchNorm2d(inner),
        nn.Hardswish(),
    ]
    for kernel, expanded, outer, has_se, is_hard, stride in _SMALL:
        layers.append(
            InvertedResidual(
                inner, kernel, expanded // 4, outer // 4, stride, has_se=has_se, is_hard=is_hard
            )
        )
        inner = outer // 4
    layers += [nn.Conv2d(inner, 144, 1, bias=False), nn.BatchNorm2d(144), nn.Hardswish()]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(144, 256), nn.Hardswish()]
    return nn.Sequential(*layers, nn.Linear(256, 10))


class Attention(nn.Module):
    """Attention of several heads, of a sequence to itself or to another one."""

    def __init__(self, width: int, heads: int, *, is_causal: bool = False) -> None:
        super().__init__()
        self.heads, self.is_causal = heads, is_causal
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        other = x if other is None else other
        batch, length, width = x.shape

        def split(projected: Tensor) -> Tensor:
            return projected.reshape(batch, -1, self.heads, width // self.heads).transpose(1, 2)

        q, k, v = split(self.query(x)), split(self.key(other)), split(self.value(other))
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        if self.is_causal:
            scores = scores + torch.triu(torch.full((length, length), -1e9), 1)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """A transformer's layer with its norms in front, with attention to an encoder if wanted."""

    def __init__(
        self, width: int, heads: int, *, is_causal: bool = False, has_encoder: bool = False
    ) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, is_causal=is_causal)
        if has_encoder:
            self.norm_cross, self.cross = nn.LayerNorm(width), Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor, encoded: Tensor | None = None) -> Tensor:
        x = x + self.attention(self.norm1(x))
        if encoded is not None:
            x = x + self.cross(self.norm_cross(x), encoded)
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """Vision Transformer (Dosovitskiy et al. 2020)."""

    def __init__(self, width: int = 24, layers: int = 4, heads: int = 3) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.zeros(1, 17, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class GPT2(nn.Module):
    """GPT-2 (Radford et al. 2019), with tied embeddings."""

    def __init__(self, width: int = 24, layers: int = 4, heads: int = 3) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(64, width), nn.Embedding(32, width)
        self.blocks = nn.Sequential(*(Block(width, heads, is_causal=True) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        here = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        return self.norm(self.blocks(here)) @ self.words.weight.T


class BertLayer(nn.Module):
    """A transformer's layer with its norms behind."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.outer(functional.gelu(self.inner(x))))


class BERT(nn.Module):
    """BERT (Devlin et al. 2018), with its pooler."""

    def __init__(self, width: int = 24, layers: int = 4, heads: int = 3) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(64, width), nn.Embedding(32, width)
        self.kinds, self.norm = nn.Embedding(2, width), nn.LayerNorm(width)
        self.layers = nn.Sequential(*(BertLayer(width, heads) for _ in range(layers)))
        self.pooler = nn.Linear(width, width)

    def forward(self, tokens: Tensor, kinds: Tensor) -> tuple[Tensor, Tensor]:
        places = self.places(torch.arange(tokens.shape[1]))
        here = self.layers(self.norm(self.words(tokens) + self.kinds(kinds) + places))
        return here, torch.tanh(self.pooler(here[:, 0]))


class RMSNorm(nn.Module):
    """The norm of Llama."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)


class LlamaLayer(nn.Module):
    """Rotary attention with grouped keys and values, and a gated MLP."""

    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.heads, self.groups, self.each = heads, groups, width // heads
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.query, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(width, groups * self.each, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        x = x + self._attention(self.norm1(x), cosine, sine)
        here = self.norm2(x)
        return x + self.down(functional.silu(self.gate(here)) * self.up(here))

    def _attention(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        batch, length, width = x.shape

        def split(projected: Tensor, heads: int) -> Tensor:
            return projected.reshape(batch, length, heads, self.each).transpose(1, 2)

        def turned(one: Tensor) -> Tensor:
            first, second = one.chunk(2, -1)
            return one * cosine + torch.cat([-second, first], -1) * sine

        q = turned(split(self.query(x), self.heads))
        k, v = turned(split(self.key(x), self.groups)), split(self.value(x), self.groups)
        k, v = (one.repeat_interleave(self.heads // self.groups, 1) for one in (k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.each)
        scores = scores + torch.triu(torch.full((length, length), -1e9), 1)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))


class Llama(nn.Module):
    """Llama (Touvron et al. 2023), with the grouped attention of its later versions."""

    def __init__(self, width: int = 32, layers: int = 4, heads: int = 4) -> None:
        super().__init__()
        self.words = nn.Embedding(64, width)
        self.layers = nn.ModuleList([LlamaLayer(width, heads, 2) for _ in range(layers)])
        self.norm, self.head = RMSNorm(width), nn.Linear(width, 64, bias=False)
        each = width // heads
        angles = torch.outer(torch.arange(32.0), 1e4 ** (-torch.arange(0, each, 2) / each))
        self.register_buffer("angles", torch.cat([angles, angles], -1))

    def forward(self, tokens: Tensor) -> Tensor:
        angles = self.angles[: tokens.shape[1]]
        here = self.words(tokens)
        for layer in self.layers:
            here = layer(here, angles.cos(), angles.sin())
        return self.head(self.norm(here))


class Whisper(nn.Module):
    """Whisper (Radford et al. 2022), of four layers on each side like the tiny one."""

    def __init__(self, width: int = 24, layers: int = 4, heads: int = 3) -> None:
        super().__init__()
        self.conv1, self.conv2 = (
            nn.Conv1d(8, width, 3, padding=1),
            nn.Conv1d(width, width, 3, 2, 1),
        )
        self.heard = nn.Parameter(torch.zeros(16, width))
        self.encoder = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.words, self.places = nn.Embedding(64, width), nn.Parameter(torch.zeros(32, width))
        self.decoder = nn.ModuleList(
            [Block(width, heads, is_causal=True, has_encoder=True) for _ in range(layers)]
        )
        self.last = nn.LayerNorm(width)

    def forward(self, spectrum: Tensor, tokens: Tensor) -> Tensor:
        here = functional.gelu(self.conv2(functional.gelu(self.conv1(spectrum))))
        encoded = self.norm(self.encoder(here.transpose(1, 2) + self.heard))
        here = self.words(tokens) + self.places[: tokens.shape[1]]
        for block in self.decoder:
            here = block(here, encoded)
        return self.last(here) @ self.words.weight.T


class TimedBlock(nn.Module):
    """A residual block of a diffusion model: it is told the step by an embedding."""

    def __init__(self, inner: int, outer: int, timed: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, inner), nn.Conv2d(inner, outer, 3, padding=1)
        self.time = nn.Linear(timed, outer)
        self.norm2, self.conv2 = nn.GroupNorm(4, outer), nn.Conv2d(outer, outer, 3, padding=1)
        self.shortcut = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        here = self.conv1(functional.silu(self.norm1(x)))
        here = here + self.time(functional.silu(time))[:, :, None, None]
        return self.conv2(functional.silu(self.norm2(here))) + self.shortcut(x)


class UNetBlock(nn.Module):
    """Down, a middle with attention to the words of a prompt, and up past a skip connection."""

    def __init__(self, channels: int = 8, timed: int = 16) -> None:
        super().__init__()
        self.down = TimedBlock(channels, 2 * channels, timed)
        self.smaller = nn.Conv2d(2 * channels, 2 * channels, 3, 2, 1)
        self.middle = TimedBlock(2 * channels, 2 * channels, timed)
        self.norm, self.attention = (
            nn.GroupNorm(4, 2 * channels),
            Block(2 * channels, 2, has_encoder=True),
        )
        self.larger = nn.Conv2d(2 * channels, 2 * channels, 3, padding=1)
        self.up = TimedBlock(4 * channels, channels, timed)

    def forward(self, x: Tensor, time: Tensor, prompt: Tensor) -> Tensor:
        down = self.down(x, time)
        here = self.middle(self.smaller(down), time)
        batch, channels, height, width = here.shape
        flat = self.norm(here).flatten(2).transpose(1, 2)
        here = here + self.attention(flat, prompt).transpose(1, 2).reshape(
            batch, channels, height, width
        )
        larger = functional.interpolate(here, scale_factor=2.0, mode="nearest")
        return self.up(torch.cat([self.larger(larger), down], 1), time)


class LSTM(nn.Module):
    """Two layers of LSTM over a few steps, and a classifier of the last one."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(4, 8, 2, batch_first=True), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0][:, -1])


def _image(size: int) -> Tensor:
    return torch.ones(1, 3, size, size)


def _tokens() -> Tensor:
    return torch.arange(8).reshape(1, 8)


MODELS = {
    "resnet18": lambda: (resnet18(), _image(32)),
    "mobilenet_v3": lambda: (mobilenet_v3(), _image(32)),
    "ViT": lambda: (ViT(), _image(32)),
    "GPT-2": lambda: (GPT2(), _tokens()),
    "BERT": lambda: (BERT(), {"tokens": _tokens(), "kinds": torch.zeros_like(_tokens())}),
    "Llama": lambda: (Llama(), _tokens()),
    "Whisper": lambda: (Whisper(), {"spectrum": torch.ones(1, 8, 32), "tokens": _tokens()}),
    "UNet block": lambda: (
        UNetBlock(),
        {"x": torch.ones(1, 8, 8, 8), "time": torch.ones(1, 16), "prompt": torch.ones(1, 4, 16)},
    ),
    "LSTM": lambda: (LSTM(), torch.ones(1, 4, 4)),
}
"""Each model, and example inputs."""
