"""What the tests of several processes run, each scenario alone and under `torchrun`.

`python -m tests.training.parallel_program scenarios FILE` writes what all scenarios gave;
`... run FOLDER STEPS` is `python -m transformer_lesson.training` on a tiny corpus.
"""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist

from tests.training import small
from tests.training.small import PAIRS, SIZES, batch_of, batches_of, model_of, run, short, weights
from transformer_lesson import training
from transformer_lesson.text.batches import Batch
from transformer_lesson.training import __main__, distributed, loop, tasks, tensor_parallel, train
from transformer_lesson.training.precision import PRECISIONS

PARTS = {"gradient_accumulation_steps": 2, "activation_checkpointing": True}


def curve(kind: str, batches=None, steps=50, **changes) -> dict:
    model, validation = model_of(kind, dropout=0.0), batches_of(kind, 3)
    settings = {"validation": validation, "validate_every": 20}
    return facts(
        model, train(model, batches or batches_of(kind), short(steps, **changes), **settings)
    )


def facts(model, history) -> dict:
    with torch.no_grad():
        return {
            "losses": history.losses,
            "norms": history.gradient_norms,
            "validation": history.validation,
            "tokens": history.tokens,
            "weights": weights(model).tolist(),
            "training": model.training,
        }


def single_rows() -> list[Batch]:
    """Batches of which the second of two processes gets nothing."""
    batches = batches_of("translator")
    return [Batch(tuple(ids[2:3] for ids in b.inputs), b.labels[2:3]) for b in batches]


def everybodys(value) -> list:
    """Every process's value: a list of one without `torchrun`."""
    return distributed.collect(value) if dist.is_initialized() else [value]


def resumed(path: Path) -> dict:
    whole, wanted = run(short(9))

    def keep(report):
        if report.step == 5:
            path.with_suffix(".kept").write_bytes(path.read_bytes())

    run(short(9), keep, checkpoint=path, checkpoint_every=4)
    torch.manual_seed(99)
    everybodys("here")  # until the copy is there
    model, history = training.resume(path.with_suffix(".kept"), batches_of("translator"))
    return {"wanted": facts(whole, wanted), "got": facts(model, history)}


def diverged() -> list[str]:
    model = model_of("translator")
    factor = 1.0 if distributed.rank() else float("nan")
    model.logits.register_forward_hook(lambda _module, _inputs, out: out * factor)
    try:
        train(model, [batch_of("translator")], short())
        message = ""
    except training.TrainingDiverged as error:
        message = str(error)
    return everybodys(message)


def who_speaks() -> dict:
    reports = []
    train(model_of("translator"), [batch_of("translator")], short(3), reports.append)
    return {"reports": everybodys(len(reports)), "draws": everybodys(torch.rand(1).item())}


def other_weights() -> list[list[float]]:
    model = model_of("translator", seed=distributed.rank(), dropout=0.0)
    train(model, batches_of("translator"), short(2))
    return everybodys(weights(model).tolist())


def chosen() -> list[str]:
    fast = ("float32", "bfloat16")[distributed.rank()]

    def timed(*_arguments):
        return {name: 1.0 if name == fast else 3.0 + distributed.rank() for name in PRECISIONS}

    with mock.patch.object(loop, "seconds_of_each", timed):
        return everybodys(small.history_of(short(precision="auto")).precision)


def in_parts() -> dict:
    """What a sub-layer of each kind gives, and its gradients, all processes' parts together."""
    torch.manual_seed(4)
    count = dist.get_world_size() if dist.is_initialized() else 1
    x, mask = torch.randn(2, 5, 12, requires_grad=True), torch.ones(5, 5).tril().bool()
    matrices, b_1, b_2 = torch.randn(4, 12, 12), torch.randn(14), torch.randn(12)
    W_1, W_2 = torch.randn(12, 14), torch.randn(14, 12)
    own = [tensor_parallel.share_of(W, 1) for W in matrices[:3]]
    own += [tensor_parallel.share_of(W, 0) for W in (matrices[3], b_1, W_2)]
    own += [tensor_parallel.share_of(W_1, 1)]
    *projections, b_1, W_2, W_1 = (part.clone().requires_grad_() for part in own)
    b_2.requires_grad_()
    z = tensor_parallel.attention_in_parts(x, *projections, 4 // count, mask)
    y = tensor_parallel.feed_forward_in_parts(z, W_1, b_1, W_2, b_2)
    y.square().sum().backward()
    shared = {"output": y.detach(), "x": x.grad, "b_2": b_2.grad}
    columns = {"W_Q": projections[0].grad, "W_V": projections[2].grad, "W_1": W_1.grad}
    rows = {"W_O": projections[3].grad, "b_1": b_1.grad, "W_2": W_2.grad}
    found = {name: everybodys(part.tolist()) for name, part in shared.items()}
    for axis, parts in ((1, columns), (0, rows)):
        for name, part in parts.items():
            whole = torch.cat(list(map(torch.tensor, everybodys(part.tolist()))), dim=axis)
            found[name] = [whole.tolist()]
    return found


def scenarios(folder: Path) -> dict:
    return {
        "translator": curve("translator"),
        "language model": curve("language model", steps=10, clip=0.5),
        "classifier": curve("classifier", steps=10),
        "token head": curve("token head", steps=10, weight_decay=0.1),
        "one row": curve("translator", single_rows(), steps=10),
        "parts": curve("translator", steps=10, **PARTS),
        "resumed": resumed(folder / "run.safetensors"),
        "diverged": diverged(),
        "who speaks": who_speaks(),
        "other weights": other_weights(),
        "chosen": chosen(),
        "in parts": in_parts(),
    }


def tiny_run(folder: Path, arguments: list[str]) -> int:
    """The command line on sixteen pairs; `FOLDER/steps` gets a line for each step."""
    tasks.TEXT = replace(small.TINY, sizes=SIZES | {"dropout": 0.2})
    folder.mkdir(exist_ok=True)
    tasks.parallel_text = lambda _name: PAIRS

    def note(report):
        with open(folder / "steps", "a") as file:
            file.write(f"{report.step}\n")
        time.sleep(0.01)

    __main__._report = note
    return __main__.main(["--corpus", "pairs", "--out", str(folder), *arguments])


def main(what: str, where: str, *arguments: str) -> int:
    if what == "run":
        return tiny_run(Path(where), list(arguments))
    distributed.start()
    found = scenarios(Path(where).parent)
    if distributed.rank() == 0:
        Path(where).write_text(json.dumps(found))
    distributed.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
