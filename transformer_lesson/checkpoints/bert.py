"""BERT: an encoder-only model, post-norm, learned positions, token types, a norm on the embedding.

Source: Devlin et al., "BERT" (2018), section 3.
"""

import re

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lesson.checkpoints.family import (
    THEIR_ACTIVATIONS,
    Facts,
    Family,
    Tensors,
    needed,
    our_activation,
    padding_of,
    require,
    text_ids,
    their_ids,
)
from transformer_lesson.checkpoints.untrusted import require_rows
from transformer_lesson.model.config import ModelConfig, size
from transformer_lesson.model.embedding import InputEmbedding, check_range
from transformer_lesson.model.feed_forward import ACTIVATIONS
from transformer_lesson.model.masks import real_tokens
from transformer_lesson.model.norm import make_norm
from transformer_lesson.model.positions import LearnedPositions
from transformer_lesson.model.transformers import EncoderOnlyTransformer, output_projection


class BertEmbedding(InputEmbedding):
    """The sum of token vectors, positions and token types, normalized, then dropout.

    Args:
        config: sizes and choices.
        n_token_types: kinds of segments, each with a trained vector.

    Source: Devlin et al., "BERT" (2018), figure 2.
    """

    def __init__(self, config: ModelConfig, n_token_types: int):
        super().__init__(config)
        self.token_types = LearnedPositions(n_token_types, config.d_model)  # looked up alike
        self.norm = make_norm(config)

    def forward(
        self, ids: Int[Tensor, "batch n"], token_types: Int[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n d_model"]:
        """Return the first block's input.

        Args:
            ids: token ids.
            token_types: which segment each token is in, from 0; all 0 if left out.

        Raises:
            ValueError: ids that the model cannot read, or types of another shape or too large.
        """
        return self.output(self.summed(ids, token_types))

    def summed(self, ids: Tensor, token_types: Tensor | None) -> Float[Tensor, "batch n d_model"]:
        """Return the normalized sum of token vectors, positions and token types."""
        x = self.placed(ids, 0)  # (batch, n, d_model)
        types = torch.zeros_like(ids) if token_types is None else token_types
        if types.shape != ids.shape:
            raise ValueError(
                f"token_types has shape {tuple(types.shape)}, but the ids have {tuple(ids.shape)}: "
                "give each token its type."
            )
        n = self.token_types.num_embeddings
        check_range(types, n, f"token type {{}} is not one of the n_token_types = {n} (from 0).")
        return self.dropout(self.norm(x + self.token_types(types)))


class BertHead(nn.Module):
    """A linear map, the activation and a norm, before BERT's output projection.

    Args:
        d_model: numbers per token of the input.
        config: choices, and with d_model the numbers per token of the output.

    Source: Devlin et al., "BERT" (2018), as in the authors' code (`get_masked_lm_output`).
    """

    def __init__(self, d_model: int, config: ModelConfig):
        super().__init__()
        self.W = nn.Linear(d_model, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = make_norm(config)

    def forward(self, x: Float[Tensor, "batch n d_in"]) -> Float[Tensor, "batch n d_out"]:
        """Return norm(activation(x W + b))."""
        return self.norm(self.activation(self.W(x)))


class BertTransformer(EncoderOnlyTransformer):
    """The encoder-only model with BERT's own parts: its embedding and, if asked for, its head.

    Args:
        config: sizes and choices.
        n_token_types: kinds of segments in a text.
        token_head: adds a layer, and a projection with a bias, to token logits.

    Raises:
        ValueError: n_token_types is not an int >= 1.

    Source: Devlin et al., "BERT" (2018), section 3.
    """

    def __init__(self, config: ModelConfig, n_token_types: int = 2, token_head: bool = False):
        if not size.keeps(n_token_types):
            raise ValueError(f"n_token_types is {n_token_types!r}, but it must be {size.words}.")
        super().__init__(config, token_head=token_head)
        self.embedding = BertEmbedding(config, n_token_types)
        if token_head:
            self.head_transform = BertHead(config.d_model, config)
            self.projection = output_projection(config, self.embedding)
            self.projection.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(
        self, ids: Int[Tensor, "batch n"], token_types: Int[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n d_model"]:
        """Return one vector per token.

        Args:
            ids: token ids.
            token_types: which segment each token is in, from 0; all 0 if left out.
        """
        x = self.embedding(ids, token_types)  # (batch, n, d_model)
        mask = real_tokens(ids, self.config)  # (batch, 1, 1, n)
        for block in self.encoder:
            x = block(x, mask)
        return self.encoder_norm(x)

    def predict_tokens(
        self, ids: Int[Tensor, "batch n"], token_types: Int[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n vocab_size"]:
        """Return logits for the token at each position (masked-token prediction)."""
        if self.projection is None:
            raise ValueError("this model has no token head: build it with token_head=True.")
        return self.projection(self.head_transform(self(ids, token_types)))


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


Rows = tuple[tuple[str, str], ...]


class BertFamily(Family):
    """BERT's checkpoints."""

    name, model_type, architecture = "BERT", "bert", "BertForMaskedLM"
    model, prefix, rules, layers = BertTransformer, "bert.", RULES, LAYERS
    words, head = "bert.embeddings.word_embeddings.weight", "cls.predictions"
    """The library's names of the embedding and of the token head."""
    unused = re.compile(
        r"^bert\.pooler\.|^cls\.seq_relationship\.|\.position_ids$|\.token_type_ids$"
    )
    """A classifier of sentences, which our model does not have, and constants."""

    def read_config(self, facts: Facts) -> tuple[ModelConfig, ...]:
        """Return our config for a BERT one."""
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
            **text_ids(facts),
        )
        return (config,)

    def build(self, configs: tuple[ModelConfig, ...], facts: Facts, tensors: Tensors) -> nn.Module:
        """Return our model, with a token head if the checkpoint has one."""
        return BertTransformer(*configs, *self.additions(facts, tensors))

    def additions(self, facts: Facts, tensors: Tensors) -> tuple[int, bool]:
        """Return n_token_types and whether the checkpoint has a token head."""
        n_types = facts.get("type_vocab_size", 2)
        require_rows("type_vocab_size", n_types, tensors)
        return n_types, any(name.startswith(f"{self.head}.") for name in tensors)

    def write_config(self, model: nn.Module) -> dict:
        """Return config.json for one of our models."""
        c = model.config
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
            "type_vocab_size": model.embedding.token_types.num_embeddings,
            "tie_word_embeddings": c.tie_embeddings,
            **their_ids(c),
        }

    def tidy(self, facts: Facts, tensors: Tensors) -> Tensors:
        """Leave out what our model does not compute, and give norms their current names."""
        tidied = {}
        for name, tensor in tensors.items():
            if not self.unused.search(name):
                new = name.replace("LayerNorm.gamma", "LayerNorm.weight")
                tidied[new.replace("LayerNorm.beta", "LayerNorm.bias")] = tensor
        used = f"{self.head}.decoder.bias"  # the library adds this; untied, the other is unused
        if used in tidied and not facts.get("tie_word_embeddings", True):
            tidied[f"{self.head}.bias"] = tidied.pop(used)
        return tidied

    def aliases(self, model: nn.Module) -> dict[str, tuple[str, ...]]:
        """Return which names mean the same matrix."""
        if model.projection is None:
            return {}
        tied = {self.words: (f"{self.head}.decoder.weight",)} if model.config.tie_embeddings else {}
        return tied | {f"{self.head}.bias": (f"{self.head}.decoder.bias",)}


def _called(rows: Rows, names: dict[str, str]) -> Rows:
    """Return pairs of names with parts of their second names exchanged, one after the other."""
    for old, new in names.items():
        rows = tuple((ours, theirs.replace(old, new)) for ours, theirs in rows)
    return rows


ROBERTAS = {
    "bert.": "roberta.",
    "cls.predictions.transform.dense": "lm_head.dense",
    "cls.predictions.transform.LayerNorm": "lm_head.layer_norm",
    "cls.predictions.transform": "lm_head.layer_norm",
    "cls.predictions": "lm_head",
}


class RobertaFamily(BertFamily):
    """RoBERTa's checkpoints, which become a BERT: it was trained otherwise, on more text.

    Source: Liu et al., "RoBERTa" (2019), section 3.
    """

    name, model_type, architecture = "RoBERTa", "roberta", "RobertaForMaskedLM"
    prefix, rules, layers = "roberta.", _called(RULES, ROBERTAS), _called(LAYERS, ROBERTAS)
    words, head = "roberta.embeddings.word_embeddings.weight", "lm_head"
    first_position = 2  # the table begins with rows that no token has
    unused = re.compile(r"^roberta\.pooler\.|\.position_ids$|\.token_type_ids$")

    def read_config(self, facts: Facts) -> tuple[ModelConfig, ...]:
        """Return our config for a RoBERTa one."""
        require(facts, hidden_act="gelu", pad_token_id=1)  # its head has gelu, whatever it says
        defaults = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
        (n_rows,) = needed(facts, "max_position_embeddings")
        n_positions = {"max_position_embeddings": n_rows - self.first_position}
        return super().read_config(defaults | dict(facts) | n_positions)

    def tidy(self, facts: Facts, tensors: Tensors) -> Tensors:
        """Leave out what our model does not compute, and positions that no token has."""
        tidied = super().tidy(facts, tensors)
        name = "roberta.embeddings.position_embeddings.weight"
        return tidied | ({name: tidied[name][self.first_position :]} if name in tidied else {})


DISTILBERTS = {
    "bert.embeddings": "distilbert.embeddings",
    "bert.encoder.layer": "distilbert.transformer.layer",
    "attention.output.dense": "attention.out_lin",
    "attention.self.query": "attention.q_lin",
    "attention.self.key": "attention.k_lin",
    "attention.self.value": "attention.v_lin",
    "attention.output.LayerNorm": "sa_layer_norm",
    "intermediate.dense": "ffn.lin1",
    "output.dense": "ffn.lin2",
    "output.LayerNorm": "output_layer_norm",
    "{i}.attention": "{i}.sa_layer_norm",
    "{i}.sa_layer_norm.out_lin": "{i}.attention.out_lin",
    "cls.predictions.transform.dense": "vocab_transform",
    "cls.predictions.transform.LayerNorm": "vocab_layer_norm",
    "cls.predictions.transform": "vocab_layer_norm",
    "cls.predictions.decoder": "vocab_projector",
    "cls.predictions": "vocab_projector",
}
DISTILBERTS_FIELDS = {
    "hidden_size": "dim",
    "num_attention_heads": "n_heads",
    "num_hidden_layers": "n_layers",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}
"""BERT's fields of config.json, and DistilBERT's."""


class DistilBertFamily(BertFamily):
    """DistilBERT's checkpoints: half of BERT's layers, and all tokens of one type, which is 0.

    Source: Sanh et al., "DistilBERT" (2019), section 3.
    """

    name, model_type, architecture = "DistilBERT", "distilbert", "DistilBertForMaskedLM"
    prefix, rules, layers = "distilbert.", _called(RULES, DISTILBERTS), _called(LAYERS, DISTILBERTS)
    words, head = "distilbert.embeddings.word_embeddings.weight", "vocab_projector"

    def read_config(self, facts: Facts) -> tuple[ModelConfig, ...]:
        """Return our config for a DistilBERT one."""
        needed(facts, *list(DISTILBERTS_FIELDS.values())[:4])
        known = {our: facts[their] for our, their in DISTILBERTS_FIELDS.items() if their in facts}
        return super().read_config(dict(facts) | known)

    def tidy(self, facts: Facts, tensors: Tensors) -> Tensors:
        """Add the one type of tokens, which adds 0."""
        name = self.rename("embedding.token_types.weight")
        return super().tidy(facts, tensors) | {name: torch.zeros(1, facts["dim"])}

    def additions(self, facts: Facts, tensors: Tensors) -> tuple[int, bool]:
        """Return n_token_types and whether the checkpoint has a token head."""
        return super().additions(dict(facts) | {"type_vocab_size": 1}, tensors)

    def aliases(self, model: nn.Module) -> dict[str, tuple[str, ...]]:
        """Return which names mean the same matrix."""
        tied = model.projection is not None and model.config.tie_embeddings
        return {self.words: ("vocab_projector.weight",)} if tied else {}
