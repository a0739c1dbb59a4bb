"""Lesson 16: learning from comparisons and rewards, and a loop that asks a calculator.

Long because it is data: exercises whole, with their inputs and all their wrong turns.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from transformer_lesson.exercises import random_layers
from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, exercise
from transformer_lesson.exercises.random_layers import Endless
from transformer_lesson.lessons.lesson_16 import additions
from transformer_lesson.training import preferences


def _pair_inputs(draw: Draw) -> tuple:
    """Prompts and paddings of several lengths; answers of unequal length; a hopeless margin."""
    pairs, n = draw.size("pair"), draw.size("n", at_least=2)
    log_probs, reference = (-2 * draw.positive("pair 2 n") for _ in "ab")
    starts, lengths = draw.integers("pair 1", 0, n), draw.integers("pair 2", 1, n + 1)
    starts[0], lengths[0, 0], lengths[0, 1] = 0, 1, n
    places = torch.arange(n)
    mask = (starts[..., None] <= places) & (places < (starts + lengths)[..., None])
    if draw.number == 2:  # the chosen answer has become all but impossible
        log_probs[pairs // 2, 0] -= 10_000
    return log_probs, reference, mask, draw.one_of((0.1, 0.5, 0.2, 2.0))


@exercise(
    reference="transformer_lesson.training.preferences:dpo_loss",
    make_inputs=_pair_inputs,
    draws=5,
    returns={"loss": ""},
    hints=(
        "The probability of an answer is the product of its tokens' probabilities. So what is its "
        "logarithm? And which places belong to the answer?",
        "Of the model and of the reference: `(… * mask).sum(-1)`, of shape (pair, 2). Their "
        "difference has the gains: `gains[:, 0]` of the chosen answers, `gains[:, 1]` of the "
        "rejected ones.",
        "`-F.logsigmoid(beta * margin).mean()`. Sigmoid first and logarithm second gives log 0 "
        "where the margin is far below 0.",
    ),
    invariants=(random_layers.gradients_are_kept(preferences.dpo_loss),),
)
def dpo_loss(log_probs, reference, mask, beta):
    """Return the loss that widens the margin of chosen over rejected answers."""
    before = choose(reference, reference_forgotten=torch.zeros_like(reference))
    gained = log_probs - before  # (pair, 2, n)
    of_answer = gained.masked_fill(~mask, 0.0)
    gains = choose(
        of_answer.sum(-1),
        mean_of_tokens=of_answer.sum(-1) / mask.sum(-1),
        padding_in_the_length=of_answer.mean(-1),
        mask_ignored=gained.sum(-1),
    )
    chosen, rejected = gains.unbind(1)
    margin = choose(
        chosen - rejected,
        exchanged=rejected - chosen,
        added=chosen + rejected,
        rejected_left_out=chosen,
    )
    return _loss_of_margins(margin, beta)


def _loss_of_margins(margin, beta):
    """Return the loss of margins, (pair,)."""
    scaled = choose(beta * margin, mean_too_early=(beta * margin).mean(0, keepdim=True))
    each = choose(
        -F.logsigmoid(scaled),
        -F.logsigmoid(scaled.to(torch.float64)).to(scaled.dtype),
        log_of_zero=-scaled.sigmoid().log(),
        sigmoid_alone=-scaled.sigmoid(),
        margin_alone=-scaled,
        beta_outside=-beta * F.logsigmoid(margin),
        softmax_over_pairs=-scaled.log_softmax(0),
    )
    return choose(each.mean(), summed_over_pairs=each.sum())


def _group_inputs(draw: Draw) -> tuple:
    """Rewards of 0 and 1 and in between; groups of equals; answers of unequal length."""
    prompts, n = draw.size("prompt"), draw.size("n", at_least=2)
    draw.size("group", at_least=2)
    log_probs = -2 * draw.positive("prompt group n")
    lengths = draw.integers("prompt group", 1, n + 1)
    lengths[0, 0], lengths[-1, -1] = 1, n
    mask = torch.arange(n) < lengths[..., None]
    rewards = draw.integers("prompt group", 0, 2).to(log_probs.dtype)
    rewards[:, 0], rewards[:, -1] = 1.0, 0.0
    if draw.number in (1, 4):  # rewards of their own size, neither from 0 to 1 nor around 0
        rewards = 3 + 4 * rewards + draw.integers("prompt group", 0, 4)
        rewards[:, 0], rewards[:, -1] = 9.0, 4.0
    if draw.number == 4:  # beside these, a number that is added to the deviation shows
        rewards = rewards / 1000
    if draw.number in (2, 4):
        rewards[prompts // 2] = 0.5
    if draw.number == 3:
        rewards[:] = 1.0
    return log_probs, mask, rewards


@exercise(
    reference="transformer_lesson.training.preferences:grpo_loss",
    helpers=("transformer_lesson.training.preferences:group_advantages",),
    make_inputs=_group_inputs,
    draws=5,
    returns={"loss": ""},
    hints=(
        "First the advantages, of shape (prompt, group): "
        "`rewards - rewards.mean(1, keepdim=True)`, divided by "
        "`rewards.std(1, keepdim=True, correction=0)`.",
        "Where all rewards of a group are equal, that is 0 / 0. Write 0 there: "
        "`advantages.masked_fill(spread == 0, 0.0)`.",
        "An answer counts by the mean of its own tokens' log-probabilities: "
        "`(log_probs * mask).sum(-1) / mask.sum(-1)`. The loss is minus the mean over all answers "
        "of advantage times that.",
    ),
    invariants=(random_layers.gradients_are_kept(preferences.grpo_loss),),
)
def grpo_loss(log_probs, mask, rewards):
    """Return the loss that makes answers likelier if they are better than their group."""
    groups = choose(rewards, all_prompts_one_group=rewards.reshape(1, -1), over_prompts=rewards.mT)
    middle = choose(
        groups.mean(1, keepdim=True),
        mean_of_all=rewards.mean().expand(len(groups), 1),
        no_mean=torch.zeros_like(groups[:, :1]),
        best_of_group=groups.amax(1, keepdim=True),
    )
    spread = choose(
        groups.std(1, keepdim=True, correction=0),
        one_less=groups.std(1, keepdim=True),
        deviation_of_all=rewards.std(correction=0).expand(len(groups), 1),
        variance=groups.var(1, keepdim=True, correction=0),
        not_divided=torch.ones_like(groups[:, :1]),
    )
    equal = (groups == groups[:, :1]).all(1, keepdim=True)
    advantages = (groups - middle) / spread
    advantages = choose(advantages.masked_fill(equal, 0.0), equal_rewards_forgotten=advantages)
    advantages = choose(advantages, over_prompts=advantages.mT).reshape(rewards.shape)
    equal = (rewards == rewards[:, :1]).all(1)
    return _weighed(log_probs, mask, advantages, equal)


def _weighed(log_probs, mask, advantages, equal):
    """Return the loss of answers whose advantages are known."""
    of_tokens = log_probs.masked_fill(~mask, 0.0)
    of_answers = choose(
        of_tokens.sum(-1) / mask.sum(-1),
        mask_ignored=log_probs.mean(-1),
        summed=of_tokens.sum(-1),
        padding_in_the_length=of_tokens.mean(-1),
    )
    each = advantages * of_answers
    mean = choose(
        each.mean(),
        over_all_tokens=(advantages[..., None] * of_tokens).sum() / mask.sum(),
        equal_groups_left_out=each.mean(1).sum() / (~equal).sum().clamp(min=1),
    )
    return -mean


class Writer:
    """A model that writes a text piece by piece; which one depends on the questions in the text.

    Args:
        pieces: by the number of "]" that it has read; the last one for all more. In a piece, "@"
            stands for the addition before the first "=", "#" for all that follows the last "]".
    """

    def __init__(self, pieces: tuple[str, ...]):
        self.pieces = pieces

    def __call__(self, text: str) -> str:
        """Return the next piece."""
        if not isinstance(text, str):
            raise TypeError(f"write takes a text, but got {text!r}")
        piece = self.pieces[min(text.count("]"), len(self.pieces) - 1)]
        question, last = text.partition("=")[0], text.rpartition("]")[2]
        return piece.replace("@", question).replace("#", last)

    def __repr__(self) -> str:
        pieces = ", then ".join(repr(piece) for piece in self.pieces)
        return f"a model that writes {pieces} (@: the sum asked for, #: what follows the last ])"


class Calculator:
    """A calculator: what it does in words, and the function."""

    def __init__(self, says: str, value: Callable[[str], str]):
        self.says, self.value = says, value

    def __call__(self, asked: str) -> str:
        """Return the value as text."""
        if not isinstance(asked, str):
            raise TypeError(f"calculate takes a text, but got {asked!r}")
        return self.value(asked)

    def __repr__(self) -> str:
        return f"a calculator that {self.says}"


ADDS = Calculator("adds", additions.calculate)
COUNTS = Calculator("counts characters", lambda text: str(len(text)))
PIECES = (
    (("[@]", "=#"), ADDS),
    (("=0432",), ADDS),
    (("[@]", ";[#+1]", "=#"), ADDS),
    (("[@]", "=#]", "=7"), COUNTS),
    (("[4[@]", "=#"), ADDS),
    (("[@]",), ADDS),
    (("[@", "]"), COUNTS),
    (("=1]", "[@]"), ADDS),
    (("[1+]", ";[@]", "=#"), ADDS),
)
"""Asks once; never; twice, with the first answer in the second question; a bracket too many after
an answer; two that open; asks forever; one that is not closed; one that is not opened; a question
without an answer."""
CALLS = 9  # of `write`, that show that a loop never ends


def _asking_inputs(draw: Draw) -> tuple:
    pieces, calculator = draw.one_of(PIECES)
    digits = 1 if draw.small else 3
    a, b = draw.integers("2", 10 ** (digits - 1), 10**digits).tolist()
    return Writer(pieces), f"{a}+{b}=", calculator


def _with_questions(answer, write, prompt, calculate):
    """Return what follows the prompt, and what the calculator was asked."""
    questions, calls = [], []

    def write_and_count(text):
        """Write, and count."""
        calls.append(text)
        if len(calls) > CALLS:
            raise Endless
        return write(text)

    def calculate_and_note(question):
        """Calculate, and note the question."""
        value = calculate(question)
        questions.append(question)
        return value

    write_and_count.__qualname__, calculate_and_note.__qualname__ = "write", "calculate"
    try:
        return [answer(write_and_count, prompt, calculate_and_note), questions]
    except Endless:
        return ["".join(write(text) for text in calls[:CALLS]), questions]


@exercise(
    reference="transformer_lesson.lessons.lesson_16.additions:asking",
    make_inputs=_asking_inputs,
    trial=_with_questions,
    draws=len(PIECES),
    returns={"written": "", "asked": "question"},
    hints=(
        "Keep one text: the prompt, what the model wrote, what the calculator answered. `write` "
        "gets all of it each time. In one round of the loop: write, look at what is new, ask.",
        "Whether there is a question, only the newest piece tells: it ends with `]`, and there is "
        "a `[` in it. What stands between is `new[new.rindex('[') + 1 : -1]`.",
        "`for _ in range(4):` `new = write(text)`, `text += new`, `break` if there is no question, "
        "else `text += calculate(...)`. At the end, `text.removeprefix(prompt)`.",
    ),
)
def asking(write, prompt, calculate):
    """Let a model write, and answer what it asks in brackets."""
    text, rounds = prompt, choose(4, once=1, one_round_fewer=3, forever=CALLS + 1)
    for _ in range(rounds):
        new = write(choose(text, prompt_again=prompt, prompt_lost=text[len(prompt) :]))
        text = text + new
        begins = choose("[" in new, minus_one=True, not_found=True, searched_in_all=True)
        ends = choose(new.endswith("]"), never_closed="]" in text or "[" in new)
        if not (begins and ends):
            break
        before = len(text) - len(new)  # where the newest piece begins
        bracket = choose(
            before + new.rfind("["),
            not_found=before + new.rindex("["),
            searched_in_all=text.rindex("["),
            first_of_the_piece=before + new.find("["),
            first_of_all=text.find("["),
        )
        question = choose(
            text[bracket + 1 : -1], with_brackets=text[bracket:], closing=text[bracket + 1 :]
        )
        value = calculate(question)
        text = choose(text + value, not_written=text, in_place=text[: -len(new)] + value)
    return choose(text[len(prompt) :], with_prompt=text, end_alone=new)
