"""The noise scale of gradients, and where it comes from."""

import torch

from transformer_lesson.training.batch_size import noise_scale


def test_it_finds_the_noise_that_was_put_in():
    generator, true = torch.Generator().manual_seed(0), torch.tensor([3.0, 4.0])  # |G|^2 = 25

    def norms(size, n):  # of gradients of two weights, each with a variance of 100 a sentence
        noise = torch.randn(n, 2, generator=generator) * (100 / size) ** 0.5
        return (true + noise).norm(dim=1)

    found = noise_scale(norms(2, 200_000), norms(64, 200_000), 2, 64)
    assert abs(found - 200 / 25) < 0.1
