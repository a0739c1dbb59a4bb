"""The whole forward pass in the page: every quantity, and what each number was made of."""

import random
import re

import pytest
import torch

from tests.explorables import tiny_models
from tests.explorables.drawn_models import drawn_inputs, drawn_model
from tests.explorables.forward_pass import Pass, forward_pass, making, three_digits, told_numbers
from tests.explorables.page_modules import in_node
from tests.explorables.shown import assert_refused
from tests.explorables.tiny_models import translation
from transformer_lesson import EncoderOnlyTransformer
from transformer_lesson.checkpoints.own_format import as_bytes
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.explorables import ModelFlow
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


def shown_rows(name: str, read: list[str], written: list[str]) -> list[str]:
    if name == "probabilities":
        return written[-1:]
    crossing = ("cross_attention.keys", "cross_attention.values")
    return read if name.startswith(("source", "encoder")) or name.endswith(crossing) else written


STATE = ("text", "written", "head", "row", "number")
STATES = [
    {"step": 57},
    {"step": 0, "row": 3, "number": 17},
    {"step": 25},
    {"step": 65, "number": 9},
]
STATES += [
    {"step": step, "head": step % 10, "row": 7 * step % 10, "number": 37 * step % 128}
    for step in range(2, 65, 4)
]
STATES += [{"step": 99, "written": 5, "text": "the camels do not see a heavy room ."}]
LANES = 'root.querySelector("svg").layers.get("lanes")'
THICK = f"""[...{LANES}.layers.get("ribbons").layers.get("own").known]
    .map(([key, node]) => [key, Number(node.getAttribute("stroke-width"))])"""


def test_every_number_is_that_of_the_packages_model(show):
    page = show(ModelFlow())
    state, states, seen = {name: page.get(name) for name in STATE}, [], set()
    for change in STATES:
        state |= change
        states.append(dict(state))
    for state, shown in zip(states, page.states(states), strict=True):
        run, read, written = translation(state["text"], state["written"])
        chips = [text for text in shown["told"] if re.match(r"\d+: ", text)]
        seen |= {text.split(": ")[1] for text in chips}
        name = re.match(rf"Step {min(state['step'], 65)} of 65, (\S+) ", shown["said"])[1]
        assert f"{name} {tuple(run.values[name].shape)}" in seen
        panel = shown["told"][shown["told"].index(chips[-1]) + 1 :]
        check_panel(shown, panel, run, name, state, read, written)
        check_next(shown, run)
    names = {text.split(" ")[0] for text in seen}
    assert names == {*run.values} and len(names) == 66  # every one is reached


def place_of(run, name, state, rows) -> dict:
    value = run.values[name]
    row, column = min(state["row"], len(rows) - 1), min(state["number"], value.shape[-1] - 1)
    return {"head": min(state["head"], 7) * (value.dim() == 3), "row": row, "column": column}


def check_panel(shown, told, run, name, state, read, written) -> None:
    value, rows = run.values[name], shown_rows(name, read, written)
    place = place_of(run, name, state, rows)
    numbers = (value[place["head"]] if value.dim() == 3 else value)[place["row"]]
    told = told[check_glance(told, run, name, state, read, written) :]
    words = name in ("logits", "probabilities")
    kept = from_largest(numbers, 40) if words else list(range(len(numbers)))
    bars, terms = told[: len(kept)], told[len(kept) :]
    assert agree([float(bar.rpartition(": ")[2]) for bar in bars], numbers[kept].tolist())
    how = shown["said"].split(f" of “{rows[place['row']]}” is ")[1].partition(": ")
    assert three_digits(float(how[0]), numbers[place["column"]].item())
    step = {"name": name, "place": place, "how": how[2].partition(". Next: ")[0]}
    assert explains(run, step | {"terms": [{"words": words} for words in terms]})
    joined = "".join(shown["written"]).replace(" ", "")
    assert f"{how[0]}:{step['how']}".replace(" ", "") in joined
    assert name in shown["said"]


