"""The same numbers sooner: products of a few rows, and dropout that is cheap on a CPU."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

FEW, LARGE = 2**12, 2**17  # numbers in x, numbers in the matrix


class Linear(nn.Linear):
    """x W^T + b, equal to `nn.Linear` but for the last digit.

    A model that writes one token after the other multiplies one row by each of its matrices. On
    a CPU, two libraries that PyTorch hands this to are slow at it (torch 2.13):

    - Intel's MKL, for float32, takes twice as long for one row as for two columns. So few rows
      are turned into columns, x W^T = (W x^T)^T, and a single one gets a twin.
    - oneDNN, for bfloat16, takes twice as long for one row as PyTorch itself.

    Training, small matrices, other precisions and devices go the usual way.
    """

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        """Map each row of d_in numbers to d_out numbers."""
        few = x.numel() <= FEW and self.weight.numel() >= LARGE
        if few and x.is_cpu and not torch.is_grad_enabled():
            if x.dtype == torch.float32 and torch.backends.mkl.is_available():
                return self._turned(x)
            if x.dtype == torch.bfloat16 and x.numel() == self.in_features:
                with without_onednn():
                    return super().forward(x)
        return super().forward(x)

    def _turned(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.in_features)  # (row, d_in)
        n = rows.size(0)
        rows = torch.cat([rows, rows]) if n == 1 else rows.contiguous()
        y = (self.weight @ rows.T)[:, :n].T.contiguous()  # (row, d_out)
        y = y if self.bias is None else y + self.bias
        return y.view(*x.shape[:-1], self.out_features)


@contextmanager
def without_onednn() -> Iterator[None]:
    """Let PyTorch multiply by itself."""
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before


def keep_mask(shape: tuple[int, ...], p: float, device: torch.device | str = "cpu") -> Tensor:
    """Return a boolean tensor of that shape, each entry `True` with probability 1 - p.

    Each entry compares 16 random bits with a threshold, so p is met to within 1 / 65536. A draw
    of 64 bits serves four entries, which is several times faster on a CPU than the random number
    per entry of `nn.Dropout`: there dropout takes a third of a small model's training step.
    """
    count = math.prod(shape)
    draws = torch.empty(math.ceil(count / 4), dtype=torch.int64, device=device)
    bits = draws.random_(-(2**63), None).view(torch.int16)[:count]  # -32768 ... 32767
    keep = bits.ge_(round(p * 65536) - 32768)  # 0 or 1; in place is faster than bits >= ...
    return keep.to(torch.bool).view(shape)


class Dropout(nn.Module):
    """Zero each number with probability p and divide the others by 1 - p; in training only.

    The division keeps the expected value, so that nothing need change for inference.

    Args:
        p: probability of zeroing, in [0, 1).

    Raises:
        ValueError: p is not in [0, 1).

    Source: Srivastava et al., "Dropout" (2014); "Attention Is All You Need" (2017), section 5.4.
    Differs: not from `nn.Dropout`, but for the random numbers; see `keep_mask`.
    """

    def __init__(self, p: float):
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"p is {p}, but it must be a probability in [0, 1).")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Return x, thinned out in training and unchanged in evaluation."""
        if not self.training or self.p == 0:
            return x
        keep = keep_mask(x.shape, self.p, x.device).view(torch.int8)  # as a factor, 4 times as fast
        return (x * keep).mul_(1 / (1 - self.p))

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"p={self.p}"


def plain() -> bool:
    """Whether TRANSFORMER_LESSON_PLAIN=1 asks for float32 and no tricks.

    It is for those who want the same arithmetic on every machine, rather than the fastest one.
    """
    return os.environ.get("TRANSFORMER_LESSON_PLAIN") == "1"
