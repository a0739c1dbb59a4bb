"""Drawings of lessons 05 and 06 say in words what they show, and refuse what they cannot draw."""

import pytest
import torch

from transformer_lesson.figures import contexts, learning, sublayers


def is_picture(figure) -> bool:
    return figure.png().startswith(b"\x89PNG")


def test_a_stream_names_what_is_added_and_how_long_it_is():
    states = [torch.full((64,), length) for length in (1.0, 2.0, 0.5)]
    added = {"position": torch.zeros(64), "attention": torch.full((64,), 0.25)}
    figure = sublayers.stream("the", states, added)
    assert "position adds 0.0, attention adds 2.0" in figure.alt
    assert "at the end the length is 4.0" in figure.alt and is_picture(figure)
    with pytest.raises(ValueError, match="2 states for 2 additions"):
        sublayers.stream("the", states[:2], added)


def test_units_name_their_words_without_a_font_for_mathematics():
    figure = sublayers.firing("claim", {"unit 1": {"$a → b$": 2.0, "c": 1.0}, "unit 2": {"d": 1.0}})
    assert "unit 1: $a → b$, c; unit 2: d" in figure.alt and is_picture(figure)


def test_grids_of_shared_means_are_three():
    figure = sublayers.shared_means(["a", "b", "c", "<pad>"])
    assert len(figure.axes) == 3 and is_picture(figure)
    assert "Batch norm takes it over a column" in figure.alt


def test_sizes_are_told_with_their_stations_in_words():
    names = ["source_embedding.output", "decoder.1.after_cross_attention", "encoder.0.output"]
    figure = sublayers.sizes("claim", {"bare": [1.0, 2.0, 3.0]}, names)
    assert "source embedding, decoder 1, cross-attention, encoder 0, feed-forward" in figure.alt
    assert "bare: 1.0, 2.0, 3.0" in figure.alt and is_picture(figure)


def test_losses_end_where_their_names_stand_and_names_keep_apart():
    runs = {"one": [3.0, 1.0] * 20, "other": [4.0, 0.0] * 20, "short": [5.0] * 3}
    figure = learning.losses("claim", runs, ("counting", 1.5))
    assert "one at 2.00, other at 2.00, short at 5.00" in figure.alt
    assert "counting: 1.50" in figure.alt and is_picture(figure)
    heights = [text.get_position()[1] for text in figure.axes[0].texts[:2]]
    assert abs(heights[0] - heights[1]) > 0.07  # of the axes


def test_clouds_have_one_scale_and_name_their_labels():
    first, last = torch.zeros(6, 2), torch.randn(6, 2)
    figure = contexts.clouds("claim", {"in": first, "out": last}, list("aabbcc"), {0: "here"})
    assert "2 clouds of 6 points, in, out, colored by a, b, c" in figure.alt
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim() and is_picture(figure)
