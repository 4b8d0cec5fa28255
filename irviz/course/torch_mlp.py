"""The integration chapter's models in PyTorch, which is imported at the first use."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from irviz.course.digits import mlp_params

if TYPE_CHECKING:
    import torch


def matmul_relu_model(size: int = 128, seed: int = 0) -> torch.nn.Module:
    """Return a model of relu(x @ weight), with a square weight of normal random numbers."""
    import torch

    class MatmulRelu(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            generator = torch.Generator().manual_seed(seed)
            self.weight = torch.nn.Parameter(torch.randn(size, size, generator=generator))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(torch.matmul(x, self.weight))

    return MatmulRelu().eval()


def mlp_model() -> torch.nn.Module:
    """Return the lecture's MLP with the shipped weights: (n, 784) -> (n, 10)."""
    import torch

    layers = OrderedDict(
        linear0=torch.nn.Linear(784, 128), relu=torch.nn.ReLU(), linear1=torch.nn.Linear(128, 10)
    )
    model = torch.nn.Sequential(layers).eval()
    names = {
        "w0": "linear0.weight",
        "b0": "linear0.bias",
        "w1": "linear1.weight",
        "b1": "linear1.bias",
    }
    arrays = mlp_params().items()
    model.load_state_dict({names[name]: torch.from_numpy(array) for name, array in arrays})
    return model
