"""Lesson 08: gradients without autograd, from the loss back through one head; a step of Adam."""

import math

import torch.nn.functional as F
from torch import Tensor, linalg

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise

LOSS_SIZES = ((2, 5, 7), (3, 2, 5), (5, 3, 7), (1, 5, 3), (3, 1, 5), (2, 7, 5), (3, 5, 7))
"""How many sentences, positions and tokens. They are small, for many variants are tried on them."""


def _loss_inputs(draw: Draw) -> tuple:
    """Padding anywhere and nowhere, ids on both sides of it, one position, logits of 100."""
    if not draw.small:
        draw.sizes |= zip(("batch", "n", "vocab_size"), draw.one_of(LOSS_SIZES), strict=True)
    draw.size("batch"), draw.size("n")
    vocab_size = draw.size("vocab_size", at_least=3)
    logits = draw.normal("batch n vocab_size")
    pad_id = draw.one_of((0, 1, vocab_size - 1, 2, 0, 1, 0))
    labels = draw.integers("batch n", 0, vocab_size)
    labels[labels == pad_id] = (pad_id + 1) % vocab_size
    if draw.number not in (4, 6):
        labels.view(-1)[1::3] = pad_id  # every sentence keeps a label
    if draw.number == 2:
        logits = 100 * logits  # so far apart that the lowest probabilities are 0
    if draw.number == 3:
        logits = logits.double().mT.contiguous().mT
    if draw.number == 5:
        logits = logits + 100  # the exponentials are infinite
    return logits, labels, draw.one_of((0.1, 0.3, 0.2, 0.1, 0.5, 0.0, 0.1)), pad_id


@breaks("a gradient at padding")
def _padding_gets_nothing(answer, inputs: tuple, gradient: Tensor) -> str | None:
    padded = inputs[1] == inputs[3]
    if not gradient[padded].any():
        return None
    return (
        f"Where the label is padding (pad_id = {inputs[3]}), the loss does not depend on the "
        "logits, so its gradient is 0 there. Yours is not."
    )


@breaks("a gradient that does not sum to 0")
def _sums_to_nothing(answer, inputs: tuple, gradient: Tensor) -> str | None:
    worst = gradient.double().sum(-1).abs().max().item()
    if worst < 1e-4:
        return None
    return (
        "If all logits of a position rise by the same amount, its softmax stays, and so does the "
        "loss. So the gradient must sum to 0 at each position. Yours has a position where it "
        f"sums to {worst:.4f}."
    )


@exercise(
    reference="transformer_lesson.training.loss:loss_gradient",
    make_inputs=_loss_inputs,
    draws=7,
    returns={"gradient": "batch n vocab_size"},
    hints=(
        "On paper: write the loss of one position as ln sum exp(z_j) - sum q_j z_j, and "
        "differentiate by z_k. The first term gives a familiar fraction.",
        "That fraction is the softmax: at a real label the derivative is p - q. Build q from "
        "`F.one_hot(labels, vocab_size)` and the smoothing.",
        "The loss is a mean over the labels that count: divide by how many they are, and put 0 "
        "where the label is `pad_id`.",
    ),
    invariants=(_padding_gets_nothing, _sums_to_nothing),
)
def loss_gradient(logits, labels, smoothing, pad_id):
    """Return the derivative of the mean smoothed cross-entropy with respect to each logit."""
    smoothing = choose(smoothing, unsmoothed=0.0, always_a_tenth=0.1)
    real = choose(labels != pad_id, inverted=labels == pad_id)
    hot = F.one_hot(labels, logits.size(-1))
    p, q = _probabilities(logits), _target(smoothing, hot)
    gradient = choose(
        p - q,
        label_one_missing=p,
        target_alone=-q,
        summed=p + q,
        label_alone=(p - q) * hot,
        softmax_once_more=(p - q) * p * (1 - p),
        jacobian_once_more=p * (p - q - (p * (p - q)).sum(-1, keepdim=True)),
    )
    masked = choose(gradient * real[..., None], padding_too=gradient)
    return _share(masked, real)


def _share(gradient, real):
    """Return the gradient of the mean, from that of the sum."""
    in_sentence = real.sum(1)[:, None, None].clamp(min=1)
    return choose(
        gradient / real.sum(),
        of_the_sum=gradient,
        all_places=gradient / real.numel(),
        by_sentences=gradient / len(real),
        sentence_by_sentence=gradient / in_sentence / len(real),
    )


