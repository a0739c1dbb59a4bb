"""One word's stream in the page: what is added, what comes of it, and what would be said."""

from dataclasses import replace
from itertools import product

import pytest
import torch

from tests.explorables import tiny_models
from tests.explorables.forward_pass import forward_pass
from tests.explorables.shown import assert_agree, assert_refused
from tests.explorables.tiny_models import translation
from transformer_lesson import EncoderOnlyTransformer
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.explorables import StreamExplorer
from transformer_lesson.model.transformers import DecoderOnlyTransformer

BRANCHES = ("W_O", "W_2")


def points_of(run, stack: str, row: int) -> list[tuple]:
    """Name, what is added and the stream after it, of a row in the package's pass."""
    embedding = next(n for n in run.values if n.endswith("embedding.tokens") and begins(n, stack))
    token, placed = (run.values[f"{embedding[:-7]}.{part}"][row] for part in ("tokens", "output"))
    points = [("embedding", token * 0, token), ("position", placed - token, placed)]
    for i in range(run.model.config.n_layers):
        for kind in ("self_attention", "cross_attention", "feed_forward"):
            part = f"{stack}.{i}.{kind}"
            for added in (f"{part}.{b}" for b in BRANCHES if f"{part}.{b}" in run.values):
                after = run.values[f"{stack}.{i}.{after_of(run, stack, i, kind)}"]
                points.append((f"{kind.replace('_', '-')} {i}", run.values[added][row], after[row]))
    return points


def begins(name: str, stack: str) -> bool:
    return not name.startswith({"encoder": "target", "decoder": "source"}[stack])


def after_of(run, stack: str, i: int, kind: str) -> str:
    if kind == "feed_forward":
        return "output"
    return f"after_{kind}" if f"{stack}.{i}.after_{kind}" in run.values else "after_attention"


def expected(points, model, point: int, number: int, speaks) -> list[str]:
    first, told = points[0][2], []
    for i, (name, added, state) in enumerate(points):
        if i > point:
            told.append(f"{name}: not yet")
            continue
        like = torch.cosine_similarity(state, first, dim=0)
        adds = i and f", adds {added.norm() / points[i - 1][2].norm():.2f} of the stream's length"
        words = f"{name}{adds or ''}: cosine with the beginning {like:.2f}, "
        told.append(f"{words}number {number} is {state[number]:.2f}{speaks(state)}")
    return told


def lens(model, token):
    def speaks(state) -> str:
        norm = getattr(model, "decoder_norm", None) or torch.nn.Identity()
        shares = model.projection(norm(state)).softmax(-1)
        return f", would say “{token(int(shares.argmax()))}” ({shares.max():.2f})"

    return speaks


def test_every_number_is_that_of_the_packages_model(show):
    model, tokenizer, _ = trained_translator()
    page = show(StreamExplorer(written=4))
    run = translation(page.get("text"), 4)[0]
    for side, row in product(("read", "written"), (0, 3)):
        stack = {"read": "encoder", "written": "decoder"}[side]
        points = points_of(run, stack, row)
        speaks = lens(model, tokenizer.token) if side == "written" else lambda state: ""
        for point in (0, 2, len(points) - 1):
            page.set(side=side, row=row, point=point, number=7 * row)
            assert_agree(page.told(), expected(points, model, point, 7 * row, speaks))
    assert page.title.startswith("After feed-forward 1, “macht”: cosine ")


@pytest.mark.parametrize("norm_position", ["pre", "post"])
def test_a_decoder_and_an_encoder_of_ones_own(show, norm_position):
    model, tokenizer = tiny_models.language_model()
    model = DecoderOnlyTransformer(replace(model.config, norm_position=norm_position)).eval()
    page = show(StreamExplorer(model, tokenizer, "abc", row=2, written=0, point=99))
    ids = [*tokenizer.encode("abc")]
    points = points_of(forward_pass(model, {"ids": ids}), "decoder", 2)
    speaks = lens(model, tokenizer.token)
    assert_agree(page.told(), expected(points, model, len(points) - 1, 0, speaks))
    encoder = EncoderOnlyTransformer(model.config).eval()
    page = show(StreamExplorer(encoder, tokenizer, "abc", row=1))
    assert page.title == "“b” begins as its row in the embedding table"
    page.named("feed-forward 0: not yet").click()
    assert page.get("point") == 3 and page.title.startswith("After feed-forward 0, “b”")
    assert_refused("a model and its tokenizer belong together", StreamExplorer, model)
