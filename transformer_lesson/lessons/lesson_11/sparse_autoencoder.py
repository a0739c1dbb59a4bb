"""A sparse autoencoder: each vector of a model as a sum of a few out of many directions."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class SparseAutoencoder(nn.Module):
    """z = the k largest of ReLU((x - c) W_in + b), x' = c + z W_out: k directions for each vector.

    Args:
        d_model: numbers in a vector.
        n_features: number of directions, more than d_model.
        k: how many of them a vector may use.

    Source: Gao et al., "Scaling and evaluating sparse autoencoders" (2024), section 2.3.
    """

    def __init__(self, d_model: int, n_features: int, k: int):
        super().__init__()
        directions = F.normalize(torch.randn(n_features, d_model), dim=1)
        self.W_in, self.W_out = nn.Parameter(directions.T.clone()), nn.Parameter(directions)
        self.b, self.c = nn.Parameter(torch.zeros(n_features)), nn.Parameter(torch.zeros(d_model))
        self.k = k

    def features(self, x: Float[Tensor, "n d_model"]) -> Float[Tensor, "n n_features"]:
        """Return each vector's coefficient for every direction; all but k are 0."""
        z = torch.relu((x - self.c) @ self.W_in + self.b)
        largest = z.topk(self.k, dim=1)
        return torch.zeros_like(z).scatter(1, largest.indices, largest.values)

    def forward(self, x: Float[Tensor, "n d_model"]) -> Float[Tensor, "n d_model"]:
        """Return each vector as the sum of its features' directions."""
        return self.c + self.features(x) @ self.W_out


def train_sparse_autoencoder(
    vectors: Float[Tensor, "n d_model"], n_features: int, k: int = 8, steps: int = 1000
) -> SparseAutoencoder:
    """Return an autoencoder trained to reconstruct these vectors from few features each.

    Args:
        vectors: centered and scaled so that their mean length is about 1.
        n_features, k: of the autoencoder.
        steps: of Adam, 512 vectors each.
    """
    torch.manual_seed(0)
    autoencoder = SparseAutoencoder(vectors.size(1), n_features, k)
    optimizer = torch.optim.Adam(autoencoder.parameters(), lr=2e-3)
    for _ in range(steps):
        x = vectors[torch.randint(len(vectors), (512,))]
        loss = (x - autoencoder(x)).square().sum(dim=1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():  # unit length: coefficients must not shrink by longer directions
            autoencoder.W_out /= autoencoder.W_out.norm(dim=1, keepdim=True)
    return autoencoder.requires_grad_(False)


@torch.no_grad()
def share_explained(autoencoder: SparseAutoencoder, vectors: Float[Tensor, "n d_model"]) -> float:
    """Return the share of the vectors' variance explained: 1 - |x - x'|^2 / |x - mean|^2."""
    lost = (vectors - autoencoder(vectors)).square().sum()
    return 1 - (lost / (vectors - vectors.mean(dim=0)).square().sum()).item()
