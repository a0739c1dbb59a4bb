"""Lesson 14: what the functions under repair are called with."""

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
        self.keep = keep

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
    return (2 * draw.size("pair"),)


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
    logits = draw.one_of((2, 2, 2, 2, 10)) * draw.normal("batch n vocab_size")
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
            "hello unicorn",
            "restart the unbelievable kernel and the unicorn",
            "goodbye",
            "the cat sees the kernel",
            "",
        )
    )
    known = ["hello", "the", "cat", "sees", "today", ".", "kernel", "restart"]
    first = 0 if draw.number % 2 == 0 else 5
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
    """The heads of GPT-2 medium, small, large and XL."""
    return (draw.one_of((16, 12, 20, 25)),)


def block_inputs(draw: Draw) -> tuple:
    """A token's vectors, two attentions and a feed-forward network."""
    draw.size("n", at_least=3)
    x = draw.normal("batch n d_model")
    W = draw.normal("d_model d_model") / draw.size("d_model") ** 0.5

    def feed_forward(x: Tensor) -> Tensor:
        return (x @ W.to(x.dtype)).relu()

    return x, Attention(draw), Attention(draw), feed_forward


def model_inputs(draw: Draw) -> tuple:
    """Ids, an embedding, two blocks that take a mask, a projection."""
    draw.size("n", at_least=3)
    ids, table = draw.integers("batch n", 0, 30), draw.normal("vocab_size d_model")

    def embedding(ids: Tensor) -> Tensor:
        return table[ids % len(table)]

    def projection(x: Tensor) -> Tensor:
        return x @ table.T.to(x.dtype)

    return ids, embedding, Blocks([AttentionBlock(draw), AttentionBlock(draw)]), projection


def batch_inputs(draw: Draw) -> tuple:
    """Ids padded on the left or on the right, and the id of padding."""
    pad_id = 3 * (draw.number % 2)
    n, batch = draw.size("n", at_least=3), draw.size("batch", at_least=2)
    ids = draw.integers("batch n", 4, 50)
    place = torch.arange(n) if draw.number < 3 else torch.arange(n).flip(0)  # left, then right
    padding = torch.randint(0, n, (batch, 1), generator=draw.generator)
    padding[-1] = n - 1  # the last sentence has one real token
    return ids.masked_fill(place < padding, pad_id), pad_id


def masked_inputs(draw: Draw) -> tuple:
    """Scores, and a mask that leaves one query no key."""
    scores = draw.normal("batch head query key")
    mask = draw.booleans("batch query key")[:, None]  # (batch, 1, query, key)
    mask[0, 0, 0] = False  # a query that sees no key
    mask[-1, 0, -1, -1] = True
    return scores, mask


def half_inputs(draw: Draw) -> tuple:
    """Return every second time half precision, with weights that it can hold exactly."""
    draw.size("key", at_least=5)
    scores, mask = masked_inputs(draw)
    if draw.number % 2 == 0:
        return scores, mask
    keys = torch.arange(draw.size("key"))
    counts = 2 ** torch.randint(0, 3, mask.shape[:-1], generator=draw.generator)  # 1, 2 or 4
    mask = keys < counts[..., None]
    mask[0, 0, 0] = False
    return scores[..., :1].expand(scores.shape).half().contiguous(), mask


def cut_inputs(draw: Draw) -> tuple:
    """A sentence's vectors and the number of heads."""
    draw.sizes["d_model"] = draw.size("head") * draw.size("d_head")
    return draw.normal("n d_model"), draw.size("head")


def matrices_inputs(draw: Draw) -> tuple:
    """A batch of vectors, and W_Q, W_K and W_V of every head."""
    draw.size("d_model", at_least=3)
    draw.size("head", at_least=2)
    x = draw.normal("batch n d_model")
    return x, *(draw.normal("head d_model d_head") / x.size(-1) ** 0.5 for _ in range(3))


def linear_inputs(draw: Draw) -> tuple:
    """A kind of self-attention and two sentences."""
    kinds = kinds_of_attention(draw)
    return kinds[draw.number % len(kinds)], draw.normal("n d_model"), draw.normal("n d_model")


def any_width_inputs(draw: Draw) -> tuple:
    """How many positions, and an odd or an even width."""
    return draw.size("n_positions", at_least=3), 2 * draw.size("pair") + 1 - draw.number % 2


def table_inputs(draw: Draw) -> tuple:
    """Token vectors and a table with more rows than they have tokens."""
    draw.size("batch", at_least=2)
    if draw.number == 2:  # as many sentences as tokens: a swapped axis raises no error
        draw.sizes["n"] = draw.size("batch")
    x = draw.normal("batch n d_model")
    draw.sizes["max_len"] = 17
    angle = torch.arange(17)[:, None] * draw.positive("d_model")
    return x, angle.sin().round(decimals=2)
