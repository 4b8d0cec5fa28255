"""Draw well-known models with random weights anew: `python assets/models.py`.

This needs torch, torchvision and transformers, which irviz's own extras do not bring.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ASSETS = Path(__file__).parent


def main() -> None:
    """Write the first picture of ResNet-18 and of GPT-2."""
    import irviz
    from irviz.figures import Declaration, FigureList, write_figures

    def session(make: Callable[[], tuple[Any, Any]]) -> irviz.Session:
        model, inputs = make()
        return irviz.load(model.eval(), inputs=inputs)

    figures = [
        Declaration("resnet18", lambda: session(resnet18), columns=3),
        Declaration(
            "gpt2",
            lambda: session(gpt2),
            columns=2,
            min_text=13,
            names={
                "p_lm_head_weight": "tied weight",
                "between:lv5": "positions",
                "between:lv12": "add, causal mask",
            },
        ),
    ]
    for file in write_figures(FigureList(ASSETS, ASSETS, figures)):
        print(file)


def resnet18() -> tuple[Any, Any]:
    """Return ResNet-18 of torchvision, and an image."""
    import torchvision

    return torchvision.models.resnet18(), torch.zeros(1, 3, 224, 224)


def gpt2() -> tuple[Any, Any]:
    """Return GPT-2 of transformers, as it was published with 124 M parameters, and 16 tokens."""
    import transformers

    config = transformers.GPT2Config(use_cache=False, attn_implementation="eager")
    tokens = torch.zeros(1, 16, dtype=torch.int64)
    return transformers.GPT2LMHeadModel(config), {"input_ids": tokens}


if __name__ == "__main__":
    main()
