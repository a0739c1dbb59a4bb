"""The learning rate of each step: it rises during the warm-up, then follows a schedule."""

import math

from transformer_lesson.training.config import TrainConfig


def warmup_rate(step: int, d_model: int, warmup_steps: int) -> float:
    """The paper's learning rate: d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5).

    It rises in proportion to the step, is highest at step warmup_steps, and then falls with the
    root of the step.

    Args:
        step: counts from 1.
        d_model: numbers per token; wider models learn with smaller rates.
        warmup_steps: the step of the highest rate (4000 in the paper).

    Raises:
        ValueError: an argument under 1.

    Source: "Attention Is All You Need" (2017), equation 3.
    """
    for name, value in (("step", step), ("d_model", d_model), ("warmup_steps", warmup_steps)):
        if value < 1:
            raise ValueError(f"warmup_rate: {name} is {value}, but it must be at least 1.")
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def learning_rate(step: int, config: TrainConfig, d_model: int) -> float:
    """The learning rate of a step by the config's schedule.

    Warm-up is a straight line up to `config.peak_learning_rate` at step `steps_of_warmup`. From
    there on "constant" stays, "linear" is a straight line down to zero, "cosine" half a wave down
    to a tenth of the peak, and "wsd" stays until a fifth of the steps is left and is then a
    straight line down to zero. All get there one step after the last, so that the last step learns
    too.
    "noam" is `warmup_rate` times `config.peak_learning_rate`.

    Args:
        step: counts from 1.
        config: schedule, peak_learning_rate, steps_of_warmup, steps.
        d_model: only "noam" needs it.

    Raises:
        ValueError: step is not from 1 to `config.steps`.

    Source: "Attention Is All You Need" (2017), equation 3 ("noam"); Loshchilov and Hutter,
        "SGDR" (2016), equation 5 ("cosine"); Hu and others, "MiniCPM" (2024), section 4 ("wsd").
    """
    if not 1 <= step <= config.steps:
        raise ValueError(f"step is {step}, but this run's steps go from 1 to {config.steps}.")
    warmup, peak = config.steps_of_warmup, config.peak_learning_rate
    if config.schedule == "noam":
        return peak * warmup_rate(step, d_model, warmup)
    if step <= warmup:
        return peak * step / warmup
    progress = (step - warmup) / (config.steps + 1 - warmup)  # 0 to 1
    remaining = {
        "constant": 1.0,
        "linear": 1 - progress,
        "cosine": 0.1 + 0.9 * (1 + math.cos(math.pi * progress)) / 2,
        "wsd": min(1.0, (config.steps + 1 - step) / (config.steps // 5 + 1)),
    }
    return peak * remaining[config.schedule]
