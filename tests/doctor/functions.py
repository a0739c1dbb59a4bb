"""A decoder in plain functions: a switch for each fault of a path, gate or first weight.

Others are designs: a second stream, keys of three matrices, two stacks that read one text.
"""

import torch
from torch import nn

from transformer_lesson.doctor.patient import Given, Patient

SIZE, D, HEADS, LAYERS = 40, 32, 4, 2
SHAPES = {"q": (D, D), "k": (D, D), "v": (D, D), "o": (D, D)}
SHAPES |= {"gate": (D, 2 * D), "up": (D, 2 * D), "down": (2 * D, D)}


class Functions(nn.Module):
    """Weights by name, and a forward without modules."""

    def __init__(self, faults):
        super().__init__()
        self.faults = set(faults)
        draw = torch.Generator().manual_seed(0)
        table = 0.02 * torch.randn(SIZE, D, generator=draw)
        self.w = nn.ParameterDict({"table": nn.Parameter(table)})
        for layer in range(LAYERS):
            for name, shape in SHAPES.items():
                size = shape[0] ** -0.5 * self._factor(name, layer)
                value = size * torch.randn(*shape, generator=draw)
                self.w[f"{name}{layer}"] = nn.Parameter(value)
        for name, shape in {"deeper": (D, D), "deepest": (D, D), "beside": (2, D)}.items():
            if self.faults & {"deep keys", "beside"}:
                self.w[name] = nn.Parameter(D**-0.5 * torch.randn(*shape, generator=draw))

    def _factor(self, name, layer):
        scaled = ("o", "up") if "wrong matrix" in self.faults else ("o", "down")
        if "large" in self.faults and name == "q":
            return 3.0
        if "zeros" in self.faults and name in ("up", "down"):
            return 0.0
        return (2 * LAYERS) ** -0.5 if name in scaled else 1.0

    def norm(self, x):
        """Layer norm by hand."""
        x = x - x.mean(-1, keepdim=True)
        return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()

    def attend(self, layer, query, rest):
        """Causal attention."""
        parts = [x @ self.w[f"{n}{layer}"] for n, x in zip("qkv", (query, rest, rest), strict=True)]
        if "deep keys" in self.faults:  # as ConvBert makes a kernel of each query
            parts[1] = (parts[1] @ self.w["deeper"] * parts[0]) @ self.w["deepest"]
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
        scores = q @ k.mT * q.shape[-1] ** -0.5
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(future, -1e9).softmax(-1) @ v
        return mixed.transpose(1, 2).flatten(2) @ self.w[f"o{layer}"]

    def feed(self, layer, x):
        """A gated feed-forward."""
        gate, up = x @ self.w[f"gate{layer}"], x @ self.w[f"up{layer}"]
        hidden = nn.functional.silu(gate) * up
        if "activation late" in self.faults:
            hidden = nn.functional.silu(gate * up)
        if "bilinear" in self.faults:
            hidden = gate * up
        if "linear" in self.faults:
            hidden = up
        return hidden @ self.w[f"down{layer}"]

    def block(self, layer, x):
        """Pre-norm."""
        y = self.norm(x)
        a = self.attend(layer, y, x if "norm on query" in self.faults else y)
        first, x = x, a if "no residual" in self.faults else x + a
        if "doubled" in self.faults:
            x = x + first
        read = a if "off the stream" in self.faults else x
        kept = first if "kept too early" in self.faults else x
        return kept + self.feed(layer, self.norm(read))

    def rows(self, ids):
        """Look up the ids in one of three ways."""
        table = self.w["table"]
        if "embedding" in self.faults:
            return nn.functional.embedding(ids, table)
        if "index_select" in self.faults:
            return table.index_select(0, ids.flatten()).unflatten(0, ids.shape)
        return table[ids]

    def forward(self, ids):
        """Return logits."""
        x = self.rows(ids)
        if "beside" in self.faults:
            x = self.with_a_stream_beside(x)
        for layer in range(LAYERS if "beside" not in self.faults else 0):
            x = self.block(layer, x)
        if "two stacks" in self.faults:
            x = self.decoded(ids, self.norm(x))
        return self.norm(x) @ self.w["table"].T

    def with_a_stream_beside(self, x):
        """Two vectors that all words read have a stream of their own, as PegasusX's have."""
        beside = self.w["beside"].expand(len(x), -1, -1)
        for layer in range(LAYERS):
            every = torch.cat([self.norm(beside), self.norm(x)], 1)
            x = x + self.attend(layer, self.norm(x), every)
            beside = beside + self.attend(layer, self.norm(beside), every)
            x = x + self.feed(layer, self.norm(x))
            beside = beside + self.feed(layer, self.norm(beside))
        return x

    def decoded(self, ids, memory):
        """A decoder gets the same words, one place later, as Bart's does of one text."""
        x = self.rows(torch.cat([torch.zeros_like(ids[:, :1]), ids[:, :-1]], 1))
        for layer in range(LAYERS):
            x = x + self.attend(layer, self.norm(x), self.norm(x))
            x = x + self.attend(layer, self.norm(x), memory)
            x = x + self.feed(layer, self.norm(x))
        return x


def patient(*faults):
    """Return a patient with these faults, and a loss."""
    draw = torch.Generator().manual_seed(1)
    model, batch = Functions(faults), torch.randint(1, SIZE, (4, 10), generator=draw)

    def loss(ids):
        return nn.functional.cross_entropy(model(ids[:, :-1]).mT, ids[:, 1:])

    return Patient(model, batch, "causal", None, Given(loss=loss))