def _probabilities(logits):
    """Return what the model gives each word."""
    return choose(logits.softmax(-1), log_p=logits.log_softmax(-1), over_places=logits.softmax(1))


def _target(smoothing, hot):
    """Return the smoothed target of each position."""
    vocab_size = hot.size(-1)
    spread = smoothing / vocab_size
    others = smoothing / max(1, vocab_size - 1) * (1 - hot)
    return (1 - smoothing) * hot + choose(
        spread, others_only=others, label_left_out=spread * (1 - hot)
    )


def _rows(draw: Draw, *axes: str) -> list[Tensor]:
    """Return tensors of the named shapes: one sentence, one position, transposed doubles."""
    if draw.number in (2, 3):
        draw.sizes["batch" if draw.number == 2 else "n"] = 1
    tensors = [draw.normal(names) for names in axes]
    return (
        [tensor.double().mT.contiguous().mT for tensor in tensors] if draw.number == 4 else tensors
    )


def _step_inputs(draw: Draw) -> tuple:
    """First steps, from means of 0, and later ones; gradients that are tiny or 0."""
    w, g, m = (draw.normal("row column") for _ in range(3))
    v = draw.positive("row column")
    t = draw.one_of((1, 2, 7, 1, 60))
    if t == 1:
        m, v = 0 * m, 0 * v
    if draw.number == 3:
        g = 1e-5 * g
        g.view(-1)[::2] = 0.0
    if draw.number == 4:
        w, g, m, v = (tensor.double().mT.contiguous().mT for tensor in (w, g, m, v))
    return w, g, m, v, t, draw.one_of((0.1, 0.5, 0.01, 1.0, 0.2))


@exercise(
    reference="transformer_lesson.lessons.lesson_08.backward:adam_step",
    make_inputs=_step_inputs,
    returns={"w": "row column", "m": "row column", "v": "row column"},
    hints=(
        "First the new means: `0.9 * m + 0.1 * g`, and v in the same way, of `g * g`. Then ask "
        "what m is after one step, after two, after t, if g is the same in all of them.",
        "After one step m is 0.1 g, after two 0.1 g + 0.9 · 0.1 g = 0.19 g, after t it is "
        "(1 - 0.9^t) g. So which number do you divide m by, and which one v?",
        "`m_hat = m / (1 - 0.9**t)`, `v_hat = v / (1 - 0.98**t)`, and w goes down by "
        "`rate * m_hat / (v_hat.sqrt() + 1e-9)`. The m and v that you return have no hats.",
    ),
)
def adam_step(w, g, m, v, t, rate):
    """Return w, m and v after step t of Adam."""
    beta = choose(0.98, one_beta=0.9)
    new_m, new_v = _mean(m, g, 0.9), _mean(v, choose(g * g, not_squared=g), beta)
    of_m, of_v = choose((new_m, new_v), old_means=(m, v))
    m_hat = _corrected(of_m, 0.9, t)
    v_hat = choose(_corrected(of_v, beta, t), only_m_corrected=of_v)
    root = choose(
        v_hat.sqrt() + 1e-9,
        without_epsilon=v_hat.sqrt(),
        epsilon_inside=(v_hat + 1e-9).sqrt(),
        no_root=v_hat + 1e-9,
    )
    move = rate * choose(m_hat, gradient_alone=g) / root
    new_w = choose(w - move, uphill=w + move, move_alone=move)
    return choose((new_w, new_m, new_v), hats_kept=(new_w, m_hat, v_hat))


def _mean(old, new, beta):
    """Return a running mean."""
    return choose(
        beta * old + (1 - beta) * new,
        shares_exchanged=(1 - beta) * old + beta * new,
        added_whole=beta * old + new,
    )


def _corrected(mean, beta, t):
    """Return a running mean without the pull of its start at 0."""
    return mean / choose(
        1 - beta**t,
        uncorrected=1.0,
        first_step_always=1 - beta,
        counted_from_0=1 - beta ** (t + 1),
    )


def _projection_inputs(draw: Draw) -> tuple:
    H, G = _rows(draw, "batch n d_model", "batch n vocab_size")
    return H, draw.normal("d_model vocab_size").to(H.dtype), G


