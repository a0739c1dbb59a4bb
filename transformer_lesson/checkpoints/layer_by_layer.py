"""Where two models diverge: ours and the library's, layer by layer, on the same input."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer_lesson.checkpoints.family import Family
from transformer_lesson.checkpoints.transformers_io import family_of
from transformer_lesson.model.evaluation import evaluating
from transformer_lesson.model.transformers import EncoderDecoderTransformer, EncoderOnlyTransformer

RELATIVE, ABSOLUTE = 3e-5, 1e-6
"""How far vectors and logits may differ in float32; the first is a share of their largest."""


class Difference(NamedTuple):
    """How far a layer's outputs are apart: largest difference, and largest number."""

    ours: str
    theirs: str
    largest: float
    scale: float

    @property
    def differs(self) -> bool:
        """Whether it is more than float32 explains."""
        return not self.largest <= RELATIVE * self.scale + ABSOLUTE  # NaN differs, too


class Comparison(NamedTuple):
    """All layers in the order of computation; the last row is the logits, if there are any."""

    layers: list[Difference]

    @property
    def first(self) -> Difference | None:
        """The first layer that differs."""
        return next((layer for layer in self.layers if layer.differs), None)

    @property
    def largest(self) -> float:
        """The largest difference of the last row."""
        return self.layers[-1].largest

    def __str__(self) -> str:
        layer = self.first
        if layer is None:
            return (
                f"All {len(self.layers)} outputs agree to {RELATIVE:.0e} of their largest number."
            )
        return (
            f"The first layer that differs is {layer.ours} (theirs: {layer.theirs}): by "
            f"{layer.largest:.2g}, where the largest number is {layer.scale:.2g}."
        )


@torch.no_grad()
def compare_layers(
    ours: nn.Module, theirs: nn.Module, inputs: Tensor | tuple[Tensor, ...], quiet: bool = False
) -> Comparison:
    """Run both models and print the first layer that differs, and by how much.

    Padding is left out; the library gets as masks and positions what our models infer from the
    padding's id. Both run in evaluation mode. (Marian takes no positions, so padding on the left
    does shift its tokens, and the models differ.)

    Args:
        ours: one of our models.
        theirs: the library's.
        inputs: what our model takes: ids (batch, n); (ids, token_types) for BERT; (source_ids,
            target_ids) for Marian.
        quiet: print nothing.

    Returns:
        The differences of all layers.
    """
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    family = family_of(theirs.config.to_dict())
    pairs = [pair for pair in _pairs(family, ours) if their_module(theirs, pair[1], family)]
    real = _real(ours, inputs[0])
    with evaluating(ours), evaluating(theirs):
        our_outputs = _outputs([ours.get_submodule(name) for name, _ in pairs])
        our_logits, our_values = our_outputs(lambda: _run_ours(ours, inputs))
        their_outputs = _outputs([their_module(theirs, n, family) for _, n in pairs])
        their_logits, their_values = their_outputs(
            lambda: _run_theirs(theirs, ours, inputs, real, family.first_position)
        )
    if our_logits is not None and their_logits is not None:
        pairs, our_values = [*pairs, ("logits", "logits")], [*our_values, our_logits]
        their_values = [*their_values, their_logits]
    everything = torch.ones_like(inputs[-1], dtype=torch.bool)
    layers = []
    for names, our_value, their_value in zip(pairs, our_values, their_values, strict=True):
        target = isinstance(ours, EncoderDecoderTransformer) and not names[0].startswith("encoder")
        rows = everything if target else real  # (batch, n): padding is left out
        layers.append(_difference(*names, our_value[rows], their_value[rows]))
    comparison = Comparison(layers)
    if not quiet:
        print(comparison)
    return comparison


def _pairs(family: Family, ours: nn.Module) -> list[tuple[str, str]]:
    """Expand the family's pairs of layers for each layer, stack by stack."""
    pairs: list[tuple[str, str]] = []
    for stack in ("encoder", "decoder"):
        layers = [pair for pair in family.layers if pair[0].startswith(f"{stack}.")]
        if pairs == [] and not family.layers[0][0].startswith(("encoder.", "decoder.")):
            pairs.append(family.layers[0])  # the embedding
        for i in range(len(getattr(ours, stack, []))):
            pairs += [(our.format(i=i), their.format(i=i)) for our, their in layers]
    last = family.layers[-1]
    return pairs if "{i}" in last[0] else [*pairs, last]


def their_module(theirs: nn.Module, name: str, family: Family) -> nn.Module | None:
    """Return a module of the library's; a model without a head leaves the prefix out."""
    modules = dict(theirs.named_modules())
    return modules.get(name) or modules.get(name.removeprefix(family.prefix))


def _outputs(modules: list[nn.Module]):
    """Return a function that runs a model and returns its result and the modules' outputs."""

    def run(call) -> tuple[Tensor | None, list[Tensor]]:
        """Return call()'s result, and each module's output meanwhile."""
        values: dict[nn.Module, list[Tensor]] = {module: [] for module in modules}

        def keep(module, _inputs, output):
            values[module].append(output[0] if isinstance(output, tuple) else output)

        handles = [module.register_forward_hook(keep) for module in values]
        try:
            logits = call()
        finally:
            for handle in handles:
                handle.remove()
        return logits, [values[module].pop(0) for module in modules]  # a layer may be used often

    return run


def _real(ours: nn.Module, ids: Tensor) -> Tensor:
    """Return which tokens of the first input are not padding, (batch, n)."""
    pad_id = getattr(ours, "source_config", ours.config).pad_id
    return torch.ones_like(ids, dtype=torch.bool) if pad_id is None else ids != pad_id


def _run_ours(ours: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor | None:
    if not isinstance(ours, EncoderOnlyTransformer):
        return ours(*inputs)
    if ours.projection is not None:
        return ours.predict_tokens(*inputs)
    ours(*inputs)
    return None


def _run_theirs(
    theirs, ours: nn.Module, inputs: tuple[Tensor, ...], real: Tensor, first: int
) -> Tensor | None:
    mask = real.long()
    if isinstance(ours, EncoderDecoderTransformer):
        source, target = inputs
        output = theirs(input_ids=source, attention_mask=mask, decoder_input_ids=target)
    else:
        positions = first + (mask.cumsum(dim=1) - 1).clamp(
            min=0
        )  # padding takes up no positions in ours
        types = {"token_type_ids": inputs[1]} if len(inputs) > 1 else {}
        output = theirs(inputs[0], attention_mask=mask, position_ids=positions, **types)
    return getattr(output, "logits", None)


def _difference(our_name: str, their_name: str, ours: Tensor, theirs: Tensor) -> Difference:
    largest = (ours - theirs).abs().max().item()
    return Difference(our_name, their_name, largest, theirs.abs().max().item())
