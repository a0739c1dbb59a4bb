"""Lesson 14, first part: small attentions and blocks that the repaired functions are tried on."""

import torch
from torch import Tensor, nn

from transformer_lesson.exercises.specification import Draw
from transformer_lesson.model.attention import scaled_dot_product_attention

MEAN = "the mean of all values"


class Attention:
    """One head of attention with weights of its own, called as `MultiHeadAttention` is."""

    def __init__(self, draw: Draw):
        self.W_Q = draw.normal("d_model d_model") / draw.size("d_model") ** 0.5
        self.W_V = draw.normal("d_model d_model")

    def __call__(self, query, key, value, mask=None) -> Tensor:
        Q, V = query @ self.W_Q.to(query.dtype), value @ self.W_V.to(value.dtype)
        heads = (part[:, None] for part in (Q, key, V))  # (batch, 1, n, d_model)
        return scaled_dot_product_attention(*heads, mask)[0][:, 0]

    def __repr__(self) -> str:
        return "an attention"


class Block(nn.Module):
    """A block that takes a mask: an attention and a residual connection."""

    def __init__(self, draw: Draw):
        super().__init__()
        self.attention = Attention(draw)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return one vector per token, shape (batch, n, d_model)."""
        return x + self.attention(x, x, x, mask)


class Blocks(nn.ModuleList):
    """Blocks, in order."""

    def __repr__(self) -> str:
        return f"{len(self)} of them"


class Attend:
    """A kind of attention, from queries, keys and values of one sentence."""

    def __init__(self, words: str, weigh):
        self.words, self.weigh = words, weigh

    def __call__(self, Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
        return self.weigh(Q, K).to(V.dtype) @ V

    def __repr__(self) -> str:
        return self.words


def kinds_of_attention(draw: Draw) -> list[Attend]:
    """Return self-attentions, all but the second not linear."""
    direction = draw.normal("d_model")
    n = draw.size("n", at_least=3)

    def project(x: Tensor) -> Tensor:
        return 3 * x @ direction.to(x.dtype)  # (n,)

    return [
        Attend("softmax(Q K^T) V", lambda Q, K: (Q @ K.T).softmax(-1)),
        Attend(MEAN, lambda Q, K: torch.full((n, n), 1 / n)),
        Attend(
            "the value of the best key", lambda Q, K: torch.eye(n)[(Q @ K.T).argmax(-1)].to(Q.dtype)
        ),
        Attend(
            "attention whose weights depend on the queries",
            lambda Q, K: torch.outer(project(Q), torch.arange(n).to(Q.dtype)).softmax(-1),
        ),
        Attend(
            "attention whose weights depend on the keys",
            lambda Q, K: project(K).softmax(-1).expand(n, n),
        ),
    ]
