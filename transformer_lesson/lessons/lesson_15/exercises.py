"""Lesson 15: a softmax in one pass, attention without its table, a batch in parts, what it costs.

Long because it is data: exercises whole, with their inputs and all their wrong turns.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.model.attention_in_blocks import online_softmax as take_block


def _empty_state(Q: Tensor, V: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the state of queries (or of their scores) that have seen no key yet."""
    rows = Q.shape[:-1]
    return Q.new_full(rows, -math.inf), Q.new_zeros(rows), Q.new_zeros(*rows, V.size(-1))


def _block_inputs(draw: Draw) -> tuple:
    """The first block and later ones; a maximum before and in the block; hidden keys; one key."""
    if draw.number == 5:
        draw.sizes["key"] = 1
    blocks = [(draw.normal("query key"), draw.normal("key d_value")) for _ in range(2)]
    (before, old_values), (scores, values) = blocks
    if draw.number in (2, 4):
        before = before + 3
    if draw.number == 3:
        scores = scores + 3
    if draw.number == 4:  # the first query sees nothing here, the last one saw nothing before
        scores[0], before[-1] = -math.inf, -math.inf
        scores[-1, 0] = -math.inf
    if draw.number == 6:  # exp(300) is no number of 32 bits
        before, scores = 100 * before, 100 * scores
    if draw.number == 7:  # nothing but hidden keys, in both
        before[0] = scores[0] = -math.inf
    state = _empty_state(before, old_values)
    if draw.number:
        state = take_block(*state, before, old_values)
    return *state, scores, values


@breaks("blocks that do not add up to one softmax")
def _whole_softmax(answer, inputs: tuple, *state: Tensor) -> str | None:
    """Two blocks, one after the other, are softmax of all their scores."""
    scores, values = inputs[3:]
    if not scores.isfinite().all():
        return None
    carried = _empty_state(scores, values)
    for block in ((scores, values), (scores + 1, -values)):
        carried = answer(*(part.to(scores.dtype) for part in carried), *block)
    weights = torch.cat([scores, scores + 1], dim=-1).softmax(dim=-1)
    wanted = weights @ torch.cat([values, -values])
    furthest = (carried[2] / carried[1][..., None] - wanted).abs().max()
    if furthest < 1e-3:
        return None
    return (
        "After two blocks, output / total must be softmax of all scores times the values. "
        f"Yours is off by up to {furthest:.3g}.\n"
        "Are both total and output multiplied by exp(old maximum - new maximum), and not divided?"
    )


@exercise(
    reference="transformer_lesson.model.attention_in_blocks:online_softmax",
    make_inputs=_block_inputs,
    draws=8,
    returns={"largest": "query", "total": "query", "output": "query d_value"},
    hints=(
        "The new maximum is the larger of the old one and the block's own: "
        "`torch.maximum(largest, scores.amax(dim=-1))`.",
        "exp(s - new) = exp(s - old) * exp(old - new). So what was summed with the old maximum "
        "is multiplied by `(largest - new).exp()`, both total and output, and then the block's "
        "own part is added.",
        "Where all keys so far are hidden, new is -inf, and -inf - (-inf) is NaN. There, subtract "
        "a finite number: `new.clamp(min=torch.finfo(new.dtype).min)`.",
    ),
    invariants=(_whole_softmax,),
)
def online_softmax(largest, total, output, scores, values):
    """Return the state after one more block of keys: the maximum, the total, the weighted sum."""
    block_largest = choose(
        scores.amax(dim=-1),
        over_queries=scores.amax(0),
        over_everything=scores.max().expand_as(total),
        smallest=scores.amin(-1),
    )
    new = choose(
        torch.maximum(largest, block_largest),
        block_alone=block_largest,
        old_alone=largest,
        smaller_one=torch.minimum(largest, block_largest),
        added=largest + block_largest,
    )
    shift = choose(
        new.clamp(min=torch.finfo(new.dtype).min),
        torch.where(new == -math.inf, 0.0, new),
        hidden_rows_are_nan=new,
    )
    weights = (scores - shift[:, None]).exp()
    shrink = choose((largest - shift).exp(), never_shrunk=torch.ones_like(shift))
    new = choose(new, shift_returned=shift)
    return (new, *_new_sums(total, output, weights, shrink, values))


def _new_sums(total, output, weights, shrink, values):
    """Return total and weighted sum."""
    new_total = total * choose(shrink, total_not_shrunk=1.0) + weights.sum(-1)
    block_output = weights @ values
    new_output = choose(
        output * shrink[:, None] + block_output,
        output_not_shrunk=output + block_output,
        output_times_total=output * (total * shrink)[:, None] + block_output,
    )
    divisor = choose(new_total, new_total.clamp(min=1e-9))
    return new_total, choose(new_output, divided_already=new_output / divisor[:, None])


