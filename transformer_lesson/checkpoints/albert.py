"""ALBERT: BERT with one block, used at every layer, and narrow token vectors that a matrix widens.

Source: Lan et al., "ALBERT" (2019), section 3.1.
"""

import re
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lesson.checkpoints.bert import BertEmbedding, BertFamily, BertHead, BertTransformer
from transformer_lesson.checkpoints.family import Facts, Tensors, require
from transformer_lesson.checkpoints.untrusted import require_rows
from transformer_lesson.model.config import ModelConfig, size
from transformer_lesson.model.transformers import encoder_stack, last_norm, output_projection

MOST_LAYERS = 100
"""How often a file may have its block repeated: each repetition takes time and a little memory."""


class AlbertEmbedding(BertEmbedding):
    """BERT's embedding with vectors of d_embedding numbers, and a matrix that widens them.

    A vocabulary of 30,000 tokens with 4,096 numbers each would be most of the model; with 128 it is
    a small part.

    Args:
        config: sizes and choices.
        d_embedding: numbers per token before the matrix.
        n_token_types: kinds of segments, each with a trained vector.
    """

    def __init__(self, config: ModelConfig, d_embedding: int, n_token_types: int):
        narrow = replace(config, d_model=d_embedding, n_heads=1, n_kv_heads=None)
        super().__init__(narrow, n_token_types)
        self.W = nn.Linear(d_embedding, config.d_model)

    def forward(
        self, ids: Int[Tensor, "batch n"], token_types: Int[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n d_model"]:
        """Return the first block's input; see `BertEmbedding.forward`."""
        return self.output(self.W(self.summed(ids, token_types)))


def shared_stack(config: ModelConfig) -> nn.ModuleList:
    """Return n_layers encoder blocks that share one set of weights.

    Each is a separate module, so that each layer can be watched; their parameters are the same.
    """
    blocks = nn.ModuleList()
    for _ in range(config.n_layers):
        blocks.extend(encoder_stack(replace(config, n_layers=1)))
        for name, parameter in blocks[0].named_parameters():
            owner, _, last = name.rpartition(".")
            setattr(blocks[-1].get_submodule(owner), last, parameter)
    return blocks


class AlbertTransformer(BertTransformer):
    """BERT with ALBERT's embedding and stack.

    Args:
        config: sizes and choices.
        d_embedding: numbers per token before they are widened to d_model.
        n_token_types: kinds of segments in a text.
        token_head: adds a layer, and a projection with a bias, to token logits.

    Raises:
        ValueError: d_embedding or n_token_types is not an int >= 1.
    """

    def __init__(
        self,
        config: ModelConfig,
        d_embedding: int,
        n_token_types: int = 2,
        token_head: bool = False,
    ):
        size.check("d_embedding", d_embedding)
        with torch.device("meta"):  # all of BERT's own parts are replaced below
            super().__init__(config, n_token_types, token_head)
        self.embedding = AlbertEmbedding(config, d_embedding, n_token_types)
        self.encoder, self.encoder_norm = shared_stack(config), last_norm(config)
        if token_head:
            self.head_transform = BertHead(config.d_model, self.embedding.config)
            self.projection = output_projection(self.embedding.config, self.embedding)
            self.projection.bias = nn.Parameter(torch.zeros(config.vocab_size))


def stored_parts(config: ModelConfig, d_embedding: int) -> tuple[ModelConfig, ...]:
    """Return the sizes of what a file holds: an embedding and one block.

    Raises:
        ValueError: more layers than a block may be repeated.
    """
    if config.n_layers > MOST_LAYERS:
        raise ValueError(
            f"n_layers is {config.n_layers}, but one block is repeated at most {MOST_LAYERS} times."
        )
    one_head = {"n_heads": 1, "n_kv_heads": None}
    narrow = replace(config, d_model=d_embedding, **one_head, d_ff=1, n_layers=1)
    block = replace(config, vocab_size=1, max_len=1, n_layers=1, pad_id=None)
    return narrow, block


THEIR_BLOCK = "albert.encoder.albert_layer_groups.0.albert_layers.0"
RULES = (
    (r"^embedding\.weight$", "albert.embeddings.word_embeddings.weight"),
    (r"^embedding\.positions", "albert.embeddings.position_embeddings"),
    (r"^embedding\.token_types", "albert.embeddings.token_type_embeddings"),
    (r"^embedding\.norm", "albert.embeddings.LayerNorm"),
    (r"^embedding\.W", "albert.encoder.embedding_hidden_mapping_in"),
    (r"^encoder\.0", THEIR_BLOCK),
    (r"self_attention\.W_O", "attention.dense"),
    (r"self_attention\.W_Q", "attention.query"),
    (r"self_attention\.W_K", "attention.key"),
    (r"self_attention\.W_V", "attention.value"),
    (r"feed_forward\.W_1", "ffn"),
    (r"feed_forward\.W_2", "ffn_output"),
    (r"norm_1", "attention.LayerNorm"),
    (r"norm_2", "full_layer_layer_norm"),
    (r"^head_transform\.W", "predictions.dense"),
    (r"^head_transform\.norm", "predictions.LayerNorm"),
    (r"^projection\.weight", "predictions.decoder.weight"),
    (r"^projection\.bias", "predictions.bias"),
)
LAYERS = (
    ("embedding", "albert.encoder.embedding_hidden_mapping_in"),
    ("encoder.{i}.after_attention", f"{THEIR_BLOCK}.attention"),
    ("encoder.{i}.feed_forward", f"{THEIR_BLOCK}.ffn_output"),
    ("encoder.{i}", THEIR_BLOCK),
    ("head_transform", "predictions.LayerNorm"),
)


class AlbertFamily(BertFamily):
    """ALBERT's checkpoints."""

    name, model_type, architecture = "ALBERT", "albert", "AlbertForMaskedLM"
    model, prefix, rules, layers = AlbertTransformer, "albert.", RULES, LAYERS
    words, head = "albert.embeddings.word_embeddings.weight", "predictions"
    unused = re.compile(r"^albert\.pooler\.|^sop_classifier\.|\.position_ids$|\.token_type_ids$")

    def read_config(self, facts: Facts) -> tuple[ModelConfig, ...]:
        """Return our config for an ALBERT one."""
        require(facts, num_hidden_groups=1, inner_group_num=1)
        dropouts = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        return super().read_config({"hidden_act": "gelu_new"} | dropouts | dict(facts))

    def stored(self, configs: tuple[ModelConfig, ...], facts: Facts) -> tuple[ModelConfig, ...]:
        """Return the sizes of what a file holds."""
        return stored_parts(*configs, _d_embedding(facts))

    def build(self, configs: tuple[ModelConfig, ...], facts: Facts, tensors: Tensors) -> nn.Module:
        """Return our model, with a token head if the checkpoint has one."""
        d_embedding = _d_embedding(facts)
        require_rows("embedding_size", d_embedding, tensors)
        return AlbertTransformer(*configs, d_embedding, *self.additions(facts, tensors))

    def write_config(self, model: nn.Module) -> dict:
        """Return config.json for one of our models."""
        shared = {"num_hidden_groups": 1, "inner_group_num": 1}
        return (
            super().write_config(model)
            | shared
            | {"embedding_size": model.embedding.config.d_model}
        )


def _d_embedding(facts: Facts) -> int:
    return facts.get("embedding_size", 128)
