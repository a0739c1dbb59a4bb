"""The optimizers do what the papers say, to which weights, and clipping keeps the direction."""

import pytest
import torch

from tests.training.small import batch_of, model_of, weights
from transformer_lesson.training import TrainConfig
from transformer_lesson.training.loss import batch_loss
from transformer_lesson.training.optimizer import clip_gradients, make_optimizer


def with_gradients():
    model = model_of("translator").eval()
    batch_loss(model, batch_of("translator"))[0].backward()
    return model, gradients(model)


def gradients(model) -> torch.Tensor:
    return torch.cat([weight.grad.flatten() for weight in model.parameters()])


def test_adam_is_algorithm_1():
    config = TrainConfig(steps=9, optimizer="adam", learning_rate=0.01, betas=(0.9, 0.98))
    model, _ = with_gradients()
    optimizer = make_optimizer(model, config)
    m = v = torch.zeros_like(weights(model))
    wanted = weights(model)
    for t in (1, 2, 3):
        g = gradients(model)
        m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g**2
        wanted -= 0.01 * (m / (1 - 0.9**t)) / ((v / (1 - 0.98**t)).sqrt() + 1e-9)
        optimizer.step()
        for weight in model.parameters():
            weight.grad *= -0.7
    torch.testing.assert_close(weights(model), wanted, atol=2e-6, rtol=1e-5)


def test_adamw_pulls_at_matrices_only():
    model = model_of("translator")
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    make_optimizer(model, TrainConfig(steps=1, learning_rate=0.1, weight_decay=0.5)).step()
    assert {weight.dim() for weight in before.values()} == {1, 2}
    for name, weight in model.named_parameters():
        share = 1 - 0.1 * 0.5 if weight.dim() == 2 else 1.0
        torch.testing.assert_close(weight.detach(), before[name] * share)


def test_every_weight_is_trained_and_tied_ones_once_with_the_configs_settings():
    model, config = model_of("translator"), TrainConfig(steps=1, betas=(0.8, 0.95), epsilon=1e-6)
    optimizer = make_optimizer(model, config)
    trained = [id(weight) for group in optimizer.param_groups for weight in group["params"]]
    assert sorted(trained) == sorted(map(id, model.parameters()))
    settings = optimizer.defaults
    assert (settings["betas"], settings["eps"], settings["fused"]) == ((0.8, 0.95), 1e-6, True)


@pytest.mark.parametrize(("longest", "factor"), [(1 / 3, 1 / 3), (1e6, 1), (None, 1)])
def test_clipping_shortens_what_is_too_long_and_keeps_the_direction(longest, factor):
    model, before = with_gradients()
    length = before.norm().item()
    clipped = clip_gradients(model, longest and longest * length)
    assert clipped.item() == pytest.approx(length, rel=1e-5)
    torch.testing.assert_close(gradients(model), before * factor)
    assert factor != 1 or torch.equal(gradients(model), before)
