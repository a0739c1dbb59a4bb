"""The choices that define a model, checked once, when they are written down."""

from dataclasses import dataclass, fields

CHOICES = {
    "norm_position": ("pre", "post"),
    "activation": ("relu", "gelu", "gelu_tanh", "swish", "swiglu"),
    "positions": ("sinusoidal", "sinusoidal_halves", "learned", "rotary"),
    "norm": ("layer", "rms"),
}
SWITCHES = ("tie_embeddings", "bias", "scale_embedding", "embedding_norm", "output_bias")
SWITCHES += ("head_transform",)
SIZES = ("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len")


class CheckedConfig:
    """What the two configs share: a misspelt field or a broken rule is refused by name."""

    def __new__(cls, *values, **named):
        """Refuse a misspelt field with a sentence that lists the real ones."""
        known = [field.name for field in fields(cls)]
        for name in named:
            if name not in known:
                raise ValueError(f"{cls.__name__}: no field {name!r}; it has {', '.join(known)}.")
        return super().__new__(cls)

    def _get(self, name: str):
        return getattr(self, name)

    def _require(self, name: str, kept: bool, rule: str) -> None:
        if not kept:
            raise ValueError(f"{name} is {self._get(name)!r}, but it must be {rule}.")

    def _require_choices(self, choices: dict[str, tuple[str, ...]]) -> None:
        for name, known in choices.items():
            self._require(name, self._get(name) in known, f"one of {', '.join(known)}")


@dataclass(frozen=True)
class ModelConfig(CheckedConfig):
    """Everything that is needed to build one of the three models.

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
            norm to each stack), "post" its output plus residual (the paper).
        activation: of the feed-forward network, "relu" (paper), "gelu" (GPT, BERT), "gelu_tanh"
            (its approximation in GPT-2), "swish" (Marian) or "swiglu" (gated, Llama).
        positions: "sinusoidal" (paper), "sinusoidal_halves" (all sines, then all cosines:
            Marian), "learned" (GPT-2, BERT) or "rotary" (RoPE).
        tie_embeddings: one matrix serves as embedding and as output projection; in an
            encoder-decoder with one vocabulary also as the other embedding (paper, 3.4).
        pad_id: id of the padding token, or `None` if sequences are never padded.
        bias: whether the attention projections have a bias. The paper's formulas have none;
            its code, `nn.Transformer`, BERT and GPT-2 do.
        norm: "layer" (LayerNorm) or "rms" (RMSNorm, Llama).
        norm_epsilon: what a norm adds under its root.
        n_kv_heads: heads of keys and values, each shared by n_heads / n_kv_heads query heads
            (grouped-query attention); `None` for as many as n_heads.
        attention_window: how many tokens, itself and those before it, a token of causal
            self-attention sees; `None` for all.
        rotary_base: sets the slowest rotation of rotary positions.
        scale_embedding: token vectors times sqrt(d_model) (paper); GPT-2 and BERT do not.
        embedding_norm: a norm over the sum of token vector and position (BERT).
        n_token_types: kinds of segments with a trained vector each (BERT: 2); 0 for none.
        output_bias: a bias for each token's logit (BERT, Marian).
        head_transform: one more layer before the logits of an encoder's token head (BERT).

    Raises:
        ValueError: a value breaks a rule; the message names field, value and rule.

    Source: "Attention Is All You Need" (2017), table 3 and section 3.
    """

    vocab_size: int
    d_model: int
    n_heads: int
    n_layers: int
    d_ff: int
    max_len: int
    dropout: float = 0.1
    attention_dropout: float = 0.0
    feed_forward_dropout: float = 0.0
    norm_position: str = "pre"
    activation: str = "relu"
    positions: str = "sinusoidal"
    tie_embeddings: bool = True
    pad_id: int | None = None
    bias: bool = True
    norm: str = "layer"
    norm_epsilon: float = 1e-5
    n_kv_heads: int | None = None
    attention_window: int | None = None
    rotary_base: float = 10000.0
    scale_embedding: bool = True
    embedding_norm: bool = False
    n_token_types: int = 0
    output_bias: bool = False
    head_transform: bool = False

    def __post_init__(self) -> None:
        for name in SIZES:
            self._require(name, _is_int(self._get(name)) and self._get(name) >= 1, "an int >= 1")
        for name in ("dropout", "attention_dropout", "feed_forward_dropout"):
            self._require(name, _is_probability(self._get(name)), "a probability in [0, 1)")
        self._require_choices(CHOICES)
        for name in SWITCHES:
            self._require(name, isinstance(self._get(name), bool), "True or False")
        pad_ok = self.pad_id is None or (
            _is_int(self.pad_id) and 0 <= self.pad_id < self.vocab_size
        )
        self._require(
            "pad_id", pad_ok, f"None or an id from 0 to vocab_size - 1 = {self.vocab_size - 1}"
        )
        for name in ("n_kv_heads", "attention_window"):
            value = self._get(name)
            valid = value is None or (_is_int(value) and value >= 1)
            self._require(name, valid, "None or an int >= 1")
        for name in ("norm_epsilon", "rotary_base"):
            self._require(name, _is_positive(self._get(name)), "a number > 0")
        types_ok = _is_int(self.n_token_types) and self.n_token_types >= 0
        self._require("n_token_types", types_ok, "an int >= 0")
        self._require_fitting_heads()

    def _require_fitting_heads(self) -> None:
        divisible = self.d_model % self.n_heads == 0
        self._require("d_model", divisible, f"divisible by n_heads = {self.n_heads}")
        grouped = self.n_heads % (self.n_kv_heads or self.n_heads) == 0
        self._require("n_kv_heads", grouped, f"a divisor of n_heads = {self.n_heads}")
        even = not self.positions.startswith("sinusoidal") or self.d_model % 2 == 0
        self._require("d_model", even, "even with sinusoidal positions (pairs of sine and cosine)")
        even = self.positions != "rotary" or self.d_head % 2 == 0
        self._require("d_head", even, "even with rotary positions (pairs of numbers are rotated)")

    @property
    def d_head(self) -> int:
        """Numbers per query, key and value vector of one head: d_model / n_heads."""
        return self.d_model // self.n_heads


def _is_int(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_probability(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1


def _is_positive(value) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0 < value < float("inf")
