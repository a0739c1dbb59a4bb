"""Lesson 14: what the functions under repair are called with.

Long because there are twenty-four of them, and some take a small model.
"""

import torch
from torch import Tensor, nn

from transformer_lesson.exercises.engine.specification import Draw
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


class AttentionBlock(nn.Module):
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


class FixedDropout(nn.Module):
    """A dropout that always zeroes the same numbers, and none in evaluation."""

    def __init__(self, keep: Tensor):
        super().__init__()
        self.keep, self.p = keep, 0.5

    def forward(self, x: Tensor) -> Tensor:
        """Return x, thinned out in training."""
        return x * self.keep * 2 if self.training else x

    def __repr__(self) -> str:
        return "dropout"


class Norm(nn.Module):
    """A layer norm, with a trained scale or without."""

    def __init__(self, gamma: Tensor | None = None):
        super().__init__()
        self.weight = None if gamma is None else nn.Parameter(gamma)

    def forward(self, x: Tensor) -> Tensor:
        """Return x, each token normalized by its own mean and deviation."""
        x = x - x.mean(dim=-1, keepdim=True)
        x = x / (x.var(dim=-1, keepdim=True, correction=0) + 1e-5).sqrt()
        return x if self.weight is None else x * self.weight.to(x.dtype)


class DropoutAndNorm(nn.Module):
    """The end of a sub-layer: a dropout and a norm that belong to the model."""

    def __init__(self, dropout: nn.Module, norm: nn.Module):
        super().__init__()
        self.dropout, self.norm = dropout, norm

    def __repr__(self) -> str:
        return f"a block with .dropout and .norm, in {'train' if self.training else 'eval'} mode"


class Sublayer:
    """A matrix product, bent: stands for attention or feed-forward."""

    def __init__(self, W: Tensor):
        self.W = W

    def __call__(self, x: Tensor) -> Tensor:
        """Return one vector per token."""
        return (x @ self.W.to(x.dtype)).tanh()

    def __repr__(self) -> str:
        return "tanh of a matrix product"


class Listing(nn.Module):
    """A small model with the parts of the printed one."""

    def __init__(self, draw: Draw):
        super().__init__()
        table, W = draw.normal("vocab_size d_model"), draw.normal("d_model vocab_size")
        self.embedding = lambda ids: table[ids]
        n_layers = draw.one_of((2, 3, 2, 1))
        self.layers = [Sublayer(draw.normal("d_model d_model")) for _ in range(n_layers)]
        if draw.number == 2:
            self.embed = self.embedding  # a second name
        self.out = lambda x: x @ W.to(x.dtype)

    def __repr__(self) -> str:
        return "a model with .embedding, .layers and .out"


class Follower:
    """A tiny language model: what has been read so far chooses a row of logits."""

    def __init__(self, table: Tensor, eos_id: int = -1, at: int = 0):
        self.table, self.eos_id, self.at = table, eos_id, at

    def __call__(self, ids: list[int] | Tensor) -> Tensor:
        """Return logits, shape (vocab_size,) for a list of ids, (batch, vocab_size) for a batch."""
        ids = torch.as_tensor(ids)
        logits = self.table[ids.sum(dim=-1) % len(self.table)].clone()
        if self.eos_id >= 0:
            logits[..., self.eos_id] = 9.0 if ids.size(-1) >= self.at else -9.0
        return logits

    def __repr__(self) -> str:
        end = f", <eos> likeliest from {self.at} ids on" if self.eos_id >= 0 else ""
        return f"row sum(ids) % {len(self.table)} of a table{end}"


def _square(draw: Draw) -> Tensor:
    return draw.normal("d_model d_model") / draw.size("d_model") ** 0.5


def _keep(draw: Draw) -> Tensor:
    keep = draw.booleans("batch n d_model")
    keep[..., 0], keep[..., -1] = False, True  # every token loses a number and keeps one
    return keep


def frequency_inputs(draw: Draw) -> tuple:
    """An even width, once a single pair and once GPT's size."""
    if draw.number == 2 and not draw.small:
        return (2,)
    if draw.number == 3 and not draw.small:
        return (512,)
    return (2 * draw.unless_unseen(draw.size("pair"), 8, 100),)


def _one_of_one(draw: Draw) -> None:
    """Make a draw's batch a single text, or its texts a single token."""
    axis = draw.one_of(("", "", "batch", "n"))
    if axis:
        draw.sizes[axis] = 1


