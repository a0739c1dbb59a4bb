"""The page's modules joined into one, and node to run them: what they compute needs no page.

A script beside this file defines `answers(cases, load, store)`, which may return a promise:
`load(name)` returns the bytes of a file, `store(numbers)` keeps a Float32Array, which JSON would
take too long for.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from playwright._impl._driver import compute_driver_executable

from transformer_lesson.explorables.bundle import bundle

NODE = compute_driver_executable()[0]  # playwright's own: no other program is needed
MODULES = ("checkpoints", "ranking", "generation", "trace")
RUN_IN_NODE = """
const { closeSync, openSync, readFileSync, writeFileSync, writeSync } = await import("node:fs");
const folder = process.argv[2], numbers = openSync(`${folder}/numbers`, "w");
const cases = JSON.parse(readFileSync(`${folder}/cases.json`));
const forward = (model, { source, target }) => model.kind === "EncoderOnlyTransformer"
  ? model.encode(source) : model.decode(target, source && model.encode(source), source);
const load = (name) => readFileSync(`${folder}/${name}`);
const made = await answers(cases, load, (values) => writeSync(numbers, values));
closeSync(numbers);
writeFileSync(`${folder}/answers.json`, JSON.stringify(made));
"""


def in_node(script: str, folder: Path, cases: Any) -> tuple[Any, np.ndarray]:
    """Return a script's answers to cases, and the numbers that it stored, in their order."""
    program = folder / "program.mjs"
    own = Path(__file__).with_name(script).read_text(encoding="utf-8")
    program.write_text(f"{bundle(*MODULES)}\n{own}{RUN_IN_NODE}", encoding="utf-8")
    (folder / "cases.json").write_text(json.dumps(cases))
    subprocess.run([NODE, program, folder], check=True)
    answers = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    return answers, np.fromfile(folder / "numbers", np.float32)
