"""Lesson 14: three functions with bugs that learners repair, and a cache that counts wrong."""

import copy
import math

import torch
import torch.nn.functional as F

from transformer_lesson.model.transformers import EncoderDecoderTransformer


def one_place_early(model: EncoderDecoderTransformer) -> EncoderDecoderTransformer:
    """Return a copy that, once it reads with a cache, places each word one position too early."""
    sick = copy.deepcopy(model)
    embedding = sick.target_embedding
    placed = embedding.placed

    def early(ids, start):
        """Return the new words' vectors; `<bos>` is forgotten when their places are counted."""
        forgotten = int(start > 0)
        return placed(ids[:, forgotten:], start - forgotten)

    embedding.placed = early
    return sick


def shifted_loss(logits, ids, pad_id):
    """Return the mean cross-entropy of each next token that is no padding."""
    return F.cross_entropy(logits.flatten(0, 1), ids.flatten(), ignore_index=pad_id)


def rate_at(step, steps_per_epoch, peak, warmup_epochs, epochs):
    """Return a step's learning rate: a line up to the peak, then a cosine down to a tenth of it."""
    if step < warmup_epochs:
        return peak * (step + 1) / warmup_epochs
    progress = min(1.0, (step - warmup_epochs) / (epochs - warmup_epochs))
    return peak * (0.1 + 0.9 * (1 + math.cos(math.pi * progress)) / 2)


def evaluation_loss(model, batches, loss_function, pad_id):
    """Return the mean loss of all labels that are no padding, without dropout."""
    was_training = model.training
    model.eval()
    losses = []
    with torch.no_grad():
        for inputs, labels in batches:
            losses.append(float(loss_function(model(inputs), labels)))
    model.train(was_training)
    return sum(losses) / len(losses)
