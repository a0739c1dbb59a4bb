"""Every explorable with something to show: of a run, or of an answer, there has to be one."""

import torch

from tests.explorables.tiny_models import language_model, long_reader
from tests.parity import randomized
from transformer_lesson import explorables
from transformer_lesson.explorables import (
    AnswerExplorer,
    AttentionFilm,
    LengthExplorer,
    LiveCurves,
    TrainingReplay,
)
from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.interpretability.circuits import Edge
from transformer_lesson.lessons.lesson_03.attention_film import Frame
from transformer_lesson.lessons.lesson_08.training_replay import Snapshot
from transformer_lesson.lessons.lesson_11.induction import AttentionOnlyDecoder, held_out_batch
from transformer_lesson.lessons.lesson_12.answer_explorer import Measure


def live_curves() -> LiveCurves:
    live = LiveCurves("A model learns")
    for step in range(1, 61):
        live.add("training", step, 1 + 5 / step)
        if step % 20 == 0:
            live.add("validation", step, 0.5 + 5 / step)
            live.add("exact match", step, step / 61)
    return live


def attention_film() -> AttentionFilm:
    words = "the cat sees the dog .".split()
    torch.manual_seed(0)
    start, end = torch.rand(6, 6).softmax(-1), torch.eye(6).roll(1, dims=1)
    frames = [Frame(20 * i, 1.1 / (1 + i), i / 4, start.lerp(end, i / 4)) for i in range(5)]
    return AttentionFilm(words, (0, 3), frames)


def training_replay() -> TrainingReplay:
    english, german = "the cat sees Anna .".split(), "Anna sieht die Katze .".split()
    cells = [(0, 3), (1, 2), (2, 0), (3, 1), (4, 4)]
    true = torch.zeros(5, 5)
    true[tuple(zip(*cells, strict=True))] = 1.0
    torch.manual_seed(0)
    start = torch.rand(2, 4, 5, 5).softmax(-1)
    snapshots = [
        Snapshot(
            1 + 20 * i, 4 / (1 + i), start.lerp(true, i / 8), german, english, cells,
            [*german[:i], "die"], german,
        )
        for i in range(6)
    ]  # fmt: skip
    return TrainingReplay(snapshots)


def positional_encoding_explorer() -> explorables.PositionalEncodingExplorer:
    return explorables.PositionalEncodingExplorer(length=20)  # every cell is reached by keyboard


def answer_explorer() -> AnswerExplorer:
    model, tokenizer = language_model(4)
    lost = Measure("P(e)", 0.8, 0.0, torch.linspace(0, 0.9, 6).view(2, 3), torch.tensor([0.1, 0.7]))
    return AnswerExplorer(
        randomized(model), tokenizer, tokenizer.encode("bad cafe"), 5, [lost], step=3, layer=1
    )


def circuit_graph() -> explorables.CircuitGraph:
    torch.manual_seed(0)
    model = randomized(AttentionOnlyDecoder()).eval()
    circuit = [Edge("embedding", "1.0.q"), Edge("0.0", "1.0.k"), Edge("1.0", "logits")]
    return explorables.CircuitGraph(model, held_out_batch(batch_size=2), circuit)


def length_explorer() -> LengthExplorer:
    ids = torch.randint(11, (321,), generator=torch.Generator().manual_seed(0))
    return LengthExplorer(randomized(long_reader()), ids)


EXAMPLES = {
    "AnswerExplorer": answer_explorer,
    "CircuitGraph": circuit_graph,
    "LengthExplorer": length_explorer,
    "LiveCurves": live_curves,
    "PositionalEncodingExplorer": positional_encoding_explorer,
    "AttentionFilm": attention_film,
    "TrainingReplay": training_replay,
}


def made(name: str) -> PageExplorable:
    """Return the explorable of this name, as it is when nobody has moved it."""
    return EXAMPLES.get(name, getattr(explorables, name))()
