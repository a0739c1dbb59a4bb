"""What learners might write for the exercises of lesson 10."""

import math

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong
from transformer_lesson.model.attention import multi_head_attention
from transformer_lesson.model.blocks import residual_branch_pre
from transformer_lesson.model.embedding import embed
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.model.masks import causal_mask
from transformer_lesson.model.norm import layer_norm
from transformer_lesson.model.positions import sinusoidal_encoding


@wrong("bits_per_character", "usual", "multiplies by ln 2 where it must divide")
def _(loss_in_nats, n_tokens, n_characters):
    bits_per_token = loss_in_nats * math.log(2)
    return bits_per_token * n_tokens / n_characters


@right("bits_per_character")
def _(loss_in_nats, n_tokens, n_characters):
    nats_per_bit = torch.tensor(2.0, dtype=torch.float64).log()
    return (loss_in_nats / nats_per_bit * n_tokens / n_characters).item()


@right("bits_per_character")
def _(loss_in_nats, n_tokens, n_characters):
    # a fair choice among 2 costs ln 2 nats; how many such choices is one character worth?
    tokens_per_character = n_tokens / n_characters
    nats_per_character = loss_in_nats * tokens_per_character
    one_bit = -math.log(0.5)
    return nats_per_character / one_bit


@right("bits_per_character")  # a number in a tensor is a number, as in all exercises
def _(loss_in_nats, n_tokens, n_characters):
    loss = torch.tensor(loss_in_nats, dtype=torch.float64)
    return loss / torch.log(torch.tensor(2.0, dtype=torch.float64)) * n_tokens / n_characters


@right("bits_per_character")  # it overflows above 709 nats a token; guessing costs ln(vocab_size)
def _(loss_in_nats, n_tokens, n_characters):
    perplexity = math.exp(loss_in_nats)
    return math.log2(perplexity) * n_tokens / n_characters


@right("windows")
def _(ids, length, starts):
    places = torch.tensor(starts).unsqueeze(1) + torch.arange(length)
    return ids[places], ids[places + 1]


@wrong("windows", "usual", "cuts windows of length tokens and then shifts them")
def _(ids, length, starts):
    x = torch.stack([ids[s : s + length] for s in starts])
    return x[:, :-1], x[:, 1:]


@right("gpt_forward")
def _(ids, weights):
    d_model = weights.table.size(1)
    x = F.embedding(ids, weights.table) * d_model**0.5
    x = x + sinusoidal_encoding(ids.size(1), d_model)
    mask = torch.ones(ids.size(1), ids.size(1)).tril().bool()

    def attend(h, W):
        return multi_head_attention(h, *W, weights.n_heads, mask)

    def think(h, W):
        return feed_forward(h, *W)

    for block in weights.blocks:
        parts = ((attend, block.self_attention), (think, block.feed_forward))
        for (f, W), norm in zip(parts, block.norms, strict=True):
            x = residual_branch_pre(
                x,
                lambda h, f=f, W=W: f(h, W),
                lambda h, pair=norm: F.layer_norm(h, (d_model,), *pair),
            )
    return F.layer_norm(x, (d_model,), *weights.last_norm) @ weights.projection


@wrong("gpt_forward", "usual", "no norm behind the last block")
def _(ids, weights):
    mask = causal_mask(ids.shape[1])
    h = embed(ids, weights.table) + sinusoidal_encoding(ids.shape[1], weights.table.shape[1])
    for block in weights.blocks:
        n = layer_norm(h, *block.norms[0])
        h = h + multi_head_attention(n, *block.self_attention, weights.n_heads, mask)
        h = h + feed_forward(layer_norm(h, *block.norms[1]), *block.feed_forward)
    return h @ weights.projection


@right("write_on")
def _(next_logits, ids, draws, length, temperature=1.0):
    text = ids.copy()
    for number in draws:
        P = torch.softmax(next_logits(text[-length:]) / temperature, dim=0)
        ends = torch.cumsum(P, dim=0).tolist()
        text += [next(token for token, end in enumerate(ends) if number < end)]
    return text


@wrong("write_on", "unusual", "draws numbers of its own")
def _(next_logits, ids, draws, length, temperature=1.0):
    ids = list(ids)
    for _ in draws:
        P = (next_logits(ids[-length:]) / temperature).softmax(dim=-1)
        ids.append(int(torch.multinomial(P, 1)))
    return ids
