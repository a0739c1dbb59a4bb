"""How good a translator of the generated grammar gets, and after how many seconds of training."""

import statistics

import torch

from benchmarks.results import THREADS, Row, write
from transformer_lesson.generation import exact_match, translate
from transformer_lesson.interpretability.alignment import alignment_hits
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.text import TranslationBatches, grammar
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import WordTokenizer
from transformer_lesson.training import train
from transformer_lesson.training.recipes import GRAMMAR, PAPER, Recipe

SEEDS, N_TRAIN, N_TEST = (0, 1, 2), 50_000, 500

NOTES = """
Each run has weights, batches and test sentences of its own seed. Exact match: the translation is
the reference, word for word. "Unseen combinations" hold an adjective with a noun that training
never joins. Seconds are those of the training steps, batches included. Hits: how often the best
head's largest cross-attention weight lies on a source word that the true alignment joins with the
word that is predicted. The recipes are `GRAMMAR` and `PAPER` in
`transformer_lesson/training/recipes.py`; the paper's has the same sizes and reads four times the
sentences.
"""


def run(recipe: Recipe, seed: int) -> dict[str, float]:
    """Train one translator and return what is reported about it."""
    split = grammar.splits(N_TRAIN, N_TEST, seed)
    texts = [text for pair in split.train for text in (pair.source, pair.target)]
    tokenizer = WordTokenizer.train(texts)
    torch.manual_seed(seed)
    model = EncoderDecoderTransformer(recipe.model_config(tokenizer))
    batches = TranslationBatches(split.train, tokenizer, recipe.batch_size, seed)
    history = train(model, batches, recipe.training)

    def right(pairs: list[Pair]) -> float:
        written = translate(model, tokenizer, [pair.source for pair in pairs])
        return exact_match(written, [pair.target for pair in pairs])

    return {
        "seconds": history.seconds,
        "unseen": right(split.unseen),
        "combinations": right(split.combinations),
        "hits": alignment_hits(model, tokenizer, split.unseen).max().item(),
    }


def summary(values: list[float]) -> str:
    """Return the median and each run's value, in percent."""
    listed = ", ".join(f"{value:.1%}" for value in values)
    return f"**{statistics.median(values):.1%}** ({listed})"


def main() -> None:
    torch.set_num_threads(THREADS)
    runs = []
    for seed in SEEDS:
        runs.append(run(GRAMMAR, seed))
        print(f"seed {seed}: {runs[-1]}", flush=True)
    paper = run(PAPER, 0)
    print(f"the paper's recipe: {paper}", flush=True)
    columns = {name: [result[name] for result in runs] for name in runs[0]}
    seconds = ", ".join(f"{value:.1f}" for value in columns["seconds"])
    in_time = max(columns["seconds"]) <= 20
    rows = [
        Row("Exact match, 500 unseen sentences", "–", "99 to 100 % on a smaller grammar",
            "at least 99 % on three seeds", summary(columns["unseen"]),
            min(columns["unseen"]) >= 0.99),
        Row("Exact match, 500 sentences with unseen combinations", "–", "–", "at least 95 %",
            summary(columns["combinations"]), min(columns["combinations"]) >= 0.95),
        Row("Seconds of training", "–", "12.5 to 14", "at most 20",
            f"**{statistics.median(columns['seconds']):.1f}** ({seconds})", in_time),
        Row("Best head's hits on the true alignment", "–", "–", "at least 85 %",
            summary(columns["hits"]), min(columns["hits"]) >= 0.85),
        Row("The paper's recipe: exact match on unseen sentences", "–",
            "96 to 97 % after 77 to 91 s", "shown as a finding",
            f"**{paper['unseen']:.1%}** after {paper['seconds']:.0f} s, "
            f"{paper['combinations']:.1%} on unseen combinations", None),
    ]  # fmt: skip
    write("translation", rows, NOTES)


if __name__ == "__main__":
    main()
