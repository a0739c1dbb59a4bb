"""The whole forward pass in the page: every quantity, and what each number was made of."""

import random
import re

import pytest
import torch

from tests.explorables import tiny_models
from tests.explorables.forward_pass import Pass, forward_pass, making, three_digits, told_numbers
from tests.explorables.page_modules import in_node
from tests.explorables.shown import assert_refused
from tests.explorables.test_transformer_js import drawn_inputs, drawn_model
from transformer_lesson import EncoderOnlyTransformer
from transformer_lesson.checkpoints.ours import as_bytes
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.explorables import ModelFlow
from transformer_lesson.generation import generate
from transformer_lesson.ranking import from_largest


def agree(told: list[float], expected: list[float]) -> bool:
    same = map(three_digits, told, expected)
    return len(told) == len(expected) and all(same)


def explains(run: Pass, step: dict) -> bool:
    """Whether what a page says of one number is what the package's numbers make of it."""
    made = making(run, step["name"], **step["place"])
    terms = [told_numbers(term["words"])[-1] for term in step["terms"]]
    return agree(told_numbers(step["how"]), made.numbers) and agree(terms, made.terms)


@pytest.mark.slow
def test_every_quantity_of_every_kind_of_model_is_explained(tmp_path):
    draw, cases, runs = random.Random(0), [], []
    for number in range(60):
        model = drawn_model(draw, number)
        (tmp_path / f"{number}").write_bytes(as_bytes(model))
        ids = {k: v[0].tolist() for k, v in drawn_inputs(draw, model, 1, longest=7).items()}
        draws = [draw.random() for _ in range(97)]
        cases.append({"model": f"{number}", "draws": draws} | ids)
        runs.append(forward_pass(model, ids))
    answers, numbers = in_node("trace.js", tmp_path, cases)
    left, unexplained = torch.from_numpy(numbers), []
    for run, steps in zip(runs, answers, strict=True):
        assert {step["name"] for step in steps} == set(run.values)
        for i, step in enumerate(steps):
            value = run.values[step["name"]]
            page, left = left[: value.numel()].view(step["shape"]), left[value.numel() :]
            assert torch.allclose(page, value, rtol=1e-4, atol=1e-4), step["name"]
            assert set(step["from"]) <= {other["name"] for other in steps[:i]}
            unexplained += [] if explains(run, step) else [step]
    assert unexplained == []


def translation(text: str, written: int) -> tuple[Pass, list[str], list[str]]:
    """The pass that a page shows of the trained translator, and the words read and written."""
    model, tokenizer, _ = trained_translator()
    source = [*tokenizer.encode(text), tokenizer.eos_id]
    ids = [1, *generate(model, torch.tensor([source]), 12).ids[0][:written]]
    run = forward_pass(model, {"source": source, "target": ids})
    return run, list(map(tokenizer.token, source)), list(map(tokenizer.token, ids))


def shown_rows(name: str, read: list[str], written: list[str]) -> list[str]:
    if name == "probabilities":
        return written[-1:]
    crossing = ("cross_attention.keys", "cross_attention.values")
    return read if name.startswith(("source", "encoder")) or name.endswith(crossing) else written


STATE = ("text", "written", "head", "row", "number")
STATES = [
    {"step": 57},
    {"step": 0, "row": 3, "number": 17},
    {"step": 1, "number": 5},
    {"step": 2, "number": 100},
    {"step": 6, "head": 2, "row": 1, "number": 4},
    {"step": 10, "row": 4, "number": 500},
    {"step": 12, "row": 9, "number": 127},
    {"step": 25, "row": 0, "number": 3},
    {"step": 31, "head": 7, "row": 1, "number": 0},
    {"step": 38, "head": 3, "row": 2, "number": 15},
    {"step": 56, "head": 1, "row": 5, "number": 2},
    {"step": 61, "row": 1, "number": 64},
    {"step": 64, "row": 2, "number": 300},
    {"step": 65, "number": 9},
    {"step": 99, "written": 5, "text": "the camels do not see a heavy room ."},
]


def test_every_number_is_that_of_the_packages_model(show):
    page = show(ModelFlow())
    state, states = {name: page.get(name) for name in STATE}, []
    for change in STATES:
        state |= change
        states.append(dict(state))
    for state, shown in zip(states, page.states(states), strict=True):
        run, read, written = translation(state["text"], state["written"])
        names = [text.split(": ")[1] for text in shown["told"] if text.split(": ")[0].isdigit()]
        shapes = {f"{name} {tuple(value.shape)}" for name, value in run.values.items()}
        assert len(names) == 66 and set(names) == shapes
        name = names[min(state["step"], 65)].split(" ")[0]
        check_panel(shown, shown["told"][len(names) :], run, name, state, read, written)
        check_next(shown, run)


def check_panel(shown, told, run, name, state, read, written) -> None:
    value, rows = run.values[name], shown_rows(name, read, written)
    row, column = min(state["row"], len(rows) - 1), min(state["number"], value.shape[-1] - 1)
    heads = len(value) if value.dim() == 3 else 0
    head = min(state["head"], heads - 1)
    numbers = (value[head] if heads else value)[row]
    told = [text for text in told if not text.startswith("the step ")]
    wanted = [f"head {h}" for h in range(heads)]
    wanted += [f"row {i}, “{word}”" for i, word in enumerate(rows)]
    assert told[: len(wanted)] == wanted
    words = name in ("logits", "probabilities")
    kept = from_largest(numbers, 40) if words else list(range(len(numbers)))
    bars, terms = told[len(wanted) :][: len(kept)], told[len(wanted) + len(kept) :]
    assert agree([float(bar.rpartition(": ")[2]) for bar in bars], numbers[kept].tolist())
    place = {"head": max(head, 0), "row": row, "column": column}
    how = shown["said"].split(f" of “{rows[row]}” is ")[1].partition(": ")
    assert three_digits(float(how[0]), numbers[column].item())
    step = {"name": name, "place": place, "how": how[2].partition(". Next: ")[0]}
    assert explains(run, step | {"terms": [{"words": words} for words in terms]})
    joined = "".join(shown["written"]).replace(" ", "")
    assert f"{how[0]}:{step['how']}".replace(" ", "") in joined
    assert name in shown["written"] and name in shown["said"]