def add_inputs(draw: Draw) -> tuple:
    """A token's vectors, a sub-layer, a dropout in training, a norm without scale."""
    _one_of_one(draw)
    draw.size("d_model", at_least=3)
    x = draw.normal("batch n d_model")
    return x, Sublayer(_square(draw)), FixedDropout(_keep(draw)), Norm()


def close_inputs(draw: Draw) -> tuple:
    """Input and output of a sub-layer, and the block's end in either mode."""
    _one_of_one(draw)
    draw.size("d_model", at_least=3)
    x, branch = draw.normal("batch n d_model"), draw.normal("batch n d_model")
    block = DropoutAndNorm(FixedDropout(_keep(draw)), Norm(draw.positive("d_model")))
    torch.manual_seed(draw.number)  # an answer that draws at random stays comparable
    return x, branch, block.train(draw.number % 2 == 1)


def last_inputs(draw: Draw) -> tuple:
    """A decoder's output and the projection; at last in double precision."""
    _one_of_one(draw)
    x = draw.normal("batch n d_model")
    inputs = x, draw.normal("d_model vocab_size"), draw.normal("vocab_size")
    return tuple(one.double() for one in inputs) if draw.number == 4 else inputs


def target_inputs(draw: Draw) -> tuple:
    """Labels, how many classes there are, the smoothing: at times none, or nothing else."""
    if draw.number == 3:
        draw.sizes["n"] = 1
    n_classes = draw.size("n_classes", at_least=2)
    return draw.integers("n", 0, n_classes), n_classes, draw.one_of((0.1, 0.3, 0.0, 0.2, 0.9, 1.0))


def loss_inputs(draw: Draw) -> tuple:
    """Logits, of a model that is sure of itself or not, and labels."""
    _one_of_one(draw)
    vocab_size = draw.size("vocab_size", at_least=2)
    logits = draw.one_of((2, 2, 2, 2, 10, 300)) * draw.normal("batch n vocab_size")
    labels = draw.integers("batch n", 0, vocab_size)
    return logits.double() if draw.number == 4 else logits, labels


def text_inputs(draw: Draw) -> tuple:
    """A model, a prompt with or without `<eos>` in it, and room that may end first, or be none."""
    draw.size("vocab_size", at_least=5)
    eos_id = draw.one_of((1, 3, 0, 2, 1))
    prompt = draw.integers("n", 0, draw.size("vocab_size")).tolist()
    prompt = [4 if id_ == eos_id else id_ for id_ in prompt]
    if draw.number in (1, 3):
        prompt = [eos_id, *prompt] if draw.number == 1 else [*prompt, eos_id]
    new = 1 if draw.number == 7 else 2 + draw.size("new")  # of which the last is `<eos>`
    most = 0 if draw.number == 5 else new + draw.one_of((2, 3, -1, 4, 0, 0, -1, 2))
    return (
        Follower(draw.normal("row vocab_size"), eos_id, len(prompt) + new - 1),
        prompt,
        eos_id,
        most,
    )


def word_inputs(draw: Draw) -> tuple:
    """Words, or none, a vocabulary that lacks some of them or none, the id for those."""
    text = draw.one_of(
        (
            "today the unicorn sees the cat .",
            "the dog sees the cat .",
            "hello Paris unicorn",
            "restart the unbelievable kernel and the unicorn",
            "goodbye goodbye",
            "the cat sees the kernel",
            "",
        )
    )
    known = ["hello", "Paris", "the", "cat", "sees", "today", ".", "kernel", "restart"]
    first = draw.unless_unseen(0 if draw.number % 2 == 0 else 5, 5, 11)
    words = draw.some(text.split())
    vocabulary = {w: first + i for i, w in enumerate(known)}
    unk_id = 2 if draw.number in (3, 5) else 20 + draw.number
    return words, vocabulary | {"<unk>": unk_id}, unk_id


def fill_inputs(draw: Draw) -> tuple:
    """A model, one text or several, and how long they shall be."""
    if draw.number in (0, 5):
        draw.sizes["batch" if draw.number == 0 else "n"] = 1
    n = draw.size("n")
    start = draw.integers("batch n", 0, draw.size("vocab_size"))
    more = draw.size("new") if draw.small else draw.one_of((15, 14, 16, 0, 12))
    length = n if draw.number == 3 else n + more
    if length > n:
        draw.sizes["length"] = length
    return Follower(draw.normal("row vocab_size")), start, length


