"""Lesson 08: what is predicted, how wrong it is, the step of training, and how large it is.

Long because it is data: four exercises whole, with their inputs and all their wrong turns.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.compare import gradient_to
from transformer_lesson.exercises.engine.specification import Draw, exercise
from transformer_lesson.text.batches import Batch


def _target_inputs(draw: Draw) -> tuple:
    """Rows of many lengths: all full, some padded, all padded, nothing between the two ends."""
    bos_id, eos_id, pad_id = draw.one_of(((1, 2, 0), (1, 2, 0), (1, 2, 0), (4, 9, 30), (1, 2, 0)))
    if draw.number == 2:
        draw.sizes["n"] = 2
    if draw.number == 3:
        draw.sizes["batch"] = 1
    n = draw.size("n", at_least=3)
    target = draw.integers("batch n", 5, 50)
    target[:, 0], target[:, -1] = bos_id, eos_id
    for row in draw.one_of((range(0), range(1), range(0), range(1), range(len(target)))):
        end = 1 + row % (n - 2)  # a shorter sentence: <eos>, then padding
        target[row, end], target[row, end + 1 :] = eos_id, pad_id
    return (target.T.contiguous().T if draw.number == 4 else target,)


def _label_is_the_next_input(answer, inputs: tuple, read: Tensor, labels: Tensor) -> str | None:
    if torch.equal(read[:, 1:], labels[:, :-1]):
        return None
    return (
        "At each position the label must be the token that the decoder reads next: labels[:, t] "
        "is inputs[:, t + 1].\nWhich end of the target does each of the two leave out?"
    )


@exercise(
    reference="transformer_lesson.text.batches:shift_right",
    make_inputs=_target_inputs,
    returns={"inputs": "batch n-1", "labels": "batch n-1"},
    hints=(
        "The decoder reads the target from `<bos>` on and predicts it up to `<eos>`.",
        "The inputs leave out the last token of each row, the labels the first.",
        "`target[:, :-1]` and `target[:, 1:]`, in this order.",
    ),
    invariants=(_label_is_the_next_input,),
)
def shift_right(target):
    """Return what the decoder reads, and at each position the token after it."""
    target = choose(target, padding_cut=target[:, (target != 0).any(0)])
    inputs, labels = _inputs(target), _labels(target)
    labels = choose(
        labels, decimals=labels.float(), flat=labels.reshape(-1), one_hot=F.one_hot(labels)
    )
    return choose(
        (inputs, labels),
        swapped=(labels, inputs),
        labels_alone=labels,
        inputs_alone=inputs,
        squeezed=(inputs.squeeze(), labels.squeeze()),
        stacked=torch.stack([inputs, labels]),
    )


def _inputs(target):
    """Return what the decoder reads."""
    return choose(
        target[:, :-1],
        unshifted=target,
        inputs_whole=target,
        without_bos=target[:, 1:],
        without_both_ends=target[:, 1:-1],
        rolled=target,
        inputs_rolled=target.roll(1, 1),
        bos_in_front=torch.cat([target[:, :1], target[:, :-1]], dim=1),
        filled_up=target,
        two_steps=target[:, :-2],
        along_batch=target[:-1],
        last_column=target[:, -1],
        eos_taken_out=target[:, :-1].masked_fill(target[:, :-1] == 2, 0),
        ends_by_id=target[target != 2].view(len(target), -1),
        shifted_in_place=target[:, :-1].clone(),
    )


def _labels(target):
    """Return what it is to predict."""
    return choose(
        target[:, 1:],
        unshifted=target,
        labels_whole=target,
        with_bos=target[:, :-1],
        without_eos=target[:, 1:-1],
        rolled=target.roll(-1, 1),
        inputs_rolled=target,
        bos_in_front=target,
        filled_up=F.pad(target[:, 1:], (0, 1)),
        two_steps=target[:, 2:],
        along_batch=target[1:],
        second_column=target[:, 1],
        padding_100=target[:, 1:].masked_fill(target[:, 1:] == 0, -100),
        ends_by_id=target[target != 1].view(len(target), -1),
        shifted_in_place=target[:, :-1].copy_(target[:, 1:].clone()),
        padding_100_in_place=target[:, 1:].masked_fill_(target[:, 1:] == 0, -100),
    )


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
        logits,
        reshaped=logits.reshape(logits.size(0), logits.size(2), logits.size(1)).mT,
        logits_in_place=logits.sub_(logits.amax(-1, keepdim=True)),
    )
    real = choose(
        labels != pad_id,
        counted=torch.ones_like(labels).bool(),
        id_0=labels != 0,
        inverted=labels == pad_id,
        ids_above=labels > pad_id,
        up_to_the_first=(labels == pad_id).cumsum(-1) == 0,
        labels_in_place=labels.masked_fill_(labels == pad_id, -100) >= 0,
    )
    index = choose(labels, labels_in_place=labels.clamp(min=0))[..., None]
    log_p, vocab_size = _log_probabilities(logits), logits.size(-1)
    at_label = -log_p.gather(-1, index)[..., 0]
    spread = _spread(-log_p, at_label, logits, pad_id)
    losses = _losses(at_label, spread, smoothing, vocab_size)
    losses = choose(losses, without_minus=-losses, vocabulary_too=losses / vocab_size)
    return _mean(losses, real)


def _log_probabilities(logits):
    """Return the logarithm of each token's probability."""
    log_p = choose(
        logits.log_softmax(-1),
        second_softmax=logits.softmax(-1).log_softmax(-1),
        raw_logits=logits,
        without_logarithm=logits.softmax(-1),
        over_positions=logits.log_softmax(-2),
        over_batch=logits.log_softmax(0),
        softmax_then_log=logits.softmax(-1).log(),
        naive_quotient=(logits.exp() / logits.exp().sum(-1, keepdim=True)).log(),
        naive_exponential=logits - logits.exp().sum(-1, keepdim=True).log(),
        base_2=logits.softmax(-1).log2(),
        little_added=(logits.softmax(-1) + 1e-9).log(),
        sigmoid=F.logsigmoid(logits),
    )
    return choose(log_p, bits=log_p / math.log(2))


