"""Lesson 12: a real chat model: its numbers, how to talk to it, its block.

Long because the block has four sub-steps that a 2017 block lacks, each with mistakes of its own.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lesson.exercises import random_layers
from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.model.attention import (
    merge_heads,
    repeat_kv,
    scaled_dot_product_attention,
    split_heads,
)
from transformer_lesson.model.feed_forward import swiglu
from transformer_lesson.model.llama import LlamaBlock
from transformer_lesson.model.masks import causal_mask, window_mask
from transformer_lesson.model.norm import rms_norm
from transformer_lesson.model.positions import apply_rotary
from transformer_lesson.text.tokenizers import Tokenizer


def _q4_1_inputs(draw: Draw) -> tuple:
    """Blocks of known size: a scale, a smallest number, and 32 steps from 0 to 15."""
    draw.sizes |= ({}, {"block": 1}, {}, {}, {})[draw.number]
    header = torch.stack([0.1 + draw.positive("block"), draw.normal("block")], dim=1)
    steps = draw.integers("block 16", 0, 256).to(torch.uint8)
    return (torch.cat([header.half().view(torch.uint8), steps], dim=1),)


@breaks("more than sixteen levels in a block")
def _sixteen_levels(answer, inputs: tuple, numbers: Tensor) -> str | None:
    levels = max(len(row.unique()) for row in numbers)
    if levels <= 16:
        return None
    return (
        f"A step has 4 bits, so a block holds at most 16 different numbers. Yours holds {levels}.\n"
        "Which of the 20 bytes are the steps, and how many steps does each of these hold?"
    )


@exercise(
    reference="transformer_lesson.checkpoints.gguf_formats:dequantize_q4_1",
    helpers=("transformer_lesson.checkpoints.gguf_formats:parts_q4_1",),
    make_inputs=_q4_1_inputs,
    draws=5,
    returns={"numbers": "block number"},
    hints=(
        "`blocks[:, 0:2].view(torch.float16).float()` is the scale of every block, shape "
        "(block, 1). The smallest number is in the next two bytes.",
        "`pairs & 15` keeps the lower four bits of each of the last 16 bytes, `pairs >> 4` the "
        "upper four. Which numbers does each half belong to?",
        "`steps = torch.cat([pairs & 15, pairs >> 4], dim=1)`, then `scale * steps + smallest`.",
    ),
    invariants=(_sixteen_levels,),
)
def dequantize_q4_1(blocks):
    """Return scale * step + smallest for each number of each block."""
    first, second = (blocks[:, i : i + 2].view(torch.float16).float() for i in (0, 2))
    scale, smallest = choose((first, second), scale_and_smallest_exchanged=(second, first))
    scale = choose(scale, scale_of_the_first_block=scale[:1], one_scale=torch.ones_like(scale))
    smallest = choose(smallest, smallest_of_the_first_block=smallest[:1])
    steps = _steps(blocks[:, 4:])
    steps = choose(steps, around_8=steps - 8.0)
    return choose(
        scale * steps + smallest,
        no_smallest=scale * steps,
        smallest_scaled=scale * (steps + smallest),
        smallest_subtracted=scale * steps - smallest,
        multiplied_in_16_bits=(scale.half() * steps.half() + smallest.half()).float(),
    )


def _steps(pairs):
    """Return the steps of the 32 numbers."""
    lower, upper = pairs & 15, pairs >> 4
    lower, upper = choose((lower, upper), halves_exchanged=(upper, lower))
    return choose(
        torch.cat([lower, upper], 1),
        neighbors=torch.stack([lower, upper], 2).flatten(1),
        blocks_mixed=torch.cat([lower, upper]).reshape(-1, 32),
    )


class Letters(Tokenizer):
    """A tokenizer of single characters, for which the two marks of a chat are ids of their own.

    It can be called, as functions can: an exercise's inputs of this kind are not compared.

    Args:
        start_id, end_id: ids of the marks.
    """

    def __init__(self, start_id: int, end_id: int):
        self.vocabulary = {"<|im_start|>": start_id, "<|im_end|>": end_id}

    def _to_ids(self, text: str) -> list[int]:
        return [100 + ord(letter) for letter in text]

    def _to_text(self, ids: list[int]) -> str:
        return "".join(chr(id_ - 100) for id_ in ids)

    def to_json(self) -> str:
        """Raise a `ValueError`: it is remade for each draw."""
        raise ValueError("A tokenizer of an exercise is not kept.")

    def __call__(self, text: str) -> list[int]:
        """Return one id for each character, 100 above its place in Unicode."""
        return self.encode(text)

    def __repr__(self) -> str:
        marks = ", ".join(f"{mark} is {id_}" for mark, id_ in self.vocabulary.items())
        return f"a tokenizer of characters: 'a' is 197, a line break 110, {marks}"


CHATS = (
    [("user", "Hi")],
    [("system", "Be kind."), ("user", "Hi")],
    [("user", "1+1?"), ("assistant", "2"), ("user", "Sure?")],
    [("user", " two\nlines ")],
    [("user", "<|im_end|>")],
    [("user", "")],
)


def _chat_inputs(draw: Draw) -> tuple:
    """Chats of one message and of several; one that nobody has seen begins with a number."""
    messages = list(draw.one_of(CHATS))
    if draw.seed is not None:
        messages.insert(0, ("user", str(draw.unless_unseen(0, 1000, 9999))))
    return Letters(7 + draw.number, 2 + draw.number), messages


@exercise(
    reference="transformer_lesson.text.pretrained:chat_prompt",
    make_inputs=_chat_inputs,
    draws=len(CHATS),
    returns={"ids": "token"},
    hints=(
        "Lay the messages of the second conversation side by side. What comes before each role, "
        "between role and text, after each text?",
        "One message is: the id of `<|im_start|>`, the ids of `role\\ntext`, the id of "
        "`<|im_end|>`, the ids of a line break. A mark is one id, "
        "`tokenizer.vocabulary['<|im_start|>']`.",
        "After the last message it is the assistant's turn: the id of "
        "`<|im_start|>` once more and `tokenizer.encode('assistant\\n')`, with no end.",
    ),
)
def chat_prompt(tokenizer, messages):
    """Return the ids of a conversation up to where the assistant begins to write."""
    start, end = (tokenizer.vocabulary[mark] for mark in ("<|im_start|>", "<|im_end|>"))
    start, end = choose((start, end), marks_exchanged=(end, start))
    opening, closing = choose(
        ([start], [end]),
        marks_as_text=(tokenizer.encode("<|im_start|>"), tokenizer.encode("<|im_end|>")),
    )
    conversation = choose(
        messages,
        last_message_alone=messages[-1:],
        users_messages_alone=[pair for pair in messages if pair[0] == "user"],
        always_user=[("user", text) for _, text in messages],
        stripped=[(role, text.strip()) for role, text in messages],
        roles_exchanged=[(text, role) for role, text in messages],
    )
    ids = []
    for role, text in conversation:
        spoken = choose(
            f"{role}\n{text}",
            no_role=text,
            no_break_after_role=role + text,
            colon=f"{role}: {text}",
        )
        line = opening + tokenizer.encode(spoken)
        end_of_line = closing + choose(tokenizer.encode("\n"), no_line_break=[])
        ids += line + end_of_line
    return _answering(ids, opening, end_of_line, tokenizer)


def _answering(ids, opening, end_of_line, tokenizer):
    """Return ids that end where the assistant begins to write."""
    begin = opening + tokenizer.encode("assistant\n")
    return choose(
        ids + begin,
        no_beginning=ids,
        answer_closed=ids + begin + end_of_line,
        no_break_before=ids[:-1] + begin,
    )


def _block_inputs(draw: Draw) -> tuple:
    """A head of keys for three of queries, for two, for all, for one; one token; one text.

    In one draw the mask hides more than what comes after a token, and everything from one.
    """
    n_heads, n_kv_heads, d_head = draw.one_of(
        ((6, 2, 4), (4, 2, 2), (4, 1, 4), (3, 3, 4), (8, 4, 2), (6, 3, 4))
    )
    draw.sizes |= ({}, {}, {"batch": 1}, {}, {"n": 1}, {})[draw.number]
    draw.sizes |= {"d_model": n_heads * d_head, "d_kv": n_kv_heads * d_head}
    n, d_model = draw.size("n", at_least=3 if draw.number == 3 else 1), draw.size("d_model")
    mask = window_mask(n, 2) if draw.number == 3 else causal_mask(n)
    mask[..., 1:2, :] &= draw.number != 3  # this token sees nothing
    matrices = [
        draw.normal(axes) / d_model**0.5
        for axes in ("d_model d_model", "d_model d_kv", "d_model d_kv", "d_model d_model")
    ]
    W_gate, W_up = (draw.normal("d_model d_ff") / d_model**0.5 for _ in range(2))
    W_down = draw.normal("d_ff d_model") / draw.size("d_ff") ** 0.5
    norms = draw.positive("d_model"), draw.positive("d_model")
    base = draw.one_of((100.0, 10000.0, 100_000.0, 500.0))
    block = LlamaBlock(
        norms[0], *matrices, norms[1], W_gate, W_up, W_down, n_heads, n_kv_heads, base
    )
    positions = draw.integers("n", 1, 5).cumsum(0) + draw.one_of((-1, 20, 0, 3))
    return 2 * draw.normal("batch n d_model") + 0.5, block, mask, positions


@exercise(
    reference="transformer_lesson.model.llama:llama_block",
    make_inputs=_block_inputs,
    draws=6,
    returns={"x": "batch n d_model"},
    hints=(
        "Lesson 10's block with other parts: norm, attention, add; norm, network, add. Write "
        "`residual_branch_pre(x, attend, norm)` twice, with an `attend(h)` of your own.",
        "In `attend`: `h @ block.W_Q` in `n_heads` heads, keys and values in `n_kv_heads`. A score "
        "compares a query with a key, so positions matter to those two.",
        "Queries and keys go through `apply_rotary(heads, positions, block.base)`; keys and values "
        "then through `repeat_kv(heads, block.n_heads // block.n_kv_heads)`; then attention, "
        "`merge_heads`, `@ block.W_O`.",
    ),
    invariants=(random_layers.is_deterministic,),
)
def llama_block(x, block, mask, positions):
    """Return x after both sub-layers."""
    normalize, gammas = _norms(block)
    read = choose(normalize(x, gammas[0], 1e-5), no_norms=x, post_norm=x)
    Q, K, V = _rotated(read, block, positions)
    output = _found(Q, K, V, block, mask)
    between = choose(x + output, no_residuals=output)
    between = choose(between, post_norm=normalize(between, gammas[0], 1e-5))
    read = choose(
        normalize(between, gammas[1], 1e-5),
        no_norms=between,
        post_norm=between,
        side_by_side=normalize(x, gammas[1], 1e-5),
    )
    written = _written(read, block)
    x = choose(between + written, no_residuals=written)
    return choose(x, post_norm=normalize(x, gammas[1], 1e-5))


def _norms(block):
    """Return the function of both norms, and the gamma of each."""
    normalize = choose(rms_norm, layer_norm=_layer_norm)
    gammas = choose(
        (block.norm_1, block.norm_2),
        norms_swapped=(block.norm_2, block.norm_1),
        first_norm_twice=(block.norm_1, block.norm_1),
    )
    return normalize, gammas


def _layer_norm(x, gamma, epsilon):
    return F.layer_norm(x, gamma.shape, gamma, eps=epsilon)


def _found(Q, K, V, block, mask):
    """Return what attention adds."""
    groups = block.n_heads // block.n_kv_heads
    K, V = choose(
        (repeat_kv(K, groups), repeat_kv(V, groups)),
        in_turns=(K.repeat(1, groups, 1, 1), V.repeat(1, groups, 1, 1)),
    )
    mask = choose(mask, inverted_mask=~mask)
    heads, _ = scaled_dot_product_attention(Q, K, V, mask)
    sees_nothing = ~mask.any(-1, keepdim=True)
    heads = choose(heads, nothing_is_nan=heads.masked_fill(sees_nothing, torch.nan))
    merged = merge_heads(heads)
    return choose(merged @ block.W_O, no_W_O=merged)


def _neighbors_turned(x, positions, base):
    """Return x with each pair of neighbors (2j, 2j + 1) turned."""
    halves = torch.cat([x[..., ::2], x[..., 1::2]], dim=-1)
    return torch.stack(apply_rotary(halves, positions, base).chunk(2, dim=-1), -1).flatten(-2)


def _rotated(read, block, positions):
    """Return queries and keys, rotated, and values, each in their heads."""
    places = choose(positions, counted_by_itself=torch.arange(len(positions)))
    turn = choose(
        partial(apply_rotary, positions=places, base=block.base),
        turned_back=partial(apply_rotary, positions=-places, base=block.base),
        neighbors_turned=partial(_neighbors_turned, positions=places, base=block.base),
    )
    q, k, v = read @ block.W_Q, read @ block.W_K, read @ block.W_V
    n_heads, n_kv_heads = block.n_heads, block.n_kv_heads
    Q, K, V = (split_heads(*pair) for pair in ((q, n_heads), (k, n_kv_heads), (v, n_kv_heads)))
    return choose(
        (turn(Q), turn(K), V), no_rotary=(Q, K, V), values_turned=(turn(Q), turn(K), turn(V))
    )


def _written(read, block):
    """Return what the feed-forward network adds."""
    gate, up, down = block.W_gate, block.W_up, block.W_down
    gate, up = choose((gate, up), gate_and_up_exchanged=(up, gate))
    return choose(swiglu(read, gate, up, down), no_silu=(read @ gate * (read @ up)) @ down)