def check_next(shown, run) -> None:
    """The likeliest next tokens, as bars, in the title and in the sentence."""
    shares, token = run.values["probabilities"][0], trained_translator().tokenizer.token
    best, written = from_largest(shares, 6), shown["written"]
    first = written.index(token(best[0]), written.index("the next token"))
    assert written[first : first + 6] == [token(id_) for id_ in best]
    told = torch.tensor([float(text) for text in written[first + 6 : first + 12]])
    assert torch.allclose(told, shares[best], atol=1.1e-3, rtol=0)
    assert f"“{token(best[0])}” (" in shown["title"] and f"“{token(best[2])}” (" in shown["said"]


PIXELS = """Promise.all([...root.querySelectorAll("svg image")].map(async ({ href }) => {
    const picture = new Image(), canvas = document.createElement("canvas");
    picture.src = href.baseVal;
    await picture.decode();
    const { width, height } = picture, brush = canvas.getContext("2d");
    [canvas.width, canvas.height] = [width, height];
    brush.drawImage(picture, 0, 0);
    return [height, width, ...brush.getImageData(0, 0, width, height).data];
}))"""
ABOVE, UNDER = torch.tensor([32, 118, 196]), torch.tensor([214, 108, 28])


def painted(value: torch.Tensor, name: str) -> torch.Tensor:
    """How far each pixel of a quantity's picture is from the paper, with the number's sign."""
    strength = value.sign() * (value.abs() / value.abs().max()).sqrt()
    if name.endswith(("scores", "weights")):  # a map a head, in rows of four, a pixel apart
        maps = torch.nn.functional.pad(strength, (0, 1, 0, 1))
        rows = [torch.cat(list(row), dim=-1) for row in maps.split(4)]
        return torch.cat(rows)[:-1, :-1]
    return torch.cat(list(strength), dim=-1) if value.dim() == 3 else strength


def test_every_pixel_is_a_number_and_a_sentence_in_its_place_leaves_nothing_of_it(show):
    page = show(ModelFlow())  # the panel shows a picture of one head's weights
    before, saved = page.all(), page.named("SVG")
    pictures = [torch.tensor(pixels).view(h, w, 4) for h, w, *pixels in page.read(PIXELS)]
    values = translation(page.get("text"), page.get("written"))[0].values
    steps = [re.match(r"\d+: (\S+) ", text) for text in page.told()]
    names = [step[1] for step in steps if step][:-1]  # the last one is drawn as bars
    expected = [painted(values[name], name) for name in names]
    opened = values["decoder.1.cross_attention.weights"]
    expected.append(painted(opened, "")[:, 5 * 7 : 6 * 7])
    for picture, strength in zip(pictures, expected, strict=True):
        color, alpha = picture[..., :3], picture[..., 3]
        assert alpha.shape == strength.shape
        assert (alpha - 255 * strength.abs()).abs().max() <= 1.1
        right = torch.where(strength[..., None] < 0, UNDER, ABOVE)
        assert ((color - right).abs().amax(-1) * alpha).max() <= 2 * 255  # rounded by the alpha
    page.set(text="the " * 17)
    assert page.said.startswith("The drawing has room for 16 tokens")
    assert page.told() == page.written() == [] and not saved.is_visible()
    page.set(text=ModelFlow().text)
    assert page.all() == before and saved.is_visible()


def test_an_encoder_and_a_decoder_of_ones_own(show):
    model, tokenizer = tiny_models.language_model()
    page = show(ModelFlow(model, tokenizer, "abc", written=2, step=3))
    assert page.title.startswith("After “a b c ")
    encoder = EncoderOnlyTransformer(model.config).eval()
    page = show(ModelFlow(encoder, tokenizer, "abc"))
    assert page.title == "3 tokens become 3 vectors of 12 numbers"
    assert_refused("a model and its tokenizer belong together", ModelFlow, model)


def test_what_is_opened_comes_into_view(show):
    page = show(ModelFlow(step=0), viewport={"width": 390, "height": 700})
    top = 'root.querySelector("svg").layers.get("panel").getBoundingClientRect().top'
    for step in (63, 2, 38):
        page.set(step=step)
        assert -1 <= page.read(top) < 700


def test_names_are_found_and_steps_are_walked(show):
    page = show(ModelFlow())
    find = page.page.get_by_label("Find")
    find.press_sequentially("Encoder.1.self_attention.W")
    assert "“Encoder.1.self_attention.W” is in 2 names" in page.said
    page.press("Enter")
    assert "encoder.1.self_attention.weights" in page.said
    page.press("Enter")
    assert "encoder.1.self_attention.W_O" in page.said
    page.click("the step after")
    assert "encoder.1.after_attention" in page.said
    page.press("Shift+Tab")
    find.fill("nowhere")
    page.press("Enter")
    assert "“nowhere” is in 0 names" in page.said and "encoder.1.after_attention" in page.said
    page.named("0: source_embedding.tokens").focus()
    page.press("ArrowRight")
    assert page.press("Enter").startswith("1: source_embedding.output")
    assert page.get("step") == 1
