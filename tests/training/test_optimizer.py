"""The optimizers do what the papers say, to which weights, and clipping keeps the direction."""

import pytest
import torch

from tests.training.small import batch_of, model_of, short, weights
from transformer_lesson.training import TrainConfig, train
from transformer_lesson.training.loss import batch_loss
from transformer_lesson.training.optimizer import clip_gradients, make_optimizer


def with_gradients(kind: str = "translator"):
    model = model_of(kind).eval()
    batch_loss(model, batch_of(kind))[0].backward()
    return model


def test_adam_is_algorithm_1():
    config = TrainConfig(steps=9, optimizer="adam", learning_rate=0.01, betas=(0.9, 0.98))
    model = with_gradients()
    optimizer = make_optimizer(model, config)
    m = v = torch.zeros_like(weights(model))
    wanted = weights(model)
    for t in (1, 2, 3):
        g = torch.cat([weight.grad.flatten() for weight in model.parameters()])
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


def test_betas_and_epsilon_reach_the_optimizer():
    config = TrainConfig(steps=1, betas=(0.8, 0.95), epsilon=1e-6)
    settings = make_optimizer(model_of("translator"), config).defaults
    assert (settings["betas"], settings["eps"], settings["fused"]) == ((0.8, 0.95), 1e-6, True)


def test_every_weight_is_trained_and_tied_ones_once():
    model = model_of("translator")
    groups = make_optimizer(model, TrainConfig(steps=1)).param_groups
    trained = [weight for group in groups for weight in group["params"]]
    assert {id(weight) for weight in trained} == {id(weight) for weight in model.parameters()}
    assert len(trained) == len({id(weight) for weight in trained})


def test_clipping_shortens_and_keeps_the_direction():
    model = with_gradients()
    before = torch.cat([weight.grad.flatten() for weight in model.parameters()])
    longest = before.norm().item() / 3
    assert clip_gradients(model, longest).item() == pytest.approx(before.norm().item(), rel=1e-5)
    after = torch.cat([weight.grad.flatten() for weight in model.parameters()])
    torch.testing.assert_close(after, before / 3)


@pytest.mark.parametrize("longest", [None, 1e6])
def test_a_short_gradient_is_left_alone(longest):
    model = with_gradients()
    before = torch.cat([weight.grad.flatten() for weight in model.parameters()])
    assert clip_gradients(model, longest).item() == pytest.approx(before.norm().item(), rel=1e-5)
    after = torch.cat([weight.grad.flatten() for weight in model.parameters()])
    assert torch.equal(after, before)


def test_the_recorded_norm_is_the_one_before_clipping():
    free = train(model_of("translator"), [batch_of("translator")], short(1, clip=None))
    clipped = train(model_of("translator"), [batch_of("translator")], short(1, clip=1e-3))
    assert free.gradient_norms == clipped.gradient_norms and free.gradient_norms[0] > 0.1
