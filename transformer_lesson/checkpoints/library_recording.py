"""`record` on a model of the library: its values under the names that our models give.

A family's rules say what the library calls each of our matrices, so its hooks can be put where ours
are: on what W_O and the network's last matrix read, on what an attention and a block return.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, NamedTuple

from torch import Tensor, nn

from transformer_lesson.checkpoints.family import Facts, Family
from transformer_lesson.checkpoints.layer_by_layer import their_module
from transformer_lesson.checkpoints.transformers_io import family_of
from transformer_lesson.model.attention import split_heads
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.feed_forward import GATES
from transformer_lesson.model.hooks import RECORDERS, Recording
from transformer_lesson.model.transformers import EncoderDecoderTransformer, EncoderOnlyTransformer


class Point(NamedTuple):
    """A value of the library's: our name, its module, and how to take it.

    `take` gets what the module returned, or the first thing that it read if `before` is True. It
    returns `None` if the value is not there.
    """

    name: str
    module: nn.Module
    take: Callable[[Any], Tensor | None]
    before: bool = False


def library_recorder(model: nn.Module) -> AbstractContextManager[Recording] | None:
    """Return what records a model of the library, or `None` for any other model.

    Raises:
        ValueError: a family that our models do not have, by its name.
    """
    if not hasattr(getattr(model, "config", None), "to_dict"):
        return None
    facts = model.config.to_dict()
    family = family_of(facts)
    return _recorded(model, _points(model, family, facts))


@contextmanager
def _recorded(model: nn.Module, points: list[Point]) -> Iterator[Recording]:
    """Store what passes the points; the library's other attentions return no weights."""
    run, of_module = Recording(), {}
    for point in points:
        of_module.setdefault((point.module, point.before, _kind(point.name)), []).append(point)
    usual = model.config._attn_implementation
    model.set_attn_implementation("eager")
    handles = []
    try:
        for (module, before, _), its in of_module.items():
            register = module.register_forward_pre_hook if before else module.register_forward_hook
            handles.append(register(partial(_keep, run, its), with_kwargs=True))
        yield run
    finally:
        for handle in handles:
            handle.remove()
        model.set_attn_implementation(usual)


def _kind(name: str) -> str:
    """Return a name without its layer: one module may have several values, each of a kind."""
    return ".".join(part for part in name.split(".") if not part.isdigit())


def _keep(run: Recording, points: list[Point], _module, inputs, options, *outputs) -> None:
    """Store the value of the point whose turn it is: ALBERT's layers share one block."""
    points.append(points.pop(0))
    point = points[-1]
    first_input = inputs[0] if inputs else next(iter(options.values()), None)
    value = point.take(outputs[0] if outputs else first_input)
    if value is not None:
        run[point.name] = value.detach()


def _points(model: nn.Module, family: Family, facts: Facts) -> list[Point]:
    """Return all values of a model that have a name of ours, as far as the library has them."""
    *_, config = configs = family.read_config(facts)
    if issubclass(family.model, EncoderOnlyTransformer):
        stacks = {"encoder": config}
    elif issubclass(family.model, EncoderDecoderTransformer):
        stacks = dict(zip(("encoder", "decoder"), configs, strict=True))
    else:
        stacks = {"decoder": config}
    recipes = []
    if family.layers[0][0] == "embedding":
        recipes.append(("embedding.output", family.layers[0][1], _first, False))
    for stack, of_stack in stacks.items():
        for i in range(of_stack.n_layers):
            recipes += _of_block(family, f"{stack}.{i}", of_stack, len(stacks) == 2)
    points = [
        Point(name, module, take, before)
        for name, theirs, take, before in recipes
        if (module := their_module(model, theirs, family)) is not None
    ]
    if "decoder" in stacks:
        points.append(Point("logits", model, lambda output: getattr(output, "logits", None)))
    return points


def _of_block(family: Family, block: str, config: ModelConfig, two_stacks: bool) -> list[tuple]:
    """Return our name, the library's module, what takes the value, and whether it is read there."""

    def matrix(name: str) -> str:
        """Return the library's module of one of ours; ALBERT has names for one block only."""
        theirs = family.rename(f"{block}.{name}.weight")
        if theirs.startswith(block):
            theirs = family.rename(f"{block.split('.')[0]}.0.{name}.weight")
        return theirs.removesuffix(".weight")

    crosses = two_stacks and block.startswith("decoder")
    recipes = []
    for kind in ("self_attention", "cross_attention") if crosses else ("self_attention",):
        name, attention = f"{block}.{kind}", matrix(f"{kind}.W_Q").rpartition(".")[0]
        biased = config.positions == "relative"
        recipes.append((f"{name}.weights", attention, partial(_weights, biased=biased), False))
        heads = partial(split_heads, n_heads=config.n_heads)
        recipes.append((f"{name}.heads", matrix(f"{kind}.W_O"), heads, True))
    network = "W_down" if config.activation in GATES else "W_2"
    hidden = matrix(f"feed_forward.{network}")
    recipes.append((f"{block}.feed_forward.hidden", hidden, _of_batch, True))
    pairs = {our.format(i=block.split(".")[1]): their for our, their in family.layers}
    places = {"output": block, "after_attention": f"{block}.after_attention"}
    for name, ours in places.items():
        if ours in pairs:
            theirs = pairs[ours].format(i=block.split(".")[1])
            recipes.append((f"{block}.{name}", theirs, _first, False))
    if config.norm_position == "pre" and not config.parallel:
        after = ("after_self_attention", "after_cross_attention") if crosses else ()
        for number, name in enumerate(after or ("after_attention",), start=2):
            recipes.append((f"{block}.{name}", matrix(f"norm_{number}"), _of_batch, True))
    return recipes


def _first(value: Any) -> Tensor:
    return value[0] if isinstance(value, tuple) else value


def _of_batch(value: Tensor) -> Tensor | None:
    return value if value.dim() == 3 else None  # OPT has laid its sentences end to end


def _weights(output: tuple, biased: bool) -> Tensor | None:
    """Return attention weights, the last thing of an attention's; T5's returns its bias, too."""
    tables = [part for part in output if isinstance(part, Tensor) and part.dim() == 4]
    return tables[-1] if len(tables) == 1 + biased else None


RECORDERS.append(library_recorder)
