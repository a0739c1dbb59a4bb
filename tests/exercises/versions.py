"""Other right ways of writing every exercise. Some are a mistake's builder without its bug."""

import math

import torch
import torch.nn.functional as F

from tests.exercises.bug_hunt_versions import BUG_HUNT_RIGHT
from tests.exercises.generation_versions import GENERATION_RIGHT
from tests.exercises.induction_versions import INDUCTION_RIGHT
from tests.exercises.language_versions import LANGUAGE_RIGHT
from tests.exercises.modern_versions import MODERN_RIGHT
from tests.exercises.training_versions import TRAINING_RIGHT
from transformer_lesson.exercises.mistakes.attention import attend, heads_together
from transformer_lesson.exercises.mistakes.blocks import (
    count,
    decoder,
    leaks_if,
    norm_by_hand,
    post,
)
from transformer_lesson.exercises.mistakes.text import pad_rows, sinusoids
from transformer_lesson.text.tokenizers import words

RIGHT = {
    "encode": [lambda t, v, unk: tuple(v[w] if w in v else unk for w in words(t))],
    "pad_batch": [pad_rows],
    "embed": [
        lambda ids, table: F.embedding(ids, table) * table.size(1) ** 0.5,
        lambda ids, table: (
            F.one_hot(ids, len(table)).double() @ table.double() * math.sqrt(table.size(1))
        ),
    ],
    "sinusoidal_encoding": [sinusoids, lambda *sizes: sinusoids(*sizes).double()],
    "attention_scores": [
        lambda Q, K: torch.einsum("...qd,...kd->...qk", Q, K) / Q.size(-1) ** 0.5,
        lambda Q, K: (Q * Q.size(-1) ** -0.25).double() @ (K * Q.size(-1) ** -0.25).double().mT,
    ],
    "scaled_dot_product_attention": [
        attend,
        lambda Q, K, V, mask=None: list(attend(Q.double(), K.double(), V.double(), mask)),
    ],
    "causal_mask": [
        lambda n: (torch.arange(n)[:, None] >= torch.arange(n))[None, None],
        lambda n: ~torch.ones(n, n).triu(1).bool().expand(1, 1, n, n),
    ],
    "padding_mask": [lambda ids, pad_id: ~ids.eq(pad_id).unsqueeze(1).unsqueeze(1)],
    "split_heads": [
        lambda x, h: torch.stack(x.chunk(h, dim=-1), dim=1),
        lambda x, h: x.reshape(*x.shape[:2], h, -1).permute(0, 2, 1, 3),
    ],
    "merge_heads": [lambda x: torch.cat(list(x.unbind(1)), dim=-1)],
    "multi_head_attention": [heads_together],
    "layer_norm": [
        norm_by_hand,
        lambda x, gamma, beta, e: F.layer_norm(x, gamma.shape, gamma, beta, e),
        lambda *args: norm_by_hand(*(a.double() if torch.is_tensor(a) else a for a in args)),
    ],
    "feed_forward": [
        lambda x, W_1, b_1, W_2, b_2: F.linear(F.relu(F.linear(x, W_1.T, b_1)), W_2.T, b_2),
        lambda x, W_1, b_1, W_2, b_2: (x @ W_1).add_(b_1).clamp_(min=0) @ W_2 + b_2,
    ],
    "residual_branch": [lambda x, f, norm: norm(f(x.double()) + x)],
    "residual_branch_pre": [lambda x, f, norm: f(norm(x)) + x],
    "encoder_block": [lambda x, a, f, n_1, n_2: post(post(x, a, n_1), f, n_2)],
    "count_encoder_parameters": [count, lambda *sizes: torch.tensor(count(*sizes))],
    "decoder_block": [decoder],
    "leaks_future": [leaks_if(lambda n: range(n)), leaks_if(lambda n: range(n - 1, 0, -1))],
} | GENERATION_RIGHT
RIGHT |= TRAINING_RIGHT | LANGUAGE_RIGHT | BUG_HUNT_RIGHT
RIGHT |= INDUCTION_RIGHT | MODERN_RIGHT
