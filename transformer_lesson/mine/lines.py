"""The learner's own lines: which of them computed what `ModelFlow` shows.

A sentence runs through the learner's forward pass, and every tensor that PyTorch returns on the way
is compared with those of the package's model. The first equal one names a line, if the call came
from the learner's file and not from ours.
"""

import ast
import inspect
import itertools
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from transformer_lesson.exercises.engine.collection import collection_folder
from transformer_lesson.mine.side_by_side import LONGEST, SAME, run, translator
from transformer_lesson.mine.transformer import MyTransformer
from transformer_lesson.model.hooks import record
from transformer_lesson.model.masks import causal_mask
from transformer_lesson.text.tokenizers import Tokenizer

PACKAGE = str(Path(__file__).parents[1])
SOURCE, TARGET = "the child opens the window .", "das Kind macht das Fenster"
LONGEST_LINE = 240  # characters of a statement that are shown

Place = tuple[str, int]  # a file and a line in it


def lines() -> list[list]:
    """Return the learner's lines that compute what `ModelFlow` shows, as its argument `lines`.

    Each is [stop of the tour, what it computes, function, line of the function, its code]. What
    ours computes, or a line whose source cannot be read, has none; without a function that passed,
    the list is empty.

    Raises:
        ValueError: the translator's file is missing.
    """
    if (folder := collection_folder()) is None or not folder.is_dir():
        return []
    model, tokenizer = translator()
    ids = as_ids(tokenizer)
    wanted = shown_values(model, *ids)

    def watch(mine: MyTransformer) -> dict[tuple[int, str], Place]:
        with torch.no_grad(), Watched(wanted, folder) as watched:
            mine(*ids)
        return watched.places

    places, _ = run(watch, model, {}, LONGEST)
    return [[*key, *line] for key in wanted if key in places and (line := line_at(*places[key]))]


def as_ids(tokenizer: Tokenizer) -> tuple[Tensor, Tensor]:
    """Return the source and the German so far, each a batch of one."""
    source = [*tokenizer.encode(SOURCE), tokenizer.eos_id]
    return torch.tensor([source]), torch.tensor([[tokenizer.bos_id, *tokenizer.encode(TARGET)]])


def shown_values(model: nn.Module, source: Tensor, target: Tensor) -> dict[tuple, Tensor]:
    """Return what each stop of the tour shows, by stop and name, as the package's model has it."""
    with torch.no_grad(), record(model) as run:
        model(source, target)
        embedding = {name: run[f"target_embedding.{name}"] for name in ("tokens", "output")}
        thinks = model.decoder[-1].feed_forward(run["decoder.1.after_cross_attention"])
    kinds = {3: "encoder.1.self", 4: "decoder.1.self", 5: "decoder.1.cross"}
    values = {
        (2, "place"): embedding["output"] - embedding["tokens"],
        (2, "word + place"): embedding["output"],
    }
    for stop, kind in kinds.items():
        if stop == 4:
            values[stop, "mask"] = causal_mask(target.size(1))
        for name, part in (("scores", "scores"), ("weights", "weights"), ("sum", "heads")):
            values[stop, name] = run[f"{kind}_attention.{part}"]
    values |= {(6, "thinks"): thinks, (6, "after each step"): run["decoder.1.output"]}
    values[7, "logits"] = run["logits"]
    return {key: value.detach().float().squeeze() for key, value in values.items()}


class Watched(TorchFunctionMode):
    """Finds, while it is open, the learner's line that first computes each wanted value.

    Args:
        wanted: values by any key.
        folder: of the learner's files.
    """

    def __init__(self, wanted: dict[tuple, Tensor], folder: Path):
        super().__init__()
        self.wanted, self.folder = dict(wanted), folder
        self.places: dict[tuple, Place] = {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        """Run an operation, and compare what it returned or changed."""
        result = func(*args, **(kwargs or {}))
        changed = args[:1] if result is None else result  # x[:, 0] = y returns nothing
        for value in changed if isinstance(changed, tuple | list) else (changed,):
            if isinstance(value, Tensor):
                self._compare(value)
        return result

    def _compare(self, value: Tensor) -> None:
        matching = [key for key, wanted in self.wanted.items() if is_same(value, wanted)]
        if matching and (place := place_of(inspect.currentframe(), self.folder)):
            self.places |= dict.fromkeys(matching, place)
        for key in matching:  # without a place, ours has computed it
            del self.wanted[key]


def is_same(value: Tensor, wanted: Tensor) -> bool:
    """Return whether a tensor has the wanted numbers, or those of its first head, in any layout.

    What a mask hides may be anything below -1e8.
    """
    for expected in (wanted, wanted[0]) if wanted.dim() == 3 else (wanted,):
        if value.numel() != expected.numel():
            continue
        plain = value.detach().squeeze().float()
        for axes in itertools.permutations(range(plain.dim())):
            turned = plain.permute(axes)
            if turned.shape != expected.shape:
                continue
            hidden = turned < -1e8
            near = hidden | ((turned - expected).abs() <= SAME)
            if near.all() and hidden.sum() < hidden.numel() / 2:
                return True
    return False


def place_of(frame: FrameType | None, folder: Path) -> Place | None:
    """Return the learner's line that a call came from; `None` if one of our functions made it."""
    while frame:
        file = frame.f_code.co_filename
        if Path(file).parent == folder:
            return file, frame.f_lineno
        if file.startswith(PACKAGE) and file != __file__:
            return None
        frame = frame.f_back
    return None


def line_at(file: str, line: int) -> tuple[str, int, str] | None:
    """Return the function that has a line of a file, the line's number in it, and its statement."""
    try:
        text = Path(file).read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError):
        return None
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for function in (node for node in functions if node.lineno <= line <= node.end_lineno):
        code = _statement(function, text.splitlines(), line)
        return function.name, line - function.lineno + 1, code
    return None


def _statement(function: ast.FunctionDef, texts: list[str], line: int) -> str:
    """Return the innermost statement that has this line; of a compound one, the line alone."""
    *_, inner = _around(function, line)
    if inner.lineno < inner.end_lineno and not hasattr(inner, "body"):
        return ast.unparse(inner)[:LONGEST_LINE]
    return texts[line - 1].strip()[:LONGEST_LINE]


def _around(node: ast.stmt, line: int) -> Iterator[ast.stmt]:
    """Yield the statements that have this line, from the outermost to the innermost."""
    yield node
    for child in ast.walk(node):
        if child is not node and isinstance(child, ast.stmt):
            if child.lineno <= line <= child.end_lineno:
                yield child
