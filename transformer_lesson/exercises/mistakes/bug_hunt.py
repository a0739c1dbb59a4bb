"""Lesson 14: half repairs and other bugs of the functions under repair.

Long because it is data: many wrong versions of 24 exercises.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from transformer_lesson.exercises.bug_hunt import bugs
from transformer_lesson.exercises.specification import Mistake
from transformer_lesson.model import masks


def block(x, attention_1, attention_2, feed_forward, mask_1, mask_2, residual=True):
    """The block with a mask for each attention, made from the causal one."""
    causal = masks.causal_mask(x.size(1))
    x = x + attention_1(x, x, x, mask_1(causal))
    x = (x if residual else 0) + attention_2(x, x, x, mask_2(causal))
    return x + feed_forward(x)


def one_attention(x, attention_1, attention_2, feed_forward):
    """The block without its second attention."""
    x = x + attention_1(x, x, x, masks.causal_mask(x.size(1)))
    return x + feed_forward(x)


def stacked(ids, embedding, blocks, projection, mask_of):
    """The model with a mask for each block: mask_of(n, number of the block)."""
    x = embedding(ids)
    for i, one in enumerate(blocks):
        x = one(x, mask_of(ids.size(1), i))
    return projection(x)


def unchanged(mask):
    """The mask as it is."""
    return mask


def both(ids, hides_padding):
    """The causal mask and another one."""
    return masks.causal_mask(ids.size(1)) & hides_padding


def softmax_where(scores, mask, value, axis=-1):
    """Softmax with a value in the place of hidden scores."""
    return scores.masked_fill(~mask, value).softmax(dim=axis)


def first_key_for_empty_rows(scores, mask):
    """Weights that give a query without keys the first one."""
    weights = softmax_where(scores, mask, torch.finfo(scores.dtype).min).masked_fill(~mask, 0.0)
    weights[..., 0] += (~mask.any(-1)).to(scores.dtype)
    return weights


def inverted(scores, mask):
    """Weights on the keys that should be hidden."""
    lowest = torch.finfo(scores.dtype).min
    return softmax_where(scores, ~mask, lowest).masked_fill(mask, 0.0)


def heads_with(x, W_Q, W_K, W_V, scale=None, axis=-1, shared=False, values=None):
    """All heads by einsum, with places for a bug."""
    Q, K, V = (torch.einsum("bnd,hdk->bhnk", x, W) for W in (W_Q, W_K, W_V))
    scores = Q @ K.mT / (scale or Q.size(-1)) ** 0.5
    if shared:
        scores = scores.mean(dim=1, keepdim=True)
    return scores.softmax(dim=axis) @ (V if values is None else values(K, V))


def first_values(K, V):
    """The first head's values for every head."""
    return V[:, :1].expand_as(V)


def linear_if(change):
    """A test of linearity in which `change` says which of Q and K become the sum."""

    def is_linear(attend, x, y):
        together = attend(*change(x, x + y), x + y)
        apart = attend(x, x, x) + attend(*change(x, y), y)
        return torch.allclose(together, apart, atol=1e-5)

    return is_linear


def doubles(attend, x, y):
    """A test of f(2x) = 2 f(x) only."""
    return torch.allclose(attend(2 * x, 2 * x, 2 * x), 2 * attend(x, x, x), atol=1e-5)


def exactly_linear(attend, x, y):
    """A test without room for rounding."""
    z = x + y
    return torch.equal(attend(z, z, z), attend(x, x, x) + attend(y, y, y))


