"""Do induction heads form, how fast, and how clearly: three seeds of the recipe of lesson 11."""

import time
from dataclasses import replace

import torch
from tqdm import tqdm

from benchmarks.results import THREADS, Row, write
from transformer_lesson.interpretability.head_scores import induction_score
from transformer_lesson.lessons.lesson_11 import induction
from transformer_lesson.lessons.lesson_11.induction import AttentionOnlyDecoder, RepeatedSequences
from transformer_lesson.model.hooks import record
from transformer_lesson.training import StepReport, train

SEEDS, EVERY, ENOUGH, SECONDS = (0, 1, 2), 5, 0.99, 10
NOTES = """
Repeated random sequences, segments of 6 to 24 different tokens, vocabulary 48, length 48, batches
of 32; two layers of two heads, d_model 128, no norm, no feed-forward network. Accuracy: the share
of the repeated part's labels that are the likeliest token, in 64 unseen sequences, measured every
5 steps; the seconds are those of the training steps until it first passes 99 %. The induction
score is that of the best head after the last step, on sequences of period 24. In the row
"positions in the stream" the sinusoids are added to the embeddings once and there are 4 heads, with
300 steps. The recipe is `TRAINING` in `transformer_lesson/lessons/lesson_11/induction.py`.
"""


def run(seed: int, steps: int, n_heads: int, in_stream: bool) -> tuple[float, float, list[float]]:
    """Return seconds to 99 % (infinite if never), the last accuracy, and layer 1's scores."""
    unseen = next(iter(RepeatedSequences(batch_size=64, seed=10**6 + seed)))
    torch.manual_seed(seed)
    config = replace(induction.CONFIG, n_heads=n_heads)
    model = AttentionOnlyDecoder(config, positions_in_stream=in_stream)
    spent, reached, accuracy, measured = 0.0, float("inf"), 0.0, time.perf_counter()

    def on_step(report: StepReport) -> None:
        nonlocal spent, reached, accuracy, measured
        spent += time.perf_counter() - measured
        if report.step % EVERY == 0:
            accuracy = induction.repeated_accuracy(report.model, unseen)
            if accuracy >= ENOUGH:
                reached = min(reached, spent)
        measured = time.perf_counter()

    training = replace(induction.TRAINING, steps=steps)
    train(model, RepeatedSequences(seed=seed), training, on_step)
    with torch.no_grad(), record(model) as seen:
        model(*induction.held_out_batch().inputs)
    scores = induction_score(seen["decoder.1.self_attention.weights"], induction.LONGEST)
    return reached, accuracy, scores.tolist()


def rows_of(measure: str, steps: int, n_heads: int, in_stream: bool, promised: bool) -> list[Row]:
    """Return a row about speed and one about scores, over all seeds."""
    runs = [run(seed, steps, n_heads, in_stream) for seed in tqdm(SEEDS, measure)]
    seconds, accuracies, scores = zip(*runs, strict=True)
    fast = max(seconds) <= SECONDS if promised else None
    clear = min(max(one) for one in scores) >= 0.9 if promised else None
    listed = ", ".join(f"**{s:.1f} s**" if s < float("inf") else "never" for s in seconds)
    lasts = ", ".join(f"{accuracy:.1%}" for accuracy in accuracies)
    heads = "; ".join(" ".join(f"{score:.2f}" for score in one) for one in scores)
    known = "3 to 4 s" if promised else "14 to 22 s"
    return [
        Row(f"{measure}: 99 % of the repeated part, seeds 0, 1, 2", "–", known,
            f"within {SECONDS} s each" if promised else "–", f"{listed}; at the end {lasts}", fast),
        Row(f"{measure}: induction scores of layer 1, seeds 0; 1; 2", "–",
            "best 0.95" if promised else "0.45 to 0.5", "best at least 0.9" if promised else "–",
            heads, clear),
    ]  # fmt: skip


def main() -> None:
    torch.set_num_threads(THREADS)
    rows = rows_of("positions at queries and keys", induction.TRAINING.steps, 2, False, True)
    rows += rows_of("positions in the stream", 300, 4, True, False)
    write("induction", rows, NOTES)


if __name__ == "__main__":
    main()
