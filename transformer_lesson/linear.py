"""`nn.Linear`, but fast for the few rows that a model reads at a time while it writes."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

FEW, LARGE = 2**12, 2**17  # numbers in x, numbers in the matrix


class Linear(nn.Linear):
    """x W^T + b, equal to `nn.Linear` but for the last digit.

    A model that writes one token after the other multiplies one row by each of its matrices.
    Intel's MKL, with which PyTorch computes that on most CPUs, takes twice as long for one row
    as for two columns (torch 2.13). So few rows are turned into columns, x W^T = (W x^T)^T, and a
    single one gets a twin. Training, small matrices, other precisions and devices go the usual way.
    """

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        """Map each row of d_in numbers to d_out numbers."""
        few = x.numel() <= FEW and self.weight.numel() >= LARGE
        if few and uses_mkl(x) and not torch.is_grad_enabled():
            return self._turned(x)
        return super().forward(x)

    def _turned(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.in_features)  # (row, d_in)
        n = rows.size(0)
        rows = torch.cat([rows, rows]) if n == 1 else rows.contiguous()
        y = (self.weight @ rows.T)[:, :n].T.contiguous()  # (row, d_out)
        y = y if self.bias is None else y + self.bias
        return y.view(*x.shape[:-1], self.out_features)


def uses_mkl(x: Tensor) -> bool:
    """Whether PyTorch multiplies this with Intel's MKL."""
    return torch.backends.mkl.is_available() and x.is_cpu and x.dtype == torch.float32
