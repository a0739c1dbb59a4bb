"""Run the boss's program healthy and with each fault of the clinic, and take all its probes.

python -m transformer_lesson.lessons.lesson_14.measure_sick_runs
    four minutes on one core; writes transformer_lesson/lessons/lesson_14/sick_runs.json
"""

import json

import torch

from transformer_lesson.lessons.lesson_14.probes import idle_heads, measured
from transformer_lesson.lessons.lesson_14.sick_runs import FAULTS, HEALTHY, PATIENTS, trained
from transformer_lesson.lessons.lesson_14.symptoms import IN_TABLE, STORED

EVERY = 2  # steps between stored losses
SEEDS = range(11)
BY_SEED = (HEALTHY, "keys as values", "mask added", "schedule in epochs")  # run from all of them


def probed(name: str, seed: int = 0) -> dict[str, float]:
    """Return every probe's number to store."""
    return {probe: round(number, 4) + 0.0 for probe, number in measured(name, seed).items()}


def record(name: str) -> dict:
    """Return one program's results to store."""
    run = trained(name)
    return {
        "losses": [round(loss, 3) for loss in run.losses[::EVERY]],
        "evaluation": round(run.evaluation, 3),
        "sentences": run.sentences,
        "probes": probed(name),
        "more seeds": [probed(name, n) for n in IN_TABLE[1:] if name in (HEALTHY, *PATIENTS)],
        "seeds": [round(trained(name, seed).evaluation, 3) for seed in SEEDS if name in BY_SEED],
        "idle heads": [idle_heads(trained(name, seed)) for seed in SEEDS if name == HEALTHY],
    }


def main() -> None:
    """Run every faulty program, and store what it gave and what each probe finds."""
    torch.set_num_threads(1)
    lines = []
    for name in (HEALTHY, *FAULTS):
        recorded = record(name)
        print(f"{name:26} {recorded['losses'][-1]:.2f} {recorded['evaluation']:.2f}", flush=True)
        lines.append(f" {json.dumps(name)}: {json.dumps(recorded, ensure_ascii=False)}")
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
