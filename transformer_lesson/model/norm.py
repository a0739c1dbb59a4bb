"""The two norms that a block may use: LayerNorm (2017) and RMSNorm (today)."""

from jaxtyping import Float
from torch import Tensor, nn

from transformer_lesson.model.config import ModelConfig


def layer_norm(
    x: Float[Tensor, "*batch d_model"],
    gamma: Float[Tensor, " d_model"],
    beta: Float[Tensor, " d_model"],
    epsilon: float = 1e-5,
) -> Float[Tensor, "*batch d_model"]:
    """Normalize each token's own numbers: (x - mean) / sqrt(variance + epsilon) * gamma + beta.

    The variance divides by d_model, not d_model - 1, and epsilon is inside the root. The blocks
    use `nn.LayerNorm`, which computes the same in one fused step.

    Args:
        x: shape (..., d_model); the mean is taken over the last axis only.
        gamma, beta: trained scale and shift, shape (d_model,).
        epsilon: keeps the root away from zero.

    Source: Ba et al., "Layer Normalization" (2016), equation 4.
    """
    centered = x - x.mean(dim=-1, keepdim=True)  # (..., d_model)
    variance = centered.square().mean(dim=-1, keepdim=True)  # (..., 1)
    return centered / (variance + epsilon).sqrt() * gamma + beta


def rms_norm(
    x: Float[Tensor, "*batch d_model"], gamma: Float[Tensor, " d_model"], epsilon: float = 1e-5
) -> Float[Tensor, "*batch d_model"]:
    """Divide each token's numbers by their root mean square: x / sqrt(mean(x^2) + epsilon) * gamma.

    LayerNorm without the mean and without the shift. The blocks use `nn.RMSNorm`, which computes
    the same.

    Args:
        x: shape (..., d_model); the mean is taken over the last axis only.
        gamma: trained scale, shape (d_model,).
        epsilon: keeps the root away from zero.

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019), equation 4.
    """
    mean_square = (x * x).mean(dim=-1, keepdim=True)  # (..., 1)
    return x / (mean_square + epsilon).sqrt() * gamma


def make_norm(config: ModelConfig) -> nn.Module:
    """Return a new norm of the kind that the config asks for."""
    kind = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}[config.norm]
    return kind(config.d_model, eps=config.norm_epsilon)


def sublayer_norm(config: ModelConfig) -> nn.Module:
    """Return what normalizes one sub-layer: a norm, or two if one is before and one behind it."""
    if config.norm_position != "both":
        return make_norm(config)
    return nn.ModuleList(make_norm(config) for _ in range(2))
