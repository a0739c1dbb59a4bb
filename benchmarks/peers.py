"""The models that ours are compared with, and how to copy their weights, for equal outputs."""

import math

import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.positions import sinusoidal_encoding
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer

TO_OURS = {
    "transformer.encoder.norm": "encoder_norm",
    "transformer.decoder.norm": "decoder_norm",
    "transformer.encoder.layers": "encoder",
    "transformer.decoder.layers": "decoder",
    "transformer.h": "decoder",
    "transformer.ln_f": "decoder_norm",
    "transformer.wte.weight": "embedding.weight",
    "transformer.wpe.weight": "embedding.positions.weight",
    "lm_head": "projection",
    "self_attn": "self_attention",
    "multihead_attn": "cross_attention",
    "out_proj": "W_O",
    "attn.c_proj": "self_attention.W_O",
    "attn.c_attn.": "self_attention.in_proj_",
    "linear1": "feed_forward.W_1",
    "linear2": "feed_forward.W_2",
    "mlp.c_fc": "feed_forward.W_1",
    "mlp.c_proj": "feed_forward.W_2",
    "norm1": "norm_1",
    "norm2": "norm_2",
    "norm3": "norm_3",
    "ln_1": "norm_1",
    "ln_2": "norm_2",
}
"""Their names of parts to our names."""


class TorchTransformer(nn.Module):
    """`nn.Transformer` with what it lacks: embeddings, positions, masks and output projection."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        d_model = config.d_model
        self.table = nn.Embedding(config.vocab_size, d_model)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        self.register_buffer("positions", sinusoidal_encoding(config.max_len, d_model), False)
        self.dropout = nn.Dropout(config.dropout)
        self.transformer = nn.Transformer(
            d_model,
            config.n_heads,
            config.n_layers,
            config.n_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
            norm_first=True,
        )
        self.projection = nn.Linear(d_model, config.vocab_size, bias=False)
        self.projection.weight = self.table.weight

    def _embed(self, ids: Tensor) -> Tensor:
        x = self.table(ids) * math.sqrt(self.table.embedding_dim)
        return self.dropout(x + self.positions[: ids.size(1)])

    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Return logits (batch, target, vocab_size)."""
        mask = nn.Transformer.generate_square_subsequent_mask(target_ids.size(1))
        x, y = self._embed(source_ids), self._embed(target_ids)
        return self.projection(self.transformer(x, y, tgt_mask=mask, tgt_is_causal=True))


class GPT2(nn.Module):
    """The GPT-2 of `transformers` without its cache, loss and dictionary of outputs."""

    def __init__(self, config: ModelConfig, activation: str):
        super().__init__()
        self.model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=config.vocab_size,
                n_positions=config.max_len,
                n_embd=config.d_model,
                n_layer=config.n_layers,
                n_head=config.n_heads,
                n_inner=config.d_ff,
                activation_function=activation,
                resid_pdrop=config.dropout,
                embd_pdrop=config.dropout,
                attn_pdrop=config.attention_dropout,
                tie_word_embeddings=config.tie_embeddings,
                bos_token_id=None,
                eos_token_id=None,
            )
        )

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits (batch, n, vocab_size)."""
        return self.model(ids, use_cache=False).logits


def gpt_config(**changes) -> ModelConfig:
    """Return the config of the GPT that is measured, with GPT-2's choices."""
    sizes = {"vocab_size": 65, "d_model": 384, "n_heads": 6, "n_layers": 6, "d_ff": 1536}
    choices = {"activation": "gelu", "positions": "learned", "tie_embeddings": False}
    dropout = {"dropout": 0.1, "attention_dropout": 0.1}
    return ModelConfig(**sizes | {"max_len": 512} | choices | dropout | changes)


def our_weights(theirs: nn.Module) -> dict[str, Tensor]:
    """Return the peer's weights under our names and in our shapes."""
    weights = {}
    for name, value in theirs.state_dict().items():
        if ".c_" in name and name.endswith("weight"):  # GPT-2 stores W, nn.Linear its transpose
            value = value.T
        for old, new in TO_OURS.items():
            name = name.replace(old, new)
        if "in_proj_" in name:
            for projection, part in zip(("W_Q", "W_K", "W_V"), value.chunk(3), strict=True):
                weights[name.replace("in_proj_", f"{projection}.")] = part
        else:
            weights[name] = value
    return weights


def ours_of_torch(theirs: TorchTransformer, config: ModelConfig) -> EncoderDecoderTransformer:
    """Return our encoder-decoder with the weights of theirs; dropout as in config."""
    weights = our_weights(theirs)
    table = weights.pop("table.weight")
    model = EncoderDecoderTransformer(config)
    model.load_state_dict(
        weights | {"source_embedding.weight": table, "target_embedding.weight": table}
    )
    return model


def ours_of_gpt2(theirs: GPT2, config: ModelConfig) -> DecoderOnlyTransformer:
    """Return our GPT with the weights of theirs. We scale token vectors, GPT-2 does not."""
    weights = our_weights(theirs.model)
    weights["embedding.weight"] = weights["embedding.weight"] / math.sqrt(config.d_model)
    model = DecoderOnlyTransformer(config)
    model.load_state_dict(weights)
    return model


@torch.no_grad()
def assert_equal_outputs(ours: nn.Module, theirs: nn.Module, *ids: Tensor) -> None:
    """Stop the benchmark if the two models do not compute the same."""
    outputs = [model.eval()(*ids) for model in (ours, theirs)]
    torch.testing.assert_close(*outputs, atol=1e-5, rtol=1e-5)
