"""A model that is not ours, with its owner's functions, and what every probe needs to ask it.

Long because all probes ask through it, and so none has to put anything back by itself.
"""

import copy
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, embedding

from transformer_lesson.doctor.tensors import are_ids, differ, logits_of, noise_like, tensors_in
from transformer_lesson.doctor.watching import Lookups

Ids = tuple[Tensor, ...]
KINDS = ("causal", "translator", "encoder")


class Skip(Exception):
    """A probe hasn't been given what it needs; the message says which argument would allow it."""


@dataclass
class Given:
    """What the owner handed over besides model and batch; `examine` says what each one is."""

    forward: Callable | None = None
    loss: Callable | None = None
    optimizer: Any = None
    train_step: Callable | None = None
    evaluate: Callable | None = None
    generate: Callable | None = None
    cached: Callable | None = None
    sample: Callable | None = None
    temperature: float | None = None
    schedule: Callable | None = None
    steps: int | None = None
    eos_id: int | None = None
    start_id: int | None = None
    max_length: int | None = None
    padding_side: str | None = None
    generates_padded: bool = False
    prefix: int = 0
    tied: bool | None = None
    fresh: bool = True

    def need(self, *names: str) -> tuple:
        """Return what has these names.

        Raises:
            Skip: something was not handed over.
        """
        missing = [name for name in names if getattr(self, name) is None]
        if missing:
            raise Skip(f"hand over {', '.join(missing)}")
        return tuple(getattr(self, name) for name in names)


class Call(NamedTuple):
    """A module's call: its floating-point inputs and its first such output."""

    name: str
    module: nn.Module
    inputs: list[Tensor]
    outputs: list[Tensor]


def _are_rows(weight: Tensor, ids: Tensor, output: Any) -> bool:
    """Whether a table returned the rows of these ids, whatever their scale.

    BART's table of positions gets the tokens, or their vectors, and counts them.
    """
    if weight.dim() != 2 or ids.is_floating_point() or not ids.numel():
        return False
    if int(ids.min()) < 0 or int(ids.max()) >= len(weight):
        return False
    rows = embedding(ids, weight)
    same_shape = torch.is_tensor(output) and output.shape == rows.shape
    return same_shape and bool((cosine_similarity(rows, output, -1) > 0.99)[rows.any(-1)].all())


def groups_of(optimizer: Any) -> list[dict]:
    """Return an optimizer's groups, whatever it calls them: dictionaries with `params`."""
    values = (getattr(optimizer, "param_groups", None), *vars(optimizer).values())
    lists = [value for value in values if isinstance(value, list) and value]
    return next((x for x in lists if all(isinstance(g, dict) and "params" in g for g in x)), [])


def weights_of(optimizer: Any) -> list[Tensor]:
    """Return an optimizer's weights, in its order, also of one that is not PyTorch's class."""
    groups = groups_of(optimizer)
    if groups:
        return [p for group in groups for p in group["params"]]
    lists = [value for value in vars(optimizer).values() if isinstance(value, (list, tuple))]
    parameters = [p for value in lists for p in value if isinstance(p, nn.Parameter)]
    return list({id(p): p for p in parameters}.values())


PLAIN = (int, float, Tensor, list, dict, tuple, type(None))


def _state_of(optimizer: Any) -> tuple[dict, dict]:
    """Return copies of an optimizer's state and, if it is not PyTorch's, of its attributes."""
    has = isinstance(optimizer, torch.optim.Optimizer)
    state = copy.deepcopy(optimizer.state_dict()) if has else {}
    if optimizer is None or type(optimizer).__module__.startswith("torch."):
        return state, {}
    attributes = {
        name: value
        for name, value in vars(optimizer).items()
        if isinstance(value, PLAIN) and not (has and (name in KEPT or name.startswith("_")))
    }
    return state, copy.deepcopy(attributes, {id(p): p for p in weights_of(optimizer)})


def _put_back(optimizer: Any, state: tuple[dict, dict]) -> None:
    if isinstance(optimizer, torch.optim.Optimizer):
        optimizer.load_state_dict(state[0])
    vars(optimizer).update(state[1])


KEPT = ("state", "param_groups", "defaults")


