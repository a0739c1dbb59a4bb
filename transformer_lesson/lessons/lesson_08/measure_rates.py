"""Small translators trained at several rates: with and without warm-up, in batches of three sizes.

    python -m transformer_lesson.lessons.lesson_08.measure_rates

takes about ten minutes on one core and writes `rates.json`. A run that is stored already is left as
it is, so an interrupted measurement goes on.
"""

import json
from collections.abc import Iterator
from functools import partial
from itertools import islice, product
from pathlib import Path

import torch

from transformer_lesson.files import write_atomically
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.text import grammar
from transformer_lesson.text.batches import TranslationBatches, epoch
from transformer_lesson.text.tokenizers import WordTokenizer
from transformer_lesson.training import (
    TrainConfig,
    label_smoothed_loss,
    learning_rate,
    validation_loss,
)
from transformer_lesson.training.one_step import training_step
from transformer_lesson.training.optimizer import make_optimizer

STORED = Path(__file__).with_name("rates.json")
SIZES = {"d_model": 64, "n_heads": 4, "d_ff": 256, "max_len": 64, "dropout": 0.0}
SEEDS = (0, 1, 2)
SENTENCES = 4800  # that every run reads once


def runs() -> Iterator[dict]:
    """Yield what each run is: blocks a side, sentences in a batch, steps of warm-up, rate, seed."""
    for seed in SEEDS:
        for rate, warmup in product((0.001, 0.003, 0.0003, 0.01), (0, 50)):
            yield dict(n_layers=4, batch=32, warmup=warmup, rate=rate, seed=seed)
        for rate, batch in product((0.003, 0.01, 0.001), (8, 32, 128)):
            warmup = SENTENCES // batch // 5  # a fifth of the steps
            yield dict(n_layers=1, batch=batch, warmup=warmup, rate=rate, seed=seed)


def loss_after(n_layers: int, batch: int, warmup: int, rate: float, seed: int) -> float:
    """Train a post-norm translator on 4,800 sentences; return its loss on 300 new ones, in nats."""
    corpus = grammar.splits(SENTENCES, 300, seed=seed)
    tokenizer = WordTokenizer.train([text for pair in corpus.train for text in pair[:2]])
    torch.manual_seed(seed)
    vocabulary = {"vocab_size": tokenizer.vocab_size, "pad_id": tokenizer.pad_id}
    shape = SIZES | vocabulary | {"n_layers": n_layers, "tie_embeddings": False}
    model = EncoderDecoderTransformer(ModelConfig(**shape, norm_position="post", bias=False))
    steps = SENTENCES // batch
    config = TrainConfig(steps=steps, learning_rate=rate, warmup_steps=warmup, schedule="constant")
    optimizer = make_optimizer(model, config)
    loss_function = partial(label_smoothed_loss, pad_id=tokenizer.pad_id)
    stream = TranslationBatches(corpus.train, tokenizer, batch, seed=seed)
    for number, sentences in enumerate(islice(stream, steps), start=1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(number, config, model.config.d_model)
        training_step(model.train(), sentences, loss_function, optimizer, max_norm=1.0)
    return validation_loss(model, epoch(corpus.unseen, tokenizer, 100))


def main() -> None:
    """Measure what is not stored yet."""
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else []
    known = [{name: value for name, value in run.items() if name != "loss"} for run in stored]
    for run in runs():
        if run not in known:
            stored.append(run | {"loss": round(loss_after(**run), 3)})
            lines = ",\n".join(map(json.dumps, stored))
            write_atomically(STORED, f"[\n{lines}\n]\n".encode())
            print(stored[-1], flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
