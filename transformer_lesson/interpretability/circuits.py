"""The circuit of a task: the few paths through a model that its answer needs, and what they do.

In an attention-only decoder every part sends a vector to every later part. Each such path is an
edge that can be cut by itself. What is left when no more can be cut is the circuit.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from transformer_lesson.interpretability.head_matrices import head_matrices
from transformer_lesson.model.attention import scaled_dot_product_attention
from transformer_lesson.model.masks import causal_mask


class Edge(NamedTuple):
    """A path: Edge("0.1", "1.0.k") is what the keys of head 0 of block 1 read of head 0.1."""

    sender: str
    receiver: str


class EdgeGraph:
    """An attention-only decoder in which every path from one part to another can be cut.

    Senders are "embedding" and the heads ("0.1" is head 1 of block 0); receivers are what each
    head reads ("1.0.q", "1.0.k", "1.0.v") and "logits". A receiver reads the sum of what all
    earlier senders wrote. If an edge is cut, it reads the sender's mean at that position instead:
    what the sender says regardless of the tokens.

    Args:
        model: an `induction.AttentionOnlyDecoder` whose positions are not in the stream.
        ids: the sequences over which the means are taken.

    Raises:
        ValueError: a model with positions in its stream.

    Source: Conmy et al., "Towards Automated Circuit Discovery" (2023), section 2.
    Differs: they substitute another input's vector; a mean needs no second input.
    """

    def __init__(self, model: nn.Module, ids: Int64[Tensor, "batch n"]):
        if model.decoder[0].positions_in_stream:
            raise ValueError(
                "positions_in_stream is True, and the graph has no edge for positions: make the "
                "model with False."
            )
        self.model = model
        blocks, heads = range(len(model.decoder)), range(model.config.n_heads)
        self.heads = {
            f"{block}.{head}": head_matrices(model.decoder[block].self_attention, head)
            for block in blocks
            for head in heads
        }
        self.edges: list[Edge] = []
        senders = ["embedding"]
        for block in blocks:
            receivers = [f"{block}.{head}.{part}" for head in heads for part in "qkv"]
            self.edges += [Edge(sender, reads) for reads in receivers for sender in senders]
            senders += [f"{block}.{head}" for head in heads]
        self.edges += [Edge(sender, "logits") for sender in senders]
        self.means = {sender: x.mean(dim=0) for sender, x in self.sent(ids).items()}

    @torch.no_grad()
    def sent(self, ids: Int64[Tensor, "batch n"]) -> dict[str, Float[Tensor, "batch n d_model"]]:
        """Return what each sender adds to the stream; their sum goes into the last projection."""
        return self._run(ids, {})[1]

    def logits(
        self, ids: Int64[Tensor, "batch n"], edges: Sequence[Edge] | None = None
    ) -> Float[Tensor, "batch n vocab_size"]:
        """Return the model's logits when only some edges carry what is sent, the others means.

        Args:
            ids: as long as those of the means, or shorter.
            edges: those that stay; `None` for all, which gives the model's own logits.

        Raises:
            ValueError: an edge that the graph does not have, or ids longer than the means.
        """
        self._check(ids, edges)
        kept = set(self.edges if edges is None else edges)
        strength = {edge: torch.tensor(0.0) for edge in self.edges if edge not in kept}
        with torch.no_grad():
            return self._run(ids, strength)[0]

    def attribution(
        self,
        ids: Int64[Tensor, "batch n"],
        labels: Int64[Tensor, "batch n"],
        counted: Bool[Tensor, "batch n"],
    ) -> dict[Edge, float]:
        """Return for each edge, to first order, how much the loss would rise if it were cut.

        Each edge carries mean + strength (x - mean). All strengths are 1, and minus the loss's
        derivative by a strength is what a cut would add if the loss were linear.

        Args:
            ids: as for `logits`.
            labels: the right next tokens.
            counted: the positions that the loss counts.

        Returns:
            Nats per edge; below 0 where a cut should help.

        Source: Syed et al., "Attribution Patching Outperforms Automated Circuit Discovery" (2023).
        """
        self._check(ids, None)
        strength = {edge: torch.ones((), requires_grad=True) for edge in self.edges}
        with torch.enable_grad():
            logits, _ = self._run(ids, strength)
            loss = F.cross_entropy(logits[counted], labels[counted])
        slopes = torch.autograd.grad(loss, list(strength.values()))
        return {edge: -slope.item() for edge, slope in zip(self.edges, slopes, strict=True)}

    def _check(self, ids: Tensor, edges: Sequence[Edge] | None):
        longest = len(self.means["embedding"])
        if ids.size(1) > longest:
            raise ValueError(
                f"ids have {ids.size(1)} tokens, but the means are of {longest} positions: make "
                "the graph with longer ids."
            )
        unknown = sorted(set(edges or ()) - set(self.edges))
        if unknown:
            raise ValueError(
                f"there is no edge {tuple(unknown[0])} in this graph: take edges from graph.edges."
            )

    def _run(self, ids: Tensor, strength: Mapping[Edge, Tensor]) -> tuple[Tensor, dict]:
        """Return logits, and what each sender sent, shape (batch, n, d_model).

        An edge that is not in `strength` carries all of what is sent.
        """
        n, mask = ids.size(1), causal_mask(ids.size(1))[0]
        sent = {"embedding": self.model.embedding(ids)}

        def read(receiver: str) -> Tensor:
            """Return the sum of what the senders so far send to a receiver."""
            total = torch.zeros(())
            for sender, x in sent.items():
                if (edge := Edge(sender, receiver)) in strength:
                    x = torch.lerp(self.means[sender][:n].expand_as(x), x, strength[edge])
                total = total + x
            return total  # (batch, n, d_model)

        for block, part in enumerate(self.model.decoder):
            places, written = part.positions[:n], {}
            for name in (f"{block}.{head}" for head in range(self.model.config.n_heads)):
                head = self.heads[name]
                Q = (read(f"{name}.q") + places) @ head.W_Q  # (batch, n, d_head)
                K = (read(f"{name}.k") + places) @ head.W_K
                V = read(f"{name}.v") @ head.W_V
                written[name] = scaled_dot_product_attention(Q, K, V, mask)[0] @ head.W_O
            sent |= written  # heads of one block do not read each other
        return self.model.projection(read("logits")), sent


def smallest_circuit(
    edges: Sequence, accuracy: Callable[[list], float], keep: float = 0.95
) -> list:
    """Cut every edge that can go, round after round, until every remaining one is needed.

    Args:
        edges: of the whole graph, by any names.
        accuracy: what the model reaches with only some edges; larger is better.
        keep: the share of the whole graph's accuracy that must remain.

    Returns:
        The remaining edges, in their order. They are enough, and none of them can be cut alone.

    Source: Conmy et al. (2023), section 3.
    Differs: they go through the edges once, from the output back; here rounds go on, because an
        edge may be needed only as long as another one is there.
    """
    kept, lowest = list(edges), keep * accuracy(list(edges))
    before = None
    while kept != before:
        before = kept
        for edge in before:
            rest = [one for one in kept if one != edge]
            if accuracy(rest) >= lowest:
                kept = rest
    return kept


def continue_by_hand(ids: Int64[Tensor, "batch n"]) -> Int64[Tensor, "batch n"]:
    """Continue a repetition without a model: what followed this token the last time?

    Args:
        ids: any tokens.

    Returns:
        A guess of each next token, shape (batch, n); -1 where the token is new.

    Source: Olsson et al., "In-context Learning and Induction Heads" (2022), section 1: [A][B] … [A]
        is continued by [B].
    """
    n = ids.size(1)
    same = (ids[:, :, None] == ids[:, None, :]).tril(-1)  # (batch, query, earlier place)
    last = torch.where(same, torch.arange(n), -1).amax(dim=-1)  # (batch, n)
    followed = ids.gather(1, (last + 1).clamp(max=n - 1))
    return torch.where(last >= 0, followed, -1)
