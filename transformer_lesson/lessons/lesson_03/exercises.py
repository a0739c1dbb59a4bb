"""Lesson 03: a head built by hand, scores, weights, masks.

Long because it has five exercises, and a head that is built may be any that keeps its promise: it
is judged by what it does.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lesson.exercises.engine.attempt import Failed
from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.lessons.lesson_03.torn_head import one_step, word_vectors
from transformer_lesson.model.attention import attention_scores as scaled_scores

PATTERNS = (
    "the N V the N .",
    "the A N V the A N .",
    "the A N V the N .",
    "the N V the A N .",
)
WORDS = {
    "N": "woman child dog window door cat".split(),
    "V": "sees opens finds loves".split(),
    "A": "old small".split(),
}


def _torn_inputs(draw: Draw) -> tuple:
    return (
        [
            WORDS[word][int(draw.integers("", 0, len(WORDS[word])))] if word in WORDS else word
            for word in draw.one_of(PATTERNS).split()
        ],
    )


def _found(answer, words):
    """Let a head read a sentence; return where each article looks, and how clearly.

    Any head passes whose articles give their own nouns 0.9 or more. A head that is too faint is so
    in every draw: it reads a sentence of each pattern.
    """
    W_Q, W_K = _two_matrices(answer(one_step()))
    rows = _looks(words, W_Q, W_K)
    for row in rows:
        alike = [words[j] for j in row.isclose(row.max(), rtol=0.02).nonzero()[:, 0].tolist()]
        if len(alike) > 1:
            return rows.argmax(-1).float(), f"torn between {' and '.join(alike)}"
    plain = [
        " ".join(WORDS.get(word, [word])[0] for word in pattern.split()) for pattern in PATTERNS
    ]
    faintest = min(_looks(text.split(), W_Q, W_K).amax(-1).min() for text in plain)
    return rows.argmax(-1).float(), "clearly" if faintest >= 0.9 else "faintly"


def _looks(words: list[str], W_Q: Tensor, W_K: Tensor) -> Tensor:
    """Return the weights of a sentence's articles, (article, word)."""
    x = word_vectors(words).double()
    weights = scaled_scores(x @ W_Q, x @ W_K).softmax(-1)
    return weights[[i for i, word in enumerate(words) if word == "the"]]


