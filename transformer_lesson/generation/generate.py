"""One call for every way to write: prompts or sources in, new tokens out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lesson.generation.beam import Tree, search
from transformer_lesson.generation.session import DecodingSession, Ids, one_of
from transformer_lesson.generation.strategies import GREEDY, Beam, Greedy, Sample, Strategy
from transformer_lesson.model.config import in_python, is_number
from transformer_lesson.model.evaluation import evaluating

EndIds = int | Sequence[int] | None | Literal["model"]
"""What ends a text: an id, any of several, nothing, or what the model's config says."""


@dataclass(frozen=True)
class Generation:
    """What a model wrote for each sentence of a batch.

    Args:
        ids: the new tokens of each sentence, without prompt and padding; the last one is
            `<eos>` if the sentence reached it.
        log_probabilities: of each new token, given those before it, in nats. They are the
            model's own, whatever part of its distribution a strategy drew from.
        finished: whether each sentence reached `<eos>`.
        distributions: for each sentence the model's probabilities at each of its steps, shape
            (new, vocab_size), if they were asked for.
        trees: for each sentence what its beam search considered, if asked for.
    """

    ids: list[list[int]]
    log_probabilities: list[list[float]]
    finished: list[bool]
    distributions: list[Tensor] | None = None
    trees: list[Tree] | None = None

    @property
    def sentence_log_probabilities(self) -> list[float]:
        """The log-probability of each sentence: the sum over its tokens."""
        return [sum(tokens) for tokens in self.log_probabilities]


def generate(
    model: nn.Module,
    prompt_or_source: Ids,
    max_new_tokens: int,
    strategy: Strategy = GREEDY,
    use_cache: bool = True,
    eos_id: EndIds = "model",
    bos_id: int | None = None,
    distributions: bool = False,
    trees: bool = False,
) -> Generation:
    """Let a model write: go on from prompts, or translate sources.

    Every sentence ends at its own `<eos>`. A sentence's result does not depend on the others in
    the batch, nor on the side on which it was padded. `<pad>` is never written. The model is left
    as it was (training mode, gradients), and so is torch's random state.

    Args:
        model: a `DecoderOnlyTransformer`, which goes on from prompts, or an
            `EncoderDecoderTransformer`, which reads sources and starts from `<bos>`.
        prompt_or_source: a tensor or NumPy array (batch, n), padded on either side; a list of
            lists of ids, of any lengths; or one list.
        max_new_tokens: most tokens to write for each sentence.
        strategy: `Greedy()`, `Sample(...)` or `Beam(...)`.
        use_cache: keep the keys and values of what was read; the same tokens, faster.
        eos_id: what ends a sentence: an id, or any of several; `None` if nothing does. By
            default the model's own, config.eos_ids.
        bos_id: what a translation starts with; by default the model's own, config.bos_id.
        distributions: also return the model's probabilities at every step.
        trees: also return what a beam search considered.

    Raises:
        ValueError: an encoder-only model, a text that would exceed max_len, sentences
            of different lengths for a model without a padding token, ids outside the
            vocabulary, or trees without a beam search.
    """
    ends = _ids("eos_id", model.config.eos_ids if _is_model(eos_id) else eos_id, model)
    starts = _ids("bos_id", model.config.bos_id if bos_id is None else bos_id, model)[:1]
    bos_id = starts[0] if starts else None
    _check(strategy, trees)
    with evaluating(model), torch.inference_mode():
        writer = DecodingSession(model, prompt_or_source, max_new_tokens, use_cache, bos_id)
        n, max_new_tokens, search_trees = writer.ids.size(1), writer.max_new_tokens, None
        if isinstance(strategy, Beam):
            ids, log_probs, search_trees = search(writer, strategy, ends, max_new_tokens, trees)
        else:
            ids, log_probs = _write(writer, strategy, ends, max_new_tokens)
        new = [_until(row, ends) for row in ids[:, n:].tolist()]
        lengths = [len(tokens) for tokens in new]
        probabilities = None
        if distributions:
            reader = DecodingSession(model, prompt_or_source, max_new_tokens, False, bos_id)
            probabilities = _cut(reader.distributions(ids[:, : n + max(lengths)]), lengths)
    if distributions:  # copies made here may be used with gradients, unlike those made above
        probabilities = [rows.clone() for rows in probabilities]
    return Generation(
        ids=new,
        log_probabilities=[row.tolist() for row in _cut(log_probs, lengths)],
        finished=[tokens[-1] in ends for tokens in new],
        distributions=probabilities,
        trees=search_trees if trees else None,
    )


def _is_model(eos_id: EndIds) -> bool:
    return isinstance(eos_id, str) and eos_id == "model"


def _ids(name: str, value: EndIds, model: nn.Module) -> tuple[int, ...]:
    """Return the special ids that an argument names, all of them in the vocabulary."""
    value = in_python(value.tolist() if isinstance(value, Tensor) else value)
    ids = () if value is None else value if isinstance(value, tuple) else (value,)
    last = model.config.vocab_size - 1
    for id_ in ids:
        if not (is_number(id_, int) and 0 <= id_ <= last):
            raise ValueError(
                f"{name} is {id_!r}, but the vocabulary has the ids 0 to {last}: name one of them, "
                "or eos_id=None if nothing ends a text."
            )
    return ids


def _check(strategy: Strategy, trees: bool) -> None:
    if not isinstance(strategy, Strategy):
        raise ValueError(
            f"strategy is {strategy!r}, but it must be Greedy(), Sample(...) or Beam(...)."
        )
    if trees and not isinstance(strategy, Beam):
        raise ValueError(f"only a beam search has trees: use Beam(...) instead of {strategy}.")


def _write(
    writer: DecodingSession, strategy: Greedy | Sample, ends: tuple[int, ...], max_new_tokens: int
) -> tuple[Tensor, Tensor]:
    """Choose one token after the other; return ids (batch, n + new) and log-probabilities.

    A finished row goes on writing until all are finished; what it writes is cut off later.
    """
    batch, n = writer.ids.shape
    ids = F.pad(writer.ids, (0, max_new_tokens))  # (batch, n + new)
    log_probabilities = torch.zeros(batch, max_new_tokens, device=ids.device)  # (batch, new)
    finished = torch.zeros(batch, dtype=torch.bool, device=ids.device)
    uniforms = [None] * max_new_tokens
    if isinstance(strategy, Sample):
        uniforms = strategy.uniforms(batch, max_new_tokens).to(ids.device)
    for step, uniform in enumerate(uniforms):
        logits = writer.next_logits(ids[:, : n + step])  # (batch, vocab_size)
        tokens = strategy.choose(logits, uniform)  # (batch,)
        ids[:, n + step] = tokens
        chosen = logits.gather(1, tokens[:, None])[:, 0]
        log_probabilities[:, step] = chosen - logits.logsumexp(dim=-1)
        if ends:
            finished |= one_of(tokens, ends)
            if finished.all():
                break
    return ids, log_probabilities


def _until(ids: list[int], ends: tuple[int, ...]) -> list[int]:
    """Return ids up to and including the first that ends a text."""
    first = next((i for i, id_ in enumerate(ids) if id_ in ends), len(ids))
    return ids[: first + 1]


def _cut(rows: Tensor, lengths: list[int]) -> list[Tensor]:
    """Return the first entries of each row, as many as its sentence has tokens."""
    return [row[:length] for row, length in zip(rows, lengths, strict=True)]