def message_inputs(draw: Draw) -> tuple:
    """Vectors and a table of another width."""
    _one_of_one(draw)
    draw.size("n_positions", at_least=2)
    width, d_model = draw.size("width"), draw.size("d_model", at_least=2)
    if width == d_model:
        draw.sizes["width"] = width + 1
    return draw.normal("batch n width"), draw.positive("n_positions d_model")


def listing_inputs(draw: Draw) -> tuple:
    """A model and ids."""
    _one_of_one(draw)
    return Listing(draw), draw.integers("batch n", 0, draw.size("vocab_size"))


def gpt2_inputs(draw: Draw) -> tuple:
    """The heads of GPT-2 medium, small, large and XL; in a draw that nobody has seen, any."""
    return (draw.unless_unseen(draw.one_of((16, 12, 20, 25)), 1, 100),)


def block_inputs(draw: Draw) -> tuple:
    """A token's vectors, two attentions and a feed-forward network."""
    _tokens(draw)
    x = draw.normal("batch n d_model")
    W = draw.normal("d_model d_model") / draw.size("d_model") ** 0.5

    def feed_forward(x: Tensor) -> Tensor:
        return (x @ W.to(x.dtype)).relu()

    return x, Attention(draw), Attention(draw), feed_forward


def _tokens(draw: Draw) -> None:
    """Fix sizes: three tokens or more, as many sentences as tokens, one sentence, one token."""
    if draw.number == 3:
        draw.sizes["n"] = 1
    n = draw.size("n", at_least=1 if draw.small else 3)
    if draw.number in (1, 2):
        draw.sizes["batch"] = n if draw.number == 1 else 1


def model_inputs(draw: Draw) -> tuple:
    """Ids, an embedding, one to three blocks that take a mask, a projection."""
    _tokens(draw)
    ids, table = draw.integers("batch n", 0, 30), draw.normal("vocab_size d_model")
    ids[0, -1] = 0

    def embedding(ids: Tensor) -> Tensor:
        return table[ids % len(table)]

    def projection(x: Tensor) -> Tensor:
        return x @ table.T.to(x.dtype)

    blocks = Blocks(AttentionBlock(draw) for _ in range(draw.one_of((2, 3, 1, 2))))
    return ids, embedding, blocks, projection


def batch_inputs(draw: Draw) -> tuple:
    """Ids padded on the left, the right, both sides or nowhere, and the id of padding."""
    pad_id = draw.one_of((3, 0, 9, 0, 5, 2))
    if draw.number in (3, 4):
        draw.sizes["batch" if draw.number == 3 else "n"] = 1
    n = draw.size("n", at_least=2)
    if draw.number == 2:
        draw.sizes["batch"] = n  # a missing axis raises no error
    ids = draw.integers("batch n", 0, 12)
    ids[ids == pad_id] = pad_id + 1
    batch = len(ids)
    filled = torch.randint(0, n + 1, (batch, 1), generator=draw.generator)
    filled[0] = n if draw.number == 5 else n // 2
    filled[-1] = n - 1  # the last sentence has one real token
    place = torch.arange(n)
    left, right, nowhere = place < filled, place >= n - filled, (place < 0).expand(batch, n)
    both = (place < filled - 1) | (place == n - 1)
    return ids.masked_fill(draw.one_of((left, right, left, both, nowhere, right)), pad_id), pad_id


def masked_inputs(draw: Draw) -> tuple:
    """Scores, some of them large, and every kind of mask that leaves some query no key."""
    if draw.number == 5:
        draw.sizes["batch"] = draw.sizes["key"] = 1
    scores = draw.normal("batch head query key")
    axes = draw.one_of(
        (
            "batch 1 query key",
            "query key",
            "batch 1 1 key",
            "1 head query key",
            "batch head query key",
            "1 1 query key",
        )
    )
    mask = draw.booleans(axes)
    mask[..., -1] = True  # every query keeps a key,
    mask.view(-1, mask.size(-1))[0] = False  # but the first
    if draw.number == 2:  # exp overflows,
        return scores + 200, mask
    if draw.number == 4:  # and a softmax over all keys leaves nothing for those that are seen
        excess = torch.tensor([30_000, 300]).repeat(scores.size(2))[: scores.size(2), None]
        return scores + excess * ~mask, mask
    return scores, mask


