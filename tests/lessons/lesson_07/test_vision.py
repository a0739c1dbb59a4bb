"""A vision transformer on drawn digits: the course's block, patches in their place."""

import pytest
import torch

from transformer_lesson.lessons.lesson_07 import vision
from transformer_lesson.lessons.lesson_07.vision import (
    CLASSES,
    VisionTransformer,
    draw_digits,
    patches,
)
from transformer_lesson.model.blocks import EncoderBlock


def test_a_patch_is_a_square_of_the_picture():
    picture = torch.arange(36.0).reshape(1, 6, 6)
    cut = patches(picture, 3)
    assert cut.shape == (1, 4, 9)
    assert torch.equal(cut[0, 1].reshape(3, 3), picture[0, :3, 3:])  # first row, second column
    assert torch.equal(cut[0, 2].reshape(3, 3), picture[0, 3:, :3])
    with pytest.raises(ValueError, match="size is 4, but it must divide the pictures' side, 6"):
        patches(picture, 4)


def test_digits_are_drawn_alike_from_a_seed_and_each_by_another_hand():
    first, again, other = draw_digits(97, 0), draw_digits(97, 0), draw_digits(97, 1)
    assert torch.equal(first.pictures, again.pictures) and torch.equal(first.labels, again.labels)
    assert not torch.equal(first.pictures, other.pictures)
    assert set(first.labels.tolist()) == set(range(CLASSES))
    assert 0 == first.pictures.min() and first.pictures.max() == 1
    assert 0.05 < first.pictures.mean() < 0.5


def test_the_class_token_looks_at_patches_and_the_block_is_the_courses():
    model, picture = (
        VisionTransformer(d_model=12, n_heads=3, n_layers=2),
        draw_digits(1, 3).pictures,
    )
    assert all(type(block) is EncoderBlock for block in model.encoder)
    seen = vision.looks_at(model, picture[0], block=0)
    assert seen.shape == (3, 4, 4) and (seen.sum((1, 2)) < 1).all()
    head = model.encoder[0].self_attention
    x = torch.cat([model.class_token.expand(1, 1, -1), model.embedding(patches(picture))], dim=1)
    h = model.encoder[0].norm_1(x + model.positions)
    Q, K = (W(h)[0].reshape(17, 3, 4).transpose(0, 1) for W in (head.W_Q, head.W_K))
    expected = (Q[:, :1] @ K.mT / 2).softmax(-1)[:, 0, 1:]  # (head, patch)
    torch.testing.assert_close(seen.flatten(1), expected)


@pytest.mark.everything
def test_it_learns_what_pixels_alone_do_not_show():
    digits, unseen = draw_digits(6000, 1), draw_digits(1000, 2)
    shares = []
    for model in (vision.VisionTransformer(seed=0), vision.linear_rival(seed=0)):
        for _ in vision.train(model, digits, steps=300):
            pass
        shares.append(vision.share_right(model, unseen))
    assert shares[0] > 0.9 > 0.88 > shares[1]
