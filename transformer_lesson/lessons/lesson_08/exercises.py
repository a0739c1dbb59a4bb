"""Lesson 08: how wrong a prediction is, its gradient, and the step of training.

Long because it is data: exercises whole, with their inputs and all their wrong turns.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.compare import gradient_to
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.text.batches import Batch

LOSS_SIZES = ((2, 5, 7), (3, 2, 5), (5, 3, 7), (1, 5, 3), (3, 1, 5), (2, 7, 5), (3, 5, 7))
"""How many sentences, positions and tokens. They are small, for many variants are tried on them."""


def _loss_inputs(draw: Draw) -> tuple:
    """Padding anywhere and nowhere, ids on both sides of it, one position, logits of 100."""
    if not draw.small:
        draw.sizes |= zip(("batch", "n", "vocab_size"), draw.one_of(LOSS_SIZES), strict=True)
    draw.size("batch"), draw.size("n")
    vocab_size = draw.size("vocab_size", at_least=3)
    logits = draw.normal("batch n vocab_size")
    pad_id = draw.one_of((0, 1, vocab_size - 1, 2, 0, 1, 0))
    labels = draw.integers("batch n", 0, vocab_size)
    labels[labels == pad_id] = (pad_id + 1) % vocab_size
    if draw.number not in (4, 6):
        labels.view(-1)[1::3] = pad_id  # every sentence keeps a label
    if draw.number == 2:
        logits = 100 * logits  # so far apart that the lowest probabilities are 0
    if draw.number == 3:
        logits = logits.double().mT.contiguous().mT
    if draw.number == 5:
        logits = logits + 100  # the exponentials are infinite
    return logits, labels, draw.one_of((0.1, 0.3, 0.2, 0.1, 0.5, 0.0, 0.1)), pad_id


@breaks("padding that counts")
def _padding_counts_for_nothing(answer, inputs: tuple, loss: float | Tensor) -> str | None:
    logits, labels, smoothing, pad_id = inputs
    padded = labels == pad_id
    changed = torch.where(padded[..., None], 1 - 3 * logits, logits)
    other = answer(changed, labels.clone(), smoothing, pad_id)
    if torch.allclose(other, loss, atol=1e-5):
        return None
    return (
        f"The loss changes, from {float(loss):.4f} to {float(other):.4f}, when the logits at "
        f"padding change.\nWhere the label is pad_id = {pad_id}, nothing may count: neither the "
        "cross-entropy nor the smoothing."
    )


@breaks("a loss without a way back to the logits")
def gradients_reach_the_logits(answer, inputs: tuple, loss: Tensor) -> str | None:
    """A loss must be one that logits can be trained by."""
    logits, labels, smoothing, pad_id = inputs
    watched = logits.detach().clone().requires_grad_()
    again = answer(watched + 0, labels.clone(), smoothing, pad_id)
    if gradient_to(watched, again) is not None:
        return None
    return (
        "No gradient comes back from your loss to the logits, so nothing can be learned from it.\n"
        "Stay with tensors: `.item()`, `float()`, `.detach()` and `torch.tensor(...)` cut it off."
    )


gradients_reach_the_logits.of_gradients = "any results"


@exercise(
    reference="transformer_lesson.training.loss:label_smoothed_loss",
    make_inputs=_loss_inputs,
    draws=7,
    returns={"loss": ""},
    hints=(
        "Start with `log_p = logits.log_softmax(dim=-1)`. Logits aren't probabilities.",
        "Two terms: `-log_p` at the label, and the mean of `-log_p` over the vocabulary.",
        "(1 - smoothing) times the first plus smoothing times the second, at each position.",
        "Keep only the positions whose label is not `pad_id`, then take the mean.",
    ),
    invariants=(_padding_counts_for_nothing, gradients_reach_the_logits),
)
def label_smoothed_loss(logits, labels, smoothing, pad_id):
    """Return the mean cross-entropy with smoothed targets over the labels that are no padding."""
    smoothing = choose(smoothing, unsmoothed=0.0, always_a_tenth=0.1)
    logits = choose(
        logits, reshaped=logits.reshape(logits.size(0), logits.size(2), logits.size(1)).mT
    )
    real = choose(labels != pad_id, counted=torch.ones_like(labels).bool())
    index = labels[..., None]
    log_p, vocab_size = _log_probabilities(logits), logits.size(-1)
    at_label = -log_p.gather(-1, index)[..., 0]
    spread = _spread(-log_p, at_label, logits, pad_id)
    losses = _losses(at_label, spread, smoothing, vocab_size)
    return _mean(losses, real)


def _log_probabilities(logits):
    """Return the logarithm of each token's probability."""
    log_p = choose(
        logits.log_softmax(-1),
        second_softmax=logits.softmax(-1).log_softmax(-1),
        over_positions=logits.log_softmax(-2),
        naive_quotient=(logits.exp() / logits.exp().sum(-1, keepdim=True)).log(),
        naive_exponential=logits - logits.exp().sum(-1, keepdim=True).log(),
        little_added=(logits.softmax(-1) + 1e-9).log(),
    )
    return choose(log_p, bits=log_p / math.log(2))


