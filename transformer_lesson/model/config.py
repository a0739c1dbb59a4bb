"""The choices that define a model, checked once, when they are written down."""

import difflib
import math
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np


class Rule(NamedTuple):
    """What a field's value must be, in words and as a test. Calling a rule declares a field.

    NumPy scalars count as numbers.
    """

    words: str
    keeps: Callable[[Any], bool]

    def __call__(self, default: Any = MISSING) -> Any:
        """Declare a field of a config that must obey this rule."""
        return field(default=default, metadata={"rule": self})

    def check(self, name: str, value: Any) -> Any:
        """Return the value in Python's own types.

        Raises:
            ValueError: it breaks the rule; the message names both.
        """
        plain = in_python(value)
        if not self.keeps(plain):
            raise ValueError(f"{name} is {value!r}, but it must be {self.words}.")
        return plain


def in_python(value: Any) -> Any:
    """Return Python's own number for NumPy's, and a tuple for a list or an array of them."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    return tuple(map(in_python, value)) if isinstance(value, list | tuple) else value


def is_number(value: Any, *kinds: type) -> bool:
    """Whether a value is a number, Python's or NumPy's. `True` is not one."""
    value = in_python(value)
    return isinstance(value, kinds or (int, float)) and not isinstance(value, bool)


size = Rule("an int >= 1", lambda x: is_number(x, int) and x >= 1)
count = Rule("an int >= 0", lambda x: is_number(x, int) and x >= 0)
probability = Rule("a probability in [0, 1)", lambda x: is_number(x) and 0 <= x < 1)
positive = Rule("a number > 0", lambda x: is_number(x) and 0 < x < math.inf)
switch = Rule("True or False", lambda x: isinstance(x, bool))


def one_of(*choices: str) -> Any:
    """Declare a field that is one of these words; the first is the default."""
    return Rule(f"one of {', '.join(choices)}", lambda x: x in choices)(choices[0])


def optional(rule: Rule) -> Rule:
    """Return the rule that also allows `None`."""
    return Rule(f"None or {rule.words}", lambda x: x is None or rule.keeps(x))


def tuple_of(rule: Rule, n: int | None = None) -> Rule:
    """Return the rule for tuples of values that each obey a rule: n of them if n is given."""
    words = f"a tuple of {n or 'any'} values, each {rule.words}"
    return Rule(
        words, lambda x: isinstance(x, tuple) and n in (None, len(x)) and all(map(rule.keeps, x))
    )


class CheckedConfig:
    """Base of configs and strategies: refuses a misspelled field or a broken rule by name."""

    def __new__(cls, *values: Any, **named: Any):
        """Refuse a misspelled field, and name the nearest one."""
        known = [field.name for field in fields(cls)]
        for name in named.keys() - set(known):
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" did you mean {near[0]}?" if near else f" it has {', '.join(known)}."
            raise ValueError(f"{cls.__name__}: no field {name!r};{hint}")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = entry.metadata["rule"].check(entry.name, getattr(self, entry.name))
            object.__setattr__(self, entry.name, value)

    def require(self, name: str, holds: bool, rule: str) -> None:
        """Raise a `ValueError` that names field, value and rule, unless the rule is obeyed."""
        if not holds:
            raise ValueError(f"{name} is {getattr(self, name)!r}, but it must be {rule}.")


@dataclass(frozen=True)
class ModelConfig(CheckedConfig):
    """Everything needed to build one of the three models.

    Args:
        vocab_size: number of different tokens.
        d_model: numbers per token vector (512 in the paper's base model).
        n_heads: attention heads per layer (8); must divide d_model.
        n_layers: blocks per stack (6).
        d_ff: width of the feed-forward network's hidden layer (2048).
        max_len: longest sequence the model accepts, in tokens.
        dropout: probability of zeroing a number of each sub-layer's output and of the
            embeddings (0.1), the two places that the paper names.
        attention_dropout: probability of zeroing an attention weight. The paper has none;
            `nn.Transformer` and BERT do.
        feed_forward_dropout: probability of zeroing a number of the feed-forward network's hidden
            layer. The paper has none; `nn.Transformer` does.
        norm_position: "pre" normalizes a sub-layer's input (today's practice, and adds a final
            norm to each stack), "post" its output plus residual (the paper), "output" its output
            before it is added (OLMo 2), "both" its input and its output (Gemma 2).
        activation: of the feed-forward network, "relu" (paper), "gelu" (GPT, BERT), "gelu_tanh"
            (its approximation in GPT-2), "swish" (Marian), "swiglu" (gated, Llama) or "geglu"
            (gated by that approximation, Gemma).
        positions: "sinusoidal" (paper), "learned" (GPT-2, BERT), "rotary" (RoPE) or "relative"
            (T5: scores get a number for each distance; see `RelativePositions`).
        tie_embeddings: one matrix serves as embedding and as output projection; in an
            encoder-decoder with one vocabulary also as the other embedding (paper, 3.4).
        pad_id: id of the padding token, or `None` if sequences are never padded.
        bias: whether the attention projections have a bias. The paper's formulas have none;
            its code, `nn.Transformer`, BERT and GPT-2 do.
        norm: "layer" (LayerNorm) or "rms" (RMSNorm, Llama).
        norm_epsilon: added under a norm's square root.
        n_kv_heads: heads of keys and values, each shared by n_heads / n_kv_heads query heads
            (grouped-query attention); `None` for as many as n_heads.
        attention_window: how many tokens a token of causal self-attention sees, itself and those
            before it; `None` for all.
        rotary_base: sets the slowest rotation of rotary positions.
        scale_embedding: token vectors times sqrt(d_model) (paper); GPT-2 and BERT do not.
        bos_id: id that a text begins with when `generate` translates; by default the
            package's tokenizers' `<bos>`.
        eos_ids: ids that end a text in `generate`, or (); by default the package's
            tokenizers' `<eos>`.
        head_size: d_head, if it is not d_model / n_heads (Qwen 3, Gemma).
        output_bias: whether W_O has a bias, too, if the attention projections do (Qwen 2: no).
        qk_norm: RMSNorm of queries and keys before they are rotated: "none", "head" (of each
            head's, Qwen 3) or "all" (of all heads' numbers together, OLMo 2).
        query_scale: scores are divided by its root; `None` for d_head (Gemma 2 27B has 144).
        score_cap, logit_cap: c of the soft cap c tanh(x / c) on scores and logits (Gemma 2).
        layers_without_window: which layers see everything in spite of attention_window (Gemma 3).
        layers_without_positions: which layers do not rotate queries and keys (SmolLM3).
        window_rotary_base: rotary_base of layers with a window, if it differs (Gemma 3).
        rotary_divisors: what each pair's frequency is divided by, d_head / 2 numbers, or ();
            `stretched_frequencies` says why (Llama 3.1). Not in layers that have a
            window_rotary_base.
        d_rotary: how many numbers of a query or key are rotated, the first ones; `None` for all
            (Phi-4 mini, GPT-NeoX).
        parallel: whether attention and feed-forward network read the same vectors, side by side,
            and both results are added to them (GPT-NeoX).
        feed_forward_bias: whether the feed-forward network's two maps have a bias (T5: no); gated
            ones never have.
        relative_buckets: how many numbers a head has for distances, with relative positions.
        relative_distance: from how many tokens on all distances share one of them.

    Raises:
        ValueError: a value breaks a rule; the message names field, value and rule.

    Source: "Attention Is All You Need" (2017), table 3 and section 3.
    """

    vocab_size: int = size()
    d_model: int = size()
    n_heads: int = size()
    n_layers: int = size()
    d_ff: int = size()
    max_len: int = size()
    dropout: float = probability(0.1)
    attention_dropout: float = probability(0.0)
    feed_forward_dropout: float = probability(0.0)
    norm_position: str = one_of("pre", "post", "output", "both")
    activation: str = one_of("relu", "gelu", "gelu_tanh", "swish", "swiglu", "geglu")
    positions: str = one_of("sinusoidal", "learned", "rotary", "relative")
    tie_embeddings: bool = switch(True)
    pad_id: int | None = optional(count)(None)
    bias: bool = switch(True)
    norm: str = one_of("layer", "rms")
    norm_epsilon: float = positive(1e-5)
    n_kv_heads: int | None = optional(size)(None)
    attention_window: int | None = optional(size)(None)
    rotary_base: float = positive(10000.0)
    scale_embedding: bool = switch(True)
    bos_id: int | None = optional(count)(1)
    eos_ids: Sequence[int] = tuple_of(count)((2,))
    head_size: int | None = optional(size)(None)
    output_bias: bool = switch(True)
    qk_norm: str = one_of("none", "head", "all")
    query_scale: float | None = optional(positive)(None)
    score_cap: float | None = optional(positive)(None)
    logit_cap: float | None = optional(positive)(None)
    layers_without_window: Sequence[int] = tuple_of(count)(())
    layers_without_positions: Sequence[int] = tuple_of(count)(())
    window_rotary_base: float | None = optional(positive)(None)
    rotary_divisors: Sequence[float] = tuple_of(positive)(())
    d_rotary: int | None = optional(size)(None)
    parallel: bool = switch(False)
    feed_forward_bias: bool = switch(True)
    relative_buckets: int = size(32)
    relative_distance: int = size(128)

    def __post_init__(self) -> None:
        super().__post_init__()
        last = self.vocab_size - 1
        pad_ok = self.pad_id is None or self.pad_id <= last
        self.require("pad_id", pad_ok, f"None or an id from 0 to vocab_size - 1 = {last}")
        divisible = self.head_size is not None or self.d_model % self.n_heads == 0
        self.require("d_model", divisible, f"divisible by n_heads = {self.n_heads}")
        grouped = self.n_heads % (self.n_kv_heads or self.n_heads) == 0
        self.require("n_kv_heads", grouped, f"a divisor of n_heads = {self.n_heads}")
        even = self.positions != "sinusoidal" or self.d_model % 2 == 0
        self.require("d_model", even, "even with sinusoidal positions (pairs of sine and cosine)")
        for name in ("layers_without_window", "layers_without_positions"):
            known = all(i < self.n_layers for i in getattr(self, name))
            self.require(name, known, f"numbers of layers, from 0 to {self.n_layers - 1}")
        ordered = not self.parallel or self.norm_position == "pre"
        self.require("parallel", ordered, 'False unless norm_position is "pre"')
        self._check_rotation()

    def _check_rotation(self) -> None:
        turned, name = self.d_rotary or self.d_head, "d_rotary" if self.d_rotary else "d_head"
        even = self.positions != "rotary" or turned % 2 == 0
        self.require(name, even, "even with rotary positions (pairs of numbers are rotated)")
        self.require("d_rotary", turned <= self.d_head, f"None or at most d_head = {self.d_head}")
        paired = len(self.rotary_divisors) in (0, turned // 2)
        self.require("rotary_divisors", paired, f"() or {turned // 2} numbers, one for each pair")
        for name, kind in KIND_OF.items():
            acts = self.positions == kind or getattr(self, name) == LATER[name]
            self.require(name, acts, f'{LATER[name]!r} unless positions is "{kind}"')
        half = self.relative_buckets // 2
        self.require("relative_buckets", self.relative_buckets % 4 == 0, "a multiple of 4")
        far = self.relative_distance > half
        self.require("relative_distance", far, f"over relative_buckets / 2 = {half}")
        for name in ("layers_without_window", "window_rotary_base"):
            acts = self.attention_window is not None or getattr(self, name) == LATER[name]
            self.require(name, acts, f"{LATER[name]!r} without an attention_window")

    @property
    def d_head(self) -> int:
        """Numbers per query, key and value vector of one head."""
        return self.head_size or self.d_model // self.n_heads

    @property
    def windows(self) -> tuple[int | None, ...]:
        """What each layer's tokens see of the past: a window, or `None` for everything."""
        layers = range(self.n_layers)
        return tuple(
            None if i in self.layers_without_window else self.attention_window for i in layers
        )


KIND_OF = dict.fromkeys(("layers_without_positions", "rotary_divisors", "d_rotary"), "rotary")
KIND_OF |= dict.fromkeys(("relative_buckets", "relative_distance"), "relative")
"""Fields that only act with one kind of positions."""
NAMES = [entry.name for entry in fields(ModelConfig)]
LATER = {name: getattr(ModelConfig, name) for name in NAMES[NAMES.index("head_size") :]}
"""What families of models have added since Llama, switched off."""
