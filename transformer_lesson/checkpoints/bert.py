"""BERT: an encoder-only model, post-norm, learned positions, token types, a norm on the embedding.

Source: Devlin et al., "BERT" (2018), section 3.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from torch import nn

from transformer_lesson.checkpoints.family import (
    THEIR_ACTIVATIONS,
    Facts,
    Family,
    Tensors,
    needed,
    our_activation,
    padding_of,
    require,
)
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import EncoderOnlyTransformer

RULES = (
    (r"^embedding\.weight$", "bert.embeddings.word_embeddings.weight"),
    (r"^embedding\.positions", "bert.embeddings.position_embeddings"),
    (r"^embedding\.token_types", "bert.embeddings.token_type_embeddings"),
    (r"^embedding\.norm", "bert.embeddings.LayerNorm"),
    (r"^encoder\.", "bert.encoder.layer."),
    (r"self_attention\.W_O", "attention.output.dense"),
    (r"self_attention\.W_Q", "attention.self.query"),
    (r"self_attention\.W_K", "attention.self.key"),
    (r"self_attention\.W_V", "attention.self.value"),
    (r"feed_forward\.W_1", "intermediate.dense"),
    (r"feed_forward\.W_2", "output.dense"),
    (r"norm_1", "attention.output.LayerNorm"),
    (r"norm_2", "output.LayerNorm"),
    (r"^head_transform\.W", "cls.predictions.transform.dense"),
    (r"^head_transform\.norm", "cls.predictions.transform.LayerNorm"),
    (r"^projection\.weight", "cls.predictions.decoder.weight"),
    (r"^projection\.bias", "cls.predictions.bias"),
)
LAYERS = (
    ("embedding", "bert.embeddings"),
    ("encoder.{i}.self_attention", "bert.encoder.layer.{i}.attention.output.dense"),
    ("encoder.{i}.after_attention", "bert.encoder.layer.{i}.attention"),
    ("encoder.{i}.feed_forward", "bert.encoder.layer.{i}.output.dense"),
    ("encoder.{i}", "bert.encoder.layer.{i}"),
    ("head_transform", "cls.predictions.transform"),
)
WORDS, BIAS = "bert.embeddings.word_embeddings.weight", "cls.predictions.bias"
UNUSED = re.compile(r"^bert\.pooler\.|^cls\.seq_relationship\.|\.position_ids$|\.token_type_ids$")
"""A classifier of whole sentences, which our model does not have, and constants."""


def read_config(facts: Facts) -> tuple[ModelConfig, ...]:
    """Return our config of a BERT one."""
    require(
        facts,
        is_decoder=False,
        add_cross_attention=False,
        position_embedding_type="absolute",
    )
    sizes = needed(
        facts,
        "vocab_size",
        "hidden_size",
        "num_attention_heads",
        "num_hidden_layers",
        "intermediate_size",
        "max_position_embeddings",
    )
    config = ModelConfig(
        *sizes,
        dropout=facts.get("hidden_dropout_prob", 0.1),
        attention_dropout=facts.get("attention_probs_dropout_prob", 0.1),
        norm_position="post",
        activation=our_activation(facts, "hidden_act", "gelu"),
        positions="learned",
        tie_embeddings=facts.get("tie_word_embeddings", True),
        pad_id=padding_of({"pad_token_id": 0} | dict(facts)),
        norm_epsilon=facts.get("layer_norm_eps", 1e-12),
        scale_embedding=False,
        embedding_norm=True,
        n_token_types=facts.get("type_vocab_size", 2),
        output_bias=True,
        head_transform=True,
    )
    return (config,)


def build(configs: tuple[ModelConfig, ...], facts: Facts, names: Iterable[str]) -> nn.Module:
    """Return our model, with a token head if the checkpoint has one."""
    token_head = any(name.startswith("cls.predictions.") for name in names)
    config = replace(configs[0], head_transform=token_head)
    return EncoderOnlyTransformer(config, token_head=token_head)


def write_config(model: nn.Module) -> dict:
    """Return config.json of one of our models.

    Raises:
        ValueError: the model has a classifier over a mean of vectors, or a token head without
            its own layer.
    """
    if model.classifier is not None:
        raise ValueError("the model has a classifier over a mean of vectors, which BERT has not.")
    c = model.config
    if c.head_transform != (model.projection is not None):
        raise ValueError(
            f"head_transform is {c.head_transform}, but BERT has that layer where there is a "
            "token head and only there."
        )
    return {
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "num_attention_heads": c.n_heads,
        "num_hidden_layers": c.n_layers,
        "intermediate_size": c.d_ff,
        "max_position_embeddings": c.max_len,
        "hidden_act": THEIR_ACTIVATIONS.get(c.activation),
        "hidden_dropout_prob": c.dropout,
        "attention_probs_dropout_prob": c.attention_dropout,
        "layer_norm_eps": c.norm_epsilon,
        "type_vocab_size": c.n_token_types,
        "tie_word_embeddings": c.tie_embeddings,
        "pad_token_id": c.pad_id,
    }


def tidy(facts: Facts, tensors: Tensors) -> Tensors:
    """Leave out what our model does not compute, and give norms their present names."""
    tidied = {}
    for name, tensor in tensors.items():
        if not UNUSED.search(name):
            new = name.replace("LayerNorm.gamma", "LayerNorm.weight")
            tidied[new.replace("LayerNorm.beta", "LayerNorm.bias")] = tensor
    used = "cls.predictions.decoder.bias"  # what the library adds; untied, the other has no effect
    if used in tidied and not facts.get("tie_word_embeddings", True):
        tidied[BIAS] = tidied.pop(used)
    return tidied


def aliases(model: nn.Module) -> dict[str, tuple[str, ...]]:
    """Return which names stand for one matrix."""
    if model.projection is None:
        return {}
    tied = {WORDS: ("cls.predictions.decoder.weight",)} if model.config.tie_embeddings else {}
    return tied | {BIAS: ("cls.predictions.decoder.bias",)}


BERT = Family(
    name="BERT",
    model_type="bert",
    architecture="BertForMaskedLM",
    prefix="bert.",
    rules=RULES,
    read_config=read_config,
    build=build,
    write_config=write_config,
    layers=LAYERS,
    tidy=tidy,
    aliases=aliases,
)