def _spread(costs, at_label, logits, pad_id):
    """Return what the smoothing's share costs at each position."""
    vocab_size = costs.size(-1)
    others = costs.sum(-1) - at_label
    return choose(
        costs.mean(-1),
        others_only=others / (vocab_size - 1),
        one_too_few=costs.sum(-1) / (vocab_size - 1),
        others_without_padding=(others - costs[..., pad_id]) / (vocab_size - 2),
        annotated=(others - costs[..., pad_id]) / (vocab_size - 2),
        leaks=costs.mean(),
    )


def _losses(at_label, spread, smoothing, vocab_size):
    """Return what each position costs: the label's share, and that of all tokens."""
    return choose(
        (1 - smoothing) * at_label + smoothing * spread,
        shares_swapped=smoothing * at_label + (1 - smoothing) * spread,
        label_keeps_all=at_label + smoothing * spread,
        shares_equal=at_label + spread,
        divergence=(1 - smoothing) * at_label
        + smoothing * spread
        - _entropy(1 - smoothing + smoothing / vocab_size, smoothing / vocab_size, vocab_size - 1),
        annotated=(1 - smoothing) * at_label
        + smoothing * spread
        - _entropy(1 - smoothing, smoothing / (vocab_size - 2), vocab_size - 2),
    )


def _entropy(label_share, other_share, n_others):
    """Return a smoothed target's entropy, the lowest value that the cross-entropy can have."""
    shares = torch.tensor([label_share, other_share], dtype=torch.float64)
    return torch.special.entr(shares) @ torch.tensor([1.0, n_others], dtype=torch.float64)


def _mean(losses, real):
    """Return the mean of the losses of real labels."""
    kept = torch.where(real, losses, 0.0)
    mean = choose(
        losses[real].mean(),
        over_all=kept.mean(),
        sum=kept.sum(),
        by_sentences=kept.sum() / len(losses),
        mean_of_means=(kept.sum(-1) / real.sum(-1)).mean(),
    )
    return choose(mean, number=mean.tolist())


@breaks("a gradient at padding")
def _padding_gets_nothing(answer, inputs: tuple, gradient: Tensor) -> str | None:
    padded = inputs[1] == inputs[3]
    if not gradient[padded].any():
        return None
    return (
        f"Where the label is padding (pad_id = {inputs[3]}), the loss does not depend on the "
        "logits, so its gradient is 0 there. Yours is not."
    )


@breaks("a gradient that does not sum to 0")
def _sums_to_nothing(answer, inputs: tuple, gradient: Tensor) -> str | None:
    worst = gradient.double().sum(-1).abs().max().item()
    if worst < 1e-4:
        return None
    return (
        "If all logits of a position rise by the same amount, its softmax stays, and so does the "
        "loss. So the gradient must sum to 0 at each position. Yours has a position where it "
        f"sums to {worst:.4f}."
    )


@exercise(
    reference="transformer_lesson.training.loss:loss_gradient",
    make_inputs=_loss_inputs,
    draws=7,
    returns={"gradient": "batch n vocab_size"},
    hints=(
        "On paper: write the loss of one position as ln sum exp(z_j) - sum q_j z_j, and "
        "differentiate by z_k. The first term gives a familiar fraction.",
        "That fraction is the softmax: at a real label the derivative is p - q. Build q from "
        "`F.one_hot(labels, vocab_size)` and the smoothing.",
        "The loss is a mean over the labels that count: divide by how many they are, and put 0 "
        "where the label is `pad_id`.",
    ),
    invariants=(_padding_gets_nothing, _sums_to_nothing),
)
def loss_gradient(logits, labels, smoothing, pad_id):
    """Return the derivative of the smoothed cross-entropy's mean by each logit."""
    smoothing = choose(smoothing, unsmoothed=0.0, always_a_tenth=0.1)
    real = choose(labels != pad_id, inverted=labels == pad_id)
    hot = F.one_hot(labels, logits.size(-1))
    p, q = _probabilities(logits), _target(smoothing, hot)
    gradient = choose(
        p - q,
        label_one_missing=p,
        target_alone=-q,
        summed=p + q,
        label_alone=(p - q) * hot,
        softmax_once_more=(p - q) * p * (1 - p),
        jacobian_once_more=p * (p - q - (p * (p - q)).sum(-1, keepdim=True)),
    )
    kept = gradient * real[..., None]
    return _share(kept, real)


def _share(kept, real):
    """Return the gradient of the mean, from that of the sum."""
    return kept / real.sum()


def _probabilities(logits):
    """Return what the model gives each word."""
    return choose(logits.softmax(-1), log_p=logits.log_softmax(-1))


def _target(smoothing, hot):
    """Return the smoothed target of each position."""
    vocab_size = hot.size(-1)
    return (1 - smoothing) * hot + smoothing / vocab_size


