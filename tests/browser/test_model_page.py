"""The page's model in a real browser, opened from the disk: one module, and nothing fetched."""

import base64

import pytest
import torch

from tests.explorables.page_modules import joined
from transformer_lesson.checkpoints.translator import TRANSLATOR, trained_translator
from transformer_lesson.generation import Beam, generate
from transformer_lesson.model.hooks import record
from transformer_lesson.text import grammar

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><meta charset="utf-8"><script>
const bytes = Uint8Array.from(atob("%s"), (one) => one.charCodeAt(0));
</script><script type="module">%s
window.answers = answers;
</script>"""
ASK = """async cases => {
    const stored = [];
    const made = answers(cases, () => bytes, (numbers) => stored.push(...numbers));
    return {made, stored};
}"""


@pytest.fixture
def ask(page, tmp_path):
    """Return a function that has a page run a script with the translator."""

    def ask(script: str, cases):
        file = tmp_path / "page.html"
        model = base64.b64encode(TRANSLATOR.read_bytes()).decode()
        file.write_text(PAGE % (model, joined(script)), encoding="utf-8")
        page.goto(file.as_uri())
        page.wait_for_function("() => window.answers")
        answer = page.evaluate(ASK, cases)
        assert not page.outside + page.problems + page.errors
        return answer["made"], answer["stored"]

    return ask


def sources() -> list[list[int]]:
    tokenizer = trained_translator().tokenizer
    return [[*tokenizer.encode(p.source), tokenizer.eos_id] for p in grammar.examples().values()]


@torch.no_grad()
def test_hook_points_are_pytorchs(ask):
    model, source, target = trained_translator().model, sources()[0], [1, 5, 9]
    cases = [{"model": "translator", "source": source, "target": target}]
    [shapes], stored = ask("forward.js", cases)
    with record(model) as run:
        result = model(torch.tensor([source]), torch.tensor([target]))
    left = torch.tensor(stored)
    for name, shape in shapes:
        expected = (run | {"result": result, "cached": result})[name][0]
        assert list(expected.shape) == shape
        page, left = left[: expected.numel()].view(shape), left[expected.numel() :]
        torch.testing.assert_close(page, expected, rtol=1e-4, atol=1e-4)


def test_translations_are_the_packages(ask):
    model, given = trained_translator().model, {"sources": sources(), "searched": sources()}
    cases = given | {"longest": 40, "width": 3, "samples": [], "draws": [], "rankings": []}
    made, _ = ask("write.js", cases)
    greedy = generate(model, cases["sources"], 40).ids
    beams = generate(model, cases["sources"], 40, Beam(3)).ids
    assert [one["ids"] for one in made["written"]] == greedy
    assert [one["ids"] for one in made["searched"]] == beams
