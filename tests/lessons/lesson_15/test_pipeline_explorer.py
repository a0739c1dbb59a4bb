"""A pipeline and experts in the page: every block, wait and number is the package's."""

import itertools
import math

import torch

from transformer_lesson.explorables import PipelineExplorer
from transformer_lesson.lessons.lesson_15.pipeline_explorer import POPULARITY, affinity
from transformer_lesson.model.experts import route
from transformer_lesson.training.pipeline import (
    bubble_share,
    parts_kept,
    pipeline,
    sent_to_devices,
    waiting_share,
)

PIPELINES = [
    dict(stages=stages, parts=parts, order=order)
    for stages, parts in ((1, 1), (2, 3), (4, 4), (4, 13), (5, 2), (8, 16))
    for order in ("GPipe", "1F1B")
]
EXPERTS = [
    dict(devices=devices, chosen=chosen, favorites=favorites)
    for devices, chosen in itertools.product((2, 4, 8), (1, 2))
    for favorites in (0.0, 0.25, 1.0)
]


def whole(number: float) -> int:
    """The nearest whole number, of two the larger one."""
    return math.floor(number + 0.5)


def waits(spans: list[tuple[int, int]], end: int) -> list[tuple[int, int]]:
    """When nothing of these spans goes on, from 0 to the end."""
    edges = [0, *itertools.chain(*sorted(spans)), end]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b > a]


def test_every_pass_and_every_wait_of_a_pipeline_is_the_packages(show):
    page = show(PipelineExplorer())
    for state, shown in zip(PIPELINES, page.states(PIPELINES), strict=True):
        line, stages, parts = pipeline(**state), state["stages"], state["parts"]
        end = max(works[-1].end for works in line)
        spans = [[(work.start, work.end) for work in works] for works in line]
        told = {
            f"stage {work.stage}, part {work.part} {'backward' if work.backward else 'forward'}, "
            f"from {work.start} to {work.end}"
            for works in line
            for work in works
        } | {
            f"stage {stage} waits from {start} to {stop}"
            for stage, own in enumerate(spans)
            for start, stop in waits(own, end)
        }
        assert set(shown["told"]) == told and len(shown["told"]) == len(told)
        kept = [parts_kept(works) for works in line]
        keeps = [f"keeps {most} part{'s' * (most > 1)}" for most in kept]
        assert [text for text in shown["written"] if "keeps" in text] == keeps
        bubble = bubble_share(stages, parts)
        assert f"the bubble is {whole(100 * bubble)} % of the time" in shown["title"]
        said = f"Each stage works for {3 * parts} of {end} steps and waits for {end - 3 * parts}: "
        assert shown["said"].startswith(said)


def test_every_token_goes_to_the_devices_of_its_experts(show):
    page = show(PipelineExplorer(view="experts"))
    own, liked = (torch.tensor(one, dtype=torch.float64) for one in (affinity(), POPULARITY))
    for state, shown in zip(EXPERTS, page.states(EXPERTS), strict=True):
        weights, _ = route(own + state["favorites"] * liked, torch.eye(8).double(), state["chosen"])
        sent = sent_to_devices(weights, state["devices"])
        loads = [len(pairs) for pairs in sent]
        told = {
            f"device {device}, token {token} at expert {expert}, from {i} to {i + 1}"
            for device, pairs in enumerate(sent)
            for i, (token, expert) in enumerate(pairs)
        } | {
            f"device {device} waits from {load} to {max(loads)}"
            for device, load in enumerate(loads)
            if load < max(loads)
        }
        assert set(shown["told"]) == told
        title = f"Device {loads.index(max(loads))} has {max(loads)} of the {sum(loads)} pa"
        assert shown["title"].startswith(title)
        assert f"waits {whole(100 * waiting_share(sent))} % of the time" in shown["title"]