STEP_SIZES = ((2, 3), (3, 2), (5, 3), (1, 2), (2, 5))  # sentences, numbers of each
STEPS = 3  # that a trial takes: what is wrong may show in the second only


def _step_inputs(draw: Draw) -> tuple:
    """One input or two; gradients that are clipped in every step, in some, in none."""
    if not draw.small:
        draw.sizes |= zip(("batch", "n"), draw.one_of(STEP_SIZES), strict=True)
    draw.size("batch"), draw.size("n", at_least=2)
    inputs = tuple(draw.normal("batch n") for _ in range(draw.one_of((1, 2, 2, 1, 2))))
    labels = (3 * draw.normal("batch n")).softmax(dim=-1).round(decimals=2)
    max_norm = draw.one_of((0.1, 10.0, 0.3, 0.05, 0.2))
    return (
        0.5 * draw.normal("n n"),
        inputs,
        labels,
        draw.one_of((0.5, 0.1, 1.0, 2.0, 0.3)),
        max_norm,
    )


class _TinyModel(nn.Module):
    """One matrix, multiplied with the sum of all inputs."""

    def __init__(self, weight: Tensor):
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight.clone()), nn.Parameter(weight[0].clone())

    def forward(self, *inputs):
        return sum(inputs) @ self.weight + self.bias


def _three_steps(answer, weight, inputs, labels, rate, max_norm):
    """Call an answer on a tiny model; return its losses, the weights, and what happened when."""
    model = _TinyModel(weight)
    optimizer, happened, losses, weights = torch.optim.SGD(model.parameters(), rate), [], [], []
    for one in model.parameters():
        one.grad = torch.ones_like(one)  # as it is left by whoever used the model before

    def loss_function(logits, labels):
        """Return the cross-entropy, and note when it and its gradient are computed."""
        loss = F.cross_entropy(logits, labels)  # labels are probabilities
        happened.append("loss")
        if loss.requires_grad:
            loss.register_hook(lambda gradient: happened.append("backward"))
        return loss

    optimizer.register_step_post_hook(lambda *_: happened.append(_length(model)))
    for _ in range(STEPS):
        happened.clear()
        loss = answer(model, Batch(inputs, labels), loss_function, optimizer, max_norm)
        losses.append(math.nan if loss is None else float(torch.as_tensor(loss).detach()))
        weights.append(nn.utils.parameters_to_vector(model.parameters()).detach().clone())
    graph = isinstance(loss, Tensor) and loss.requires_grad
    return torch.tensor(losses), torch.stack(weights), _told(happened, _length(model)), graph


def _length(model: nn.Module) -> float:
    """Return the length of a model's gradient; 0 where there is none."""
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    return float(nn.utils.get_total_norm(gradients)) if gradients else 0.0


def _told(happened: list, left: float) -> str:
    """Return what happened in words; a gradient that is shorter after the step was clipped late."""
    steps = [event for event in happened if isinstance(event, float)]
    words = ["step" if isinstance(event, float) else event for event in happened]
    late = steps and words[-1] == "step" and 0 < left < 0.999 * steps[-1]
    return ", ".join([*words, *["clip"] * bool(late)])


@exercise(
    reference="transformer_lesson.training.one_step:training_step",
    make_inputs=_step_inputs,
    trial=_three_steps,
    returns={"losses": "step", "weights": "step weight", "order": "", "holds_graph": ""},
    hints=(
        "Six things in this order: clear old gradients, logits, loss, backward, clip, step.",
        "`model(*batch.inputs)` gives the logits; the loss function takes them and the labels.",
        "`torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)` goes between "
        "`loss.backward()` and `optimizer.step()`.",
        "Return `loss.item()`: a number, without the graph of the pass behind it.",
    ),
)
def training_step(model, batch, loss_function, optimizer, max_norm):
    """Learn from one batch: zero, forward, loss, backward, clip, step; return the loss."""
    choose(optimizer.zero_grad(), never_zeroed=None, zeroed_at_the_end=None)
    inputs = choose(batch.inputs, labels_as_inputs=(*batch.inputs[:-1], batch.labels))
    logits = model(*inputs)
    logits = choose(logits, second_softmax=logits.softmax(-1))
    loss = loss_function(logits, batch.labels)
    choose(None, step_first=optimizer.step())
    loss.backward()
    choose(
        nn.utils.clip_grad_norm_(model.parameters(), max_norm),
        no_clip=None,
        late_clip=None,
        one_by_one=[nn.utils.clip_grad_norm_(one, max_norm) for one in model.parameters()],
    )
    choose(None, zeroed_too_late=optimizer.zero_grad())
    choose(optimizer.step(), step_first=None)
    choose(None, late_clip=nn.utils.clip_grad_norm_(model.parameters(), max_norm))
    choose(None, zeroed_at_the_end=optimizer.zero_grad())
    return choose(loss.item(), graph=loss)
