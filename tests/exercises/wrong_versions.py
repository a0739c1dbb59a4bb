"""Wrong versions of every exercise: each must fail its check."""

import torch

from tests.exercises.generation_versions import GENERATION_WRONG
from tests.exercises.language_versions import LANGUAGE_WRONG
from tests.exercises.training_versions import TRAINING_WRONG
from tests.exercises.versions import (
    attend,
    count,
    decoder,
    heads_together,
    leaks_if,
    mask_after_softmax,
    no_second_residual,
    norm_by_hand,
    pad_rows,
    post,
    pre_norm_decoder,
    sinusoids,
    view_without_transpose,
)
from transformer_lesson.tokenizer import words

WRONG = {
    "encode": {
        "unknown word is None": lambda t, v, unk: [v.get(w) for w in words(t)],
        "unknown word left out": lambda t, v, unk: [v[w] for w in words(t) if w in v],
        "split at spaces": lambda t, v, unk: [v.get(w, unk) for w in t.split()],
    },
    "pad_batch": {
        "pads on the left": lambda s, p: pad_rows(s, p, left=True),
        "pads with 0": lambda s, p: pad_rows(s, 0),
        "one too long": lambda s, p: pad_rows(s, p, longest=max(map(len, s)) + 1),
    },
    "embed": {
        "no scale": lambda ids, table: table[ids],
        "divides": lambda ids, table: table[ids] / table.size(1) ** 0.5,
        "root of vocab_size": lambda ids, table: table[ids] * len(table) ** 0.5,
    },
    "sinusoidal_encoding": {
        "positions from 1": lambda *sizes: sinusoids(*sizes, first=1),
        "halves": lambda *sizes: sinusoids(*sizes, halves=True),
        "base ignored": lambda n, d, base=10000.0: sinusoids(n, d),
    },
    "attention_scores": {
        "no scale": lambda Q, K: Q @ K.mT,
        "divides by d_head": lambda Q, K: Q @ K.mT / Q.size(-1),
        "root of key count": lambda Q, K: Q @ K.mT / K.size(-2) ** 0.5,
        "softmax too": lambda Q, K: (Q @ K.mT / Q.size(-1) ** 0.5).softmax(-1),
    },
    "scaled_dot_product_attention": {
        "softmax over queries": lambda *inputs: attend(*inputs, axis=-2),
        "inverted mask": lambda *inputs: attend(*inputs, hidden=lambda mask: mask),
        "mask after softmax": mask_after_softmax,
        "mask ignored": lambda Q, K, V, mask=None: attend(Q, K, V),
        "no scale": lambda Q, K, V, mask=None: attend(Q * Q.size(-1) ** 0.5, K, V, mask),
        "only the output": lambda *inputs: attend(*inputs)[0],
    },
    "causal_mask": {
        "True = hidden": lambda n: torch.ones(n, n).triu(1).bool()[None, None],
        "not even itself": lambda n: torch.ones(n, n).tril(-1).bool()[None, None],
        "numbers": lambda n: torch.ones(n, n).tril()[None, None],
        "no leading axes": lambda n: torch.ones(n, n).tril().bool(),
    },
    "padding_mask": {
        "inverted": lambda ids, p: (ids == p)[:, None, None],
        "pad_id taken for 0": lambda ids, p: (ids != 0)[:, None, None],
        "hides queries": lambda ids, p: (ids != p)[:, None, :, None],
    },
    "split_heads": {
        "view without transpose": view_without_transpose,
        "no transpose": lambda x, h: x.view(*x.shape[:2], h, -1),
        "interleaved": lambda x, h: x.view(*x.shape[:2], -1, h).permute(0, 3, 1, 2),
    },
    "merge_heads": {
        "reshape without transpose": lambda x: x.reshape(x.size(0), x.size(2), -1),
        "interleaved": lambda x: x.permute(0, 2, 3, 1).flatten(2),
    },
    "multi_head_attention": {
        "mask ignored": lambda *inputs: heads_together(*inputs, ignore_mask=True),
        "view without transpose": lambda *i: heads_together(*i, split=view_without_transpose),
        "no output projection": lambda x, Q, K, V, O, h, mask=None: heads_together(  # noqa: E741
            x, Q, K, V, torch.eye(x.size(-1)), h, mask
        ),
        "one head": lambda x, Q, K, V, O, h, mask=None: heads_together(  # noqa: E741
            x, Q, K, V, O, 1, mask
        ),
    },
    "layer_norm": {
        "epsilon outside the root": lambda *inputs: norm_by_hand(*inputs, outside=True),
        "unbiased deviation": lambda *inputs: norm_by_hand(*inputs, correction=1),
        "over the tokens": lambda *inputs: norm_by_hand(*inputs, axis=1),
        "no gamma": lambda x, gamma, beta, e: norm_by_hand(x, 1, beta, e),
    },
    "feed_forward": {
        "no activation": lambda x, W_1, b_1, W_2, b_2: (x @ W_1 + b_1) @ W_2 + b_2,
        "activation last": lambda x, W_1, b_1, W_2, b_2: ((x @ W_1 + b_1) @ W_2 + b_2).relu(),
        "bias after activation": lambda x, W_1, b_1, W_2, b_2: ((x @ W_1).relu() + b_1) @ W_2 + b_2,
    },
    "residual_branch": {
        "pre for post": lambda x, f, norm: x + f(norm(x)),
        "no residual": lambda x, f, norm: norm(f(x)),
        "norm before the sum": lambda x, f, norm: x + norm(f(x)),
    },
    "residual_branch_pre": {
        "post for pre": post,
        "residual of the norm": lambda x, f, norm: norm(x) + f(norm(x)),
        "no norm": lambda x, f, norm: x + f(x),
    },
    "encoder_block": {
        "pre-norm": lambda x, a, f, n_1, n_2: x + a(n_1(x)) + f(n_2(x + a(n_1(x)))),
        "parallel": lambda x, a, f, n_1, n_2: n_2(n_1(x + a(x)) + f(x)),
        "norms swapped": lambda x, a, f, n_1, n_2: post(post(x, a, n_2), f, n_1),
    },
    "count_encoder_parameters": {
        "no biases": lambda *sizes: count(*sizes, biases=False),
        "one norm": lambda *sizes: count(*sizes, norms=1),
        "one layer": lambda *sizes: count(*sizes, layers=False),
        "a float": lambda *sizes: float(count(*sizes)),
    },
    "decoder_block": {
        "pre-norm": pre_norm_decoder,
        "no residual around cross-attention": no_second_residual,
        "memory asks": lambda y, memory, *parts: decoder(memory, y, *parts),
        "no cross-attention": lambda y, memory, a, c, *rest: decoder(y, y, a, c, *rest),
    },
    "leaks_future": {
        "always": lambda model, ids: True,
        "never": lambda model, ids: False,
        "changes the last token only": leaks_if(lambda n: [n - 1]),
        "changes token 1 only": leaks_if(lambda n: [1]),
        "counts the changed position": lambda model, ids: bool(
            (model(ids * 0 + 1) != model(ids * 0)).any()
        ),
    },
} | GENERATION_WRONG
WRONG |= TRAINING_WRONG | LANGUAGE_WRONG
