"""The sizes and choices that define a model, checked once, when they are written down."""

from dataclasses import dataclass, fields

CHOICES = {
    "norm_position": ("pre", "post"),
    "activation": ("relu", "gelu"),
    "positions": ("sinusoidal", "learned", "rotary"),
}
SIZES = ("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len")


@dataclass(frozen=True)
class ModelConfig:
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
        norm_position: "pre" normalises a sub-layer's input (today's practice, and adds a final
            norm to each stack), "post" its output plus residual (the paper).
        activation: of the feed-forward network, "relu" (paper) or "gelu" (GPT, BERT).
        positions: "sinusoidal" (paper), "learned" (GPT-2, BERT) or "rotary" (RoPE).
        tie_embeddings: one matrix serves as embedding and as output projection; in an
            encoder-decoder with one vocabulary also as the other embedding (paper, 3.4).
        pad_id: id of the padding token, or `None` if sequences are never padded.
        bias: whether the attention projections have a bias. The paper's formulas have none;
            its code, `nn.Transformer`, BERT and GPT-2 do.

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

    def __new__(cls, *values, **named):
        """Refuse a misspelt field with a sentence that lists the real ones."""
        known = [field.name for field in fields(cls)]
        for name in named:
            if name not in known:
                raise ValueError(f"{cls.__name__}: no field {name!r}; it has {', '.join(known)}.")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for name in SIZES:
            self._require(name, _is_int(self._get(name)) and self._get(name) >= 1, "an int >= 1")
        for name in ("dropout", "attention_dropout", "feed_forward_dropout"):
            self._require(name, _is_probability(self._get(name)), "a probability in [0, 1)")
        for name, choices in CHOICES.items():
            self._require(name, self._get(name) in choices, f"one of {', '.join(choices)}")
        for name in ("tie_embeddings", "bias"):
            self._require(name, isinstance(self._get(name), bool), "True or False")
        pad_ok = self.pad_id is None or (
            _is_int(self.pad_id) and 0 <= self.pad_id < self.vocab_size
        )
        self._require(
            "pad_id", pad_ok, f"None or an id from 0 to vocab_size - 1 = {self.vocab_size - 1}"
        )
        divisible = self.d_model % self.n_heads == 0
        self._require("d_model", divisible, f"divisible by n_heads = {self.n_heads}")
        even = self.positions != "sinusoidal" or self.d_model % 2 == 0
        self._require("d_model", even, "even with sinusoidal positions (pairs of sine and cosine)")
        even = self.positions != "rotary" or self.d_head % 2 == 0
        self._require("d_head", even, "even with rotary positions (pairs of numbers are rotated)")

    @property
    def d_head(self) -> int:
        """Numbers per query, key and value vector of one head: d_model / n_heads."""
        return self.d_model // self.n_heads

    def _get(self, name: str):
        return getattr(self, name)

    def _require(self, name: str, kept: bool, rule: str) -> None:
        if not kept:
            raise ValueError(f"{name} is {self._get(name)!r}, but it must be {rule}.")


def _is_int(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_probability(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1
