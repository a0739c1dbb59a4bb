"""The film of a training: every number that it shows."""

import pytest
import torch

from tests.explorables.examples import made
from tests.explorables.shown import assert_refused
from transformer_lesson.explorables import AttentionFilm
from transformer_lesson.lessons.lesson_03.attention_film import Frame


def test_every_number_is_the_frames_own(show):
    film = made("AttentionFilm")
    page, asks = show(film), ("the first", "the second")
    for number, frame in enumerate(film.frames):
        page.set(number=number)
        told = [
            f"{asks[side]} gives “{word}” {weight:.2f}{', itself' if place == to else ''}"
            for side, place in enumerate(film.asking)
            for to, (word, weight) in enumerate(
                zip(film.words, frame["weights"][side], strict=True)
            )
        ]
        assert [one for one in page.told() if one.startswith("the ")] == told
        best = max(zip(frame["weights"][1], film.words, strict=True))
        assert page.title.endswith(f"second “the” looks mostly at “{best[1]}” ({best[0]:.2f})")
        assert page.said.startswith(f"Loss {frame['loss']:.2f}; {round(100 * frame['right'])} %")


def test_a_press_on_a_curve_goes_to_its_step(show):
    film = made("AttentionFilm")
    page = show(film)
    page.named(f"step {film.frames[2]['step']}: ").first.click(force=True)
    assert page.get("number") == 2


@pytest.mark.parametrize(
    ("words", "asking", "shape", "sentence"),
    [
        (11, (0, 3), (11, 11), "the sentence has 11 words"),
        (4, (0, 4), (4, 4), "asking is .0, 4.: give two places from 0 to 3"),
        (4, (0,), (4, 4), "asking is .0.: give two places"),
        (4, (0, 3), (4, 5), "weights of shape .4, 5. do not fit 4 words"),
    ],
)
def test_what_does_not_fit_is_refused(words, asking, shape, sentence):
    frames = [Frame(0, 1.0, 0.5, torch.zeros(shape))]
    assert_refused(sentence, AttentionFilm, ["word"] * words, asking, frames)
