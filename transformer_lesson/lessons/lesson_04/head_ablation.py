"""Remove heads and see what it costs, and which head is needed then."""

from collections.abc import Sequence

import torch
import traitlets
from jaxtyping import Bool
from torch import Tensor, nn

from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.explorables.in_page import PageExplorable, ReadsTranslator, bare_weights
from transformer_lesson.interpretability.interventions import Head, heads_of
from transformer_lesson.text import grammar
from transformer_lesson.text.batches import Batch, epoch

N_PAIRS = 8  # in the default example; a page reads them once per head
MOST_HEADS, MOST_TOKENS = 48, 4096
NOT_COUNTED = -1  # in place of a label


class HeadAblation(ReadsTranslator, PageExplorable):
    """Switch off one or more heads and see the loss at each position.

    Below each head that has been tried is the mean loss if it is switched, which shows which head
    has taken over: it costs little while another does its work, and much afterwards. With `spelled`
    it is how many words are right.

    Args:
        model: predicts next tokens, in evaluation mode; by default the translator that comes
            with the package, on sentences of its corpus.
        batch: inputs and labels; the translator has its own eight sentences.
        attention: offer only heads of attentions with this, or one of these, in their name.
        counted: which labels count in the mean loss, shape (batch, n); by default all. Padding
            never counts.
        spelled: of the translator, write the sentences, each word that counts as it is likeliest
            now, in place of the loss at each position.
        removed: the heads switched off, as pairs of an attention's name and a head number.
        tried: the heads switched off so far; `True` means all.

    Raises:
        ValueError: no batch, one without a label that counts or with more than 4,096 tokens, a
            model in training mode or that a page cannot run, no such attention, or over 48 heads.
    """

    heads = traitlets.List().tag(sync=True, fact=True)
    rows = traitlets.List().tag(sync=True, fact=True)
    removed = traitlets.List(traitlets.Tuple(traitlets.Unicode(), traitlets.Int())).tag(sync=True)
    tried = traitlets.List(traitlets.Tuple(traitlets.Unicode(), traitlets.Int())).tag(sync=True)

    def __init__(
        self,
        model: nn.Module | None = None,
        batch: Batch | None = None,
        attention: str | Sequence[str] = "",
        counted: Bool[Tensor, "batch n"] | None = None,
        spelled: bool = False,
        **values,
    ):
        checkpoint = None
        if model is not None:
            values |= {"weights": bare_weights(model)}
        elif checkpoint := trained_translator():
            model, attention = checkpoint.model, attention or "decoder.1.cross"
            if batch is None:
                batch = epoch(grammar.generate(N_PAIRS, seed=5), checkpoint.tokenizer, N_PAIRS)[0]
        if model is not None:
            values |= {"heads": _offered(model, attention), "rows": _rows(model, batch, counted)}
        if spelled and model is not None and checkpoint:
            token, pad_id = checkpoint.tokenizer.token, model.config.pad_id
            for row, labels in zip(values["rows"], batch.labels.tolist(), strict=True):
                row["words"] = [token(i) for i in labels if i != pad_id][:-1]  # all but <eos>
        if values.get("tried") is True:
            values |= {"tried": list(values.get("heads", []))}
        super().__init__(**values)


def _offered(model: nn.Module, attention: str | Sequence[str]) -> list[Head]:
    names = [attention] if isinstance(attention, str) else attention
    heads = [head for name in names for head in heads_of(model, name)]
    if len(heads) > MOST_HEADS:
        raise ValueError(
            f"{len(heads)} heads do not fit the picture, {MOST_HEADS} do: choose some with "
            "attention='cross_attention' or attention='decoder.0'."
        )
    return heads


def _rows(model: nn.Module, batch: Batch | None, counted: Tensor | None) -> list[dict]:
    """Return each row of a batch in the form sent to the page."""
    if batch is None:
        raise ValueError("batch is missing: give a model of your own what it should read.")
    if batch.labels.numel() > MOST_TOKENS:
        raise ValueError(
            f"the batch has {batch.labels.numel():,} tokens, and a page reads at most "
            f"{MOST_TOKENS:,}: pass fewer rows."
        )
    with torch.no_grad():
        model(*batch.inputs)  # raises if they are invalid
    pad_id = NOT_COUNTED if model.config.pad_id is None else model.config.pad_id
    counts = batch.labels != pad_id  # (batch, n)
    if counted is not None:
        counts = counts & counted
    if not counts.any():
        raise ValueError("no label counts: set counted to True where the loss is to be measured.")
    labels = batch.labels.where(counts, NOT_COUNTED).tolist()
    *sources, targets = (part.tolist() for part in batch.inputs)
    sources = sources[0] if sources else [None] * len(targets)
    names = ("source", "target", "labels")
    return [
        dict(zip(names, row, strict=True)) for row in zip(sources, targets, labels, strict=True)
    ]