def by_formula(n, d_model, first=0, column_from=0, pairs=True, swapped=False):
    """The encoding entry by entry, with places for a bug."""
    rows = []
    for pos in range(first, first + n):
        row = []
        for column in range(column_from, column_from + d_model):
            two_i = 2 * (column // 2) if pairs else column
            angle = pos / 10000 ** (two_i / d_model)
            row.append(math.cos(angle) if column % 2 != swapped else math.sin(angle))
        rows.append(row)
    return torch.tensor(rows)


def sines_and_cosines(n, d_model, divisor=None, cosine_first=False):
    """The encoding for any width, columns cut where there is no room."""
    two_i = torch.arange(0, d_model, 2)
    angle = torch.arange(n)[:, None] / 10000 ** (two_i / (divisor or d_model))
    parts = (angle.cos(), angle.sin()) if cosine_first else (angle.sin(), angle.cos())
    return torch.stack(parts, dim=-1).flatten(1)[:, :d_model]


def rounded_up(n, d_model):
    """One column too many for an odd width."""
    return sines_and_cosines(n, d_model + d_model % 2, divisor=d_model)


def last_column_empty(n, d_model):
    """Zeros in the column that has no partner."""
    encoding = sines_and_cosines(n, d_model)
    encoding[:, d_model - d_model % 2 :] = 0.0
    return encoding


def powers(d_model, step=2, log=None, sign=-1, width=None):
    """Frequencies from an exponent with places for a bug."""
    exponent = torch.arange(0, d_model, 2) / 2 * step
    log = math.log(10000.0) if log is None else log
    return torch.exp(sign * exponent * log / (width or d_model))


def mixed(labels, n_classes, even, label):
    """Return targets: `even` for all classes, and `label` more at the label."""
    return torch.full((len(labels), n_classes), float(even)) + label * F.one_hot(labels, n_classes)


def label_written(labels, n_classes, smoothing):
    """Fill with the share of all, then write over the label instead of adding to it."""
    left = 1 - smoothing - smoothing / n_classes
    return mixed(labels, n_classes, smoothing / n_classes, left)


def all_positions(x, W, b):
    """The projection at every position."""
    return x @ W + b


def new_norm(x, branch, block):
    """The block's own dropout, but a norm that is made on the fly."""
    return nn.LayerNorm(x.size(-1))(x + block.dropout(branch))


def new_dropout(x, branch, block):
    """The block's own norm, but a dropout that is made on the fly."""
    return block.norm(x + nn.Dropout(0.3)(branch))


def written(next_logits, prompt, eos_id, n_new, sees=slice(None), past=0, keep=True):
    """Write up to `<eos>`, and `past` tokens more."""
    ids, left = list(prompt), None
    for _ in range(n_new):
        token = int(next_logits(ids[sees]).argmax())
        if token == eos_id and not keep:
            break
        ids.append(token)
        if token == eos_id and left is None:
            left = past + 1
        left = left and left - 1
        if left == 0:
            break
    return ids


def stops_at_any_end(next_logits, prompt, eos_id, n_new):
    """Look for `<eos>` in the whole list."""
    ids = list(prompt)
    for _ in range(n_new):
        ids.append(int(next_logits(ids).argmax()))
        if eos_id in ids:
            break
    return ids


def asks_first(next_logits, prompt, eos_id, n_new):
    """Look at the last token before the first one is written."""
    ids = list(prompt)
    while ids[-1] != eos_id and len(ids) < len(prompt) + n_new:
        ids.append(int(next_logits(ids).argmax()))
    return ids


def filled(next_logits, start, rounds, axis=1, best=None):
    """Append a token to each text in each round, with places for a bug."""
    ids = start
    for _ in range(rounds):
        logits = next_logits(ids)
        tokens = logits.argmax(dim=-1) if best is None else best(logits)
        ids = torch.cat([ids, tokens.unsqueeze(axis)], dim=1)
    return ids


def listing(model, ids, layers=slice(None)):
    """Embedding and layers, no projection."""
    x = model.embedding(ids)
    for layer in model.layers[layers]:
        x = layer(x)
    return x


def nothing_returned(model, ids):
    """All is computed, nothing handed over."""
    model.out(listing(model, ids))


def message(x, table, wanted, got=None):
    """Return the sentence with two values in it."""
    return f"Expected vectors of {wanted} numbers, but got {got or x.shape[-1]}."


BUG_HUNT_MISTAKES = {
    "gpt_block": (
        Mistake(
            "a second attention without a mask",
            "The first attention is masked, the second lets every token see all others: one open "
            "door is enough. Where does the mask go in?",
            lambda *inputs: bugs.gpt_block(*inputs),
        ),
        Mistake(
            "a block without its second attention",
            "It no longer sees the future, and most decoder-only models are built so. But this "
            "model has weights for two attentions: keep both and mask the second.",
            one_attention,
        ),
        Mistake(
            "a mask moved to the second attention",
            "Now the first attention stands open. Whoever may look at all tokens needs the mask, "
            "so both do.",
            lambda *inputs: block(*inputs, lambda mask: None, unchanged),
        ),
        Mistake(
            "an inverted second mask",
            "`True` means: may attend. The second attention sees only what comes later, which is "
            "the part to be hidden.",
            lambda *inputs: block(*inputs, unchanged, lambda mask: ~mask),
        ),
        Mistake(
            "a second attention without its residual",
            "The mask is right, but `x` itself is not added to what the second attention collects, "
            "so the token loses what it was.",
            lambda *inputs: block(*inputs, unchanged, unchanged, residual=False),
        ),
    ),
    "next_token_logits": (
        Mistake(
            "a stack without a causal mask",
            "Every position sees the token that it should predict. Such a model learns to copy it "
            "and knows nothing when it must write. What does `block` take besides `x`?",
            lambda *inputs: bugs.next_token_logits(*inputs),
        ),
        Mistake(
            "a mask for the first block only",
            "The second block still sees the future, and passes it on. The mask belongs to every "
            "block, so into the loop.",
            lambda *inputs: stacked(*inputs, lambda n, i: None if i else masks.causal_mask(n)),
        ),
        Mistake(
            "an inverted causal mask",
            "`True` means: may attend. Your tokens see only what comes after them. Does a `~` "
            "stand where none is needed, or `triu` for `tril`?",
            lambda *inputs: stacked(*inputs, lambda n, i: ~masks.causal_mask(n)),
        ),
        Mistake(
            "a mask that hides the token itself",
            "Position i may see positions 0 to i. In yours the diagonal is hidden too: a token "
            "has to predict its successor without knowing itself.",
            lambda *inputs: stacked(
                *inputs, lambda n, i: torch.ones(1, 1, n, n, dtype=torch.bool).tril(-1)
            ),
        ),
        Mistake(
            "a mask that shows one token ahead",
            "The triangle is shifted by one, so each position sees exactly the token that it must "
            "predict. The diagonal is the last one allowed.",
            lambda *inputs: stacked(
                *inputs, lambda n, i: torch.ones(1, 1, n, n, dtype=torch.bool).tril(1)
            ),
        ),
    ),
    "mask_for_batch": (
        Mistake(
            "a causal mask alone",
            "It hides padding on the right, which comes later than every real token. Padding on "
            "the left comes earlier and is seen. Which second mask looks at `ids`?",
            lambda *inputs: bugs.mask_for_batch(*inputs),
        ),
        Mistake(
            "a padding mask alone",
            "Padding is hidden now and the future is open. A key must be allowed by both masks.",
            lambda ids, pad_id: masks.padding_mask(ids, pad_id).expand(-1, -1, ids.size(1), -1),
        ),
        Mistake(
            "joining the masks by or",
            "With `|` a key is seen when one of the masks allows it. It must be allowed by both: "
            "`&`.",
            lambda ids, pad_id: masks.causal_mask(ids.size(1)) | masks.padding_mask(ids, pad_id),
        ),
        Mistake(
            "padding hidden as a query",
            "Your rows of padding are empty, and the columns are still there: real tokens see "
            "padding. Keys are the last axis.",
            lambda ids, pad_id: both(ids, (ids != pad_id)[:, None, :, None]),
        ),
        Mistake(
            "an inverted padding mask",
            "Your tokens see padding and nothing else. `True` means: may attend, and `ids == "
            "pad_id` says where they may not.",
            lambda ids, pad_id: both(ids, (ids == pad_id)[:, None, None]),
        ),
        Mistake(
            "a pad id taken to be 0",
            "Padding is 0 in some vocabularies and 3 in others. Compare with the argument "
            "`pad_id`.",
            lambda ids, pad_id: both(ids, (ids != 0)[:, None, None]),
        ),
    ),
    "weights_of_real_keys": (
        Mistake(
            "a row of nothing but minus infinity",
            "Softmax divides by the sum of exp(score), and here the sum is 0: NaN. One layer "
            "later NaN reaches every token. Hide with a finite number.",
            lambda *inputs: bugs.weights_of_real_keys(*inputs),
        ),
        Mistake(
            "a finite number without zeros after it",
            "NaN is gone. But a row of equal scores becomes a row of equal weights: a query that "
            "may see nothing now sees everything. What is left to do after the softmax?",
            lambda scores, mask: softmax_where(scores, mask, -1e9),
        ),
        Mistake(
            "the first key for an empty row",
            "No NaN, but a query that may see nothing collects key 0, which is hidden from it. "
            "Its weights must be 0.",
            first_key_for_empty_rows,
        ),
        Mistake(
            "a mask applied after the softmax",
            "Hidden keys get 0, but they took part in the sum: what is left does not sum to 1. "
            "Hide before the softmax as well.",
            lambda scores, mask: scores.softmax(dim=-1).masked_fill(~mask, 0.0),
        ),
        Mistake(
            "an inverted mask",
            "`True` means: may attend. You give the weight to the keys that are hidden.",
            inverted,
        ),
    ),
    "half_precision_weights": (
        Mistake(
            "minus 1e9 for every precision",
            "Half precision has no -1e9 and refuses; in the others a query without keys sees all "
            "of them evenly. Ask the scores' own precision for its lowest number.",
            lambda *inputs: bugs.half_precision_weights(*inputs),
        ),
        Mistake(
            "a lowest number without zeros after it",
            "It fits into half precision. But a row that is hidden whole is a row of equal "
            "scores, and softmax spreads it evenly. Hidden keys need a 0 after the softmax.",
            lambda scores, mask: softmax_where(scores, mask, torch.finfo(scores.dtype).min),
        ),
        Mistake(
            "minus 1e9 with zeros after it",
            "Rows without keys are right now. But half precision ends at 65504 and refuses -1e9: "
            "ask the scores' own precision for its lowest number.",
            lambda scores, mask: softmax_where(scores, mask, -1e9).masked_fill(~mask, 0.0),
        ),
        Mistake(
            "minus infinity alone",
            "Every precision has minus infinity. But a query that sees no key divides 0 by 0 and "
            "gets NaN: what should it get?",
            lambda scores, mask: softmax_where(scores, mask, -math.inf),
        ),
        Mistake(
            "a number that is not low enough",
            "-5 fits into half precision, and exp(-5) is no 0: hidden keys get a little weight. "
            "Take the lowest number that the precision has.",
            lambda scores, mask: softmax_where(scores, mask, -5.0),
        ),
        Mistake(
            "a product of scores and mask",
            "A hidden score becomes 0, and exp(0) is 1: a hidden key may get more weight than a "
            "visible one. Replace hidden scores, do not multiply them.",
            lambda scores, mask: (scores * mask).softmax(dim=-1),
        ),
    ),
    "cut_into_heads": (
        Mistake(
            "a view without a transpose",
            "The shape is right and the tokens are mixed: `view` deals numbers out in memory "
            "order, so head 0 holds the first tokens cut in pieces. Cut each token first.",
            lambda *inputs: bugs.cut_into_heads(*inputs),
        ),
        Mistake(
            "a transpose before the cut",
            "You turn the whole matrix over and cut then: the rows of a head are pieces of "
            "columns. First cut the last axis, then change places of two axes.",
            lambda x, n_heads: x.T.reshape(n_heads, len(x), -1),
        ),
        Mistake(
            "dealing the heads out like cards",
            "Each token keeps its numbers, but head 0 gets every n_heads-th of them, and W_Q "
            "holds the heads side by side. Head 0 gets the first d_head numbers.",
            lambda x, n_heads: x.view(len(x), -1, n_heads).permute(2, 0, 1),
        ),
        Mistake(
            "an order with tokens in front of heads",
            "Each token is cut well, and the axes stand as (n, head, d_head): products would "
            "compare heads instead of tokens. Bring the heads forward.",
            lambda x, n_heads: x.view(len(x), n_heads, -1),
        ),
        Mistake(
            "an order with tokens last",
            "The axes stand as (head, d_head, n). The last one must be the numbers of one token: "
            "`transpose(0, 1)` alone brings the heads forward.",
            lambda x, n_heads: x.view(len(x), n_heads, -1).permute(1, 2, 0),
        ),
    ),
    "all_heads": (
        Mistake(
            "a loop over the heads",
            "Every number is right, and every head waits for the one before: twelve heads take "
            "twelve times the operations. Let the product take all heads at once.",
            lambda *inputs: bugs.all_heads(*inputs),
        ),
        Mistake(
            "a scale by d_model",
            "A head compares d_head numbers, so its scores are divided by the root of d_head. "
            "Yours come out too small, and the weights too even.",
            lambda x, *W: heads_with(x, *W, scale=x.size(-1)),
        ),
        Mistake(
            "one set of weights for all heads",
            "The heads' scores are averaged before the softmax: all heads look at the same "
            "tokens. Each needs a row of weights of its own.",
            lambda *inputs: heads_with(*inputs, shared=True),
        ),
        Mistake(
            "a softmax over the heads",
            "The weights of a query must sum to 1 over the keys, the last axis. Yours sum to 1 "
            "over the heads, as if they voted.",
            lambda *inputs: heads_with(*inputs, axis=1),
        ),
        Mistake(
            "collecting keys in place of values",
            "The weights are right, and what they collect is `x @ W_K`. W_V is there to say what "
            "a token hands over.",
            lambda *inputs: heads_with(*inputs, values=lambda K, V: K),
        ),
        Mistake(
            "the first head's values for every head",
            "An index has stayed: each head collects the values of head 0. W_V has an axis for "
            "the heads, as W_Q has.",
            lambda *inputs: heads_with(*inputs, values=first_values),
        ),
    ),
    "is_linear": (
        Mistake(
            "a test that changes the values alone",
            "With queries and keys held still the weights are fixed numbers, and everything is "
            "linear. Self-attention has one x: it is query and key too.",
            lambda *inputs: bugs.is_linear(*inputs),
        ),
        Mistake(
            "holding the queries still",
            "Keys and values change, the queries do not, so a part of the weights' dependence "
            "stays unseen. In self-attention all three are the same x.",
            linear_if(lambda x, z: (x, z)),
        ),
        Mistake(
            "holding the keys still",
            "Queries and values change, the keys do not, so a part of the weights' dependence "
            "stays unseen. In self-attention all three are the same x.",
            linear_if(lambda x, z: (z, x)),
        ),
        Mistake(
            "a test of doubling alone",
            "Attention to the best key passes f(2x) = 2 f(x), because doubling leaves the best "
            "key the best. Linear means more: f(x + y) = f(x) + f(y).",
            doubles,
        ),
        Mistake(
            "a test without room for rounding",
            "`torch.equal` calls even a mean not linear: sums in another order differ in the last "
            "digit. `torch.allclose` leaves room for it.",
            exactly_linear,
        ),
    ),
    "projection_parameters": (
        Mistake(
            "a matrix of d_k by d_k",
            "A token comes to a head with d_model numbers and leaves with d_k. A square matrix of "
            "d_k could not even be multiplied with it, unless there is one head.",
            lambda *inputs: bugs.projection_parameters(*inputs),
        ),
        Mistake(
            "a matrix of d_model by d_model for every head",
            "So n_heads heads would be n_heads times as large. A head's matrix has d_k columns; "
            "side by side they are d_model.",
            lambda d_model, n_heads: 3 * n_heads * d_model**2,
        ),
        Mistake(
            "a count of two matrices",
            "Queries and keys are there. The values have a matrix of their own, W_V, as large as "
            "the others.",
            lambda d_model, n_heads: 2 * d_model**2,
        ),
        Mistake(
            "counting W_O in",
            "W_O belongs to the module and comes after the heads. Here only W_Q, W_K and W_V are "
            "asked for: three, not four.",
            lambda d_model, n_heads: 4 * d_model**2,
        ),
        Mistake(
            "counting biases in",
            "Three matrices and a bias for each column. The formula x W has no bias; count the "
            "matrices alone.",
            lambda d_model, n_heads: 3 * d_model**2 + 3 * d_model,
        ),
    ),
    "encoding_by_formula": (
        Mistake(
            "counting positions and columns from 1",
            "The formula counts both from 0. From 1, the rows are those of the next positions, "
            "and a sine no longer stands beside the cosine of its angle.",
            lambda *inputs: bugs.encoding_by_formula(*inputs),
        ),
        Mistake(
            "counting positions from 1",
            "The columns are right. But row 0 is the row of position 1, so a model trained with "
            "positions from 0 sees every token one place later.",
            lambda n, d: by_formula(n, d, first=1),
        ),
        Mistake(
            "counting columns from 1",
            "The rows are right. But column 0 is treated as dimension 1: cosines and sines have "
            "changed places, and pairs are torn apart.",
            lambda n, d: by_formula(n, d, column_from=1),
        ),
        Mistake(
            "a frequency for every column",
            "Columns 2i and 2i + 1 share one angle. In yours each column has its own, so a sine "
            "has no cosine to turn with.",
            lambda n, d: by_formula(n, d, pairs=False),
        ),
        Mistake(
            "a swap of sines and cosines",
            "The angles are right. Even columns are sines and odd ones cosines, so position 0 is "
            "0, 1, 0, 1.",
            lambda n, d: by_formula(n, d, swapped=True),
        ),
    ),
    "encoding_of_any_width": (
        Mistake(
            "one cosine more than there is room",
            "An odd width has one even column more than odd ones. `angle` has as many columns as "
            "there are sines: how many cosines fit?",
            lambda *inputs: bugs.encoding_of_any_width(*inputs),
        ),
        Mistake(
            "a width rounded up",
            "It no longer fails here. It fails later, where the encoding is added to embeddings "
            "of d_model numbers. Cut off what has no room.",
            rounded_up,
        ),
        Mistake(
            "an empty last column",
            "Nothing fails, and the last number says nothing about the position. There is room "
            "for one more sine.",
            last_column_empty,
        ),
        Mistake(
            "the exponent of the next even width",
            "The columns fit, but the exponents are divided by d_model + 1. The formula divides "
            "by d_model, odd or not.",
            lambda n, d: sines_and_cosines(n, d, divisor=d + d % 2),
        ),
        Mistake(
            "a cosine in front of each sine",
            "Even columns are sines: position 0 begins with 0, 1. What has to go for an odd width "
            "is the last cosine.",
            lambda n, d: sines_and_cosines(n, d, cosine_first=True),
        ),
    ),
    "add_positions": (
        Mistake(
            "a position for each sentence",
            "All tokens of a sentence get the same vector, and each sentence another one. The "
            "first axis of `x` counts sentences: which one counts tokens?",
            lambda *inputs: bugs.add_positions(*inputs),
        ),
        Mistake(
            "a table in front of the tokens",
            "The length is right now. But (n, 1, d_model) still puts the positions where the "
            "sentences are. Leave the axis of size 1 away, or put it in front.",
            lambda x, table: x + table[: x.size(1), None],
        ),
        Mistake(
            "counting positions from 1",
            "Every token stands one place too far. The first row of the table is position 0.",
            lambda x, table: x + table[1 : x.size(1) + 1],
        ),
        Mistake(
            "the end of the table",
            "A sentence of n tokens stands at positions 0 to n - 1, not at the end of the table.",
            lambda x, table: x + table[-x.size(1) :],
        ),
        Mistake(
            "one vector for all places",
            "An index where a slice should be: every token gets the row of position n.",
            lambda x, table: x + table[x.size(1)],
        ),
    ),
    "frequencies": (
        Mistake(
            "one factor for all entries",
            "0, 2, 4, ... times one number grows evenly: the first pair never moves and the others "
            "race. Each entry belongs into the exponent.",
            lambda *inputs: bugs.frequencies(*inputs),
        ),
        Mistake(
            "an exponent without its minus",
            "10000^(2i / d_model) grows from 1 to 10000: these are wavelengths (divided by 2π), "
            "not frequencies. The exponent is negative.",
            lambda d: powers(d, sign=1),
        ),
        Mistake(
            "i in place of 2i",
            "The exponent runs only half as far: the slowest pair turns a hundredth as fast as "
            "the first, not a ten-thousandth. Take 0, 2, 4, ... over d_model.",
            lambda d: powers(d, step=1),
        ),
        Mistake(
            "a logarithm to base 10",
            "`exp` undoes `math.log`, the logarithm to base e. With `log10` the base becomes about "
            "55 instead of 10000.",
            lambda d: powers(d, log=4.0),
        ),
        Mistake(
            "2i over half of d_model",
            "The exponent is doubled and runs to 2: the slowest pair turns once in about 600 "
            "million tokens. Divide 2i by d_model.",
            lambda d: powers(d, width=d / 2),
        ),
    ),
    "add_and_norm": (
        Mistake(
            "dropout after the norm",
            "It makes holes in what the next sub-layer and the residual path get, and undoes mean "
            "0 and deviation 1. Which tensor may lose numbers?",
            bugs.add_and_norm,
        ),
        Mistake(
            "dropout on the sum",
            "The norm comes last now, but `x` loses numbers too, and the residual path is there "
            "to carry it past the sub-layer whole. Only `sublayer(x)` goes through dropout.",
            lambda x, sublayer, dropout, norm: norm(dropout(x + sublayer(x))),
        ),
        Mistake(
            "dropout on the sub-layer's input",
            "The paper drops the sub-layer's output. Here the sub-layer reads a thinned-out `x`, "
            "and all that it adds survives.",
            lambda x, sublayer, dropout, norm: norm(x + sublayer(dropout(x))),
        ),
        Mistake(
            "a block without dropout",
            "It gives the right values in evaluation, and no regularization in training. "
            "`dropout` is an argument: where does it belong?",
            lambda x, sublayer, dropout, norm: norm(x + sublayer(x)),
        ),
        Mistake(
            "a missing residual",
            "`x` is not added: with a sub-layer that gives 0, nothing of the token is left.",
            lambda x, sublayer, dropout, norm: norm(dropout(sublayer(x))),
        ),
        Mistake(
            "a norm of the branch alone",
            "The norm stands before the sum, so the sum itself is not normalized. "
            "Post-norm means: add first, then normalize.",
            lambda x, sublayer, dropout, norm: x + norm(dropout(sublayer(x))),
        ),
        Mistake(
            "pre-norm",
            "`x + dropout(sublayer(norm(x)))` is today's practice and a good block. This one is "
            "the paper's, in which the norm comes last.",
            lambda x, sublayer, dropout, norm: x + dropout(sublayer(norm(x))),
        ),
    ),
    "close_branch": (
        Mistake(
            "a norm and a dropout made on the fly",
            "Both are new at every call: in training mode, with scale 1 and shift 0, known to no "
            "optimizer. The block has its own.",
            bugs.close_branch,
        ),
        Mistake(
            "a norm made on the fly",
            "The dropout is the block's now. The norm still is a new one, with scale 1 and shift "
            "0, whatever `block.norm` has learned.",
            new_norm,
        ),
        Mistake(
            "a dropout made on the fly",
            "The norm is the block's now. The dropout still is a new module, in training mode "
            "for ever: `block.eval()` does not reach it.",
            new_dropout,
        ),
        Mistake(
            "a missing dropout",
            "Nothing random is left in evaluation, but nothing is dropped in training either. "
            "`block.dropout` knows which mode it is in.",
            lambda x, branch, block: block.norm(x + branch),
        ),
        Mistake(
            "dropout on the sum",
            "`x` loses numbers too. Only the branch goes through dropout.",
            lambda x, branch, block: block.norm(block.dropout(x + branch)),
        ),
        Mistake(
            "dropout after the norm",
            "The modules are the right ones, their order is not: the norm comes last.",
            lambda x, branch, block: block.dropout(block.norm(x + branch)),
        ),
    ),
    "last_logits": (
        Mistake(
            "probabilities instead of logits",
            "Softmax has been done already. Whoever takes them for logits does it once more, and "
            "all tokens become nearly alike.",
            bugs.last_logits,
        ),
        Mistake(
            "log-probabilities",
            "`log_softmax` subtracts one number from the whole row. A later softmax undoes that, "
            "but the row is no longer what the projection gave.",
            lambda x, W, b: (x[:, -1] @ W + b).log_softmax(dim=-1),
        ),
        Mistake(
            "a softmax over the batch",
            "Now each token's numbers sum to 1 over the texts. Logits need no softmax at all.",
            lambda x, W, b: (x[:, -1] @ W + b).softmax(dim=0),
        ),
        Mistake(
            "the first position",
            "The first position has read the first token only. The next token of the text is "
            "predicted at its last one.",
            lambda x, W, b: x[:, 0] @ W + b,
        ),
        Mistake(
            "the logits of every position",
            "One row per text is wanted: the one at its last position, `x[:, -1]`.",
            all_positions,
        ),
        Mistake(
            "a forgotten bias",
            "Softmax is gone, and with it `b`: the projection is `x @ W + b`.",
            lambda x, W, b: x[:, -1] @ W,
        ),
    ),
    "smoothed_targets": (
        Mistake(
            "smoothing spread over the others only",
            "The label gets nothing of what is spread. PyTorch, and the paper that proposed "
            "smoothing, spread it over all classes, the label's own included.",
            bugs.smoothed_targets,
        ),
        Mistake(
            "a label that is written over",
            "All classes get `smoothing / n_classes`, but at the label that share is replaced by "
            "`1 - smoothing` instead of kept. The row sums to less than 1: add, with `+=`.",
            label_written,
        ),
        Mistake(
            "a label that gives nothing",
            "The smoothing is added to all classes and taken from none: the row sums to "
            "`1 + smoothing`.",
            lambda labels, n, smoothing: mixed(labels, n, smoothing / n, 1),
        ),
        Mistake(
            "one class too few for everyone",
            "`smoothing / (n_classes - 1)` was the share of the others. Now the label has its "
            "share too, so there are `n_classes` to share with.",
            lambda labels, n, smoothing: mixed(labels, n, smoothing / (n - 1), 1 - smoothing),
        ),
        Mistake(
            "no smoothing",
            "This is the plain target: all of it on the label.",
            lambda labels, n, smoothing: mixed(labels, n, 0, 1),
        ),
        Mistake(
            "smoothing and label changed round",
            "The label gets the share that was meant for spreading, and the classes the rest.",
            lambda labels, n, smoothing: mixed(labels, n, (1 - smoothing) / n, smoothing),
        ),
    ),
    "next_token_loss": (
        Mistake(
            "softmax before the loss",
            "`F.cross_entropy` does a softmax, so now there are two. The second one sees numbers "
            "between 0 and 1 and makes an almost even distribution of them.",
            bugs.next_token_loss,
        ),
        Mistake(
            "sigmoid before the loss",
            "Sigmoid squeezes the logits into 0 to 1 as well. `F.cross_entropy` wants them as "
            "the model gives them.",
            lambda logits, labels: F.cross_entropy(logits.sigmoid().mT, labels),
        ),
        Mistake(
            "a loss of probabilities without a logarithm",
            "`F.nll_loss` expects log-probabilities. On probabilities it gives minus their mean: "
            "a negative loss, whose best value is -1.",
            lambda logits, labels: F.nll_loss(logits.softmax(dim=-1).mT, labels),
        ),
        Mistake(
            "a loss of logits without a softmax",
            "`F.nll_loss` does no softmax: it picks the label's logit and turns its sign, and "
            "the other tokens do not count. `F.cross_entropy` does both steps.",
            lambda logits, labels: F.nll_loss(logits.mT, labels),
        ),
        Mistake(
            "a sum over the tokens",
            "The loss now grows with the size of the batch. The mean is wanted.",
            lambda logits, labels: F.cross_entropy(logits.mT, labels, reduction="sum"),
        ),
    ),
    "continue_text": (
        Mistake(
            "a loop that never looks for the end",
            "It always writes `max_new_tokens`. What stands after `<eos>` was never trained: "
            "noise. Look at each token that you append.",
            bugs.continue_text,
        ),
        Mistake(
            "an end that is not kept",
            "The loop stops, but `<eos>` is missing in the result. Whoever reads it cannot tell "
            "a finished text from one that was cut off.",
            lambda *inputs: written(*inputs, keep=False),
        ),
        Mistake(
            "one token after the end",
            "The test looks at the token before the last, or comes before the append: one token "
            "is written after `<eos>`.",
            lambda *inputs: written(*inputs, past=1),
        ),
        Mistake(
            "an end found in the prompt",
            "`eos_id in ids` is true from the start when the prompt holds one (GPT-2 begins "
            "every text with it). Look at `ids[-1]`, after the append.",
            stops_at_any_end,
        ),
        Mistake(
            "a test before the first token",
            "A prompt that ends with `<eos>` gets no answer. Append first, then look.",
            asks_first,
        ),
        Mistake(
            "a maximum that counts the prompt",
            "`max_new_tokens` counts what is new. With a long prompt nothing is left of it.",
            lambda f, prompt, eos_id, n: written(f, prompt, eos_id, max(0, n - len(prompt))),
        ),
        Mistake(
            "a model that reads the last token only",
            "`next_logits` takes all ids so far, the prompt included.",
            lambda *inputs: written(*inputs, sees=slice(-1, None)),
        ),
    ),
    "look_up": (
        Mistake(
            "an unknown word that becomes None",
            "Nothing complains here. `torch.tensor` fails later, somewhere else, and does not say "
            "which word it was.",
            bugs.look_up,
        ),
        Mistake(
            "an unknown word left out",
            "The list gets shorter and the sentence says something else: an unknown word is a "
            "word too, and has the id `unk_id`.",
            lambda words, vocabulary, unk_id: [vocabulary[w] for w in words if w in vocabulary],
        ),
        Mistake(
            "an error at the unknown word",
            "It is honest, and says which word it was. But anybody may type any word, and "
            "`unk_id` is there for it.",
            lambda words, vocabulary, unk_id: [vocabulary[word] for word in words],
        ),
        Mistake(
            "the id 0 taken for missing",
            "`get(word) or unk_id` takes `unk_id` for whatever counts as false: `None`, and the "
            "id 0 too. Give `get` a second argument.",
            lambda words, vocabulary, unk_id: [vocabulary.get(word) or unk_id for word in words],
        ),
        Mistake(
            "the id 0 for an unknown word",
            "0 is the id of some token, here of a word or of nothing. The one that means "
            "*unknown* is `unk_id`.",
            lambda words, vocabulary, unk_id: [vocabulary.get(word, 0) for word in words],
        ),
        Mistake(
            "an id past the end of the vocabulary",
            "The embedding has no row for it, or a row of something else. Use `unk_id`.",
            lambda words, vocabulary, unk_id: [vocabulary.get(w, len(vocabulary)) for w in words],
        ),
    ),
    "fill_up": (
        Mistake(
            "the number of texts taken for their length",
            "`len(start)` is `start.size(0)`, how many texts there are. And `unsqueeze(0)` makes "
            "one row of what should be a column.",
            bugs.fill_up,
        ),
        Mistake(
            "a row of new tokens",
            "The number of rounds is right. `best.unsqueeze(0)` has shape (1, batch) and fits for "
            "one text only; a column has shape (batch, 1).",
            lambda f, start, length: filled(f, start, length - start.size(1), axis=0),
        ),
        Mistake(
            "the number of texts still taken for their length",
            "The new tokens stand in a column now. But `len(start)` counts texts, not tokens.",
            lambda f, start, length: filled(f, start, length - len(start)),
        ),
        Mistake(
            "a length that counts new tokens only",
            "`length` is the number of tokens in the end, those of `start` included.",
            lambda f, start, length: filled(f, start, length),
        ),
        Mistake(
            "a round too few",
            "From `start.size(1)` to `length` there are `length - start.size(1)` rounds.",
            lambda f, start, length: filled(f, start, length - start.size(1) - 1),
        ),
        Mistake(
            "one token for the whole batch",
            "`argmax` without an axis looks at all texts together. Each text has a likeliest "
            "token of its own: `dim=-1`.",
            lambda f, start, length: filled(
                f,
                start,
                length - start.size(1),
                best=lambda logits: logits.argmax().expand(len(logits)),
            ),
        ),
    ),
    "width_message": (
        Mistake(
            "a row of the table",
            "`table[1]` is the row of position 1, all its numbers. Its width stands in the shape.",
            bugs.width_message,
        ),
        Mistake(
            "the number of positions",
            "The table has shape (n_positions, d_model), and this is the first of the two.",
            lambda x, table: message(x, table, len(table)),
        ),
        Mistake(
            "the whole shape",
            "The sentence compares two widths. Which entry of the shape is one?",
            lambda x, table: message(x, table, table.shape),
        ),
        Mistake(
            "one number of the table",
            "`table[1, 1]`, or the like, is a number in the table, not a size of it.",
            lambda x, table: message(x, table, table[1, 1]),
        ),
        Mistake(
            "the two widths changed round",
            "Expected is what the table has. What came is the width of `x`.",
            lambda x, table: message(x, table, x.shape[-1], table.shape[1]),
        ),
        Mistake(
            "the number of axes",
            "`x.dim()` and `len(x.shape)` count axes. The width is the size of the last one.",
            lambda x, table: message(x, table, table.shape[1], x.dim()),
        ),
    ),
    "run_listing": (
        Mistake(
            "a part called by another name",
            "The model was given `embedding`, and the code asks for `embed`. Python looks a name "
            "up when the line runs, so only a run finds this.",
            bugs.run_listing,
        ),
        Mistake(
            "a forgotten return",
            "The name is repaired, all is computed, and nothing is handed over: a function "
            "without `return` returns `None`.",
            nothing_returned,
        ),
        Mistake(
            "a result before the projection",
            "`x` is returned, and the projection's result is thrown away.",
            listing,
        ),
        Mistake(
            "a return inside the loop",
            "The function ends in the first round, after one layer. The `return` belongs behind "
            "the loop: look at its indentation.",
            lambda model, ids: model.out(listing(model, ids, slice(1))),
        ),
        Mistake(
            "a last layer that reads the embedding",
            "Each layer must read what the layer before it gave: `x = layer(x)`.",
            lambda model, ids: model.out(listing(model, ids, slice(-1, None))),
        ),
    ),
    "gpt2_d_model": (
        Mistake(
            "80 numbers per head",
            "1280 is the width of GPT-2 large, which has 20 heads, not 16. All four sizes have "
            "heads of the same width.",
            bugs.gpt2_d_model,
        ),
        Mistake(
            "the width of large for every size",
            "The number of heads does not enter. Count the parameters for 16 heads.",
            lambda n_heads: 1280,
        ),
        Mistake(
            "the width of medium for every size",
            "Right for 16 heads, and for no other number. What is 1024 / 16?",
            lambda n_heads: 1024,
        ),
        Mistake(
            "the heads of GPT-3",
            "128 numbers per head is what the largest GPT-3 has. GPT-2's heads are half as wide.",
            lambda n_heads: 128 * n_heads,
        ),
        Mistake(
            "a number with a fraction",
            "`/` gives a float in Python, and no tensor has 1024.0 columns. `//` or a product of "
            "two int gives an int.",
            lambda n_heads: 64.0 * n_heads,
        ),
    ),
}