def _two_matrices(pair) -> list[Tensor]:
    """Return W_Q and W_K in double precision; say what is wrong with others."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise Failed("Return two matrices: (W_Q, W_K).")
    for name, matrix in zip(("W_Q", "W_K"), pair, strict=True):
        if not isinstance(matrix, Tensor):
            raise Failed(f"`{name}` must be a torch.Tensor. Yours is {type(matrix).__name__}.")
        if matrix.ndim != 2 or len(matrix) != 7:
            raise Failed(
                f"`{name}` must have 7 rows: five properties and the two numbers of the place. "
                f"Yours has shape {tuple(matrix.shape)}."
            )
        if not matrix.isfinite().all():
            raise Failed(f"There is a number in `{name}` that is NaN or infinite.")
    if pair[0].size(1) != pair[1].size(1):
        raise Failed(
            f"Queries and keys must be of one length. `W_Q` makes {pair[0].size(1)} numbers of a "
            f"word, `W_K` {pair[1].size(1)}."
        )
    return [matrix.detach().double() for matrix in pair]


def _own_nouns(words: list[str]) -> dict[int, int]:
    """Return the place of each article's noun, by the article's place."""
    nouns = [i for i, word in enumerate(words) if word in WORDS["N"]]
    return {i: next(j for j in nouns if j > i) for i, word in enumerate(words) if word == "the"}


@breaks("an article that does not look at a noun")
def _at_a_noun(answer, inputs: tuple, places: Tensor, looks: str) -> str | None:
    (words,) = inputs
    for i, j in zip(_own_nouns(words), map(int, places), strict=True):
        if "torn" not in looks and words[j] not in WORDS["N"]:
            return (
                f"In “{' '.join(words)}”, “the” at place {i} gives most of its weight to "
                f"“{words[j]}”, at place {j}."
            )
    return None


@breaks("an article that finds the other noun")
def _at_its_own(answer, inputs: tuple, places: Tensor, looks: str) -> str | None:
    (words,) = inputs
    for (i, noun), j in zip(_own_nouns(words).items(), map(int, places), strict=True):
        if "torn" not in looks and words[j] in WORDS["N"] and j != noun:
            return (
                f"In “{' '.join(words)}”, “the” at place {i} gives most of its weight to "
                f"“{words[j]}”, at place {j}, and its own noun is at place {noun}."
            )
    return None


@breaks("an article torn between words")
def _not_torn(answer, inputs: tuple, places: Tensor, looks: str) -> str | None:
    (words,) = inputs
    if "torn" not in looks:
        return None
    return f"In “{' '.join(words)}”, an article is {looks}: they get the same weight."


@exercise(
    reference="transformer_lesson.lessons.lesson_03.torn_head:own_noun",
    make_inputs=_torn_inputs,
    trial=_found,
    draws=8,
    returns={"found": "article", "looks": ""},
    invariants=(_not_torn, _at_a_noun, _at_its_own),
    hints=(
        "A score is a sum over the columns. In column 0 an article's query meets a noun's key. In "
        "columns 1 and 2 the query's hand, turned ahead, meets the hand of each key.",
        "`W_Q[0, 0]` is how strongly an article asks for a noun. `W_Q[5:, 1:]`, 2 by 2, turns its "
        "hand: of all nouns, the one nearest to the place that the hand points to wins.",
        "`W_Q[0, 0] = 40` and `W_Q[5:, 1:] = 20 * R`; return both matrices. Small numbers "
        "point the right way, but softmax needs large ones.",
    ),
)
def own_noun(R):
    """Return W_Q and W_K of a head in which each article finds its own noun."""
    loud = choose(20.0, 400.0, too_faint=0.5)
    W_Q, W_K = torch.zeros(2, 7, 3)
    kind = choose(2.0, no_kind=0.0, kind_avoided=-2.0)
    W_Q[0, 0] = loud * choose(kind, 10 * kind, kind / 2)
    row = choose(1, finds_articles=0, finds_verbs=2)
    W_K[row, 0] = 1.0
    step = choose(R, R + R @ R)  # to the next place, or to the next two
    ahead = choose(
        step, no_place=torch.zeros(2, 2), behind=step.T, here=torch.eye(2), three_ahead=R @ R @ R
    )
    W_Q[5:, 1:] = loud * ahead
    W_K[5:, 1:] = torch.eye(2)
    return choose((W_Q, W_K), swapped=(W_K, W_Q))


LEADING = ("batch head", "", "batch", "batch head", "batch head beam", "batch head")
"""The axes that "..." stands for, draw by draw."""


def _scores_inputs(draw: Draw) -> tuple:
    leading = draw.one_of(LEADING)
    if draw.number == 3:
        draw.sizes["batch"] = 1
    Q, K = draw.normal(f"{leading} query d_head"), draw.normal(f"{leading} key d_head")
    if draw.number == 5:  # in double precision, and Q lies in memory as its transpose
        return Q.double().mT.contiguous().mT, K.double()
    return Q, K


@exercise(
    reference="transformer_lesson.model.attention:attention_scores",
    make_inputs=_scores_inputs,
    draws=6,
    returns={"scores": "query key"},
    hints=(
        "A score is the dot product of one query with one key. One matrix product gives all "
        "of them at once.",
        "(query, d_head) times (d_head, key): which two axes of K must you swap? Leave all "
        "leading axes where they are.",
        "`Q @ K.transpose(-2, -1)`, divided by the square root of d_head = `Q.size(-1)`.",
    ),
)
def attention_scores(Q, K):
    """Return Q K^T / sqrt(d_head), for any leading axes."""
    Q = choose(Q, cosine=F.normalize(Q, dim=-1))
    K = choose(K, cosine=F.normalize(K, dim=-1))
    products = choose(
        Q @ K.mT,
        all_axes_turned=Q @ K.permute(*range(K.dim())[::-1]),
        keys_not_transposed=Q @ K.reshape(*K.shape[:-2], K.size(-1), K.size(-2)),
    )
    d_head = choose(Q.size(-1), number_of_keys=K.size(-2), number_of_queries=Q.size(-2))
    scores = products / choose(
        math.sqrt(d_head),
        cosine=1.0,
        unscaled=1.0,
        always_64=8.0,
        halved=d_head / 2,
        whole_root=math.isqrt(d_head),
        not_the_root=d_head,
    )
    return choose(
        scores, causal=scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -math.inf)
    )


def _attention_inputs(draw: Draw) -> tuple:
    """All kinds of masks, numbers of leading axes, and scores so large that exp overflows."""
    leading, axes = draw.one_of(
        (
            ("batch head", ""),
            ("batch head", "batch 1 query key"),  # a mask for each sentence
            ("", "query key"),
            ("batch head", "1 head query key"),  # for each head
            ("batch", "batch 1 key"),  # padding
            ("batch head", "batch 1 1 key"),
            ("batch head", "query key"),
            ("head", "1 query key"),
        )
    )
    large = draw.number in (0, 7)
    if large and not draw.small:
        draw.sizes["d_head"] = 16
    Q, K = draw.normal(f"{leading} query d_head"), draw.normal(f"{leading} key d_head")
    if large:  # whole numbers: no rounding, whether the root of 16 comes before or after
        Q, K = 8 * (4 * Q).round(), (4 * K).round()
    mask = draw.booleans(axes) if axes else None
    if axes:
        mask[..., -1] = True  # every query keeps a key,
        if draw.number in (5, 6):
            mask[0] = False  # but these
    if draw.number == 3:
        Q[..., 0, :] = 0.0  # all its scores are 0, those that are in sight as well
    return Q, K, draw.normal(f"{leading} key d_value"), mask


@breaks("weights that do not sum to 1")
def _rows_sum_to_one(answer, inputs: tuple, output: Tensor, weights: Tensor) -> str | None:
    sums, mask = weights.sum(dim=-1), inputs[3]
    if mask is not None:
        sums = sums.masked_fill(~mask.any(dim=-1), 1.0)  # a query without keys has zeros
    if torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
        return None
    return (
        "Each query's weights must sum to 1 over the keys (the last axis). "
        f"Yours sum to {_from_to(sums)}.\n"
        "Which axis does your softmax run over? Is the mask applied before the softmax?"
    )


def _from_to(numbers: Tensor) -> str:
    """Return the range of numbers, or the one number that all of them are."""
    least, most = (f"{number:.4g}" for number in (numbers.min(), numbers.max()))
    return least if least == most else f"between {least} and {most}"


@breaks("weight on hidden keys")
def _masked_keys_get_nothing(answer, inputs: tuple, output: Tensor, weights: Tensor) -> str | None:
    mask = inputs[3]
    if mask is None:
        return None
    hidden = weights.masked_fill(mask, 0.0)
    if hidden.max() < 1e-6:
        return None
    return (
        f"A key that the mask hides must get weight 0. Yours gives one {hidden.max():.4g}.\n"
        "True means: may attend. Which scores do you replace, and by what?"
    )


@exercise(
    reference="transformer_lesson.model.attention:scaled_dot_product_attention",
    make_inputs=_attention_inputs,
    draws=8,
    returns={"output": "query d_value", "weights": "query key"},
    hints=(
        "Three steps: scores, softmax, weighted sum of the values. The mask acts between the "
        "first two.",
        "Each query spreads a total of 1 over the keys: softmax over the last axis. Before that, a "
        "hidden key gets the lowest score there is. What if all of a query's keys are hidden?",
        "`scores.masked_fill(~mask, torch.finfo(scores.dtype).min)` hides keys where the mask is "
        "False. Minus infinity would give NaN in a row that is False for every key. After "
        "`.softmax(dim=-1)`, such a row needs `.masked_fill(~mask, 0.0)`. Return "
        "`weights @ V, weights`.",
    ),
    helpers=("transformer_lesson.model.attention:masked_softmax",),
    invariants=(_rows_sum_to_one, _masked_keys_get_nothing),
)
def scaled_dot_product_attention(Q, K, V, mask=None):
    """Return softmax(Q K^T / sqrt(d_head)) V and the weights; zeros where every key is hidden."""
    scale = choose(
        math.sqrt(Q.size(-1)),
        unscaled=1.0,
        not_the_root=Q.size(-1),
        inverse=1 / math.sqrt(Q.size(-1)),
        root_of_keys=math.sqrt(K.size(-2)),
    )
    scores = Q @ K.mT / scale
    hidden = _hidden(scores, mask)
    masked = _masked(scores, hidden)
    weights = _weights(masked, hidden)
    used = choose(weights, unmasked_weights_used=scores.softmax(-1))
    output = used @ choose(V, keys_as_values=K)
    return choose(
        (output, weights),
        output_alone=output,
        scores_returned=(output, masked),
        unmasked_weights_returned=(output, scores.softmax(-1)),
    )


def _hidden(scores, mask):
    """Return where a key must not be seen; one `False` for all where there is no mask."""
    if mask is None:
        return torch.tensor(False)
    hidden = choose(~mask, inverted=mask)
    return choose(
        hidden,
        mask_ignored=torch.tensor(False),
        future_too=hidden | torch.ones_like(scores).triu(1).bool(),
        head_axis_added=hidden.unsqueeze(1),
    )


def _masked(scores, hidden):
    """Return the scores with those of hidden keys so low that softmax leaves them nothing."""
    lowest = torch.finfo(scores.dtype).min
    return choose(
        scores.masked_fill(hidden, lowest),
        scores.masked_fill(hidden, -math.inf),
        zero_for_hidden=scores.masked_fill(hidden, 0.0),
        ten_subtracted=scores - 10.0 * hidden,
        zero_times_infinity=scores + hidden.float() * -math.inf if hidden.dim() else scores,
        hidden_after_softmax=scores,
        renormalized=scores,
        mask_added=scores + (~hidden).float(),
    )


def _weights(scores, hidden):
    """Return the shares of the keys: rows that sum to 1, or are 0 where every key is hidden."""
    below = scores - scores.max()
    shares = choose(
        scores.softmax(-1),
        over_queries=scores.softmax(-2),
        over_axis_1=scores.softmax(1),
        over_all=scores.flatten(-2).softmax(-1).view(scores.shape),
        twice=scores.softmax(-1).softmax(-1),
        sigmoid=scores.sigmoid(),
        naive_exponential=scores.exp() / scores.exp().sum(-1, keepdim=True),
        one_maximum=(below.exp() / below.exp().sum(-1, keepdim=True)).nan_to_num(0.0),
        hidden_after_softmax=scores.softmax(-1).masked_fill(hidden, 0.0),
        renormalized=F.normalize(scores.softmax(-1).masked_fill(hidden, 0.0), p=1, dim=-1),
    )
    empty = hidden.all(-1, keepdim=True) if hidden.dim() else hidden
    return choose(
        shares.masked_fill(hidden, 0.0),
        shares.masked_fill(empty, 0.0),
        empty_rows_of_nan=shares.masked_fill(empty, math.nan),
        zero_times_infinity=shares.nan_to_num(0.0),
        empty_rows_even=shares,
        one_empty_row_empties_all=shares.masked_fill(empty.any(), 0.0),
    )
