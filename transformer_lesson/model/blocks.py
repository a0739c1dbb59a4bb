"""The encoder block and the decoder block: attention, feed-forward, norms, residuals."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from transformer_lesson.model.attention import MultiHeadAttention
from transformer_lesson.model.cache import NO_CACHE, KeyValueCache, NoCache
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.feed_forward import make_feed_forward
from transformer_lesson.model.hooks import HookPoint
from transformer_lesson.model.masks import Mask
from transformer_lesson.model.norm import sublayer_norm

Sublayer = Callable[[Tensor], Tensor]


def residual_branch(x: Tensor, sublayer: Sublayer, norm: Sublayer) -> Tensor:
    """Post-norm, as in the paper: norm(x + sublayer(x)).

    Source: "Attention Is All You Need" (2017), section 3.1.
    """
    return norm(x + sublayer(x))


def residual_branch_pre(x: Tensor, sublayer: Sublayer, norm: Sublayer) -> Tensor:
    """Pre-norm, today's practice: x + sublayer(norm(x)). The residual path stays clear.

    Source: Xiong et al., "On Layer Normalization in the Transformer Architecture" (2020).
    """
    return x + sublayer(norm(x))


def residual_branch_output(x: Tensor, sublayer: Sublayer, norm: Sublayer) -> Tensor:
    """Norm of what is added: x + norm(sublayer(x)). The residual path stays clear here, too.

    Source: Team OLMo, "2 OLMo 2 Furious" (2024), section 3.1; Swin Transformer V2 (2021).
    """
    return x + norm(sublayer(x))


def residual_branch_both(x: Tensor, sublayer: Sublayer, norms: nn.ModuleList) -> Tensor:
    """Norm before and behind: x + norms[1](sublayer(norms[0](x))).

    Source: Gemma Team, "Gemma 2" (2024), section 2; Ding et al., "CogView" (2021), "sandwich".
    """
    before, behind = norms
    return x + behind(sublayer(before(x)))


BRANCHES = {
    "post": residual_branch,
    "pre": residual_branch_pre,
    "output": residual_branch_output,
    "both": residual_branch_both,
}


def encoder_block(
    x: Float[Tensor, "batch n d_model"],
    attention: Sublayer,
    feed_forward: Sublayer,
    norm_1: Sublayer,
    norm_2: Sublayer,
) -> Float[Tensor, "batch n d_model"]:
    """The paper's encoder block in two lines: self-attention, then feed-forward, post-norm.

    `EncoderBlock` is this with its own weights, masks, dropout and a choice of norm position.

    Args:
        x: shape (batch, n, d_model).
        attention, feed_forward: the two sub-layers, each a function of x alone.
        norm_1, norm_2: one normalization per sub-layer.

    Source: "Attention Is All You Need" (2017), section 3.1 and figure 1, left.
    """
    x = residual_branch(x, attention, norm_1)
    return residual_branch(x, feed_forward, norm_2)


def decoder_block(
    y: Float[Tensor, "batch target d_model"],
    memory: Float[Tensor, "batch source d_model"],
    self_attention: Sublayer,
    cross_attention: Callable[[Tensor, Tensor], Tensor],
    feed_forward: Sublayer,
    norm_1: Sublayer,
    norm_2: Sublayer,
    norm_3: Sublayer,
) -> Float[Tensor, "batch target d_model"]:
    """The paper's decoder block: self-attention, cross-attention, feed-forward, post-norm.

    Args:
        y: the target so far, shape (batch, target, d_model).
        memory: the encoder's output, shape (batch, source, d_model).
        self_attention: a function of y alone (it brings its causal mask).
        cross_attention: a function of y (queries) and memory (keys and values).
        feed_forward: a function of y alone.
        norm_1, norm_2, norm_3: one normalization per sub-layer.

    Source: "Attention Is All You Need" (2017), section 3.1 and figure 1, right.
    """
    y = residual_branch(y, self_attention, norm_1)
    y = residual_branch(y, lambda queries: cross_attention(queries, memory), norm_2)
    return residual_branch(y, feed_forward, norm_3)


class EncoderBlock(nn.Module):
    """Self-attention and feed-forward. With a causal mask it is a decoder-only model's block.

    Args:
        config: sizes, dropout, activation, and whether norms come before or after.
        rotate: rotary positions for queries and keys, if the model uses them.
        relative: relative positions, if the model uses them.

    If the config says parallel, both sub-layers read x:
    x + attention(norm_1(x)) + feed_forward(norm_2(x)).

    Source: "Attention Is All You Need" (2017), section 3.1. Dropout acts on each sub-layer's
        output before it is added (section 5.4). Parallel: Wang and Komatsuzaki, "GPT-J-6B" (2021).
    """

    def __init__(
        self,
        config: ModelConfig,
        rotate: Sublayer | None = None,
        relative: nn.Module | None = None,
    ):
        super().__init__()
        self.self_attention = MultiHeadAttention.from_config(config, rotate, relative)
        self.feed_forward = make_feed_forward(config)
        self.norm_1, self.norm_2 = sublayer_norm(config), sublayer_norm(config)
        self.dropout = nn.Dropout(config.dropout)
        self.branch, self.parallel = BRANCHES[config.norm_position], config.parallel
        self.after_attention, self.output = HookPoint(), HookPoint()

    def forward(
        self,
        x: Float[Tensor, "batch n d_model"],
        mask: Mask = None,
        cache: KeyValueCache | NoCache = NO_CACHE,
    ) -> Float[Tensor, "batch n d_model"]:
        """Return x after both sub-layers.

        Args:
            x: shape (batch, n, d_model).
            mask: `True` = may attend.
            cache: remembers the tokens before x (when a decoder-only model writes).
        """
        layer_cache = cache.self_attention_cache(self.self_attention)

        def attention(h):
            return self.dropout(self.self_attention(h, h, h, mask, layer_cache))

        def feed_forward(h):
            return self.dropout(self.feed_forward(h))

        return self.after_both(x, attention, feed_forward)  # (batch, n, d_model)

    def after_both(
        self, x: Float[Tensor, "batch n d_model"], attention: Sublayer, feed_forward: Sublayer
    ) -> Float[Tensor, "batch n d_model"]:
        """Return x after these two sub-layers, one after the other or side by side."""
        attended = self.after_attention(self.branch(x, attention, self.norm_1))
        if self.parallel:
            return self.output(attended + feed_forward(self.norm_2(x)))
        return self.output(self.branch(attended, feed_forward, self.norm_2))


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention and feed-forward.

    Args:
        config: sizes, dropout, activation, and whether norms come before or after.
        rotate: rotary positions for self-attention, if the model uses them.
        relative: relative positions for self-attention, if the model uses them.

    Raises:
        ValueError: a config whose sub-layers are side by side.

    Source: "Attention Is All You Need" (2017), section 3.1.
    """

    def __init__(
        self,
        config: ModelConfig,
        rotate: Sublayer | None = None,
        relative: nn.Module | None = None,
    ):
        super().__init__()
        config.require("parallel", not config.parallel, "False in a block with cross-attention")
        self.self_attention = MultiHeadAttention.from_config(config, rotate, relative)
        self.cross_attention = MultiHeadAttention.from_config(config)
        self.feed_forward = make_feed_forward(config)
        self.norm_1, self.norm_2 = sublayer_norm(config), sublayer_norm(config)
        self.norm_3 = sublayer_norm(config)
        self.dropout = nn.Dropout(config.dropout)
        self.branch = BRANCHES[config.norm_position]
        self.after_self_attention, self.after_cross_attention = HookPoint(), HookPoint()
        self.output = HookPoint()

    def forward(
        self,
        y: Float[Tensor, "batch target d_model"],
        memory: Float[Tensor, "batch source d_model"],
        mask: Mask = None,
        memory_mask: Mask = None,
        cache: KeyValueCache | NoCache = NO_CACHE,
    ) -> Float[Tensor, "batch target d_model"]:
        """Return y after its three sub-layers.

        Args:
            y: the target so far, shape (batch, target, d_model).
            memory: the encoder's output, shape (batch, source, d_model).
            mask: which target positions each target position may see (causal, padding).
            memory_mask: which source positions may be seen (padding).
            cache: remembers the target tokens before y, and the source.
        """
        own_cache = cache.self_attention_cache(self.self_attention)
        source_cache = cache.cross_attention_cache(self.cross_attention)

        def self_attention(h):
            return self.dropout(self.self_attention(h, h, h, mask, own_cache))

        def cross_attention(h):
            return self.dropout(self.cross_attention(h, memory, memory, memory_mask, source_cache))

        def feed_forward(h):
            return self.dropout(self.feed_forward(h))

        y = self.after_self_attention(self.branch(y, self_attention, self.norm_1))
        y = self.after_cross_attention(self.branch(y, cross_attention, self.norm_2))
        return self.output(self.branch(y, feed_forward, self.norm_3))  # (batch, target, d_model)
