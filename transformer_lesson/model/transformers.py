"""The three models: token ids in, vectors or logits out. Read top to bottom."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lesson.model.attention import soft_cap
from transformer_lesson.model.blocks import DecoderBlock, EncoderBlock
from transformer_lesson.model.cache import NO_CACHE, KeyValueCache
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.embedding import InputEmbedding
from transformer_lesson.model.hooks import HookPoint
from transformer_lesson.model.masks import real_tokens, target_masks
from transformer_lesson.model.norm import make_norm
from transformer_lesson.model.positions import RelativePositions, RotaryPositions


def rotations(config: ModelConfig) -> list[RotaryPositions | None]:
    """Return what rotates queries and keys in each layer; layers with equal angles share it."""
    c = config
    if c.positions != "rotary":
        return [None] * c.n_layers
    far = RotaryPositions(c.rotary_base, c.rotary_divisors, c.d_rotary)
    near_base = c.window_rotary_base
    near = far if near_base is None else RotaryPositions(near_base, d_rotary=c.d_rotary)
    kinds = [far if window is None else near for window in c.windows]
    return [None if i in c.layers_without_positions else kind for i, kind in enumerate(kinds)]


def relative_positions(config: ModelConfig, causal: bool) -> RelativePositions | None:
    """Return what a stack's layers add to their scores, if positions are relative."""
    if config.positions != "relative":
        return None
    sizes = config.n_heads, config.relative_buckets, config.relative_distance
    return RelativePositions(*sizes, causal)


def encoder_stack(config: ModelConfig, causal: bool = False) -> nn.ModuleList:
    """Return n_layers encoder blocks, each with its own weights.

    Args:
        config: sizes and choices.
        causal: whether the blocks will run under a causal mask.
    """
    relative = relative_positions(config, causal)
    return nn.ModuleList(EncoderBlock(config, rotate, relative) for rotate in rotations(config))


def decoder_stack(config: ModelConfig) -> nn.ModuleList:
    """Return n_layers decoder blocks (with cross-attention), each with its own weights."""
    relative = relative_positions(config, causal=True)
    return nn.ModuleList(DecoderBlock(config, rotate, relative) for rotate in rotations(config))


def last_norm(config: ModelConfig) -> nn.Module:
    """Return the norm that ends a stack, unless it is post-norm, which needs none.

    Differs: the paper (post-norm) has no last norm. In a pre-norm stack nothing else
    normalizes the last sum.
    """
    return nn.Identity() if config.norm_position == "post" else make_norm(config)


def output_projection(config: ModelConfig, embedding: InputEmbedding) -> nn.Linear:
    """Return the map from vectors to logits; it shares the embedding's matrix when tied.

    Source: "Attention Is All You Need" (2017), section 3.4.
    """
    projection = nn.Linear(config.d_model, config.vocab_size, bias=False)
    if config.tie_embeddings:
        projection.weight = embedding.weight
    return projection