def half_inputs(draw: Draw) -> tuple:
    """Return scores, every second time in half precision, with weights that it holds exactly."""
    if draw.number % 2 == 0:
        scores, mask = masked_inputs(draw)
        return scores.double() if draw.number == 4 else scores, mask
    n_keys = 1 if draw.number == 5 else draw.size("key", at_least=1 if draw.small else 5)
    draw.sizes["key"] = n_keys
    scores = 10 * draw.normal("batch head query 1").half()
    counts = 2 ** draw.integers("batch 1 query", 0, 3)  # each query sees 1, 2 or 4 keys
    mask = torch.arange(n_keys) < counts[..., None]
    if n_keys < 4:
        mask = torch.ones_like(mask)
    mask[0, 0, 0] = False
    return scores.expand(-1, -1, -1, n_keys).contiguous(), mask


def cut_inputs(draw: Draw) -> tuple:
    """A sentence's vectors and the number of heads; one head, one token, heads of one number."""
    single = draw.one_of(("", "", "n", "head", "", "d_head", ""))
    if single:
        draw.sizes[single] = 1
    if draw.number == 6:
        draw.sizes["n"] = draw.size("head")  # an exchanged axis has the right size
    draw.sizes["d_model"] = draw.size("head") * draw.size("d_head")
    x = draw.normal("n d_model")
    return x.double() if draw.number == 1 else x, draw.size("head")


def matrices_inputs(draw: Draw) -> tuple:
    """A batch of vectors, and W_Q, W_K and W_V of every head."""
    if draw.number in (2, 3, 4):
        draw.sizes[("batch", "head", "n")[draw.number - 2]] = 1
    draw.size("d_model", at_least=1 if draw.small else 3)
    n_heads = draw.size("head", at_least=1 if draw.small else 2)
    if draw.number == 1:
        draw.sizes["batch"] = n_heads  # sentences may meet heads
    x = draw.normal("batch n d_model")
    return x, *(draw.normal("head d_model d_head") / x.size(-1) ** 0.5 for _ in range(3))


def linear_inputs(draw: Draw) -> tuple:
    """A kind of self-attention and two sentences.

    Softmax comes back with sentences for which half of the weights agree by chance, and the mean
    with numbers that are added without rounding.
    """
    if draw.number in (0, 5, 6):
        draw.sizes["d_model"] = 2  # wide tokens would each look at themselves alone
    if draw.number == 1 and not draw.small:
        draw.sizes |= {"n": 13, "d_model": 11}  # some of so many sums are rounded
    if draw.number == 7:
        draw.sizes["n"] = 4
    attend = kinds_of_attention(draw)[draw.one_of((0, 1, 2, 3, 4, 0, 0, 1))]
    x, y = draw.normal("n d_model"), draw.normal("n d_model")
    if draw.number == 7:
        return attend, 4 * x.round(), 4 * y.round()
    return attend, x, {5: -2 * x, 6: x.flip(-1)}.get(draw.number, y)


def parameters_inputs(draw: Draw) -> tuple:
    """Return d_model and the number of heads; one head, and heads of one number."""
    if draw.number in (2, 3):
        draw.sizes["head" if draw.number == 2 else "d_head"] = 1
    n_heads = draw.size("head", at_least=1 if draw.number == 2 or draw.small else 2)
    return n_heads * draw.size("d_head"), n_heads


def formula_inputs(draw: Draw) -> tuple:
    """How many positions, and an even width; one position, one pair."""
    if draw.number in (1, 2):
        draw.sizes["pair" if draw.number == 1 else "n_positions"] = 1
    return draw.size("n_positions"), 2 * draw.size("pair")


def any_width_inputs(draw: Draw) -> tuple:
    """How many positions, and an odd or an even width; 4, 3, 1 and 2 columns among them."""
    n_pairs = draw.one_of((draw.size("pair"), 2, 1, 0, 1, draw.size("pair")))
    odd = draw.one_of((1, 0, 1, 1, 0, 0))
    if draw.number == 2:
        draw.sizes["n_positions"] = 1
    return draw.size("n_positions"), 2 * n_pairs + odd


def table_inputs(draw: Draw) -> tuple:
    """Token vectors and a table with at least as many rows as they have tokens."""
    single = draw.one_of(("", "", "batch", "n", "", "", "batch"))
    if single:
        draw.sizes[single] = 1
    n = draw.size("n")
    if draw.number in (1, 6):  # exchanged axes have the right size, and raise no error
        draw.sizes["batch" if draw.number == 1 else "d_model"] = n
    x = draw.normal("batch n d_model")
    draw.sizes["max_len"] = n + draw.one_of((len(x) * n, len(x) + 4, 4, 18, 6, 0, 2))
    return x.double() if draw.number == 4 else x, draw.normal("max_len d_model")
