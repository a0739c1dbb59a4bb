"""What prose says of the trained translator and of trainings, where no cell shows it."""

import re
from functools import cache

import torch
import torch.nn.functional as F

from tests.stored_lessons import cells, lesson
from transformer_lesson import record
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.exercises.engine.question_bank import find_question
from transformer_lesson.explorables import TranslationPlayground

RUNNING = "the child opens the window ."


def right(name):
    question = find_question(name)
    return f"{question.answer.text} {question.answer.explanation}"


@cache
def reading(source, target=""):
    """What passes through the trained translator that reads this and has written that."""
    model, tokenizer, _ = trained_translator()
    source_ids = torch.tensor([[*tokenizer.encode(source), tokenizer.eos_id]])
    target_ids = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(target)]])
    with torch.no_grad(), record(model) as run:
        model(source_ids, target_ids)
    return run


def test_what_the_translator_that_reads_the_running_example_is_said_to_do():
    playground = TranslationPlayground()
    run = reading(RUNNING, "das Kind macht das Fenster auf .")
    weights = run[f"decoder.{playground.layer}.cross_attention.weights"]
    assert weights[0, playground.head, 5].argmax() == 2
    begun, ended = run["source_embedding.tokens"][0], run["encoder.1.output"][0]
    alike = F.cosine_similarity(begun, ended, dim=-1)
    assert alike.argmin() == 0  # "the" changes most, as lesson 05's task has it


def test_10_as_its_training_came_out():
    """What stored outputs of the lesson say, which no quick test can make again."""
    told = {
        cell["id"]: "".join(
            "".join(output.get("text", output.get("data", {}).get("text/plain", "")))
            for output in cell["outputs"]
        )
        for cell in cells(lesson("10"), "code")
    }

    def numbers(cell):
        return [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*\.?\d*", told[cell])]

    _, guessing, untrained = numbers("37f527e9")
    assert abs(untrained - guessing) < 0.5
    start, reached = re.match(r"From (.+) bits .* to (\S+) at", told["3e257996"]).groups()
    table, mixture = map(float, re.findall(r": (\d\.\d+), passed", told["3e257996"]))
    assert float(start) > table > mixture > float(reached) > mixture - 0.3
    assert right("10.rival").startswith("A little below both")
    stored = re.findall(r"^ *24,000 .*$", told["run-sizes"], re.MULTILINE)[0].split()[3]
    again = re.findall(r"(\S+) stored, (\S+) trained", told["train-one"])[0]
    assert again[0] == stored and abs(float(again[1]) - float(stored)) < 0.15
    best = re.findall(r"best width (\d+)", told["draw-sizes"])
    assert (best[0], best[-1]) == ("8", "64") and right("10.little_text").startswith("8 ")
    without, with_floor = map(float, re.findall(r"off by (\S+)", told["run-five"]))
    assert without < -0.04 and abs(with_floor) < abs(without) - 0.02
    assert "too low" in right("10.straight_line")
    starts = [float(bits) for bits in re.findall(r"(\S+) bits per", told["where-they-start"])]
    assert starts == sorted(starts, reverse=True)
    first, second = numbers("second-time")
    assert abs(first - second) < 0.25 and right("10.second_time").startswith("About the same")
    kept = [int(share) for share in re.findall(r"mistake in (\d+)% of", told["train-stories"])]
    assert kept[0] < 10 and 30 <= kept[-1] <= 70 and "copied none" in right("10.facts")
    assert re.findall(r"(\d+) of 100 copied", told["train-stories"])[-1] == "0"
    right_sentences = [int(n) for n in re.findall(r"(\d+)% of sentences", told["train-stories"])]
    assert right_sentences == sorted(right_sentences) and right_sentences[-1] > 80
    by_heat = [int(share) for share in re.findall(r"(\d+)% without", told["heat"])]
    assert by_heat == sorted(by_heat, reverse=True) and by_heat[0] > 80 > 30 > by_heat[-1]
    by_line, by_topic = numbers("731367b4")
    assert by_line > 25 and by_topic < 2
