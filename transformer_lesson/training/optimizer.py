"""From gradients to better weights."""

import torch
from torch import Tensor, nn

from transformer_lesson.training.config import TrainConfig
from transformer_lesson.training.interrupt import load_whole

OPTIMIZERS = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Return the config's optimizer over all of the model's weights.

    Weight decay, if any, pulls at matrices only (embeddings too). A bias or the scale of a norm
    does not make a model complicated, and a scale pulled to zero would silence its layer.

    All weights are updated by one fused kernel, four times as fast as one by one.

    Source: Kingma and Ba, "Adam" (2014), algorithm 1; Loshchilov and Hutter, "Decoupled Weight
        Decay Regularization" (2017), algorithm 2.
    Differs: sparing biases and norms is practice since GPT-2, not in the paper.
    """
    load_whole("torch._dynamo")  # PyTorch's optimizers import it at first use, for seconds
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    groups = [
        {"params": [w for w in weights if w.dim() >= 2], "weight_decay": config.weight_decay},
        {"params": [w for w in weights if w.dim() < 2], "weight_decay": 0.0},
    ]
    kind = OPTIMIZERS[config.optimizer]
    return kind(
        groups, lr=config.peak_learning_rate, betas=config.betas, eps=config.epsilon, fused=True
    )


def clip_gradients(model: nn.Module, longest: float | None) -> Tensor:
    """Shorten the gradient to the length `longest`, if it is longer, and return its old length.

    The gradient is all weights' gradients taken as one long vector: its direction stays.

    Source: Pascanu et al., "On the difficulty of training RNNs" (2012), algorithm 1.
    """
    limit = float("inf") if longest is None else longest
    return nn.utils.clip_grad_norm_(model.parameters(), limit)


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return what the optimizer remembers, as `optimizer.<quantity>.<weight>`."""
    return {
        f"optimizer.{quantity}.{name}": value
        for name, weight in model.named_parameters()
        for quantity, value in optimizer.state[weight].items()
    }


def restore_optimizer(
    model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]
) -> None:
    """Put back what `optimizer_tensors` returned."""
    weights = dict(model.named_parameters())
    for key, value in tensors.items():
        if key.startswith("optimizer."):
            _, quantity, name = key.split(".", 2)
            if value.dim() and value.shape != weights[name].shape:
                raise IndexError(f"{key} has shape {tuple(value.shape)}")
            optimizer.state[weights[name]][quantity] = value.to(weights[name].device)
