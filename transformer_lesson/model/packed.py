"""Linear maps whose weights stay in 4 or 8 bits: fewer bytes to read for every token.

A model that writes for one reader waits for memory: every token reads every weight once. Weights in
4 bits are an eighth as much to read as float32. PyTorch's kernels for them compute in bfloat16.
"""

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from transformer_lesson.model.fast import plain

BLOCK = 32  # numbers in a row that share a scale
ROWS = 64  # packed at a time; all rows at once would take much memory


class FourBitLinear(nn.Module):
    """x W^T + b, where each number of W is scale * step + smallest: 16 steps, 32 numbers a block.

    Args:
        steps: 0 to 15, shape (d_out, d_in); d_out is a multiple of 16.
        scale, smallest: of each block, shape (d_out, d_in / 32).
        bias: of bfloat16 numbers, shape (d_out,); `None` for none.

    Source: the format is ggml's Q4_1; the kernel is PyTorch's, for torchao.
    """

    def __init__(
        self,
        steps: UInt8[Tensor, "d_out d_in"],
        scale: Float[Tensor, "d_out blocks"],
        smallest: Float[Tensor, "d_out blocks"],
        bias: nn.Parameter | None = None,
    ):
        super().__init__()
        self.register_parameter("bias", bias)
        pack = torch.ops.aten._convert_weight_to_int4pack_for_cpu
        packed = torch.cat([pack(rows.int(), 1) for rows in steps.split(ROWS)])  # takes int32
        levels = torch.stack([scale, smallest + 8 * scale], dim=-1)  # the kernel counts from step 8
        self.register_buffer("steps", packed)
        self.register_buffer("levels", levels.transpose(0, 1).contiguous().bfloat16())

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        """Return x W^T + b in bfloat16, which x must have."""
        rows = x.reshape(-1, x.size(-1))  # (row, d_in)
        y = torch.ops.aten._weight_int4pack_mm_for_cpu(rows, self.steps, BLOCK, self.levels)
        y = y.view(*x.shape[:-1], -1)  # (..., d_out)
        return y if self.bias is None else y + self.bias


class EightBitLinear(nn.Module):
    """x W^T, where each number of W is scale * step: steps from -127 to 127, one scale per row.

    Args:
        W: the matrix, shape (d_out, d_in), whose numbers are rounded.

    Source: Dettmers et al., "LLM.int8()" (2022), sections 2.1 (absmax) and 3.1 (a scale for each
        row); the kernel is PyTorch's, for torchao.

    Raises:
        ValueError: W holds NaN or an infinity, which 8 bits cannot.
    """

    def __init__(self, W: Float[Tensor, "d_out d_in"]):
        super().__init__()
        if not W.isfinite().all():
            raise ValueError(
                f"{int((~W.isfinite()).sum())} of the matrix's {W.numel()} numbers are NaN or "
                "infinite, which 8 bits cannot hold: load or train the model again."
            )
        scale = W.abs().amax(dim=1).clamp(min=1e-12).float() / 127  # (d_out,)
        self.register_buffer("steps", (W / scale[:, None]).round().to(torch.int8))
        self.register_buffer("scale", scale.bfloat16())

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        """Return x W^T in bfloat16, which x must have."""
        rows = x.reshape(-1, x.size(-1))  # (row, d_in)
        y = torch.ops.aten._weight_int8pack_mm(rows, self.steps, self.scale)
        return y.view(*x.shape[:-1], -1)


def in_eight_bits(model: nn.Module) -> nn.Module:
    """Convert a model to bfloat16 and its linear maps to 8 bits.

    The projection to logits, which may be the embedding as well, stays in bfloat16, and so does
    every map where TRANSFORMER_LESSON_PLAIN=1 asks for plain arithmetic.
    """
    for name, layer in list(model.bfloat16().named_modules()):
        linear = type(layer) is nn.Linear and layer.bias is None and name != "projection"
        if linear and not plain():
            model.set_submodule(name, EightBitLinear(layer.weight.detach()))
    return model
