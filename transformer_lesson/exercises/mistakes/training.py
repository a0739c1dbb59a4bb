"""Mistakes in lesson 08: the shift and the learning rate."""

from transformer_lesson.exercises.mistakes.losses import LOSS_MISTAKES
from transformer_lesson.exercises.specification import Mistake


def shifted(target, read=slice(None, -1), predict=slice(1, None)):
    """Inputs and labels, with places for a bug."""
    return target[:, read], target[:, predict]


def rate(step, d_model, warmup_steps, choose=min, width=-0.5, rise=-1.5):
    """The paper's learning rate, with places for a bug."""
    return d_model**width * choose(step**-0.5, step * warmup_steps**rise)


def _whole_division(step, d_model, warmup_steps):
    return d_model**-0.5 * min(step**-0.5, step // warmup_steps * warmup_steps**-0.5)


TRAINING_MISTAKES = {
    "shift_right": (
        Mistake(
            "inputs and labels in each other's place",
            "The decoder would read the answer and learn to predict the word before it. The "
            "inputs begin with `<bos>`: return them first.",
            lambda target: shifted(target)[::-1],
        ),
        Mistake(
            "a shift that does not happen",
            "The label at each position is the token read there, so the model learns to copy: its "
            "loss falls to 0, and it cannot write a word. Cut one end off each.",
            lambda target: (target, target),
        ),
        Mistake(
            "inputs without <bos>",
            "Inputs and labels are the same tokens, so copying is all there is to learn, and the "
            "first word is never predicted from nothing. The inputs lose the other end.",
            lambda target: shifted(target, read=slice(1, None)),
        ),
        Mistake(
            "labels that keep <bos>",
            "The model is to predict at each position what it reads there, and `<eos>` never "
            "occurs as a label, so it never learns to stop. The labels lose the first token.",
            lambda target: shifted(target, predict=slice(None, -1)),
        ),
        Mistake(
            "labels rolled round",
            "`roll` brings `<bos>` back as the last label: the model learns that a new sentence "
            "begins after `<eos>`, and both tensors have one column too many. Cut instead.",
            lambda target: (target, target.roll(-1, dims=1)),
        ),
        Mistake(
            "labels without <eos>",
            "The labels are one shorter than the inputs, and a model that never has to predict "
            "`<eos>` writes on for ever. Which end must the labels keep?",
            lambda target: shifted(target, predict=slice(1, -1)),
        ),
        Mistake(
            "labels two steps ahead",
            "The model would learn to skip every second word when it writes. The label is the "
            "very next token: cut one token off, not two.",
            lambda target: (target[:, :-2], target[:, 2:]),
        ),
        Mistake(
            "a shift along the batch",
            "The first axis counts sentences, so each sentence is to predict another one. Tokens "
            "are on axis 1: which place in the index belongs to it?",
            lambda target: (target[:-1], target[1:]),
        ),
        Mistake(
            "the labels alone",
            "The decoder has to read something too. Return two tensors, the inputs first.",
            lambda target: shifted(target)[1],
        ),
    ),
    "warmup_rate": (
        Mistake(
            "the larger of the two curves",
            "The rate starts high, where it should be near 0, and grows without end: training "
            "diverges in the first steps. Which of the two curves is below the other before the "
            "warm-up ends?",
            lambda *inputs: rate(*inputs, choose=max),
        ),
        Mistake(
            "a rate without d_model",
            "At d_model 512 your rate is 23 times too high, and the loss jumps about. Wide models "
            "need small steps: which power of d_model stands in front?",
            lambda *inputs: rate(*inputs, width=0),
        ),
        Mistake(
            "multiplying by the root of d_model",
            "The wider the model, the larger your steps, and it should be the other way round. "
            "Look at the sign of the exponent of d_model.",
            lambda *inputs: rate(*inputs, width=0.5),
        ),
        Mistake(
            "a schedule without warm-up",
            "Step 1 has the highest rate of all, when Adam has seen one gradient and its averages "
            "mean little. The second curve is missing, the one that rises with the step.",
            lambda step, d_model, warmup_steps: (step * d_model) ** -0.5,
        ),
        Mistake(
            "a warm-up that ends in another height",
            "Your two curves do not meet at step warmup_steps, so the warm-up is over after a few "
            "steps. Solve step^-0.5 = step * warmup_steps^x there: which x is it?",
            lambda *inputs: rate(*inputs, rise=-0.5),
        ),
        Mistake(
            "a warm-up by whole-number division",
            "`step // warmup_steps` is 0 until the warm-up ends, so the model does not learn at "
            "all in that time. Rising step by step needs `/`, or a power.",
            _whole_division,
        ),
        Mistake(
            "a step counted from 0",
            "Your rate lags one step behind. Steps count from 1 here, so step 0, which would "
            "divide by zero, never comes: use `step` as it is.",
            lambda step, *sizes: rate(max(step - 1, 1e-9), *sizes),
        ),
        Mistake(
            "a step counted once too often",
            "Your rate is one step ahead. PyTorch's schedulers count from 0 and people add 1, but "
            "here the first step is 1 already.",
            lambda step, *sizes: rate(step + 1, *sizes),
        ),
        Mistake(
            "a rate that never falls",
            "After the warm-up it stays at its peak, and the loss keeps jumping around its "
            "minimum. The other curve, which falls with the root of the step, takes over there.",
            lambda step, d, warmup: d**-0.5 * min(step, warmup) * warmup**-1.5,
        ),
    ),
} | LOSS_MISTAKES
