"""One call: from a text or pairs of sentences to a model of your own, measured and exported."""

import csv
import io
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock
from torch import nn

from transformer_lesson.capstone.material import Material, Source, read
from transformer_lesson.capstone.model_card import model_card
from transformer_lesson.capstone.plan import (
    DEEPEST,
    Plan,
    batches_of,
    bits_of_each,
    build,
    digits,
    kept_plan,
    make_plan,
    recipe,
    short_enough,
    tokenizer_of,
    unseen_of,
)
from transformer_lesson.capstone.table import Columns
from transformer_lesson.files import printable, rename_aside, write_atomically
from transformer_lesson.generation import Sample, bleu, generate, translate
from transformer_lesson.mine import export, page
from transformer_lesson.model.config import Rule, is_number
from transformer_lesson.model.parameters import count_parameters
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.text.tokenizers import Tokenizer
from transformer_lesson.training import StepReport, resume, train

depths = Rule(
    f"a whole number from 1 to {DEEPEST}", lambda x: is_number(x, int) and 0 < x <= DEEPEST
)
times = Rule("a number of minutes above 0, at most 600", lambda x: is_number(x) and 0 < x <= 600)
Interval = tuple[float, float, float]
COLUMNS = (
    *("name", "kind", "depth", "minutes", "parameters", "steps"),
    *("expected", "reached", "low", "high", "as_expected"),
)


class Own(NamedTuple):
    """A model of your own.

    Args:
        model, tokenizer: the model in evaluation mode, and its tokenizer.
        plan: including what was expected.
        seconds: training time, without interruptions.
        bits: per character on held-out material: mean, and a 95 % interval of the mean.
        score: BLEU on the held-out pairs with its interval; `None` for a text.
        folder: of the model card, the page, and the model for `transformers`.
    """

    model: nn.Module
    tokenizer: Tokenizer
    plan: Plan
    seconds: float
    bits: Interval
    score: Interval | None
    folder: Path

    @property
    def as_expected(self) -> str:
        """ "yes" where the interval that was foreseen holds what was reached; "better", "worse"."""
        reached = self.bits[0]
        return (
            "better" if reached < self.plan.low else "worse" if reached > self.plan.high else "yes"
        )

    @property
    def reached(self) -> str:
        """Its results on held-out material, with intervals."""
        bits = "{} bits per character ({} to {})".format(*map(digits, self.bits))
        score = ", BLEU {:.0f} ({:.0f} to {:.0f})".format(*self.score) if self.score else ""
        return f"{bits}{score}"

    def __repr__(self) -> str:
        return f"Own({printable(str(self.folder))}: {self.reached})"


def own(
    source: Source,
    depth: int = 2,
    minutes: float = 5.0,
    folder: str | Path = "my_own",
    say: Callable[[str], object] = print,
    columns: Columns | None = None,
) -> Own:
    """Train a tokenizer and a model on your material for some minutes; measure and export them.

    Called again with the same arguments, it resumes from the last checkpoint and reaches the same
    result as without the interruption.

    Args:
        source: a text or pairs: a file, a folder, two files, or "manual", "stories" or "grammar";
            see `material.read`.
        depth: the number of blocks, from 1 to 8; the model's width grows with it.
        minutes: approximate duration of the whole call, from which the steps are chosen.
        folder: gets a folder for each run, and `class.csv` with a line for each.
        say: receives progress messages.
        columns: which two of a table's columns translate each other: names or numbers from 1.

    Raises:
        ValueError: unusable material, a depth or minutes out of range, or a folder with a run on
            other material of the same name.
        KeyboardInterrupt: Ctrl-C was pressed. The training so far is in the checkpoint.
        OSError: a file cannot be read or written.
    """
    depths.check("depth", depth)
    times.check("minutes", minutes)
    material = read(source, columns)
    tokenizer = tokenizer_of(material)
    material = short_enough(material, tokenizer)
    for note in (material.read_as, *material.notes):
        say(note)
    run = Path(folder).expanduser() / f"{material.name}-{depth}-{minutes:g}"
    run.mkdir(parents=True, exist_ok=True)
    try:
        make = partial(make_plan, material, tokenizer, depth, minutes)
        plan = kept_plan(run / "plan.json", make)
        if plan.material != material.fingerprint:
            raise ValueError(
                f"{printable(str(run))} holds a run on other material of this name: name another "
                'folder, as in own(…, folder="second_try"), or move that one away.'
            )
        say(str(plan))
        model, seconds = learn(material, tokenizer, plan, run / "run.safetensors", say)
        result = Own(model, tokenizer, plan, seconds, *measure(material, tokenizer, model), run)
        _keep(result, material, opening(material, tokenizer), say)
    except KeyboardInterrupt:
        say("Nothing is lost: own, called again with the same arguments, goes on from here.")
        raise
    says = {"yes": "as expected", "better": "better than expected", "worse": "worse than expected"}
    say(f"Reached {result.reached}, {says[result.as_expected]}. It is in {printable(str(run))}.")
    return result


