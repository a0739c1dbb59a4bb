"""Drawings of what a model says: a word in a box, the likelier the darker."""

from matplotlib.patches import FancyBboxPatch

from transformer_lesson.figures.diagrams import distributions, next_token_questions
from transformer_lesson.figures.stages import word_stages

STAGES = {"first": {"ab": 0.04, "<b>": 0.03}, "last": {"auf": 0.9, "$x": 0.01}}


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_a_row_a_step_and_a_box_a_word():
    made = word_stages("A claim", STAGES)
    (axes,) = made.axes
    assert texts(axes) == ["first", "ab  0.04", "<b>  0.03", "last", "auf  0.90", "$x  0.01"]
    assert made.alt == "first: ab 0.04, <b> 0.03. last: auf 0.90, $x 0.01."
    boxes = [one for one in axes.patches if isinstance(one, FancyBboxPatch)]
    brightness = [sum(box.get_facecolor()[:3]) for box in boxes]
    assert brightness[2] < min(brightness[0], brightness[1], brightness[3])
    assert [text.get_color() for text in axes.texts][4] == "white"
    assert made.png()


def test_each_position_is_asked_for_the_next_word():
    made = next_token_questions(["the", "child"], ["das", "Kind"])
    assert "after <bos> comes das; after das comes Kind; after Kind comes <eos>" in made.alt
    assert made.get_suptitle().startswith("3 positions, 3 questions")
    assert texts(made.axes[0]).count("das") == 2 and made.png()


def test_a_models_bars_are_as_long_as_its_words_are_likely():
    made = distributions("A claim", {"trained": {"macht": 0.9}, "not": {"a": 0.01}}, even=0.002)
    assert [axes.patches[0].get_width() for axes in made.axes] == [0.9, 0.01]
    assert made.alt.endswith("trained: macht 0.90; not: no word has 0.05 or more. "
                             "An even guess gives each 0.0020.")  # fmt: skip