@exercise(
    reference="transformer_lesson.lessons.lesson_08.backward:projection_gradient",
    make_inputs=_projection_inputs,
    returns={"of_H": "batch n d_model", "of_W": "d_model vocab_size"},
    hints=(
        "At one position, `L = H @ W_L` is a sum: number i of H times row i of W_L. If number i "
        "grows by a little, which logits move, and how fast?",
        "So number i of H gets the dot product of G with row i: `G @ W_L.mT`. Entry (i, v) of W_L "
        "touches only logit v, and moves it by number i of H.",
        "`H.flatten(0, 1)` has a row for each position of the batch. W_L serves all of them, so "
        "its gradient is a sum over these rows: a matrix product.",
    ),
)
def projection_gradient(H, W_L, G):
    """Return the gradients of H and of W_L, where L = H W_L and G is that of L."""
    rows, of_rows = H.flatten(0, 1), G.flatten(0, 1)
    of_W = choose(
        rows.mT @ of_rows,
        batch_kept=H.mT @ G,
        batch_mean=(H.mT @ G).mean(0),
        mean_again=rows.mT @ of_rows / len(rows),
        sums_apart=rows.sum(0)[:, None] * of_rows.sum(0),
        stepped=W_L - rows.mT @ of_rows,
        sentences_added_up=H.sum(0).mT @ G.sum(0),
        reshaped=rows.reshape(len(W_L), -1) @ of_rows,
        last_position_alone=H[:, -1].mT @ G[:, -1],
    )
    of_W = choose(of_W, turned=of_W.mT)
    back = choose(G, logits_for_gradient=H @ W_L)
    of_H = choose(
        back @ W_L.mT,
        summed_over_positions=(back @ W_L.mT).sum(1),
        inverse=back @ linalg.pinv(W_L),
    )
    return choose((of_H, of_W), order_exchanged=(of_W, of_H))


@breaks("a gradient that does not sum to 0")
def _rows_sum_to_nothing(answer, inputs: tuple, of_scores: Tensor) -> str | None:
    worst = of_scores.double().sum(-1).abs().max().item()
    if worst < 1e-4:
        return None
    return (
        "If all scores of a row rise by the same amount, no weight changes. So each row of the "
        f"gradient must sum to 0. Yours has one that sums to {worst:.4g}."
    )


def _softmax_inputs(draw: Draw) -> tuple:
    """Rows with masked keys, whose weights are 0."""
    if draw.number == 3:
        draw.sizes["batch"] = 1
    scores, G = draw.normal("batch query key"), draw.normal("batch query key")
    if draw.number in (1, 4):
        scores[..., 1:2] = -math.inf
    if draw.number == 2:
        scores, G = scores.double(), G.double()
    return scores.softmax(-1), G


@exercise(
    reference="transformer_lesson.lessons.lesson_08.backward:softmax_gradient",
    make_inputs=_softmax_inputs,
    returns={"of_scores": "query key"},
    hints=(
        "Raise one score a little: its weight grows, and all others shrink to make room. "
        "So each score's gradient needs all of its row.",
        "The derivative of weight j by score k is w_j ([j = k] - w_k). Multiply by G_j and sum "
        "over j: two terms are left.",
        "w_k times (G_k minus the row's mean of G, weighted by w): "
        "`(weights * G).sum(-1, keepdim=True)`.",
    ),
    invariants=(_rows_sum_to_nothing,),
)
def softmax_gradient(weights, G):
    """Return the gradient of the scores, where weights = softmax(scores) and G is theirs."""
    w = choose(weights, second_softmax=weights.softmax(-1))
    weighted = (w * G).sum(choose(-1, over_queries=-2), keepdim=True)
    mean = choose(
        weighted,
        plain_mean=G.mean(-1, keepdim=True),
        plain_sum=G.sum(-1, keepdim=True),
        none=0 * weighted,
    )
    return choose(
        w * (G - mean),
        own_weight_alone=w * (1 - w) * G,
        outside_the_product=w * G - mean,
        added=w * (G + mean),
        as_at_the_loss=w - G,
    )


def _norm_inputs(draw: Draw) -> tuple:
    draw.size("d_model", at_least=3)
    x, G = _rows(draw, "batch n d_model", "batch n d_model")
    return x, draw.positive("d_model").to(x.dtype), draw.one_of((1e-5, 0.5, 1e-5, 2.0, 1e-5)), G


