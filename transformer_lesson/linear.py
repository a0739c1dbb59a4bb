"""`nn.Linear`, but fast for the few rows that a model reads at a time while it writes."""

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
