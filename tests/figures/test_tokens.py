"""Drawings of cut texts and of words as points."""

import torch

from transformer_lesson.figures.tokens import cuts, group_maps, word_map

PNG = b"\x89PNG"


def test_a_cut_text_tells_its_tokens():
    ways = {"words": ["a", "<unk>", "."], "pieces": ["a", "␣un", "ic", "␣."]}
    made = cuts("a unic .", ways, "Two ways")
    assert made.png().startswith(PNG)
    assert "words: 3 tokens, a <unk> ." in made.alt and "pieces: 4 tokens" in made.alt
    texts = [text.get_text() for text in made.axes[0].texts]
    assert {"<unk>", "␣un", "3 tokens", "4 tokens"} <= set(texts)


def test_words_keep_their_places_but_cover_none_another():
    points = torch.tensor([[0.0, 0.0], [0.0, 0.001], [1.0, 1.0], [1.0, -1.0]])
    made = word_map(points, ["one", "two", "far", "away"], ["x", "x", "y", "y"], "Words")
    assert made.png().startswith(PNG) and "x: one, two; y: far, away" in made.alt
    drawn = {text.get_text(): text.get_window_extent() for text in made.axes[0].texts}
    assert not drawn["one"].overlaps(drawn["two"])
    assert drawn["far"].y0 > drawn["one"].y0 > drawn["away"].y0


def test_clouds_of_points_are_told_apart_by_group():
    made = group_maps({"left": (torch.rand(3, 2), "aab"), "right": (torch.rand(2, 2), "ba")}, "Two")
    assert made.png().startswith(PNG) and "left: 3 points; right: 2 points" in made.alt
    assert [len(axes.collections) for axes in made.axes] == [2, 2]
