"""The field at the end of lesson 07, which the learner's own functions answer."""

from tests.exercises.notebook import Notebook, solved
from transformer_lesson.mine import Playground
from transformer_lesson.mine.playground import SENTENCES, answer_to


def test_what_is_typed_or_pressed_is_translated_and_ours_are_named_as_such(folder):
    shown = Playground()
    assert shown.lines[0] == "German: das Kind macht das Fenster auf ."
    assert shown.lines[1] == "□" * 15 + " 0 of 15 functions are yours."
    assert "number for number" in shown.lines[-1]
    shown.children[1].children[1].click()
    assert shown.lines[0] == "German: das Kind macht das Fenster zu ."
    shown.field.value = "The dog sees the <b>cat</b>"
    unknown = "“<” or “b” or “>” or “/”"
    assert shown.lines == [f"The translator has never learned {unknown}. Use other words."]
    assert "“&lt;”" in shown.answer.value
    assert "<b>cat" not in shown._repr_mimebundle_()["text/markdown"]
    shown.field.value = "The dog sees the cat"
    assert shown.lines[0] == "German: der Hund sieht die Katze ."
    assert answer_to(" ")[0].startswith("Type") and "21 words" in answer_to("the " * 21)[0]


def test_the_learners_functions_and_ours_are_named(folder):
    Notebook().keep("causal_mask", solved("causal_mask"))
    share, yours, ours = answer_to(SENTENCES[0])[1:4]
    assert share.count("■") == 1 and " 1 of 15 " in share and yours == "Yours: causal_mask."
    assert ours.startswith("Still ours: sinusoidal_encoding, ") and "causal_mask" not in ours