class EncoderOnlyTransformer(nn.Module):
    """Reads a whole sentence at once and gives one vector per token (BERT's kind).

    Args:
        config: sizes and choices.
        n_classes: adds a classifier over the mean of a sentence's vectors (`classify`).
        token_head: adds a projection to token logits (`predict_tokens`).

    Source: "Attention Is All You Need" (2017), figure 1, left; Devlin et al., "BERT" (2018).
    """

    def __init__(self, config: ModelConfig, n_classes: int | None = None, token_head: bool = False):
        super().__init__()
        if config.attention_window is not None:
            raise ValueError(
                f"an encoder has no attention_window: leave {config.attention_window} out."
            )
        self.config = config
        self.embedding = InputEmbedding(config)
        self.encoder = encoder_stack(config)
        self.encoder_norm = last_norm(config)
        self.classifier = nn.Linear(config.d_model, n_classes) if n_classes else None
        self.projection = output_projection(config, self.embedding) if token_head else None

    def forward(self, ids: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n d_model"]:
        """Return one vector per token.

        Raises:
            ValueError: a token id outside the vocabulary, or more than max_len tokens.
        """
        x = self.embedding(ids)  # (batch, n, d_model)
        mask = real_tokens(ids, self.config)  # (batch, 1, 1, n)
        for block in self.encoder:
            x = block(x, mask)
        return self.encoder_norm(x)

    def classify(self, ids: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n_classes"]:
        """Return class logits from the mean over each sentence's real tokens."""
        if self.classifier is None:
            raise ValueError("this model has no classifier: build it with n_classes=...")
        x = self(ids)  # (batch, n, d_model)
        pad_id = self.config.pad_id
        real = torch.ones_like(ids) if pad_id is None else ids != pad_id
        mean = (x * real[..., None]).sum(1) / real.sum(1, keepdim=True).clamp(min=1)
        return self.classifier(mean)  # (batch, n_classes)

    def predict_tokens(self, ids: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n vocab_size"]:
        """Return logits for the token at each position (masked-token prediction)."""
        if self.projection is None:
            raise ValueError("this model has no token head: build it with token_head=True.")
        return self.projection(self(ids))


class DecoderOnlyTransformer(nn.Module):
    """Predicts each next token from the tokens up to it (GPT's kind).

    Its blocks are encoder blocks under a causal mask: without an encoder there is nothing to
    cross-attend to.

    Source: Radford et al., "Improving Language Understanding by Generative Pre-Training" (2018).
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.embedding = InputEmbedding(config)
        self.decoder = encoder_stack(config, causal=True)
        self.decoder_norm = last_norm(config)
        self.projection = output_projection(config, self.embedding)
        self.logits = HookPoint()

    def forward(
        self,
        ids: Int[Tensor, "batch n"],
        cache: KeyValueCache | None = None,
        last_only: bool = False,
    ) -> Float[Tensor, "batch _ vocab_size"]:
        """Return, at each position, logits for the token that comes next.

        Args:
            ids: token ids; with a cache only the new ones.
            cache: remembers the tokens read before; the new ones are added.
            last_only: only the last position's, (batch, 1, vocab_size): writing needs no others.

        Raises:
            ValueError: a token id outside the vocabulary, or more than max_len tokens.
        """
        cache = cache or NO_CACHE
        ids = cache.with_new(ids)
        x = self.embedding(ids, cache.length)  # (batch, new, d_model)
        masks = target_masks(ids, self.config, cache.length)
        for block, mask in zip(self.decoder, masks, strict=True):
            x = block(x, mask, cache)
        cache.commit(ids)
        x = x[:, -1:] if last_only else x
        return self.logits(self.read_out(x))  # (batch, new, vocab_size)

    def read_out(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab_size"]:
        """Return the logits of the last block's vectors."""
        logits, cap = self.projection(self.decoder_norm(x)), self.config.logit_cap
        return soft_cap(logits, cap) if cap else logits


class EncoderDecoderTransformer(nn.Module):
    """Reads a source sentence and predicts each next token of a target (the paper's model).

    Args:
        source_config: sizes and choices of the encoder, and of the decoder too if it is the
            only one.
        target_config: sizes and choices of the decoder, if its vocabulary or depth differs.
            Without it source and target share one vocabulary and, when tied, one embedding.
        share_embeddings: whether two configs share one embedding nevertheless.

    Raises:
        ValueError: the two configs disagree on d_model.

    Source: "Attention Is All You Need" (2017), figure 1.
    """

    def __init__(
        self,
        source_config: ModelConfig,
        target_config: ModelConfig | None = None,
        share_embeddings: bool = False,
    ):
        super().__init__()
        shared = share_embeddings or (target_config is None and source_config.tie_embeddings)
        target_config = target_config or source_config
        if source_config.d_model != target_config.d_model:
            raise ValueError(
                f"the encoder's d_model is {source_config.d_model}, the decoder's "
                f"{target_config.d_model}: cross-attention needs them equal."
            )
        self.source_config, self.config = source_config, target_config
        self.source_embedding = InputEmbedding(source_config)
        self.target_embedding = InputEmbedding(target_config)
        if shared:
            self.target_embedding.weight = self.source_embedding.weight
        self.encoder, self.encoder_norm = encoder_stack(source_config), last_norm(source_config)
        self.decoder, self.decoder_norm = decoder_stack(target_config), last_norm(target_config)
        self.projection = output_projection(target_config, self.target_embedding)
        self.logits = HookPoint()

    def forward(
        self, source_ids: Int[Tensor, "batch source"], target_ids: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target vocab_size"]:
        """Return, at each target position, logits for the target token that comes next.

        Raises:
            ValueError: a token id outside its vocabulary, or more than max_len tokens.
        """
        return self.decode(target_ids, self.encode(source_ids), source_ids)

    def encode(
        self, source_ids: Int[Tensor, "batch source"]
    ) -> Float[Tensor, "batch source d_model"]:
        """Return the memory: one vector per source token."""
        x = self.source_embedding(source_ids)  # (batch, source, d_model)
        mask = real_tokens(source_ids, self.source_config)
        for block in self.encoder:
            x = block(x, mask)
        return self.encoder_norm(x)

    def decode(
        self,
        target_ids: Int[Tensor, "batch target"],
        memory: Float[Tensor, "batch source d_model"],
        source_ids: Int[Tensor, "batch source"],
        cache: KeyValueCache | None = None,
        last_only: bool = False,
    ) -> Float[Tensor, "batch _ vocab_size"]:
        """Return logits from the target so far and the memory.

        Args:
            target_ids: the target so far; with a cache only its new tokens.
            source_ids: show which of the memory's tokens are padding.
            cache: remembers the target tokens read before; the new ones are added.
            last_only: only the logits at the last position, (batch, 1, vocab_size).
        """
        cache = cache or NO_CACHE
        target_ids = cache.with_new(target_ids)
        y = self.target_embedding(target_ids, cache.length)  # (batch, target, d_model)
        masks = target_masks(target_ids, self.config, cache.length)
        memory_mask = real_tokens(source_ids, self.source_config)
        for block, mask in zip(self.decoder, masks, strict=True):
            y = block(y, memory, mask, memory_mask, cache)
        cache.commit(target_ids)
        y = y[:, -1:] if last_only else y
        return self.logits(self.read_out(y))  # (batch, target, vocab_size)

    read_out = DecoderOnlyTransformer.read_out