def check_glance(told, run, name, state, read, written) -> int:
    """Where a head looks and what it brings; returns how many places tell it."""
    owner = re.match(r"(\w+\.\d\.\w+_attention)\.", name)
    after = re.match(r"(\w+\.\d)\.after_(\w*)attention", name)
    if not (owner or after):
        return 0
    part = owner[1] if owner else f"{after[1]}.{after[2] or 'self_'}attention"
    head, crossing = min(state["head"], 7), "cross" in part
    weights, brought = run.values[f"{part}.weights"][head], run.values[f"{part}.heads"][head]
    of_memory = crossing and name.endswith((".keys", ".values"))
    query = len(weights) - 1 if of_memory else min(state["row"], len(weights) - 1)
    offering = read if crossing or part.startswith("encoder") else written
    wanted = [f"head {h}" for h in range(8)]
    best = from_largest(weights[query], 5)
    wanted += [f"looks at “{offering[j]}”: {weights[query, j]:.3f}" for j in best]
    assert told[: len(wanted)] == wanted
    rest = told[len(wanted) : len(wanted) + 16]
    assert agree([told_numbers(text)[-1] for text in rest], brought[query].tolist())
    if part.startswith("encoder"):
        return len(wanted) + 16
    model, tokenizer, _ = trained_translator()
    joins = model.get_submodule(f"{part}.W_O").weight[:, 16 * head : 16 * head + 16]
    pushed = model.projection.weight @ (joins @ brought[query])
    for text, way, sign in zip(told[len(wanted) + 16 :], ("up", "down"), (1, -1), strict=False):
        words = ", ".join(tokenizer.token(i) for i in from_largest(sign * pushed, 3))
        assert text == f"read out as words, it pushes {way}: {words}"
    return len(wanted) + 18


def is_cut(shown: str, word: str) -> bool:
    return shown == word or (shown.endswith("…") and word.startswith(shown[:-1]))


def check_next(shown, run) -> None:
    """The likeliest next tokens, as bars and in the sentence."""
    shares, token = run.values["probabilities"][0], trained_translator().tokenizer.token
    best, texts = from_largest(shares, 6), shown["written"]
    places = range(len(texts))
    first = next(i for i in places if all(map(is_cut, texts[i : i + 6], map(token, best))))
    told = torch.tensor([float(text) for text in texts[first + 6 : first + 12]])
    assert torch.allclose(told, shares[best], atol=1.1e-3, rtol=0)
    assert f"“{token(best[0])}” (" in shown["said"] and f"“{token(best[2])}” (" in shown["said"]


def test_ribbons_are_as_thick_as_attention_of_one_head_where_it_is_open_and_the_mean_else(show):
    page = show(ModelFlow(written=3, step=57, head=5, row=2))
    values = translation(page.get("text"), 3)[0].values
    drawn = dict(page.read(THICK))
    thickest = (max(drawn.values()) - 1) / values["decoder.1.cross_attention.weights"][5, 2].max()
    for name in [name for name in values if re.match(r"decoder.*weights", name)]:
        open_ = name == "decoder.1.cross_attention.weights"
        row = (values[name][5] if open_ else values[name].mean(0))[2]
        for j, share in enumerate(row.tolist()):
            thick = drawn.get(f"{name.removesuffix('.weights')} {j}")
            assert (thick is None) == (share < 0.04)
            assert thick is None or abs(thick - 1 - share * thickest) < 0.01
    told = [text for text in page.told() if re.search("” gets ", text)]
    best = values["decoder.1.cross_attention.weights"][5, 2]
    assert len(told) == (best >= 0.04).sum() and f"{best.max():.3f}" in " ".join(told)


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
PICTURES = r"embedding\.output|after_\w+$|hidden$|(en|de)coder\.\d\.output"


