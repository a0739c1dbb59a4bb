"""Lesson 12: a real chat model: its names, its numbers, how to talk to it, what means the same."""

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, exercise
from transformer_lesson.text.tokenizers import Tokenizer

TENSORS = (
    "token_embd.weight",
    "blk.0.attn_norm.weight",
    "blk.1.attn_q.weight",
    "blk.17.attn_k.weight",
    "blk.29.attn_v.weight",
    "blk.11.attn_output.weight",
    "blk.20.ffn_norm.weight",
    "blk.3.ffn_gate.weight",
    "blk.10.ffn_up.weight",
    "blk.22.ffn_down.weight",
    "output_norm.weight",
    "blk.10.attn_q.weight",
)
"""Of the real file's 272 names one of each kind, from blocks with one digit and with two."""


def _name_inputs(draw: Draw) -> tuple:
    words = draw.one_of(TENSORS).split(".")
    if "blk" in words:
        words[1] = str(draw.unless_unseen(int(words[1]), 0, 29))
    return (".".join(words),)


@exercise(
    reference="transformer_lesson.checkpoints.llama_cpp:our_name",
    make_inputs=_name_inputs,
    draws=len(TENSORS),
    returns={"ours": ""},
    hints=(
        "`name.split('.')` gives the words of a name. Three kinds of words occur: `blk`, a number "
        "that stays, and a part that needs another name.",
        "A dictionary has our name for each part, such as `attn_q`. `dictionary.get(word, word)` "
        "leaves what it does not know as it is.",
        "`'.'.join(parts.get(word, word) for word in name.split('.'))`, with `'blk': 'decoder'` "
        "among the parts.",
    ),
)
def our_name(name):
    """Return our name of a tensor, by llama.cpp's."""
    *block, part, kind = choose(name.split("."), unchanged=["", "", name])
    part = _part(part)
    number = choose(
        block[-1:],
        block_lost=[],
        first_block=["0"] * len(block[-1:]),
        one_digit=[digits[0] for digits in block[-1:]],
        counted_from_1=[str(int(digits) + 1) for digits in block[-1:]],
    )
    stack = choose(
        ["decoder"] * bool(block),
        encoder=["encoder"] * bool(block),
        blk_kept=block[:1],
        no_stack=[],
        always_decoder=["decoder"],
        of_the_library=["model", "layers"] if block else [],
    )
    words = [*stack, *number, part, kind]
    return choose(
        ".".join(words),
        kind_lost=".".join(words[:-1]),
        kind_twice=".".join([*words, kind]),
        underscores="_".join(words),
        list_of_words=words,
    )


def _part(part):
    """Return our name of a part."""
    norms = choose(("norm_1", "norm_2"), norms_exchanged=("norm_2", "norm_1"))
    query, key = choose(("W_Q", "W_K"), queries_for_keys=("W_K", "W_Q"))
    gate, up, down = choose(
        ("W_gate", "W_up", "W_down"),
        gate_for_up=("W_up", "W_gate", "W_down"),
        up_for_down=("W_gate", "W_down", "W_up"),
        without_W=("gate", "up", "down"),
    )
    attention = choose("self_attention", no_attention="", short="self_attn")
    network = choose("feed_forward", no_network="", mlp="mlp")
    last = choose("decoder_norm", not_renamed="output_norm", replaced_in_part="projection_norm")
    output = choose("W_O", replaced_in_part="projection", output_kept="output")
    parts = {
        "token_embd": choose("embedding", token_embedding="token_embedding"),
        "attn_norm": norms[0],
        "ffn_norm": norms[1],
        "output_norm": last,
    }
    parts |= {"attn_" + old: f"{attention}.{new}".strip(".") for old, new in _QKVO(query, key)}
    parts["attn_output"] = f"{attention}.{output}".strip(".")
    parts |= {
        "ffn_" + old: f"{network}.{new}".strip(".")
        for old, new in (("gate", gate), ("up", up), ("down", down))
    }
    return parts.get(part, part)


def _QKVO(query, key):
    return (("q", query), ("k", key), ("v", "W_V"))


def _q4_1_inputs(draw: Draw) -> tuple:
    """Blocks of known size: a scale, a smallest number, and 32 steps from 0 to 15."""
    draw.sizes |= ({}, {"block": 1}, {}, {}, {})[draw.number]
    header = torch.stack([0.1 + draw.positive("block"), draw.normal("block")], dim=1)
    steps = draw.integers("block 16", 0, 256).to(torch.uint8)
    return (torch.cat([header.half().view(torch.uint8), steps], dim=1),)


def _sixteen_levels(answer, inputs: tuple, numbers: Tensor) -> str | None:
    levels = max(len(row.unique()) for row in numbers)
    if levels <= 16:
        return None
    return (
        f"A step has 4 bits, so a block holds at most 16 different numbers. Yours holds {levels}.\n"
        "Which of the 20 bytes are the steps, and how many steps does each of these hold?"
    )