class Patient:
    """A model, a batch of its ids, and ways to ask it; everything that is changed is put back.

    Attributes:
        batch: (ids,) or (source ids, target ids), each (text, token).
        ordinary: for each of these, the ids that are no special tokens.
        found: codes of what probes have found so far.
        said: what one probe leaves for later ones, such as the labels that the loss asks for.
    """

    def __init__(
        self,
        model: nn.Module,
        batch: Tensor | Sequence[Tensor],
        kind: str,
        pad_id: int | None,
        given: Given,
    ):
        self.model, self.kind, self.pad, self.given = model, kind, pad_id, given
        self.batch: Ids = (batch,) if torch.is_tensor(batch) else tuple(batch)
        self.device = self.batch[0].device
        self.draw = torch.Generator().manual_seed(0)
        self.found: set[str] = set()
        self.said: dict[str, Any] = {}
        special = {pad_id, given.eos_id, given.start_id} - {None}
        for ids in self.batch:
            if len(ids) > 1 and bool((ids[:, 0] == ids[0, 0]).all()):
                special.add(int(ids[0, 0]))
        self.special = special
        self.pads_left = given.padding_side == "left" or (
            given.padding_side is None and self._begins_with_padding()
        )
        self.ordinary = [
            torch.tensor([i for i in ids.unique().tolist() if i >= 0 and i not in special])
            for ids in self.batch
        ]
        self.limit = given.max_length or 64

    def _begins_with_padding(self) -> bool:
        """Whether texts of the batch begin with padding, and none ends with it."""
        ids = self.batch[0]
        pads = torch.zeros_like(ids, dtype=torch.bool) if self.pad is None else ids == self.pad
        return bool(pads[:, 0].any()) and not bool(pads[:, -1].any())

    def pads_left_on(self, side: int) -> bool:
        """Whether this side of the batch is padded on the left; a translator's may differ."""
        pads = self.batch[side] == self.pad
        if self.kind != "translator" or not bool(pads.any()):
            return self.pads_left
        return bool(pads[:, 0].any()) and not bool(pads[:, -1].any())

    # What is changed, and put back.

    def _tensors(self) -> Iterator[Tensor]:
        yield from self.model.parameters()
        yield from self.model.buffers()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Put back weights, buffers, gradients, modes, the optimizer's state and all generators."""
        optimizer = self.given.optimizer
        self._weights = [(tensor, tensor.detach().clone()) for tensor in self._tensors()]
        gradients = [(p, p.grad) for p in self.model.parameters()]
        for p, _ in gradients:
            p.grad = None
        modes = [(module, module.training) for module in self.model.modules()]
        state = _state_of(optimizer)
        generators = torch.random.get_rng_state(), random.getstate()
        on_cards = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else None
        try:
            yield
        finally:
            self.restore()
            for p, gradient in gradients:
                p.grad = gradient
            for module, mode in modes:
                module.training = mode
            if optimizer is not None:
                _put_back(optimizer, state)
            torch.random.set_rng_state(generators[0])
            random.setstate(generators[1])
            if on_cards is not None:
                torch.cuda.set_rng_state_all(on_cards)

    def restore(self) -> None:
        """Put the weights back as they were."""
        with torch.no_grad():
            for tensor, value in self._weights:
                if tensor.shape == value.shape and not torch.equal(tensor, value):
                    tensor.copy_(value)

    @contextmanager
    def shaken(self, by: float = 0.3) -> Iterator[None]:
        """Add noise to weights that learn: who sees whom must not depend on them.

        Fresh weights hide much: an output that a token moves by 1e-6 looks unmoved.
        """
        try:
            with torch.no_grad():
                for p in self.model.parameters():
                    if p.is_floating_point() and p.requires_grad:
                        spread = float(p.float().std()) if p.numel() > 1 else 0.0
                        least = p.shape[-1] ** -0.5 if p.dim() > 1 else 0.05
                        size = max(by * spread, least if spread < least else 0.0)
                        p.add_((noise_like(p) * size).to(p))
            yield
        finally:
            self.restore()

    # Asking.

    def logits(self, *ids: Tensor, train: bool = False, seed: int = 0) -> Tensor:
        """Return what the owner's `forward` (else the model) says of these ids, in float32."""
        self.model.train(train)
        torch.manual_seed(seed)
        with torch.no_grad():
            output = (self.given.forward or self.model)(*ids)
        return logits_of(output).float()

    def loss(self, *ids: Tensor, train: bool = False, seed: int = 0) -> Tensor:
        """Return the owner's loss."""
        (loss,) = self.given.need("loss")
        self.model.train(train)
        torch.manual_seed(seed)
        return loss(*ids)

    def words(self, rows: int, n: int, side: int = -1) -> Tensor:
        """Return texts of ordinary tokens, different ones as far as there are enough."""
        pool = self.ordinary[side]
        if len(pool) < 2:
            raise Skip("the batch has no ordinary tokens: hand over one with real texts")
        texts = []
        for _ in range(rows):
            order = torch.randperm(len(pool), generator=self.draw)
            texts.append(pool[order.repeat(n // len(pool) + 1)[:n]])
        return torch.stack(texts).to(self.device)

    def other(self, token: int, side: int = -1) -> int:
        """Return another ordinary token."""
        pool = self.ordinary[side].tolist()
        return pool[(pool.index(token) + 1) % len(pool)] if token in pool else pool[0]

    def some(self, rows: int) -> int:
        """Return so many rows, or one if texts are known to be mixed: alone, none can be."""
        return 1 if "mixes_rows" in self.found else rows

    def texts(self, rows: int = 3, n: int = 9, n_target: int = 7) -> Ids:
        """Return ids for `forward`, without padding."""
        n, n_target = min(n, self.limit), min(n_target, self.limit)
        if self.kind != "translator":
            return (self.words(rows, n),)
        target = self.words(rows, n_target)
        if self.given.start_id is not None:
            target[:, 0] = self.given.start_id
        return self.words(rows, n, 0), target

    def aside(self, rows: int = 2) -> Ids:
        """Return texts of two lengths, and leave what others draw as it is."""
        state = self.draw.get_state()
        try:
            return self.texts(rows, 9, 7)
        finally:
            self.draw.set_state(state)

    def own_batch(self) -> Ids:
        """Return the owner's batch as `forward` reads it."""
        if self.kind != "translator":
            return self.batch
        return self.batch[0], self.batch[1][:, :-1]

    def marked(self, rows: int = 8) -> Ids:
        """Return the owner's batch (at most some rows) with new ordinary tokens in each text."""
        marked = []
        for side, ids in enumerate(self.batch):
            pool, new, start = self.ordinary[side], ids[:rows].clone(), 0
            order = pool[torch.randperm(len(pool), generator=self.draw)].to(ids.device)
            for row in new:
                free = torch.isin(row, pool.to(row.device))
                count = int(free.sum())
                row[free] = order[(torch.arange(count) + start) % len(order)]
                start += count
            marked.append(new)
        return tuple(marked)

    # Looking inside.

    @contextmanager
    def hooked(self, hook: Callable, modules: Sequence[nn.Module] | None = None) -> Iterator[None]:
        """Call hook(module, args, kwargs, output) after each call of the modules (of all).

        What it returns, if anything, takes the output's place.
        """
        handles = [
            module.register_forward_hook(hook, with_kwargs=True)
            for module in (modules if modules is not None else self.model.modules())
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def record(self, *ids: Tensor, train: bool = False, seed: int = 0) -> list[Call]:
        """Return the calls of all modules, inner ones first."""
        calls, names = [], {module: name for name, module in self.model.named_modules()}

        def note(module, args, kwargs, output) -> None:
            """Note a call."""
            inputs = [
                tensor.detach().clone()
                for tensor in tensors_in((args, kwargs))
                if tensor.is_floating_point()
            ]
            outputs = [
                tensor.detach().clone()
                for tensor in tensors_in(output)
                if tensor.is_floating_point()
            ]
            if names[module]:
                calls.append(Call(names[module], module, inputs, outputs[:1]))

        self.model.train(train)
        torch.manual_seed(seed)
        with self.hooked(note), torch.enable_grad():  # PyTorch's fast path skips hooks
            (self.given.forward or self.model)(*ids)
        return calls

    def enters(
        self,
        before: Ids,
        after: Ids,
        same: Mapping[int, Sequence[int]],
        train: bool = False,
        seeds: tuple[int, int] = (0, 0),
        change: Callable = nullcontext,
    ) -> tuple[str, nn.Module | None]:
        """Return the innermost module whose inputs are equal where they must be, its output not.

        Args:
            same: from the length of an axis to the places on it that must stay the same.
            change: a context in which `after` is read.
        """

        def must_stay(tensor: Tensor) -> Tensor:
            """Return the places that must be equal."""
            for size, places in same.items():
                axes = [i for i, length in enumerate(tensor.shape[:-1]) if length == size]
                if len(axes) == 1:
                    places = torch.tensor(list(places), device=tensor.device)
                    tensor = tensor.index_select(axes[0], places)
            return tensor

        def moved(pairs) -> bool:
            """Whether any of them differs there."""
            return any(a.shape == b.shape and differ(must_stay(a), must_stay(b)) for a, b in pairs)

        first = self.record(*before, train=train, seed=seeds[0])
        with change():
            second = self.record(*after, train=train, seed=seeds[1])
        for call, other in zip(first, second, strict=False):
            if call.name != other.name or isinstance(call.module, nn.Embedding):
                continue
            inputs = [
                (a, b)
                for a, b in zip(call.inputs, other.inputs, strict=False)
                if a.shape == b.shape and a.dim() >= 2
            ]
            outputs = zip(call.outputs, other.outputs, strict=False)
            if inputs and not moved(inputs) and moved(outputs):
                return f"{call.name} ({type(call.module).__name__})", call.module
        return "", None

    def blocks(self, calls: Sequence[Call], each: bool = False) -> list[Call]:
        """Return the calls of the first block of each stack (nn.ModuleList or nn.Sequential).

        Args:
            each: of all blocks of the outermost stacks.
        """
        kinds = nn.ModuleList, nn.Sequential
        stacks = {name for name, module in self.model.named_modules() if isinstance(module, kinds)}
        blocks = []
        for call in calls:
            parent, _, last = call.name.rpartition(".")
            inner = any(parent.startswith(f"{other}.") for other in stacks)
            maps_tokens = bool(call.inputs) and bool(call.outputs) and call.outputs[0].dim() == 3
            of_stack = parent in stacks and last.isdigit() and (each or last == "0")
            matrices = sum(p.dim() > 1 for p in call.module.parameters())
            if of_stack and maps_tokens and not inner and matrices >= 3:
                blocks.append(call)
        return blocks

    def reads(self, *texts: Tensor) -> list[tuple[nn.Embedding | Tensor, Tensor]]:
        """Return which embeddings read which ids; where none does, which plain tensors."""
        tables = [module for module in self.model.modules() if isinstance(module, nn.Embedding)]
        reads: list[tuple[nn.Embedding | Tensor, Tensor]] = []

        def note(module, args, kwargs, output) -> None:
            """Note the ids that a table reads."""
            ids = next(tensors_in((args, kwargs)), None)
            if ids is not None and _are_rows(module.weight, ids, output):
                reads.append((module, ids.detach().clone()))

        def note_rows(table: Tensor, ids: Tensor, rows: Tensor) -> None:
            """Note the ids that are looked up in a tensor."""
            if _are_rows(table, ids, rows):
                reads.append((table, ids.detach().clone()))

        with self.hooked(note, tables):
            self.logits(*texts)
        if not reads:
            with Lookups(note_rows):
                self.logits(*texts)
        return reads

    def tables_of(self, ids: Tensor, *texts: Tensor) -> list[nn.Embedding | Tensor]:
        """Return the embeddings, or plain tensors, in which just these ids are looked up."""
        return list({table: None for table, read in self.reads(*texts) if are_ids(read, ids)})

    @contextmanager
    def another_vector(
        self, tables: Sequence[nn.Embedding | Tensor], token: int, ids: Tensor
    ) -> Iterator[None]:
        """Let these tables return another vector for a token wherever they read these ids.

        The tables stay: a head may be tied to one, or a decoder begin with <pad>.
        """

        places = {table.data_ptr() for table in tables if torch.is_tensor(table)}

        def other(table: Tensor, read: Tensor, rows: Tensor) -> Tensor | None:
            """Return other vectors for the token."""
            if not are_ids(read, ids):
                return None
            noise = torch.randn(rows.shape[-1], generator=torch.Generator().manual_seed(5))
            spread = 2 * float(table.detach().float().std())
            return torch.where((read == token)[..., None], (noise * spread).to(rows), rows)

        def change(module, args, kwargs, output) -> Tensor | None:
            """Let a module return them."""
            return other(module.weight, next(tensors_in((args, kwargs))), output)

        def change_rows(table: Tensor, read: Tensor, rows: Tensor) -> Tensor | None:
            """Let a lookup return them."""
            return other(table, read, rows) if table.data_ptr() in places else None

        if places:
            with Lookups(change_rows):
                yield
        else:
            with self.hooked(change, tables):
                yield