def _spread(costs, at_label, logits, pad_id):
    """Return what the smoothing's share costs at each position."""
    vocab_size = costs.size(-1)
    others = costs.sum(-1) - at_label
    return choose(
        costs.mean(-1),
        others_only=others / (vocab_size - 1),
        others_of_all=others / vocab_size,
        one_too_few=costs.sum(-1) / (vocab_size - 1),
        without_padding=(costs.sum(-1) - costs[..., pad_id]) / (vocab_size - 1),
        others_without_padding=(others - costs[..., pad_id]) / (vocab_size - 2),
        annotated=(others - costs[..., pad_id]) / (vocab_size - 2),
        summed=costs.sum(-1),
        leaks=costs.mean(),
        raw=-logits.mean(-1),
        share_without_logarithm=1 / vocab_size,
    )


def _losses(at_label, spread, smoothing, vocab_size):
    """Return what each position costs: the label's share, and that of all tokens."""
    return choose(
        (1 - smoothing) * at_label + smoothing * spread,
        shares_swapped=smoothing * at_label + (1 - smoothing) * spread,
        label_keeps_all=at_label + smoothing * spread,
        smoothing_lost=(1 - smoothing) * at_label,
        smoothing_taken_off=(1 - smoothing) * at_label - smoothing * spread,
        shares_equal=at_label + spread,
        probabilities_smoothed=-torch.log(
            (1 - smoothing) * (-at_label).exp() + smoothing / vocab_size
        ),
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
        one_each=losses[real],
        one_each_position=kept,
        one_a_sentence=kept.sum(-1) / real.sum(-1),
        median=losses[real].median(),
    )
    return choose(mean, number=mean.tolist(), perplexity=mean.exp(), one_axis=mean[None])


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
    choose(optimizer.zero_grad(), never_zeroed=None)
    inputs = choose(
        batch.inputs,
        labels_as_inputs=(*batch.inputs[:-1], batch.labels),
        first_input=batch.inputs[:1],
    )
    logits = model(*inputs)
    logits = choose(logits, second_softmax=logits.softmax(-1))
    loss = choose(
        loss_function(logits, batch.labels),
        swapped=loss_function(batch.labels, logits),
        loss_clipped=loss_function(logits, batch.labels).clamp(max=max_norm),
    )
    choose(None, step_first=optimizer.step())
    choose(loss.backward(), no_backward=None)
    length = choose(
        nn.utils.clip_grad_norm_(model.parameters(), max_norm),
        no_clip=torch.tensor(0.0),
        late_clip=torch.tensor(0.0),
        by_value=nn.utils.clip_grad_value_(model.parameters(), max_norm) or torch.tensor(0.0),
        one_by_one=max(nn.utils.clip_grad_norm_(one, max_norm) for one in model.parameters()),
        always_1=nn.utils.clip_grad_norm_(model.parameters(), 1.0),
    )
    choose(None, zeroed_too_late=optimizer.zero_grad())
    choose(optimizer.step(), no_step=None, step_first=None)
    choose(None, late_clip=nn.utils.clip_grad_norm_(model.parameters(), max_norm))
    return choose(
        loss.item(),
        graph=loss,
        nothing=None,
        length_returned=length.item(),
        loss_after=loss_function(model(*inputs), batch.labels).item(),
    )