def _attention_inputs(draw: Draw) -> tuple:
    """Causal and not; blocks that fit and that don't, of one key, and longer than the text."""
    causal = draw.number % 2 == 0
    if draw.number == 5:
        draw.sizes["head"] = 1
    Q, block_size = draw.normal("head query d_head"), draw.one_of((2, 3, 40, 1, 5, 4))
    n_keys = "query" if causal else "key"
    K, V = draw.normal(f"head {n_keys} d_head"), draw.normal(f"head {n_keys} d_value")
    if draw.number == 2:
        Q, K = 10 * Q, 10 * K
    if draw.number == 3:
        Q, K, V = Q.double(), K.double(), V.double()
    return Q, K, V, block_size, causal


class _Largest(TorchFunctionMode):
    """Notes the size of the largest tensor that anything makes, and PyTorch's own attention."""

    def __init__(self):
        super().__init__()
        self.numbers, self.fused = 0, False

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call a function of PyTorch, and look at what it returns."""
        self.fused |= "attention" in getattr(function, "__name__", "")
        result = function(*args, **(kwargs or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        self.numbers = max([self.numbers, *sizes])
        return result


@breaks("a table of all scores")
def _no_table(answer, inputs: tuple, output: Tensor) -> str | None:
    """No tensor of query x key numbers is made on the way, not even a mask."""
    if len(inputs[0]) * inputs[0].size(1) < 10:  # a small draw, to be printed
        return None
    n, causal = 128, inputs[-1]
    numbers = torch.Generator().manual_seed(0)
    Q, K, V = (torch.randn(1, n, 2, generator=numbers) for _ in range(3))
    with _Largest() as largest:
        answer(Q, K, V, 8, causal)
    if largest.fused:
        return (
            "The numbers are right, but PyTorch's own attention reads all keys in one call.\n"
            "Read them yourself, `block_size` at a time."
        )
    if largest.numbers < n * n:
        return None
    return (
        f"The numbers are right, but for {n} queries and {n} keys in blocks of 8 you make a tensor "
        f"of {largest.numbers:,} numbers: that is the table of scores, or a mask as large.\n"
        f"Each block needs {n} x 8 scores. Which line looks at all keys at once?"
    )


@exercise(
    reference="transformer_lesson.model.attention_in_blocks:attention_in_blocks",
    make_inputs=_attention_inputs,
    draws=6,
    returns={"output": "head query d_value"},
    hints=(
        "Begin with an empty state (-inf, 0, 0), go through the keys from `start` to "
        "`start + block_size`, and hand each block's scores and values to `online_softmax`. "
        "Divide once, at the end.",
        "`scores = Q @ K[:, start:stop].mT / math.sqrt(Q.size(-1))` has shape (head, query, key of "
        "this block).",
        "The block's keys are number start to stop - 1: "
        "`later = torch.arange(start, stop) > torch.arange(n)[:, None]`.",
    ),
    invariants=(_no_table,),
    helpers=("transformer_lesson.model.attention_in_blocks:online_softmax",),
)
def attention_in_blocks(Q, K, V, block_size, causal):
    """Return attention's output without ever making the table of all scores."""
    n_keys = K.size(1)
    state = _empty_state(Q, V)
    starts = choose(
        range(0, n_keys, block_size),
        first_block_alone=[0],
        last_block_missing=range(0, max(1, n_keys - block_size), block_size),
        shorter_block_missing=range(0, n_keys // block_size * block_size, block_size),
        one_key_a_block=range(0, n_keys, block_size + 1),
        blocks_overlap=range(0, n_keys, max(1, block_size - 1)),
    )
    for start in starts:
        stop = min(start + block_size, n_keys)
        scores = _block_scores(Q, K[:, start:stop], start, causal, V.size(-1))
        values = choose(V[:, start:stop], first_values=V[:, : stop - start])
        state = choose(
            take_block(*state, scores, values),
            no_maximum=_added(state, scores.exp(), values),
            softmax_of_each_block=_averaged(state, scores, values),
        )
    total, output = state[1:]
    return choose(output / total[..., None], not_divided=output, divided_by_keys=output / n_keys)


def _added(state, weights, values):
    """Return a state to which weights are added as they are."""
    largest, total, output = state
    return largest, total + weights.sum(-1), output + weights @ values


def _averaged(state, scores, values):
    """Return a state to which a block's own attention is added, where a query sees any of it."""
    largest, total, output = state
    sees_any = scores.isfinite().any(-1).to(total.dtype)
    return largest, total + sees_any, output + scores.softmax(-1).nan_to_num() @ values


def _block_scores(Q, K, start, causal, d_value):
    """Return the scores of a block's keys, those that come later hidden."""
    scores = (
        Q
        @ K.mT
        / choose(
            math.sqrt(Q.size(-1)),
            unscaled=1.0,
            not_the_root=Q.size(-1),
            root_of_d_value=math.sqrt(d_value),
        )
    )
    query, key = torch.arange(Q.size(1))[:, None], torch.arange(K.size(1))
    causal = choose(causal, never_causal=False, always_causal=True)
    later = choose(
        start + key > query, keys_from_0=key > query, own_key_hidden=start + key >= query
    )
    return scores.masked_fill(later, -math.inf) if causal else scores


def _part_inputs(draw: Draw) -> tuple:
    """Parts of unequal length, with padding; one that is all padding; one part alone."""
    vocab_size, n = draw.size("vocab_size", at_least=3), draw.size("n", at_least=3)
    pad_id = draw.one_of((0, 2, 1, 0, 2))
    rows = draw.one_of(((1, 3), (2, 1, 2), (2, 2, 1), (3,), (1, 2, 1)))
    parts = []
    for number, count in enumerate(rows):
        ids, labels = (draw.integers(f"{count} n", 0, vocab_size) for _ in range(2))
        labels[0, 0] = (pad_id + 1) % vocab_size  # one counts
        labels[:, n - 1 - number % 2 :] = pad_id
        if draw.number == 2 and number == 1:
            labels[:] = pad_id
        parts.append((ids, labels))
    return draw.normal("vocab_size vocab_size"), parts, pad_id


class _Table(nn.Module):
    """A row of logits for each token; counts how many sentences wait for their backward pass."""

    def __init__(self, weight: Tensor):
        super().__init__()
        self.weight, self.waiting, self.most = nn.Parameter(weight.clone()), 0, 0

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits, shape (batch, n, vocab_size)."""
        self.waiting += len(ids)
        self.most = max(self.most, self.waiting)
        logits = self.weight[ids]
        if logits.requires_grad:
            logits.register_hook(self._answered)
        return logits

    def _answered(self, gradient: Tensor) -> None:
        self.waiting = 0


def _gradient_of(answer, weight, parts, pad_id):
    """Call an answer on a tiny model; return its loss, the gradient, and what it kept."""
    model = _Table(weight)
    loss = answer(model, parts, pad_id)
    graph = isinstance(loss, Tensor) and loss.requires_grad
    loss = math.nan if loss is None else float(torch.as_tensor(loss).detach())
    gradient = torch.zeros_like(weight) if model.weight.grad is None else model.weight.grad.clone()
    return loss, gradient, model.most, graph


@breaks("several parts in memory at the same time")
def _one_part_at_once(answer, inputs: tuple, loss, gradient, most: int, graph) -> str | None:
    """No more sentences wait for their backward pass than the largest part has."""
    largest = max(len(ids) for ids, _ in inputs[1])
    if most <= largest:
        return None
    return (
        f"The largest part has {largest} sentence{'s' * (largest > 1)}, but in yours {most} wait "
        "for their backward pass at the same time. That takes the memory of a larger batch.\n"
        "When do you call `backward`, after each part or after all of them?"
    )


@exercise(
    reference="transformer_lesson.training.one_step:accumulate",
    make_inputs=_part_inputs,
    trial=_gradient_of,
    returns={"loss": "", "gradient": "vocab_size vocab_size", "at_once": "", "holds_graph": ""},
    invariants=(_one_part_at_once,),
    hints=(
        "Count first: how many labels of all parts are not `pad_id`? Every part's loss "
        "is divided by that number.",
        "`F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=pad_id, "
        'reduction="sum")` is the sum over a part\'s labels.',
        "Divide that sum by the count of all parts and call `backward()` at once: gradients add up "
        "in the weights by themselves. Sum up `.item()` for the loss.",
    ),
)
def accumulate(model, parts, pad_id):
    """Add up the gradient of the mean loss over all parts' labels; return that loss."""
    loss, shares, sums, means = 0.0, [], [], []
    empty = [bool((labels == pad_id).all()) for _, labels in parts] + [True]
    for ids, labels in choose(
        parts,
        first_part_alone=parts[:1],
        last_part_missing=parts[:-1],
        stopped_at_padding=parts[: empty.index(True)],
    ):
        choose(None, zeroed_each_time=model.zero_grad())
        summed, count = _summed(model(ids), labels, pad_id)
        share = _share(summed, count, parts, pad_id)
        choose(share.backward(), one_backward=shares.append(share), no_backward=None)
        loss = choose(loss + share.item(), last_loss=share.item())
        sums.append(summed.item())
        means += [summed.item() / count] if count else []
    choose(None, one_backward=sum(shares).backward())
    return choose(
        loss,
        graph=share,
        nothing=None,
        sum_returned=sum(sums),
        mean_of_the_last=means[-1],
    )


def _summed(logits, labels, pad_id):
    """Return the sum of a part's losses, and how many labels count."""
    logits = choose(logits, second_softmax=logits.softmax(-1)).flatten(0, 1)
    left_out = choose(pad_id, padding_learned=-100, padding_in_the_sum=-100)
    summed = F.cross_entropy(logits, labels.flatten(), ignore_index=left_out, reduction="sum")
    return summed, int((labels != pad_id).sum())


def _share(summed, count, parts, pad_id):
    """Return a part's share of the batch's mean loss."""
    total = sum(int((labels != pad_id).sum()) for _, labels in parts)
    all_labels = sum(labels.numel() for _, labels in parts)
    total = choose(total, padding_counted=all_labels, padding_learned=all_labels)
    return choose(
        summed / total,
        mean_of_means=summed / choose(summed.new_tensor(count), max(count, 1)) / len(parts),
        sum_of_means=summed / choose(summed.new_tensor(count), max(count, 1)),
        not_divided=summed,
    )


def _cost_inputs(draw: Draw) -> tuple:
    """Prompts, tokens that are written, and a few tokens after a longer cache; one head."""
    batch, n_queries, n_keys = (draw.size(axis) for axis in ("batch", "query", "key"))
    n_heads, d_head = draw.size("head"), draw.size("d_head")
    kind = draw.one_of(("prompt", "write", "go on"))
    if kind == "prompt":
        n_queries = n_keys
    if kind == "write":
        n_queries = 1
    if draw.number == 3:
        n_heads = 1
    return batch, min(n_queries, n_keys), max(n_queries, n_keys), n_heads * d_head, n_heads


def _costs_as_floats(answer, batch, n_queries, n_keys, d_model, n_heads):
    """Call an answer; whole numbers and others count alike."""
    costs = answer(batch, n_queries, n_keys, d_model, n_heads)
    if not isinstance(costs, tuple | list):
        return costs
    return tuple(float(cost) if isinstance(cost, int | float) else cost for cost in costs)


@exercise(
    reference="transformer_lesson.lessons.lesson_15.roofline:attention_costs",
    make_inputs=_cost_inputs,
    trial=_costs_as_floats,
    draws=6,
    returns={"forward": "", "training": "", "moved": ""},
    hints=(
        "Six products, one by one. Rows times inner times columns are the multiplications; how "
        "many operations is each? The projections have `batch * n_queries` rows.",
        "The heads share d_model. So over all heads the scores take "
        "`batch * n_queries * n_keys * d_model` multiplications, and the weighted sums as many. "
        "Backward, each product needs two as large.",
        "Numbers moved by a projection: its input, its matrix, its result. By the scores: queries, "
        "`batch * n_keys * d_model` of the keys, and a table for each head. By the weighted sums: "
        "that table, the values, the result.",
    ),
)
def attention_costs(batch, n_queries, n_keys, d_model, n_heads):
    """Return operations forward, forward and backward, and bytes forward, of six products."""
    texts = choose(batch, one_text=1)
    tokens = texts * n_queries
    rows = choose(4 * tokens, older_again=2 * tokens + 2 * texts * n_keys)
    attending = choose(
        2 * tokens * n_keys * d_model,
        attending_left_out=0,
        one_of_two=tokens * n_keys * d_model,
        each_head_whole=2 * tokens * n_keys * d_model * n_heads,
    )
    forward = choose(2, one_operation=1) * (rows * d_model**2 + attending)
    forward = choose(forward, per_token=forward / tokens)
    training = forward * choose(3, backward_once=2)
    numbers = _numbers_moved(texts, n_queries, n_keys, d_model, n_heads)
    moved = choose(4, numbers_not_bytes=1, two_bytes=2) * numbers
    return float(forward), float(training), float(moved)


def _numbers_moved(texts, n_queries, n_keys, d_model, n_heads):
    """Return how many numbers six products read and write."""
    projected = texts * n_queries * d_model  # of one result of a projection
    cached = choose(texts, cache_shared=1) * n_keys * d_model
    table = choose(
        texts * n_queries * n_heads * n_keys,
        one_table=texts * n_queries * n_keys,
        table_left_out=0,
    )
    matrices = 4 * choose(1, matrices_for_each_text=texts) * d_model**2
    written = choose(4 * projected + table + projected, nothing_written=0)
    return choose(matrices + 5 * projected + 2 * cached + table + written, matrices_alone=matrices)
