"""A small model as a graph: cut a path from one part to another and read the loss."""

from collections.abc import Sequence

import traitlets
from jaxtyping import Int64
from torch import Tensor

from transformer_lesson.explorables.in_page import PageExplorable, ReadsTranslator, bare_weights
from transformer_lesson.interpretability.circuits import Edge, EdgeGraph
from transformer_lesson.lessons.lesson_11.induction import AttentionOnlyDecoder, repeated_part
from transformer_lesson.text.batches import Batch

MOST_EDGES, MOST_TOKENS = 40, 4096
NOT_COUNTED = -1  # in place of a label


class CircuitGraph(ReadsTranslator, PageExplorable):
    """Cut one or more edges and see what is still right, and what is right with only those edges.

    If an edge is cut, its receiver reads the sender's mean at that position.

    Args:
        model: an `AttentionOnlyDecoder` in evaluation mode.
        batch: inputs and labels; the labels that repeat something in their row count.
        circuit: edges that a button keeps, cutting all others.
        averaged: the sequences over which means are taken; by default the batch's.
        cut: the edges cut, as pairs of a sender and a receiver.
        costs: also show what cutting each remaining edge would cost, and restoring each cut one
            would save.

    Raises:
        ValueError: over 40 edges or over 4,096 tokens, another model, one in training mode, with
            biases or with positions in its stream, an edge that the model does not have, or no
            label that counts.
    """

    edges = traitlets.List().tag(sync=True, fact=True)
    circuit = traitlets.List().tag(sync=True, fact=True)
    rows = traitlets.List().tag(sync=True, fact=True)
    averaged = traitlets.List().tag(sync=True, fact=True)
    cut = traitlets.List(traitlets.Tuple(traitlets.Unicode(), traitlets.Unicode())).tag(sync=True)
    costs = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self,
        model: AttentionOnlyDecoder,
        batch: Batch,
        circuit: Sequence[Edge] = (),
        averaged: Int64[Tensor, "row n"] | None = None,
        **values,
    ):
        weights = bare_weights(model)
        if not isinstance(model, AttentionOnlyDecoder):
            raise ValueError(
                f"a {type(model).__name__} has more than heads: pass an AttentionOnlyDecoder."
            )
        if model.config.bias:
            raise ValueError("the model has biases, which no edge carries: build it without.")
        averaged = batch.inputs[0] if averaged is None else averaged
        edges = _edges(model, batch, averaged, circuit)
        super().__init__(
            weights=weights,
            source_words=[],
            edges=edges,
            circuit=[list(edge) for edge in circuit],
            rows=_rows(batch),
            averaged=averaged.tolist(),
            **values,
        )

    @traitlets.validate("cut")
    def _of_this_model(self, proposal):
        unknown = [edge for edge in proposal["value"] if list(edge) not in self.edges]
        if unknown:
            raise ValueError(
                f"the model has no edge {unknown[0]} to cut: choose from {len(self.edges)} edges, "
                f"such as {tuple(self.edges[0])}."
            )
        return proposal["value"]


def _edges(
    model: AttentionOnlyDecoder, batch: Batch, averaged: Tensor, circuit: Sequence[Edge]
) -> list[list[str]]:
    """Return the model's edges; the graph rejects an unsuitable model or circuit."""
    (ids,) = batch.inputs
    n_tokens = max(ids.numel(), averaged.numel())
    if n_tokens > MOST_TOKENS:
        raise ValueError(
            f"there are {n_tokens:,} tokens to read, and a page reads at most {MOST_TOKENS:,}: "
            "pass fewer rows."
        )
    graph = EdgeGraph(model, averaged)
    graph.logits(ids[:1], circuit)
    if len(graph.edges) > MOST_EDGES:
        raise ValueError(
            f"{len(graph.edges)} edges do not fit the picture, {MOST_EDGES} do: pass a model with "
            "fewer heads or blocks."
        )
    return [list(edge) for edge in graph.edges]


def _rows(batch: Batch) -> list[dict]:
    """Return each row of a batch in the form sent to the page."""
    counted = repeated_part(batch)
    if not counted.any():
        raise ValueError("no token repeats, so no label counts: pass rows whose tokens repeat.")
    labels = batch.labels.where(counted, NOT_COUNTED).tolist()
    (ids,) = batch.inputs
    return [
        {"ids": row, "labels": row_labels}
        for row, row_labels in zip(ids.tolist(), labels, strict=True)
    ]