@exercise(
    reference="transformer_lesson.checkpoints.gguf:dequantize_q4_1",
    helpers=("transformer_lesson.checkpoints.gguf:parts_q4_1",),
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
    numbers = choose(
        scale * steps + smallest,
        no_smallest=scale * steps,
        smallest_scaled=scale * (steps + smallest),
        smallest_subtracted=scale * steps - smallest,
        around_8=scale * (steps - 8.0) + smallest,
        divided_by_15=scale * steps / 15 + smallest,
        steps_alone=steps.float(),
    )
    return choose(
        numbers,
        flat=numbers.flatten(),
        numbers_before_blocks=numbers.T,
        half_precision=numbers.half(),
        whole=numbers.long(),
    )


def _steps(pairs):
    """Return the steps of the 32 numbers."""
    lower, upper = pairs & 15, pairs >> 4
    lower, upper = choose((lower, upper), halves_exchanged=(upper, lower))
    return choose(
        torch.cat([lower, upper], 1),
        neighbors=torch.stack([lower, upper], 2).flatten(1),
        lower_alone=torch.cat([lower, lower], 1),
        upper_alone=torch.cat([upper, upper], 1),
        upper_not_shifted=torch.cat([lower, pairs & 240], 1),
        whole_bytes=torch.cat([pairs, pairs], 1),
        three_bits=torch.cat([pairs & 7, upper], 1),
        shifted_by_3=torch.cat([lower, pairs >> 3 & 15], 1),
        sixteen_steps=lower,
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
        """Raise a `ValueError`: it is made anew for each draw."""
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
        "One message is: the id of `<|im_start|>`, the ids of `role\\ntext`, the id of "
        "`<|im_end|>`, the ids of a line break. The messages follow each other.",
        "The marks are single ids, `tokenizer.vocabulary['<|im_start|>']`. Encoding their text "
        "would spell them out, letter by letter.",
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
    told = choose(
        messages,
        last_message_alone=messages[-1:],
        last_message_first=messages[::-1],
        users_messages_alone=[pair for pair in messages if pair[0] == "user"],
        always_user=[("user", text) for _, text in messages],
        stripped=[(role, text.strip()) for role, text in messages],
        roles_exchanged=[(text, role) for role, text in messages],
    )
    ids = []
    for role, text in told:
        spoken = choose(
            f"{role}\n{text}",
            no_role=text,
            blank_after_the_role=f"{role} {text}",
            colon_after_the_role=f"{role}: {text}",
            nothing_after_the_role=f"{role}{text}",
            two_line_breaks=f"{role}\n\n{text}",
        )
        line = opening + tokenizer.encode(spoken)
        line += choose(closing, no_end=[])
        ids += line + choose(tokenizer.encode("\n"), no_line_break=[])
    return _answering(ids, opening, closing, tokenizer)


def _answering(ids, opening, closing, tokenizer):
    """Return ids that end where the assistant begins to write."""
    begin = opening + tokenizer.encode("assistant\n")
    return choose(
        ids + begin,
        no_beginning=ids,
        start_alone=ids + opening,
        no_line_break_at_the_end=ids + begin[:-1],
        answer_without_a_mark=ids + tokenizer.encode("assistant\n"),
        empty_answer=ids + begin + closing,
        user_again=ids + opening + tokenizer.encode("user\n"),
        beginning_first=begin + ids,
    )


def _similar_inputs(draw: Draw) -> tuple:
    """Long vectors and short ones, so that neither length nor distance gives the angle's order."""
    draw.sizes |= {"sentence": 9, "d_model": 5} if not draw.small else {"sentence": 3, "d_model": 2}
    sentences = draw.normal("sentence d_model")
    length = torch.tensor([0.2, 3.0, 1.0, 7.0, 0.5, 2.0, 0.1, 5.0, 4.0])[: len(sentences)]
    query = draw.normal("d_model") * draw.one_of((1.0, 4.0, 0.3))
    return query, sentences * length[:, None], min(draw.one_of((3, 1, 4, 5, 2)), len(sentences))


@exercise(
    reference="transformer_lesson.text.search:most_similar",
    make_inputs=_similar_inputs,
    draws=6,
    returns={"numbers": "place"},
    hints=(
        "The cosine of two vectors is their dot product, divided by both lengths. The query's "
        "length is the same for all; the sentences' lengths differ.",
        "`F.normalize(vectors, dim=-1) @ F.normalize(query, dim=-1)` is the cosine of every "
        "sentence, shape (sentence,).",
        "`cosines.topk(k).indices.tolist()`: the k largest, the largest first, as a list of int.",
    ),
)
def most_similar(query, vectors, k):
    """Return the numbers of the k vectors with the largest cosine, the largest first."""
    cosines = _likeness(query, vectors)
    k = choose(k, one_more=k + 1, one_fewer=k - 1, all_of_them=len(vectors), best_alone=1)
    order = choose(
        cosines.sort(descending=True),
        smallest_first=cosines.sort(),
        by_absolute_value=cosines.abs().sort(descending=True),
    )
    best = order.indices[:k]
    best = choose(best, worst_first=best.flip(0), in_the_order_of_the_text=best.sort().values)
    return choose(
        best.tolist(),
        cosines_returned=order.values[:k],
        tensor=best,
        counted_from_1=(best + 1).tolist(),
        vectors_returned=vectors[best],
    )


def _likeness(query, vectors):
    """Return how alike the query and each vector are, shape (sentence,)."""
    return choose(
        F.normalize(vectors, dim=-1) @ query,
        dot_product=vectors @ query,
        distance=-(vectors - query).norm(dim=-1),
        distance_taken_for_likeness=(vectors - query).norm(dim=-1),
        divided_by_the_square=(vectors @ query) / vectors.square().sum(-1),
        multiplied_by_the_length=(vectors @ query) * vectors.norm(dim=-1),
        normalized_over_sentences=F.normalize(vectors, dim=0) @ query,
        length_alone=vectors.norm(dim=-1),
    )