def test_every_pixel_is_a_number_and_where_a_text_is_refused_the_last_picture_stays_pale(show):
    page = show(ModelFlow())
    before, saved = page.all(), page.named("SVG")
    pictures = [torch.tensor(pixels).view(h, w, 4) for h, w, *pixels in page.read(PIXELS)]
    values = translation(page.get("text"), page.get("written"))[0].values
    names = [name for name in values if re.search(PICTURES, name)]
    for picture, value in zip(pictures, map(values.get, names), strict=True):
        strength = value.sign() * (value.abs() / value.abs().max()).sqrt()
        color, alpha = picture[..., :3], picture[..., 3]
        assert alpha.shape == strength.shape
        assert (alpha - 255 * strength.abs()).abs().max() <= 1.1
        right = torch.where(strength[..., None] < 0, UNDER, ABOVE)
        assert ((color - right).abs().amax(-1) * alpha).max() <= 2 * 255  # rounded by the alpha
    page.set(text="the " * 17)
    assert page.said.startswith("The drawing has room for 16 tokens")
    stays = page.page.locator(".picture[inert]")
    assert stays.is_visible() and page.title == before["title"] and not saved.is_visible()
    page.set(text=ModelFlow().text)
    assert page.all() == before and saved.is_visible()


def test_an_encoder_and_a_decoder_of_ones_own(show):
    model, tokenizer = tiny_models.language_model()
    page = show(ModelFlow(model, tokenizer, "abc", written=2, step=3))
    assert page.title.startswith("From “") and "Next: " in page.said
    assert "read and written · kept 4, new 1" in page.written()
    page.set(step=99)
    assert page.title.startswith("After “a b c ")
    encoder = EncoderOnlyTransformer(model.config).eval()
    page = show(ModelFlow(encoder, tokenizer, "abc", step=0))
    assert page.title == "3 tokens become 3 vectors of 12 numbers"
    page.click("row 2, “c”")
    assert page.get("row") == 2
    assert_refused("a model and its tokenizer belong together", ModelFlow, model)


def test_words_columns_quantities_and_heads_are_chosen_and_what_is_new_is_told(show):
    page = show(ModelFlow(row=0))
    column = page.named("encoder block 1, self-attention")
    column.click(position={"x": 30, "y": 112})  # of seven rows
    assert page.get("step", "row") == [17, 5] and "weights" in page.said
    page.named("head 3").click()
    page.click("row 3, “the”")
    assert page.title == "From “the”, head 3 looks mostly at “window” (0.99)"
    page.named("13: encoder.1.self_attention.queries").focus()
    assert page.press("ArrowRight").startswith("14: encoder.1.self_attention.keys")
    page.press("Enter")
    assert page.get("step") == 14
    page.named("encoder block 0, self-attention").focus()
    page.press("Enter")
    assert page.get("step", "row") == [6, 3]  # a key chooses no row
    page.click("row 1, “das”, kept")  # of the other text: where that begins
    assert page.get("step", "row") == [25, 1]
    page.click("the next word")
    page.click("row 2, “Kind”, new")
    assert page.get("step", "row") == [25, 2]
    page.set(written=0)
    assert "written so far" in page.written()
    page.set(written=4)
    told = [text for text in page.told() if re.match(r"row \d, .*(new|kept)", text)]
    assert [text.rpartition(", ")[2] for text in told] == ["kept"] * 4 + ["new"]
    assert "written so far · kept 4, new 1" in page.written()
    assert page.get("step", "row") == [25, 4]  # the newest word is looked at


def test_number_goes_on_to_the_word_that_the_newest_one_looks_at(show):
    page = show(ModelFlow(written=2))
    for written in (3, 4, 5, 6):
        page.set(written=written)
        word, most = re.search("From “(.+)”, head .* mostly at “(.+)” ", page.title).groups()
        assert f" “{most}” of “{word}” is " in page.said


def test_one_of_many_numbers_is_typed_or_hit_beside_its_thin_bar(show):
    page = show(ModelFlow(text="the dog sees the frog .", step=21, number=3))
    page.page.locator("input[type=number]").fill("335")
    assert "Number 335 of " in page.said
    page.page.locator("input[type=number]").fill("5000")
    assert page.get("number") == 335
    units = [re.fullmatch(r"number (\d+): (.+)", told) for told in page.told()]
    values = {int(unit[1]): abs(float(unit[2])) for unit in units if unit}
    assert len(values) == 512
    highest = max(values, key=values.get)
    box = page.named(re.compile(f"^number {highest}: ")).bounding_box()
    page.page.mouse.click(box["x"] + 4, box["y"] + 9)
    assert box["width"] < 1 and page.get("number") == highest
