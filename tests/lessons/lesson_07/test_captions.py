"""Captions of drawn shapes: what is drawn is what is said, by the model of lesson 07."""

import torch

from transformer_lesson.lessons.lesson_07 import captions
from transformer_lesson.lessons.lesson_07.captions import TOKENIZER, CaptionBatches, Captioner
from transformer_lesson.lessons.lesson_07.scenes import (
    APART,
    KNOWN,
    N_PATCHES,
    NEVER,
    RADII,
    SCENES,
    Scene,
    draw,
)
from transformer_lesson.model.blocks import DecoderBlock, EncoderBlock
from transformer_lesson.model.transformers import EncoderDecoderTransformer

BESIDE = Scene("large circle", "left of", "small square")


def test_scenes_are_told_apart_and_nothing_held_out_is_known():
    assert len(set(map(str, SCENES))) == len(SCENES) == 72 == len(KNOWN) + len(APART) + len(NEVER)
    assert str(BESIDE) == "a large circle left of a small square"
    assert all("small triangle" not in str(scene) for scene in KNOWN + APART)
    alone = {thing for scene in KNOWN for thing in scene[::2]}
    assert {"large circle", "large square"} <= alone and len(alone) == 5


def test_a_picture_shows_its_scene_where_the_caption_says():
    beside, above = draw(23, 0, [BESIDE]), draw(23, 0, [BESIDE._replace(relation="above")])
    for drawings, axis in ((beside, -1), (above, -2)):
        squares = drawings.where.float().reshape(23, 2, 4, 4)
        along = squares.sum(-3 - axis if axis == -1 else -1)  # patches by column, or by row
        center = (along * torch.arange(4)).sum(-1) / along.sum(-1)  # (picture, thing)
        assert (center[:, 0] + 1 < center[:, 1]).all()
    dark = (beside.pictures > 0.5).float()
    wide = dark.amax(1).reshape(23, 2, 12).sum(-1).mean(0)  # columns with ink, left and right
    assert abs(wide[0] - 2 * RADII["large"]) < 2.5 and wide[0] > wide[1] + 2
    assert torch.equal(beside.pictures, draw(23, 0, [BESIDE]).pictures)
    assert torch.equal(draw(5, 1).where.any(-1), torch.ones(5, 2, dtype=torch.bool))


def test_only_the_embedding_of_what_it_reads_is_new():
    model = Captioner(d_model=12, n_heads=3, n_layers=2)
    assert {type(block) for block in model.encoder} == {EncoderBlock}
    assert {type(block) for block in model.decoder} == {DecoderBlock}
    assert Captioner.decode is EncoderDecoderTransformer.decode
    (pictures, ids), labels = next(iter(CaptionBatches(draw(7, 0), batch_size=5)))
    assert torch.equal(ids[:, 1:], labels[:, :-1].where(ids[:, 1:] != TOKENIZER.eos_id, ids[:, 1:]))
    logits = model(pictures, ids)
    assert logits.shape == (5, ids.size(1), TOKENIZER.vocab_size)
    changed = pictures.clone()
    changed[2, 20:, 20:] = 1
    moved = (model(changed, ids) - logits).abs().amax((1, 2)) > 0
    assert moved.tolist() == [False, False, True, False, False]


class Parrot(Captioner):
    """Knows one caption, and always gives it."""

    caption = "a small circle left of a small square"

    def forward(self, pictures, ids):
        told = torch.tensor(TOKENIZER.encode(self.caption, add_special=True) + [0])
        following = told[1 : ids.size(1) + 1].expand(len(ids), -1)
        return torch.nn.functional.one_hot(following, TOKENIZER.vocab_size).float()


def test_what_is_written_is_counted_word_for_word_and_thing_for_thing():
    scenes = [Scene("small circle", "left of", "small square"), BESIDE]
    drawings, model = draw(31, 0, scenes), Parrot(d_model=12, n_heads=3)
    n_right = drawings.scenes.count(scenes[0])
    assert captions.write(model, drawings.pictures) == 31 * [Parrot.caption]
    assert captions.count_right(model, drawings) == n_right > 0
    assert captions.said_of("large circle", model, drawings) == {"small circle": 31 - n_right}
    assert captions.said_of("small square", model, drawings) == {"small square": 31}


def test_the_weight_on_what_a_noun_names_is_that_of_the_query_that_predicts_it(monkeypatch):
    drawings = draw(13, 0, [BESIDE, BESIDE._replace(relation="above")])
    model = Captioner(d_model=12, n_heads=3, n_layers=2)
    weights = torch.zeros(13, 9, N_PATCHES)
    for row, scene, where in zip(weights, drawings.scenes, drawings.where, strict=True):
        for place, noun in enumerate(("circle", "square")):
            query = f"<bos> {scene}".split().index(noun) - 1  # the word before it
            row[query] = where[place] / where[place].sum()
    monkeypatch.setattr(captions, "looks", lambda model, drawings: weights)
    own, other, area = captions.noun_shares(model, drawings).tolist()
    assert abs(own - 1) < 1e-6 and other == 0
    assert abs(area - drawings.where.float().mean()) < 1e-6
    monkeypatch.undo()
    seen = captions.looks(model, drawings)
    assert seen.shape == (13, 9, N_PATCHES)
    torch.testing.assert_close(seen.sum(-1), torch.ones(13, 9))
