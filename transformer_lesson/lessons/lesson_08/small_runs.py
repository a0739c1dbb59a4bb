"""Translators that train in a second or two, to see the effect of the learning rate."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import islice

import torch

from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.text.batches import TranslationBatches
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import Tokenizer
from transformer_lesson.training import TrainConfig, label_smoothed_loss
from transformer_lesson.training import learning_rate as rate_of
from transformer_lesson.training.one_step import training_step
from transformer_lesson.training.optimizer import make_optimizer

SIZES = {"d_model": 64, "n_heads": 4, "d_ff": 256, "max_len": 64, "dropout": 0.0}


def losses_of(
    pairs: Sequence[Pair],
    tokenizer: Tokenizer,
    learning_rate: float,
    warmup_steps: int = 0,
    steps: int = 150,
    n_layers: int = 1,
    schedule: str = "constant",
) -> list[float]:
    """Train a small post-norm translator and return its loss at each step, in nats per token.

    All runs start with the same weights and read the same batches. A run that overflows float32
    ends there.

    Args:
        pairs: training pairs, with a word tokenizer.
        learning_rate: the peak; after `warmup_steps` it is constant, or falls as `schedule` says.
        n_layers: blocks per side.
    """
    torch.manual_seed(0)
    vocabulary = {"vocab_size": tokenizer.vocab_size, "pad_id": tokenizer.pad_id}
    shape = SIZES | vocabulary | {"n_layers": n_layers, "tie_embeddings": False}
    model = EncoderDecoderTransformer(ModelConfig(**shape, norm_position="post", bias=False))
    config = TrainConfig(
        steps=steps, learning_rate=learning_rate, warmup_steps=warmup_steps, schedule=schedule
    )
    optimizer, losses = make_optimizer(model, config), []
    loss_function = partial(label_smoothed_loss, pad_id=tokenizer.pad_id)
    batches = islice(TranslationBatches(pairs, tokenizer, batch_size=32), steps)
    for number, batch in enumerate(batches, start=1):
        for group in optimizer.param_groups:
            group["lr"] = rate_of(number, config, model.config.d_model)
        loss = training_step(model.train(), batch, loss_function, optimizer, max_norm=math.inf)
        if not math.isfinite(loss):
            break
        losses.append(loss)
    return losses
