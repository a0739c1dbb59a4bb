"""What learners might write for the exercises of lesson 06."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.exercises.answers import right, wrong
from transformer_lesson.model.attention import multi_head_attention
from transformer_lesson.model.blocks import encoder_block, residual_branch
from transformer_lesson.model.embedding import embed
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.model.masks import padding_mask
from transformer_lesson.model.norm import layer_norm
from transformer_lesson.model.positions import sinusoidal_encoding

# encoder_block(x, attention, feed_forward, norm_1, norm_2)


@wrong("encoder_block", "usual", "pre-norm")
def _(x, attention, feed_forward, norm_1, norm_2):
    x = x + attention(norm_1(x))
    x = x + feed_forward(norm_2(x))
    return x


@wrong("encoder_block", "usual", "no residual connection around the attention")
def _(x, attention, feed_forward, norm_1, norm_2):
    N = norm_1(attention(x))
    return norm_2(N + feed_forward(N))


@wrong("encoder_block", "usual", "the second sum takes x instead of N")
def _(x, attention, feed_forward, norm_1, norm_2):
    N = norm_1(x + attention(x))
    O = feed_forward(N)  # noqa: E741
    return norm_2(x + O)


@wrong("encoder_block", "usual", "norm_1 in both places, norm_2 unused")
def _(x, attention, feed_forward, norm_1, norm_2):
    x = residual_branch(x, attention, norm_1)
    return residual_branch(x, feed_forward, norm_1)


@wrong("encoder_block", "usual", "the feed-forward network reads the block's input")
def _(x, attention, feed_forward, norm_1, norm_2):
    attended = norm_1(x + attention(x))
    return norm_2(attended + feed_forward(x))


@wrong("encoder_block", "usual", "no second norm")
def _(x, attention, feed_forward, norm_1, norm_2):
    n = norm_1(x + attention(x))
    return n + feed_forward(n)


@wrong("encoder_block", "usual", "feed-forward before attention")
def _(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x + feed_forward(x))
    x = norm_2(x + attention(x))
    return x


@wrong("encoder_block", "unusual", "adds into the caller's x")
def _(x, attention, feed_forward, norm_1, norm_2):
    x += attention(x)
    x = norm_1(x)
    x = x + feed_forward(x)
    return norm_2(x)


@wrong("encoder_block", "unusual", "calls attention with three tensors")
def _(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x + attention(x, x, x))
    return norm_2(x + feed_forward(x))


@wrong("encoder_block", "unusual", "new norms made on the spot instead of the given ones")
def _(x, attention, feed_forward, norm_1, norm_2):
    layer_norm = nn.LayerNorm(x.shape[-1])
    x = layer_norm(x + attention(x))
    return layer_norm(x + feed_forward(x))


@wrong("encoder_block", "unusual", "the two norms are exchanged")
def _(x, attention, feed_forward, norm_1, norm_2):
    for sublayer, norm in zip((attention, feed_forward), (norm_2, norm_1), strict=True):
        x = norm(x + sublayer(x))
    return x


@wrong("encoder_block", "unusual", "both sub-layers side by side, as in GPT-J")
def _(x, attention, feed_forward, norm_1, norm_2):
    return norm_2(norm_1(x + attention(x) + feed_forward(x)))


@wrong("encoder_block", "unusual", "norms each sub-layer's output before the sum, as in Swin 2")
def _(x, attention, feed_forward, norm_1, norm_2):
    x = x + norm_1(attention(x))
    return x + norm_2(feed_forward(x))


@wrong("encoder_block", "unusual", "dropout that is always on")
def _(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x + F.dropout(attention(x), 0.1))
    x = norm_2(x + F.dropout(feed_forward(x), 0.1))
    return x


@wrong("encoder_block", "unusual", "first half post-norm, second half pre-norm")
def _(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x + attention(x))
    return x + feed_forward(norm_2(x))


@wrong(
    "encoder_block",
    "unusual",
    "calls the functions with (n, d_model), without the batch axis",
)
def _(x, attention, feed_forward, norm_1, norm_2):
    rows = []
    for sentence in x:
        n = norm_1(sentence + attention(sentence))
        rows.append(norm_2(n + feed_forward(n)))
    return torch.stack(rows)


@wrong("encoder_block", "unusual", "a norm on the way in as well")
def _(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x)
    x = norm_1(x + attention(x))
    return norm_2(x + feed_forward(x))


@wrong("encoder_block", "pair", "no residual around attention", "none around feed-forward")
def _(x, attention, feed_forward, norm_1, norm_2):
    return norm_2(feed_forward(norm_1(attention(x))))


@wrong("encoder_block", "pair", "norm_1 twice", "feed-forward before attention")
def _(x, attention, feed_forward, norm_1, norm_2):
    for f in [feed_forward, attention]:
        x = norm_1(f(x) + x)
    return x


@wrong("encoder_block", "pair", "no second norm", "the second sum takes x")
def _(x, attention, feed_forward, norm_1, norm_2):
    normed = norm_1(x + attention(x))
    return x + feed_forward(normed)


@wrong("encoder_block", "pair", "changes x in place", "forgets the second residual")
def _(x, attention, feed_forward, norm_1, norm_2):
    x += attention(x)
    return norm_2(feed_forward(norm_1(x)))


@wrong("encoder_block", "pair", "pre-norm", "norms exchanged")
def _(x, attention, feed_forward, norm_1, norm_2):
    attn_out = attention(norm_2(x)) + x
    ff_out = feed_forward(norm_1(attn_out))
    return attn_out + ff_out


@right("encoder_block")
def _(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x + attention(x))
    return norm_2(x + feed_forward(x))


@right("encoder_block")
def _(x, attention, feed_forward, norm_1, norm_2):
    for sublayer, norm in [(attention, norm_1), (feed_forward, norm_2)]:
        x = residual_branch(x, sublayer, norm)
    return x


@right("encoder_block")
def _(x, attention, feed_forward, norm_1, norm_2):
    def add_and_norm(before, after, norm):
        return norm(torch.stack([before, after]).sum(0))

    Z = x
    A = attention(Z)
    N = add_and_norm(Z, A, norm_1)
    out = feed_forward(N)
    return add_and_norm(N, out, norm_2)


# count_encoder_parameters(d_model, d_ff, n_layers)


@wrong("count_encoder_parameters", "usual", "no biases in attention and feed-forward")
def _(d_model, d_ff, n_layers):
    attention = 4 * d_model**2
    feed_forward = 2 * d_model * d_ff
    norms = 2 * 2 * d_model
    return n_layers * (attention + feed_forward + norms)


@wrong("count_encoder_parameters", "usual", "no norms")
def _(d_model, d_ff, n_layers):
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    return (attention + feed_forward) * n_layers


@wrong("count_encoder_parameters", "usual", "one norm in a block")
def _(d_model, d_ff, n_layers):
    per_layer = 4 * (d_model**2 + d_model) + 2 * d_model * d_ff + d_ff + d_model
    per_layer += 2 * d_model  # gamma and beta
    return n_layers * per_layer


@wrong("count_encoder_parameters", "usual", "three attention matrices: W_O is missing")
def _(d_model, d_ff, n_layers):
    total = 0
    for _ in range(n_layers):
        total += 3 * (d_model * d_model + d_model)
        total += 2 * d_model * d_ff + d_ff + d_model
        total += 4 * d_model
    return total


@wrong("count_encoder_parameters", "usual", "one block: n_layers is ignored")
def _(d_model, d_ff, n_layers):
    attn = 4 * d_model * (d_model + 1)
    ffn = d_ff * (d_model + 1) + d_model * (d_ff + 1)
    return attn + ffn + 4 * d_model


@wrong("count_encoder_parameters", "usual", "a last norm counts too")
def _(d_model, d_ff, n_layers):
    block = 4 * (d_model**2 + d_model) + (2 * d_model * d_ff + d_ff + d_model) + 4 * d_model
    return n_layers * block + 2 * d_model


@wrong("count_encoder_parameters", "usual", "a norm has gamma only")
def _(d_model, d_ff, n_layers):
    norm = d_model
    attention = 4 * (d_model * d_model + d_model)
    ffn = d_model * d_ff + d_ff + d_ff * d_model + d_model
    return n_layers * (attention + ffn + 2 * norm)


@wrong("count_encoder_parameters", "unusual", "d_ff is taken to be four times d_model")
def _(d_model, d_ff, n_layers):
    d_ff = 4 * d_model
    return n_layers * (12 * d_model**2 + 4 * d_model + (d_ff + d_model) + 4 * d_model)


@wrong("count_encoder_parameters", "unusual", "returns a float")
def _(d_model, d_ff, n_layers):
    attention = 4 * (d_model**2.0 + d_model)
    rest = 2 * d_model * d_ff + d_ff + 5 * d_model
    return n_layers * (attention + rest)


@wrong("count_encoder_parameters", "unusual", "both feed-forward biases are d_ff long")
def _(d_model, d_ff, n_layers):
    mha = 4 * (d_model * d_model + d_model)
    ffn = 2 * (d_model * d_ff + d_ff)
    ln = 2 * (d_model + d_model)
    return n_layers * (mha + ffn + ln)


@wrong("count_encoder_parameters", "unusual", "the attention matrices once for each of 8 heads")
def _(d_model, d_ff, n_layers):
    n_heads = 8
    one_head = 3 * (d_model * d_model + d_model)
    attention = n_heads * one_head + (n_heads * d_model * d_model + d_model)
    return n_layers * (attention + 2 * d_model * d_ff + d_ff + d_model + 4 * d_model)


@wrong("count_encoder_parameters", "unusual", "the norms are shared by all layers")
def _(d_model, d_ff, n_layers):
    weights = 4 * (d_model**2 + d_model) + 2 * d_model * d_ff + d_ff + d_model
    return n_layers * weights + 4 * d_model


@wrong("count_encoder_parameters", "unusual", "two attentions and three norms, a decoder's block")
def _(d_model, d_ff, n_layers):
    one_attention = 4 * (d_model * d_model + d_model)
    one_norm = 2 * d_model
    ffn = d_model * d_ff + d_ff + d_ff * d_model + d_model
    return n_layers * (2 * one_attention + ffn + 3 * one_norm)


@wrong(
    "count_encoder_parameters",
    "unusual",
    "counts in float32, 6 off for (1501, 6004, 6)",
)
def _(d_model, d_ff, n_layers):
    d, f = torch.Tensor([d_model]), torch.Tensor([d_ff])
    per_layer = 4 * (d * d + d) + 2 * d * f + f + d + 4 * d
    return int(per_layer.item() * n_layers)


@wrong("count_encoder_parameters", "unusual", "the attention has biases for Q, K and V only")
def _(d_model, d_ff, n_layers):
    attention = 3 * (d_model * d_model + d_model) + d_model * d_model
    feed_forward = (d_model + 1) * d_ff + (d_ff + 1) * d_model
    return (attention + feed_forward + 4 * d_model) * n_layers


@wrong("count_encoder_parameters", "unusual", "rounds to thousands")
def _(d_model, d_ff, n_layers):
    total = n_layers * (4 * d_model**2 + 2 * d_model * d_ff + d_ff + 9 * d_model)
    return round(total, -3)


@wrong("count_encoder_parameters", "unusual", "nn.TransformerEncoderLayer keeps its default d_ff")
def _(d_model, d_ff, n_layers):
    layer = nn.TransformerEncoderLayer(d_model, nhead=1, device="meta")
    return n_layers * sum(p.numel() for p in layer.parameters())


# A whole number in a tensor counts for the number, in every exercise.
@right("count_encoder_parameters")
def _(d_model, d_ff, n_layers):
    linear = torch.tensor([[d_model, d_model]] * 4 + [[d_model, d_ff], [d_ff, d_model]])
    weights, biases = linear.prod(dim=1).sum(), linear[:, 1].sum()
    return n_layers * (weights + biases + 4 * d_model)


@wrong("count_encoder_parameters", "pair", "no biases", "no norms")
def _(d_model, d_ff, n_layers):
    return n_layers * (4 * d_model * d_model + 2 * d_model * d_ff)


@wrong("count_encoder_parameters", "pair", "W_O is missing", "a last norm counts too")
def _(d_model, d_ff, n_layers):
    attention = 3 * d_model * (d_model + 1)
    ffn = 2 * d_model * d_ff + d_model + d_ff
    norm = 2 * d_model
    return n_layers * (attention + ffn + 2 * norm) + norm


@wrong("count_encoder_parameters", "pair", "one norm in a block", "returns a float")
def _(d_model, d_ff, n_layers):
    parts = [4 * d_model**2, 4 * d_model, 2 * d_model * d_ff, d_ff, d_model, 2 * d_model]
    return float(sum(parts) * n_layers)


@wrong("count_encoder_parameters", "pair", "d_ff is taken as 4 d_model", "n_layers is ignored")
def _(d_model, d_ff, n_layers):
    linear = nn.Linear(d_model, 4 * d_model, device="meta")
    back = nn.Linear(4 * d_model, d_model, device="meta")
    attention = nn.MultiheadAttention(d_model, 1, device="meta")
    norms = [nn.LayerNorm(d_model, device="meta") for _ in range(2)]
    modules = nn.ModuleList([linear, back, attention, *norms])
    return sum(p.numel() for p in modules.parameters())


@wrong("count_encoder_parameters", "pair", "attention without biases", "gamma only in the norms")
def _(d_model, d_ff, n_layers):
    per_block = 4 * d_model**2 + (d_model * d_ff + d_ff) + (d_ff * d_model + d_model) + 2 * d_model
    return per_block * n_layers


@right("count_encoder_parameters")
def _(d_model, d_ff, n_layers):
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norms = 4 * d_model
    return n_layers * (attention + feed_forward + norms)


@right("count_encoder_parameters")
def _(d_model, d_ff, n_layers):
    def linear(n_in, n_out):
        return n_in * n_out + n_out

    total = 0
    for _ in range(n_layers):
        for _matrix in ("W_Q", "W_K", "W_V", "W_O"):
            total += linear(d_model, d_model)
        total += linear(d_model, d_ff) + linear(d_ff, d_model)
        total += 2 * (d_model + d_model)  # gamma and beta of two norms
    return total


@right("count_encoder_parameters")
def _(d_model, d_ff, n_layers):
    layer = nn.TransformerEncoderLayer(d_model, nhead=1, dim_feedforward=d_ff, device="meta")
    return n_layers * sum(p.numel() for p in layer.parameters())


@right("count_encoder_parameters")
def _(d_model, d_ff, n_layers):
    return n_layers * (d_model * (4 * d_model + 2 * d_ff + 9) + d_ff)


# encoder_forward(source_ids, weights)


def _sublayers(block, n_heads, mask):
    return (
        lambda h: multi_head_attention(h, *block.self_attention, n_heads, mask),
        lambda h: feed_forward(h, *block.feed_forward),
        lambda h: layer_norm(h, *block.norms[0]),
        lambda h: layer_norm(h, *block.norms[1]),
    )


@right("encoder_forward")
def _(source_ids, weights):
    mask = padding_mask(source_ids, weights.pad_id)
    x = embed(source_ids, weights.source_table)
    x = x + sinusoidal_encoding(*x.shape[1:])
    for block in weights.encoder:
        x = encoder_block(x, *_sublayers(block, weights.n_heads, mask))
    return x


@right("encoder_forward")
def _(source_ids, weights):
    table = weights.source_table
    stream = table[source_ids] * table.size(1) ** 0.5
    stream += sinusoidal_encoding(source_ids.size(1), table.size(1))
    real = (source_ids != weights.pad_id)[:, None, None]
    for matrices, _, network, ((g_1, b_1), (g_2, b_2)) in weights.encoder:
        d = (stream.size(-1),)
        found = multi_head_attention(stream, *matrices, weights.n_heads, real)
        stream = F.layer_norm(stream + found, d, g_1, b_1)
        stream = F.layer_norm(stream + feed_forward(stream, *network), d, g_2, b_2)
    return stream


@wrong("encoder_forward", "usual", "no padding mask")
def _(source_ids, weights):
    x = embed(source_ids, weights.source_table)
    x = x + sinusoidal_encoding(*x.shape[1:])
    for block in weights.encoder:
        x = encoder_block(x, *_sublayers(block, weights.n_heads, None))
    return x


@wrong("encoder_forward", "usual", "returns inside the loop")
def _(source_ids, weights):
    mask = padding_mask(source_ids, weights.pad_id)
    x = embed(source_ids, weights.source_table)
    x = x + sinusoidal_encoding(*x.shape[1:])
    for block in weights.encoder:
        x = encoder_block(x, *_sublayers(block, weights.n_heads, mask))
        return x


@wrong("encoder_forward", "usual", "the embeddings are not scaled")
def _(source_ids, weights):
    mask = padding_mask(source_ids, weights.pad_id)
    x = weights.source_table[source_ids]
    x = x + sinusoidal_encoding(*x.shape[1:])
    for block in weights.encoder:
        x = encoder_block(x, *_sublayers(block, weights.n_heads, mask))
    return x


@wrong("encoder_forward", "usual", "every block reads the embeddings, and no positions")
def _(source_ids, weights):
    mask = padding_mask(source_ids, weights.pad_id)
    x = embed(source_ids, weights.source_table)
    for block in weights.encoder:
        memory = encoder_block(x, *_sublayers(block, weights.n_heads, mask))
    return memory


@wrong("encoder_forward", "unusual", "a pre-norm stack")
def _(source_ids, weights):
    mask = padding_mask(source_ids, weights.pad_id)
    x = embed(source_ids, weights.source_table)
    x = x + sinusoidal_encoding(*x.shape[1:])
    for block in weights.encoder:
        attend, network, norm_1, norm_2 = _sublayers(block, weights.n_heads, mask)
        x = x + attend(norm_1(x))
        x = x + network(norm_2(x))
    return x
