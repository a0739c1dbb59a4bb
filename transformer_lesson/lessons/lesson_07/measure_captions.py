"""Train the captioner behind lesson 07 from three seeds, and test what it has and has not learned.

Each seed also trains a control that sees every scene: the result on held-out scenes if only the
pictures were new.

    python -m transformer_lesson.lessons.lesson_07.measure_captions
        two minutes on one core; writes captions.json
"""

import json
import time
from dataclasses import replace
from pathlib import Path

from transformer_lesson.lessons.lesson_07 import captions
from transformer_lesson.lessons.lesson_07.scenes import (
    APART,
    KNOWN,
    NEVER,
    RADII,
    SCENES,
    THINGS,
    Drawings,
    beginning_with,
    draw,
)
from transformer_lesson.training import train

SEEDS, N_TRAIN, N_TEST = (0, 1, 2), 12_000, 400
STORED = Path(__file__).with_name("captions.json")


def trained(drawings: Drawings, seed: int) -> captions.Captioner:
    """Return a captioner trained on these pictures."""
    began, model = time.process_time(), captions.Captioner(seed=seed)
    batches = captions.CaptionBatches(drawings, seed=seed)
    train(model, batches, replace(captions.TRAINING, seed=seed))
    print(f"seed {seed}: {time.process_time() - began:.0f} s of a core")
    return model


def _says_triangle(model: captions.Captioner, beginning: str, thing: str) -> float:
    """Return the share of *triangle* after a beginning, where such a thing comes first."""
    pictures = draw(200, seed=7, scenes=beginning_with(thing)).pictures
    return round(captions.next_word(model, beginning, pictures)["triangle"], 3)


def main() -> None:
    """Train three seeds, and store how well each kind of caption is read."""
    kinds = {"known": KNOWN, "apart": APART, "never": NEVER}
    tests = {kind: draw(N_TEST, seed, kinds[kind]) for seed, kind in enumerate(kinds, start=2)}
    some, all_of_them = (draw(N_TRAIN, seed=1, scenes=scenes) for scenes in (KNOWN, SCENES))
    stored = {"n_test": N_TEST, "seeds": []}
    for seed in SEEDS:
        model, control = trained(some, seed), trained(all_of_them, seed)
        results = {kind: captions.count_right(model, test) for kind, test in tests.items()}
        results["control"] = {kind: captions.count_right(control, tests[kind]) for kind in tests}
        results["said"] = dict(
            captions.said_of("small triangle", model, tests["never"]).most_common()
        )
        shares = captions.noun_shares(model, tests["known"]).tolist()
        names = ("on the shape they name", "on the other shape", "if it were even")
        results["nouns"] = {
            name: round(share, 3) for name, share in zip(names, shares, strict=True)
        }
        results["triangle after"] = {
            f"a {word}": {thing: _says_triangle(model, f"a {word}", thing) for thing in THINGS}
            for word in RADII
        }
        print(results, flush=True)
        stored["seeds"].append(results)
    STORED.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