def learn(
    material: Material, tokenizer: Tokenizer, plan: Plan, checkpoint: Path, say: Callable
) -> tuple[nn.Module, float]:
    """Train for the plan's steps, or the remaining ones, and show six samples on the way.

    Returns:
        The model, and its total training time in seconds.
    """
    batches = batches_of(material, tokenizer)
    start = opening(material, tokenizer)

    def on_step(report: StepReport) -> None:
        if report.step % max(1, plan.steps // 6) == 0:
            written = printable(" ".join(sample(report.model, tokenizer, start).split()), 120)
            say(f"step {report.step:,}, loss {report.loss:.2f}: {written}")

    if checkpoint.exists():
        model, history = resume(checkpoint, batches, on_step)
        return model, history.seconds
    model = build(material, tokenizer, plan.depth, plan.dropout)
    checkpoints = {"checkpoint": checkpoint, "checkpoint_every": max(1, plan.steps // 10)}
    config = recipe(plan.steps, model.config.d_model)
    history = train(model, batches, config, on_step, tokenizer=tokenizer, **checkpoints)
    return model, history.seconds


def opening(material: Material, tokenizer: Tokenizer) -> str:
    """Return the start of samples: a held-out sentence, or tokens of a piece's second line."""
    first = material.held_out[0]
    if material.kind == "pairs":
        return first.source
    _, _, line = first.partition("\n")  # the first line may begin mid-word
    return tokenizer.decode(tokenizer.encode(line.strip() or first)[:8]).strip("\ufffd")


def sample(model: nn.Module, tokenizer: Tokenizer, start: str) -> str:
    """Return the translation of a sentence, or the continuation of a text."""
    if isinstance(model, EncoderDecoderTransformer):
        return f"{start} → {translate(model, tokenizer, [start], max_new_tokens=40)[0]}"
    ids = tokenizer.encode(start)
    choice = Sample(temperature=0.8, top_k=40)
    written = generate(model, ids, 40, choice, eos_id=None)
    return tokenizer.decode([*ids, *written.ids[0]])


def measure(
    material: Material, tokenizer: Tokenizer, model: nn.Module
) -> tuple[Interval, Interval | None]:
    """Return held-out bits per character and, for a translator, BLEU, with intervals."""
    bits = bits_of_each(model, unseen_of(material, tokenizer))
    per_character = bootstrap(len(bits), lambda places: sum(bits[i] for i in places) / len(bits))
    if material.kind == "text":
        return per_character, None
    right = [pair.target for pair in material.held_out]
    written = translate(model, tokenizer, [p.source for p in material.held_out])

    def score(places: Sequence[int]) -> float:
        return bleu([written[i] for i in places], [right[i] for i in places]).score

    return per_character, bootstrap(len(right), score, 200)


def bootstrap(n: int, statistic: Callable[[Sequence[int]], float], draws: int = 1000) -> Interval:
    """Return a statistic of n items and its 95 % bootstrap interval.

    Source: Efron, "Bootstrap Methods: Another Look at the Jackknife" (1979); the interval runs from
        percentile 2.5 to 97.5.
    """
    rng, things = random.Random(0), range(n)
    estimates = sorted(statistic(rng.choices(things, k=n)) for _ in range(draws))
    return statistic(things), estimates[int(0.025 * draws)], estimates[int(0.975 * draws)]


def _keep(result: Own, material: Material, start: str, say: Callable) -> None:
    """Write a run's files, and its line in the class's table."""
    folder, plan, model, tokenizer = result.folder, result.plan, result.model, result.tokenizer
    export(folder / "model", model, tokenizer)
    page(folder / "page.html", start, model, tokenizer)
    written = sample(model, tokenizer, start)
    card = model_card(plan, material, model, result.seconds, result.bits, result.score, written)
    write_atomically(folder / "README.md", card.encode())
    sizes = material.kind, plan.depth, plan.minutes, count_parameters(model), plan.steps
    bits = [f"{value:.3f}" for value in (plan.expected, *result.bits)]
    line = [folder.name, *map(str, sizes), *bits, result.as_expected]
    try:
        add_line(folder.parent / "class.csv", line)
    except PermissionError as error:  # on Windows: a spreadsheet has it open
        say(f"The model is whole, but not in the table: {error.strerror}. Call own again for that.")


def add_line(table: Path, line: Sequence[str]) -> None:
    """Add a run's line to the class's table, replacing an older one of the same name.

    Several processes may do so at once. A file with other columns, perhaps left by a spreadsheet,
    is renamed and kept.
    """
    with FileLock(table.with_name(f".{table.name}.lock"), timeout=60):
        rows = _rows(table) if table.exists() else []
        rows = [row for row in rows if row and row[0] != line[0]]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows, line])
        write_atomically(table, text.getvalue().encode())


def _rows(table: Path) -> list[list[str]]:
    text = table.read_bytes().decode("utf-8-sig", errors="replace")
    header, *rows = [*csv.reader(io.StringIO(text, newline="")), []]
    if tuple(header) != COLUMNS or "\ufffd" in text:
        rename_aside(table, "other")
        return []
    return rows
