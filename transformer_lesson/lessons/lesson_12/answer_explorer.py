"""How a model wrote one answer: what else was likely, where heads looked, what needs them.

What is lost without a head or a block is measured elsewhere: it takes a forward pass for each.
"""

import base64
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import traitlets
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.files import printable
from transformer_lesson.generation import generate
from transformer_lesson.generation.session import sentences_of
from transformer_lesson.model.evaluation import evaluating
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.ranking import from_largest
from transformer_lesson.text.tokenizers import Tokenizer

CANDIDATES = 10
BESIDE_MEASURES = 4  # candidates, where measures take their room
LARGEST_RECORD = 2 * 2**20
"""Most bytes of attention weights in a page: two per head, token of the answer and token before it.
With the 270 heads of SmolLM2 that is 40 tokens after a prompt of 60."""
WHOLE = 65_535  # a weight of 1, in the two bytes of a record


class Measure(NamedTuple):
    """A number that a model has as it is, and without each of its heads and blocks.

    Args:
        name: what it is, in a few words.
        whole: of the model as it is.
        worst: where everything that was known is lost; below `whole` for a probability, above it
            for a loss.
        heads: without each head, shape (block, head).
        blocks: without each block, shape (block,).
    """

    name: str
    whole: float
    worst: float
    heads: Float[Tensor, "block head"]
    blocks: Float[Tensor, " block"]


class AnswerExplorer(PageExplorable):
    """Choose a token of an answer, and see what else was likely and what each head looked at.

    A page gets a record of what happened, not the model, so the model may be of any size. With
    measures, a click on a head or on a whole block shows what is lost without it, beside others.

    Args:
        model: a `DecoderOnlyTransformer`.
        tokenizer: the model's.
        prompt: ids of one text, which the model continues greedily.
        max_new_tokens: most tokens to write.
        measures: what is lost without each head and each block, if it was measured.
        step: which token of the answer, from 1, clipped to the last.
        layer, head: whose weights are shown over the text, from 0, clipped to the last.
        watched: the token, from 0, for which the map shows how much each head looks at it; `None`
            or a later token means the one that the chosen head looks at most.
        measure: which measure colors the map, from 0, clipped to the last; `None` for the watched
            token.
        whole_block: whether the whole block is taken away, and not the chosen head alone.

    Raises:
        ValueError: another kind of model, not exactly one prompt, a record that is too large for a
            page, measures of other heads or blocks, or arguments that `generate` rejects.
    """

    tokens = traitlets.List().tag(sync=True, fact=True)
    line_ends = traitlets.List().tag(sync=True, fact=True)
    choices = traitlets.List().tag(sync=True, fact=True)
    shape = traitlets.List().tag(sync=True, fact=True)
    weights = traitlets.Unicode().tag(sync=True, fact=True)
    measures = traitlets.List().tag(sync=True, fact=True)
    step = traitlets.Int(1, min=1).tag(sync=True)
    layer = traitlets.Int(0, min=0).tag(sync=True)
    head = traitlets.Int(0, min=0).tag(sync=True)
    watched = traitlets.Int(None, min=0, allow_none=True).tag(sync=True)
    measure = traitlets.Int(None, min=0, allow_none=True).tag(sync=True)
    whole_block = traitlets.Bool().tag(sync=True)

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Tokenizer,
        prompt: Tensor | Sequence[int],
        max_new_tokens: int = 40,
        measures: Sequence[Measure] = (),
        **values,
    ):
        begun = _one_prompt(model, prompt)
        written = generate(model, [begun], max_new_tokens, distributions=True)
        ids, shape = begun + written.ids[0], [model.config.n_layers, model.config.n_heads]
        _check_size(shape, len(begun), len(written.ids[0]))
        choices = zip(written.ids[0], written.distributions[0], strict=True)
        most = BESIDE_MEASURES if measures else CANDIDATES
        super().__init__(
            tokens=[printable(tokenizer.token(id_), 60) for id_ in ids],
            line_ends=[i for i, id_ in enumerate(ids) if tokenizer.decode([id_]).endswith("\n")],
            choices=[_choice(chosen, P, tokenizer, most) for chosen, P in choices],
            shape=shape,
            weights=_packed(_weights(model, ids), len(begun)),
            measures=[_measure(measure, shape) for measure in measures],
            **values,
        )


def _one_prompt(model: nn.Module, prompt: Tensor | Sequence[int]) -> list[int]:
    if not isinstance(model, DecoderOnlyTransformer):
        raise ValueError(
            f"{type(model).__name__} is the model's kind, but what goes on from a prompt is a "
            "DecoderOnlyTransformer: pass one."
        )
    prompts = sentences_of(prompt, model.config.pad_id)
    if len(prompts) > 1:
        raise ValueError(f"{len(prompts)} prompts were given, but one answer is shown: pass one.")
    return prompts[0]


def _check_size(shape: list[int], prompt: int, answer: int) -> None:
    layers, heads = shape
    size = 2 * layers * heads * sum(range(prompt, prompt + answer))
    if size > LARGEST_RECORD:
        raise ValueError(
            f"the record of {layers} layers of {heads} heads over an answer of {answer} tokens to "
            f"a prompt of {prompt} has {size:,} bytes, and a page gets at most "
            f"{LARGEST_RECORD:,}: shorten the prompt, or lower max_new_tokens."
        )


def _measure(measure: Measure, shape: list[int]) -> dict:
    sizes = [list(measure.heads.shape), list(measure.blocks.shape)]
    if sizes != [shape, shape[:1]]:
        raise ValueError(
            f"measure {measure.name!r} is of {sizes[0]} heads and {sizes[1]} blocks, but the model "
            f"has {shape[0]} blocks of {shape[1]} heads: measure each of them once."
        )
    numbers = {name: getattr(measure, name).flatten().tolist() for name in ("heads", "blocks")}
    return {**measure._asdict(), **numbers}


def _choice(chosen: int, P: Float[Tensor, " vocab_size"], tokenizer: Tokenizer, most: int) -> dict:
    """Return the likeliest tokens with their probabilities, including the chosen one."""
    tokens = from_largest(P, most)
    if chosen not in tokens:
        tokens[-1] = chosen
    return {
        "chosen": tokens.index(chosen),
        "tokens": [printable(tokenizer.token(id_), 60) for id_ in tokens],
        "probabilities": [round(float(P[id_]), 6) for id_ in tokens],
        "others": len(P) - len(tokens),
    }


def _weights(model: nn.Module, ids: list[int]) -> Float[Tensor, "layer head query key"]:
    """Return every head's attention weights over a text without its last token."""
    device = model.projection.weight.device
    with evaluating(model), torch.inference_mode(), record(model) as run:
        model(torch.tensor([ids[:-1]], device=device))
    layers = range(model.config.n_layers)
    return torch.stack([run[f"decoder.{i}.self_attention.weights"][0] for i in layers]).cpu()


def _packed(weights: Float[Tensor, "layer head query key"], prompt: int) -> str:
    """Return the weights of the queries that produced the answer, in base64.

    Query after query, each with the keys it may see: (layer, head, key).
    """
    units = np.rint(weights.double().numpy() * WHOLE).astype("<u2")
    queries = range(prompt - 1, units.shape[2])
    return base64.b64encode(
        b"".join(units[:, :, query, : query + 1].tobytes() for query in queries)
    ).decode()