def _rate_inputs(draw: Draw) -> tuple:
    """Steps before, at and after the highest rate, the first of all, and a warm-up of one."""
    d_model, warmup_steps = int(draw.integers("", 16, 600)), int(draw.integers("", 8, 4000))
    if draw.small:
        d_model, warmup_steps = 64, 4
    if draw.number == 6:
        return int(draw.integers("", 5, 30)), d_model, 1
    rising, falling = warmup_steps // 2, 9 * warmup_steps // 4
    around = warmup_steps, 1, warmup_steps - 1, warmup_steps + 1, 1, 25 * warmup_steps
    return draw.one_of((rising, falling, *around)), d_model, warmup_steps


def _rises_in_proportion(answer, inputs: tuple, rate: float) -> str | None:
    step, *sizes = inputs
    if sizes[1] < 4 or step > sizes[1]:
        return None
    first, third = answer(1, *sizes), answer(3, *sizes)
    if math.isclose(third, 3 * first, rel_tol=1e-3):
        return None
    return (
        "During the warm-up the rate rises in proportion to the step: step 3 has 3 times the rate "
        f"of step 1. With warmup_steps = {sizes[1]} yours are {third:.4g} and {first:.4g}."
    )


def _falls_with_the_root(answer, inputs: tuple, rate: float) -> str | None:
    step, *sizes = inputs
    later = answer(4 * step, *sizes)
    if step < sizes[1] or math.isclose(2 * later, rate, rel_tol=1e-3):
        return None
    return (
        "After the warm-up the rate falls with the root of the step: at 4 times the step it is "
        f"half as high. With warmup_steps = {sizes[1]} yours is {rate:.4g} at step {step} and "
        f"{later:.4g} at step {4 * step}."
    )


@exercise(
    reference="transformer_lesson.training.schedule:warmup_rate",
    make_inputs=_rate_inputs,
    draws=8,
    returns={"rate": ""},
    hints=(
        "Two curves: one rises in proportion to the step, one falls with its root. The rate "
        "is the smaller of the two.",
        "They meet at step = warmup_steps. Both are multiplied by d_model^-0.5.",
        "`d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)`",
    ),
    invariants=(_rises_in_proportion, _falls_with_the_root),
)
def warmup_rate(step, d_model, warmup_steps):
    """Return d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)."""
    step = choose(
        step,
        from_0=step - 1,
        from_0_guarded=max(step - 1, 1e-9),
        from_0_nothing=step - 1,
        one_ahead=step + 1,
    )
    warmup_steps = choose(warmup_steps, always_4000=4000)
    d_model = choose(d_model, always_512=512)
    width = choose(
        d_model**-0.5,
        without_width=1.0,
        times_root=d_model**0.5,
        not_the_root=1 / d_model,
        width_halved=d_model**-1 / 2,
        half_width=2 / d_model,
        highest_1=warmup_steps**0.5,
        width_squared=d_model**-2,
        width_power=d_model**-1.5,
    )
    falling, rising = _falling(step, warmup_steps), _rising(step, warmup_steps)
    rate = choose(
        width * min(falling, rising),
        larger=width * max(falling, rising),
        no_warmup=width * falling,
        rising_alone=width * rising,
        added=width * (falling + rising),
        multiplied=width * falling * rising,
        width_on_the_fall=min(width * falling, rising),
        width_on_the_rise=min(falling, width * rising),
    )
    return choose(rate, rounded=round(rate, 6), gap=None if step == warmup_steps else rate)


def _falling(step, warmup_steps):
    """Return the curve that the rate follows after the warm-up."""
    return choose(
        step**-0.5,
        from_0_nothing=step**-0.5 if step else 0.0,
        never_falls=warmup_steps**-0.5,
        falls_as_step=1 / step,
        falls_from_the_peak=warmup_steps**0.5 / step,
        falls_halved=step**-1 / 2,
        falls_by_half=2 / step,
        grows_with_root=step**0.5,
        falls_too_soon=step**-1.5,
        up_to_1=1.0,
    )


def _rising(step, warmup_steps):
    """Return the curve that the rate follows during the warm-up."""
    return choose(
        step * warmup_steps**-1.5,
        whole_division=step // warmup_steps * warmup_steps**-0.5,
        other_height=step * warmup_steps**-0.5,
        up_to_1=step / warmup_steps,
        share_of_warmup=step / warmup_steps,
        exponent_2=step * warmup_steps**-2,
        exponent_halved=step * warmup_steps**-3 / 2,
        rises_by_half=2 * step / warmup_steps**3,
        flat_warmup=warmup_steps**-1.5,
        rises_squared=(step * warmup_steps**-1) ** 2 * warmup_steps**-0.5,
        rises_as_root=step**0.5 / warmup_steps,
        all_to_the_power=(step * warmup_steps) ** -1.5,
    )