@exercise(
    reference="transformer_lesson.lessons.lesson_08.backward:layer_norm_gradient",
    make_inputs=_norm_inputs,
    returns={"of_x": "batch n d_model", "of_gamma": "d_model", "of_beta": "d_model"},
    hints=(
        "Forward: z = (x - mean) / deviation, then gamma z + beta. gamma and beta serve every "
        "token, so their gradients are sums over batch and n. What does z get?",
        "z gets `of_z = G * gamma`. A number of x acts on z in three ways: directly, through the "
        "mean, and through the deviation.",
        "The mean's part takes the mean of of_z away, the deviation's takes away "
        "z times the mean of of_z * z. Divide what remains by the deviation.",
    ),
)
def layer_norm_gradient(x, gamma, epsilon, G):
    """Return the gradients of x, gamma and beta, where G is that of the norm's result."""
    variance = x.var(-1, keepdim=True, correction=choose(0, unbiased=1))
    deviation = (variance + choose(epsilon, epsilon_forgotten=0.0)).sqrt()
    z = (x - x.mean(-1, keepdim=True)) / deviation
    of_z = choose(G * gamma, gamma_forgotten=G)
    both = of_z.mean(-1, keepdim=True), (of_z * z).mean(-1, keepdim=True)
    of_mean, of_deviation = choose(both, sums_for_means=tuple(x.size(-1) * mean for mean in both))
    of_mean = choose(of_mean, mean_held=0.0)
    of_deviation = choose(of_deviation * z, deviation_held=0.0, without_z=of_deviation)
    of_x = (of_z - of_mean - of_deviation) / choose(deviation, not_divided=1.0)
    of_x = choose(of_x, residual=G + of_x)
    read = choose(z, not_normalized=x)
    of_gamma, of_beta = (G * read).flatten(0, 1), G.flatten(0, 1)
    return of_x, *choose(
        (of_gamma.sum(0), of_beta.sum(0)), averaged=(of_gamma.mean(0), of_beta.mean(0))
    )


def _head_inputs(draw: Draw) -> tuple:
    """Heads that see everything, and heads that see nothing later."""
    Q, K, V, G = _rows(draw, *4 * ("batch n d_head",))
    scores = Q @ K.mT / math.sqrt(Q.size(-1))
    if draw.number in (1, 4):
        scores = scores.masked_fill(scores.new_ones(scores.shape[-2:]).triu(1).bool(), -math.inf)
    return Q, K, V, scores.softmax(-1), G


@exercise(
    reference="transformer_lesson.lessons.lesson_08.backward:head_gradient",
    make_inputs=_head_inputs,
    returns={"of_Q": "batch n d_head", "of_K": "batch n d_head", "of_V": "batch n d_head"},
    helpers=("transformer_lesson.lessons.lesson_08.backward:softmax_gradient",),
    hints=(
        "Two matrix products, and you know how to go back through one: Z = weights V, and before "
        "it, scores = Q Kᵀ / √d_head. Begin at Z.",
        "`of_V = weights.mT @ G`, `of_weights = G @ V.mT`, and `softmax_gradient` leads from "
        "there to the scores.",
        "The scores were divided by √d_head, so their gradient is, too. Then Q gets that times K, "
        "and K gets its transpose times Q.",
    ),
)
def head_gradient(Q, K, V, weights, G):
    """Return the gradients of Q, K and V, where G is that of weights @ V."""
    root = math.sqrt(Q.size(-1))
    of_V = choose(weights.mT, forward_again=weights) @ G
    of_weights = G @ V.mT
    of_scores = choose(
        weights * (of_weights - (weights * of_weights).sum(-1, keepdim=True)),
        softmax_skipped=of_weights,
        no_mean=weights * of_weights,
        own_weight_alone=weights * (1 - weights) * of_weights,
    )
    of_Q = of_scores @ choose(K, operands_swapped=Q) / choose(root, root_forgotten=1.0)
    back = choose(of_scores.mT, not_transposed=of_scores)
    of_K = back @ choose(Q, operands_swapped=K)
    of_K = of_K / choose(root, root_forgotten=1.0, root_for_queries_alone=1.0)
    return of_Q, of_K, of_V
