"""The whole forward pass in the page: every quantity, and every number that the tour draws."""

import random
import re

import pytest
import torch

from tests.explorables import tiny_models
from tests.explorables.drawn_models import drawn_inputs, drawn_model
from tests.explorables.forward_pass import forward_pass
from tests.explorables.page_modules import in_node
from tests.explorables.shown import assert_agree, assert_refused, lines
from tests.explorables.tiny_models import translation
from transformer_lesson import EncoderOnlyTransformer
from transformer_lesson.checkpoints.own_format import as_bytes
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.explorables import ModelFlow
from transformer_lesson.generation.strategies import top_k_filter, top_p_filter
from transformer_lesson.ranking import first_largest, from_largest


@pytest.mark.slow
def test_every_quantity_of_every_kind_of_model_is_the_packages(tmp_path):
    draw, cases, runs = random.Random(0), [], []
    for number in range(60):
        model = drawn_model(draw, number)
        (tmp_path / f"{number}").write_bytes(as_bytes(model))
        ids = {k: v[0].tolist() for k, v in drawn_inputs(draw, model, 1, longest=7).items()}
        cases.append({"model": f"{number}"} | ids)
        runs.append(forward_pass(model, ids))
    answers, numbers = in_node("trace.js", tmp_path, cases)
    left = torch.from_numpy(numbers)
    for run, steps in zip(runs, answers, strict=True):
        assert {step["name"] for step in steps} == set(run.values)
        for step in steps:
            value = run.values[step["name"]]
            page, left = left[: value.numel()].view(step["shape"]), left[value.numel() :]
            assert torch.allclose(page, value, rtol=1e-4, atol=1e-4), step["name"]


TEXT, LONG = "the child opens the window .", "the camels do not see a heavy room ."


def percent(share: float) -> str:
    if not 1e-5 <= share <= 0.995:
        return (">_99_%" if share > 0.5 else "<_0.001_%").replace("_", "\u00a0")
    return f"{100 * share:.2g}\u00a0%"


@pytest.mark.parametrize(("text", "written"), [(TEXT, 2), (TEXT, 7), (LONG, 0)])
def test_the_whole_shows_the_next_word_its_share_and_where_the_newest_word_looks(
    text, written, show
):
    page = show(ModelFlow(text=text, written=written))
    run, read, wrote = translation(text, written)
    shares = run.values["decoder.1.cross_attention.weights"].mean(0)[-1]
    lit, token = first_largest(shares), trained_translator().tokenizer.token
    best = from_largest(run.values["probabilities"][0], 3)
    next_, share = token(best[0]), run.values["probabilities"][0, best[0]].item()
    told = [words for words in page.told() if "attention" in words]
    assert_agree(
        told, lines("“{}” gets {:.2f} of the attention", zip(read, shares.tolist(), strict=True))
    )
    (looks,) = [words for words in page.told() if "looks most" in words]
    assert_agree(
        [looks],
        [f"the last written word looks most at “{read[lit]}”: {shares[lit]:.2f}, mean of 8 heads"],
    )
    assert percent(share) in page.written()
    assert page.title == f"A real English → German translator writes “{next_}” ({percent(share)})"
    likely = [f"“{token(i)}” ({percent(run.values['probabilities'][0, i].item())})" for i in best]
    assert page.said.partition("Next: ")[2] == f"{', '.join(likely)}."
    assert not written or page.said.startswith(f"After “{' '.join(wrote[1:])}”: ")
    assert f"{shares[lit]:.2f} of its attention" in page.said


ATTENTIONS = {3: "encoder.{}.self_attention", 4: "decoder.{}.self_attention"}
ATTENTIONS[5] = "decoder.{}.cross_attention"
STATES = [
    {"stop": stop, "block": block, "head": (3 * stop + block) % 8, "row": row}
    for stop in ATTENTIONS
    for block, row in ((0, 3), (1, 99))
]


def test_every_score_weight_and_share_of_a_value_is_that_of_the_packages_model(show):
    page = show(ModelFlow(written=5))
    run, read, wrote = translation(TEXT, 5)
    for state, shown in zip(STATES, page.states(STATES), strict=True):
        part = ATTENTIONS[state["stop"]].format(state["block"])
        head, queries = state["head"], read if state["stop"] == 3 else wrote
        keys = wrote if state["stop"] == 4 else read
        scores, weights = (run.values[f"{part}.{name}"][head] for name in ("scores", "weights"))
        row = min(state["row"], len(queries) - 1)
        cells = [words for words in shown["told"] if re.search(" looks? at “", words)]
        assert_agree(cells, [
            f"“{query}” may not look at “{key}”"
            if state["stop"] == 4 and j > i
            else f"“{query}” looks at “{key}”: score {scores[i, j]:.2f}, weight {weights[i, j]:.3f}"
            for i, query in enumerate(queries)
            for j, key in enumerate(keys)
        ])  # fmt: skip
        values = [words for words in shown["told"] if " of the value of " in words]
        taken = [(keys[j], share) for j, share in enumerate(weights[row].tolist()) if share >= 0.02]
        assert_agree(values, lines("it takes {1:.3f} of the value of “{0}”", taken))
        most = first_largest(weights[row])
        looks = f"looks most at “{keys[most]}” ({weights[row, most]:.2f} in head {head})"
        looks = f"“{queries[row]}” {looks}"
        assert looks in shown["title"]


PIXELS = """Promise.all([...root.querySelectorAll("svg image")].map(async ({ href }) => {
    const picture = new Image(), canvas = document.createElement("canvas");
    picture.src = href.baseVal;
    await picture.decode();
    const { width, height } = picture, brush = canvas.getContext("2d");
    [canvas.width, canvas.height] = [width, height];
    brush.drawImage(picture, 0, 0);
    return [height, width, ...brush.getImageData(0, 0, width, height).data];
}))"""


FLAT = f"""({PIXELS}).then(all => all.flatMap(([h, w, ...pixels]) =>
    h === 1 ? [[h, w, ...pixels]] : [[1, h * w, ...pixels]]))"""
ENCODED = [f"encoder.{i}.{part}" for i in "01" for part in ("after_attention", "output")]
DECODED = [
    f"decoder.{i}.{part}"
    for i in "01"
    for part in ("after_self_attention", "after_cross_attention", "output")
]


def assert_strips(pictures, values):
    """Compare pixels with the numbers that they color, each strip by its own largest."""
    for (_, width, *pixels), value in zip(pictures, values, strict=True):
        alpha, value = torch.tensor(pixels).view(width, 4)[:, 3], value.flatten()
        assert (alpha - 255 * (value.abs() / value.abs().max()).sqrt()).abs().max() <= 1.2


@pytest.mark.parametrize(("block", "row"), [(0, 2), (1, 2), (1, 1)])
def test_a_block_adds_to_the_vector_and_is_read_after_every_sublayer(block, row, show):
    page = show(ModelFlow(written=2, stop=6, block=block, row=row))
    run, part = translation(TEXT, 2)[0].values, f"decoder.{block}"
    model, tokenizer, _ = trained_translator()
    before = f"decoder.{block - 1}.output" if block else "target_embedding.output"
    streams = [before, f"{part}.after_self_attention", f"{part}.after_cross_attention"]
    streams.append(f"{part}.output")
    goal = tokenizer.vocabulary["macht" if row == 2 else "Kind"]
    wanted = []
    for name, key in zip([f"enters block {block}", *["= norm of sum"] * 3], streams, strict=True):
        share = model.projection(run[key][row]).softmax(-1)
        best = first_largest(share)
        wanted.append(
            f"{name}: “{tokenizer.token(goal)}” has {share[goal]:.3f}, likeliest is "
            f"“{tokenizer.token(best)}” ({share[best]:.3f})"
        )
    told, hidden = page.told(), run[f"{part}.feed_forward.hidden"][row]
    assert_agree([words for words in told if "likeliest is" in words], wanted)
    assert f"{(hidden <= 0).sum()} of 512 units are off" in told
    added = [f"{part}.{name}" for name in ("self_attention.W_O", "cross_attention.W_O")]
    parts = [before, added[0], streams[1], added[1], streams[2]]
    values = [run[name][row] for name in (*parts, f"{part}.feed_forward.W_2", streams[3])]
    assert_strips(page.read(PIXELS), [*values[:5], hidden, *values[5:]])


@pytest.mark.parametrize(("stop", "part"), [(4, "self"), (5, "cross")])
def test_an_attention_shows_query_key_products_and_sum_in_all_their_numbers(stop, part, show):
    page = show(ModelFlow(written=5, stop=stop, block=0, head=2, row=3, column=1))
    run, key = translation(TEXT, 5)[0].values, f"decoder.0.{part}_attention"
    q, k = run[f"{key}.queries"][2, 3], run[f"{key}.keys"][2, 1]
    values, taken = run[f"{key}.values"][2], run[f"{key}.heads"][2, 3]
    assert_strips(page.read(PIXELS), [*values, taken, q, k, q * k])
    written = page.written()
    for strip in (q, k, q * k):
        first = "  ".join(f"{one:.2f}" for one in strip[:3]).replace("-0.00", "0.00")
        assert f"{first.replace('-', '−')} …" in written
    first, second, third = (f"{abs(one):.2f}" for one in (q * k)[:3])
    signs = ["−" if one < 0 else "+" for one in (q * k)[:3]]
    begins = f"= {'−' * (signs[0] == '−')}{first} {signs[1]} {second} {signs[2]} {third} + …"
    assert f"{begins} = {(q * k).sum():.1f}" in written


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"), [(0.5, 0, 1.0), (1.0, 0, 1.0), (2.0, 40, 0.8), (2.0, 3, 1.0)]
)
def test_the_next_words_have_their_logits_and_shares_at_each_temperature_and_cut(
    temperature, top_k, top_p, show
):
    page = show(ModelFlow(written=5, stop=7, temperature=temperature, top_k=top_k, top_p=top_p))
    logits = translation(TEXT, 5)[0].values["logits"][-1]
    cut = top_k_filter(logits / temperature, top_k) if top_k else logits / temperature
    shares = top_p_filter(cut, top_p).softmax(-1)
    token = trained_translator().tokenizer.token
    best = from_largest(logits, 8)
    told = [words for words in page.told() if words.startswith("“")]
    others = [words for words in page.told() if " others" in words]
    cuts = [words.partition(", cut by ")[2] for words in told]
    rows = [(token(i), logits[i].item(), shares[i].item()) for i in best]
    shown = [words.partition(", cut by ")[0] for words in told]
    assert_agree(shown, lines("“{}”: logit {:.2f}, share {:.3f}", rows))
    assert [bool(cut) for cut in cuts] == [not shares[i] for i in best]
    kept, rest = int((shares > 0).sum()), 1 - sum(share for *_, share in rows)
    together = [f"{kept - 8} others together: {rest:.3f}"] if kept > 8 else []
    assert_agree(others, together)
    assert f"softmax: {kept} words share 1." in page.said
    gets = f"“{rows[0][0]}” gets {percent(rows[0][2])} at temperature {temperature:g}"
    assert page.title == f"After “… das Fenster”, {gets}"
    heated = [f"{logits[i] / temperature:.2f}" for i in best]
    assert set(heated) <= set(page.written())
    page.named(shown[1] + (f", cut by {cuts[1]}" if cuts[1] else "")).focus()
    kept = shares > 0
    total = (logits[kept] / temperature).exp().sum().item()
    (formula,) = [words for words in page.written() if words.startswith("share of")] or [""]
    if not cuts[1]:
        own, sigma, share = map(float, re.findall(r"= ([^ ]+) / ([^ ]+) = ([^ ]+)$", formula)[0])
        assert own == pytest.approx((logits[best[1]] / temperature).exp().item(), rel=0.01)
        assert sigma == pytest.approx(total, rel=0.01) and abs(share - rows[1][2]) < 0.001


def test_a_draw_falls_on_the_word_whose_part_of_the_strip_it_hits_and_is_written(show):
    page = show(ModelFlow(written=2, stop=7, temperature=2.0))
    logits = translation(TEXT, 2)[0].values["logits"][-1]
    shares, token = (logits / 2).softmax(-1), trained_translator().tokenizer.token
    order = from_largest(shares, len(shares))
    sums = shares[order].double().cumsum(0)
    for seed in range(1, 5):
        page.click("Draw")
        (says,) = [words for words in page.told() if words.startswith("the draw")]
        at, word = re.fullmatch(r"the draw (0\.\d+) falls on “(.*)”", says).groups()
        place = int((sums <= float(at)).sum())
        assert word in [token(order[i]) for i in (place - 1, place, place + 1) if i >= 0]
        assert page.get("seed") == seed
    page.click(f"Write “{word}”")
    assert page.get("written", "seed") == [3, 0]
    assert page.states([{"stop": 0}])[0]["said"].startswith(f"After “das Kind {word}”")
    page.set(text="the child opens the door .")
    assert page.get("chosen") == []


def test_another_bar_goes_on_with_its_word(show):
    page = show(ModelFlow(written=2, stop=7))
    page.click(re.compile("^“aufmacht”: logit"))
    assert page.get("written") == 3 and page.title.startswith("After “… Kind aufmacht”, “")
    run = translation(TEXT, 2)[0].values
    page.set(stop=0, written=2)
    rival = from_largest(run["probabilities"][0], 3)[2]
    page.click(f"go on with “{trained_translator().tokenizer.token(rival)}”")
    assert page.get("chosen")[-1] == rival and page.get("written") == 3


ABOVE, UNDER = torch.tensor([32, 118, 196]), torch.tensor([214, 108, 28])


@pytest.mark.parametrize("stop", [1, 2])
def test_every_pixel_is_a_number_of_a_word_of_its_place_or_of_both(stop, show):
    page = show(ModelFlow(stop=stop))
    pictures = [torch.tensor(pixels).view(h, w, 4) for h, w, *pixels in page.read(PIXELS)]
    run, values = translation(TEXT, 2)[0], []
    for part in ("source_embedding", "target_embedding"):
        tokens, both = run.values[f"{part}.tokens"], run.values[f"{part}.output"]
        values += [tokens] if stop == 1 else [tokens, both - tokens, both]
    for picture, value in zip(pictures, values, strict=True):
        strength = value.sign() * (value.abs() / value.abs().max()).sqrt()
        color, alpha = picture[..., :3], picture[..., 3]
        assert alpha.shape == strength.shape
        assert (alpha - 255 * strength.abs()).abs().max() <= 1.2
        right = torch.where(strength[..., None] < 0, UNDER, ABOVE)
        assert ((color - right).abs().amax(-1) * alpha).max() <= 2 * 255  # rounded by the alpha


def test_where_a_text_is_refused_the_last_picture_stays_pale(show):
    page = show(ModelFlow())
    before, saved = page.all(), page.named("SVG")
    page.set(text="the " * 17)
    assert page.said.startswith("The drawing has room for 16 tokens")
    stays = page.page.locator(".picture[inert]")
    assert stays.is_visible() and page.title == before["title"] and not saved.is_visible()
    page.set(text=TEXT)
    assert page.all() == before and saved.is_visible()


STOPS = """[...root.querySelector(".dense").querySelectorAll("button")]
    .map(one => one.textContent.split(" ")[0])"""


def test_an_encoder_and_a_decoder_of_ones_own_have_the_stops_that_they_need(show):
    model, tokenizer = tiny_models.language_model()
    page = show(ModelFlow(model, tokenizer, "abc", written=2))
    assert page.said.startswith("After “a b c ") and "Next: " in page.said
    assert page.read(STOPS) == ["whole", "1", "2", "4", "6", "7"]
    page.set(stop=5)  # which it lacks
    assert page.said.startswith("After “a b c ")
    encoder = EncoderOnlyTransformer(model.config).eval()
    page = show(ModelFlow(encoder, tokenizer, "abc"))
    assert page.title == "It reads 3 tokens, and each becomes a vector of 12 numbers"
    assert page.read(STOPS) == ["whole", "1", "2", "3"]
    page.click("3 encoder", "row 2, “c”")
    assert page.get("row") == 2 and page.title.startswith("Encoder: “c” looks most at")
    assert_refused("a model and its tokenizer belong together", ModelFlow, model)


def test_words_heads_and_stops_are_chosen_and_the_newest_word_comes_back(show):
    page = show(ModelFlow())
    page.click("Decoder, block 0 reads: open it")
    assert page.get("stop", "block") == [5, 0]
    page.click("open encoder looks")
    assert page.get("stop") == 3 and page.named("open encoder looks").is_visible()
    page.click("row 2, “opens”", "block 0, head 7")
    assert page.get("row", "block", "head") == [2, 0, 7] and "block 0, head 7" in page.written()
    page.named("block 0, head 7").focus()
    page.press("ArrowLeft", "Enter")
    assert page.get("head") == 6
    page.click("5 reads", "row 1, “das”")
    assert "“das” looks most at “" in page.title
    page.set(written=3)
    assert page.get("row") is None and "“macht” looks most at “" in page.title
    page.click("whole", re.compile("^the next word is “das”: .*; write it$"))
    assert page.get("written") == 4


HOSTILE = "return '</script><img src=x onerror=alert(1)>' + \"&amp;\" # " + "x" * 300
LINES = [
    [4, "scores", "attention_scores", 3, "return Q @ K.mT / Q.size(-1) ** 0.5"],
    [4, "sum", "scaled_dot_product_attention", 7, HOSTILE],
    [7, "logits", "decoder_forward", 12, "return y @ weights.projection"],
]


SCORES = """[...root.querySelectorAll("text[data-links=scores]")].map(one => one.textContent)"""


@pytest.mark.parametrize("width", [1100, 390])
def test_own_lines_stand_at_their_stop_as_they_were_written(width, show):
    page = show(ModelFlow(lines=LINES), viewport={"width": width, "height": 900})
    assert not any("your " in words for words in page.told())
    page.set(stop=4)
    own = [words for words in page.told() if ", your " in words]
    assert own == [f"{what}, your {name}, line {n}: {code}" for _, what, name, n, code in LINES[:2]]
    rows = [words for words in page.written() if words.startswith("return")]
    assert len(rows) == 2 and any(words.endswith("…") for words in page.written())
    page.named(own[0], "img").focus()
    lit = page.read('[...root.querySelectorAll("text[data-lit]")].map(one => one.textContent)')
    assert lit and lit == page.read(SCORES)
    page.set(stop=7)
    assert "logits, your decoder_forward, line 12: return y @ weights.projection" in page.told()
    assert "your decoder_forward, line 12" in page.written()


def test_the_tour_goes_on_by_one_button_and_starts_over(show):
    page = show(ModelFlow(stop=6))
    page.click("Next ›")
    assert page.get("stop") == 7 and page.page.get_by_text("step 7 of 7").is_visible()
    page.click("‹ Back", "Next ›")
    page.click("Start over")
    assert page.get("stop") == 0


FANS = """[...root.querySelectorAll("path[data-fan]")].map(one =>
    [one.dataset.fan, one.getAttribute("d").split("M").length - 1])"""


def test_the_opening_draws_the_attention_of_both_stacks_in_four_strengths(show):
    page = show(ModelFlow(written=5))
    run, shown = translation(TEXT, 5)[0], {}
    for key, count in page.read(FANS):
        shown.setdefault(key, []).append(count)
    assert set(shown) == {
        f"{one}.{i}.self_attention" for one in ("encoder", "decoder") for i in "01"
    }
    for key, counts in shown.items():
        mean = run.values[f"{key}.weights"].mean(0).flatten()
        strengths = (4 * mean[mean >= 0.04]).long().clamp(max=3)
        assert counts == strengths.bincount(minlength=4).tolist(), key


def test_a_pressed_cell_shows_its_numbers_in_the_formula(show):
    page = show(ModelFlow(stop=4, written=5))
    scores = translation(TEXT, 5)[0].values["decoder.1.self_attention.scores"]
    page.set(head=3)
    score = scores[3, 4, 4].item()
    page.named(re.compile("^“das” looks at “das”")).last.click()
    assert page.get("row", "column") == [4, 4]
    weight = scores[3, 4, :5].softmax(-1)[4].item()
    written = page.written()
    assert (
        any(re.fullmatch(rf"= .* \+ … = {4 * score:.1f}", words) for words in written)
        and f"{4 * score:.1f} / √16 = {score:.2f}" in written
    )
    share = rf"exp\({score:.2f}\) / Σ = \S+ / \S+ = {weight:.3f}"
    assert any(re.fullmatch(share, words) for words in written)
    page.named("“das” may not look at “macht”").first.click()
    assert page.get("column") == 3 and "mask: −∞, so its weight is 0" in page.written()


def test_an_unknown_word_stays_struck_out_and_a_known_one_replaces_it(show):
    page = show(ModelFlow(text="the child opens the windw ."))
    struck = 'root.querySelector("svg .struck").textContent'
    assert page.read(struck) == "windw" and "<unk>" in page.written()
    page.click("windw → window")
    assert page.get("text") == TEXT and "<unk>" not in page.written()


BEATS = """[root.querySelector(".said").textContent, root.querySelector("h3").textContent,
    [...root.querySelectorAll("[data-fan]")].filter(one => one.getAttribute("d")).length,
    [...root.querySelectorAll(".outcome button")].map(one => one.textContent),
    [...root.querySelectorAll("svg text")].map(one => one.textContent).join(" ")]"""
GERMAN = ["das", "Kind", "macht", "das", "Fenster", "auf", ".", "<eos>"]


def test_step_goes_through_the_model_in_the_order_in_which_it_computes(show):
    page, order = show(ModelFlow()), []
    run = translation(TEXT, 0)[0].values
    for beat in range(1, 16):
        page.click("Step")
        said, title, fans, german, written = page.read(BEATS)
        order.append(said.removeprefix(f"{beat} of 15: "))
        pending = beat < 15
        assert title.endswith("which word comes next?") == pending
        assert german == (["…"] * 8 if pending else ["das", *["…"] * 7])
        assert ("%" in written) == (not pending)  # no share before its moment
        assert ("looks at" in written) == (beat > 12)
    assert page.get("written") == 0 and order[-1].count("%") == 3
    encoder = ["7 words enter the encoder", "Encoder, block 0: every word looks"]
    encoder += ["Encoder, block 0: the feed", "Encoder, block 1: every word looks"]
    blocks = [
        f"Decoder, block {i}: {does}"
        for i in range(2)
        for does in ("“<bos>” makes a query", "“<bos>” looks back", "“<bos>” reads", "the feed")
    ]
    wanted = [*encoder, "Encoder, block 1: the feed", "“<bos>” enters the decoder", *blocks]
    assert all(said.startswith(one) for said, one in zip(order[:-1], wanted, strict=True))
    for block, said in ((0, order[8]), (1, order[12])):
        shares = run[f"decoder.{block}.cross_attention.weights"].mean(0)[-1]
        most = first_largest(shares)
        assert said.endswith(f"most at “{TEXT.split()[most]}” ({shares[most]:.2f}).")
    page.click("Step")  # the word drops into the row, and the encoder does not run again
    assert page.get("written") == 1 and page.said.startswith("6 of 15: “das” enters")
    page.set(written=4)  # leaves Play
    assert page.read(BEATS)[3] == GERMAN
    page.set(stop=5)
    page.click("Step")
    assert page.get("stage") == 0


def test_play_runs_to_the_end_and_then_shows_all(show):
    page = show(ModelFlow(written=6))
    page.click("▶ Play")
    assert page.get("written") == 0 and page.page.get_by_text("Pause").is_visible()
    page.click("Pause")
    page.page.clock.install()
    page.click("Play")
    for _ in range(120):
        page.page.clock.run_for(1000)
    assert page.get("written") == 7 and page.read(BEATS)[3] == GERMAN
    assert page.page.get_by_text("Play").is_visible() and "Next: “<eos>”" in page.said


def test_what_it_writes_stands_beside_the_text_at_once(show):
    page = show(ModelFlow())
    assert page.read(BEATS)[3] == GERMAN
    page.set(text="the king closes the book .")
    assert page.read(BEATS)[3] == ["der", "König", "macht", "das", "Buch", "zu", ".", "<eos>"]
    page.click(re.compile("^zu$"))
    assert page.get("written") == 5 and "writes “zu”" in page.title


TURN = """[root.querySelector(".turn .mark").getAttribute("aria-label"),
    root.querySelector(".turn").innerText]"""
TURNS = {  # by stop: what solves what it asks for, and the answer
    1: ({"text": "the child closes the window ."}, "New: “closes”. The other 6 of 7 rows are"),
    2: ({"written": 3}, "Place 3 adds numbers from {2:.2f} to {3:.2f} to “macht”"),
    3: ({"row": 1, "block": 0, "head": 5}, "“child” looks {0} at “{1}”, and least at"),
    4: ({"stage": 2}, "3 of 9 scores are crossed out: “"),
    5: ({"head": 2}, "In head 2 “das” looks "),
    6: ({"written": 3}, "“das” rises most at “+ "),
    7: ({"temperature": 2.0, "seed": 1}, "It fell on “"),
}


def test_each_stop_asks_for_one_thing_and_says_when_it_is_done(show):
    page = show(ModelFlow())
    assert not page.page.locator(".turn").is_visible()
    weights = translation(TEXT, 2)[0].values["encoder.0.self_attention.weights"][5, 1]
    most = first_largest(weights)
    run = translation(TEXT, 3)[0].values
    place = (run["target_embedding.output"] - run["target_embedding.tokens"])[3]
    looks = percent(weights[most].item()), [*TEXT.split(), "<eos>"][most], place.min(), place.max()
    for stop, (values, answer) in TURNS.items():
        page.set(stop=stop)
        assert page.read(TURN)[0] == "to do", stop
        page.set(**values)
        mark, words = page.read(TURN)
        assert mark == "done" and words.startswith(f"✓{answer.format(*looks)}"), words
        page.set(text=TEXT, written=2)
    page = show(ModelFlow(stop=3))
    page.click("row 1, “child”")
    assert page.read(TURN)[0] == "done"


DOTS = """[...root.querySelectorAll("svg circle")].map(one => [one.getAttribute("r") ** 2,
    one.getAttribute("fill")]).filter(([, fill]) => /plus|minus|key|value/.test(fill))"""


def test_the_matrix_has_three_states_whose_dots_are_as_large_as_their_values(show):
    page = show(ModelFlow(stop=4, written=5, block=0, head=2))
    run = translation(TEXT, 5)[0].values
    scores, weights = (run[f"decoder.0.self_attention.{one}"][2] for one in ("scores", "weights"))
    seen, full = torch.ones(6, 6).tril().bool(), None
    for state, values in enumerate((scores, (scores / 4).where(seen, 0.0), weights)):
        page.named(re.compile(f"^state {state + 2},")).click()
        areas = torch.tensor([area for area, _ in page.read(DOTS)]).view(6, 6)
        shown = values.abs() / (1 if state == 2 else scores.abs().max())
        full = full or areas.max()  # a cell's room
        assert torch.allclose(areas / full, shown, atol=2e-3), state
        assert page.written().count("×") == (16 if state else 0)
    assert page.get("stage") == 3


@pytest.mark.parametrize(("stop", "part"), [(4, "self"), (5, "cross")])
def test_before_the_scores_a_row_times_the_weights_makes_query_key_and_value(stop, part, show):
    page = show(ModelFlow(written=5, stop=stop, block=1, head=2, row=3, column=1, stage=0))
    run, key = translation(TEXT, 5)[0].values, f"decoder.1.{part}_attention"
    model, other = trained_translator()[0], 3 if part == "self" else 1
    before = f"decoder.{'0.output' if part == 'self' else '1.after_self_attention'}"
    source = run[before] if part == "self" else run["encoder.1.output"]
    inputs, weights = [run[before][3], source[other], source[other]], model.state_dict()
    tables = [weights[f"{key}.W_{name}.weight"][32:48] for name in "QKV"]
    first = inputs[0] * tables[0][0]
    assert_strips(page.read(FLAT), [*inputs, *tables, inputs[0], tables[0][0], first])
    made = [run[f"{key}.{name}"][2, i] for name, i in zip(
        ("queries", "keys", "values"), (3, other, other), strict=True)]  # fmt: skip
    told = [words for words in page.told() if ", number " in words]
    numbers = [float(words.partition(": ")[2]) for words in told]
    assert torch.allclose(torch.tensor(numbers), torch.cat(made), atol=0.006)
    page.click(re.compile("^v of .*, number 5:"))
    assert "number 5 of v: x times column 5 of W" in page.written()
    products = (inputs[2] * tables[2][4])[:3]
    sums = [words for words in page.written() if re.match("= .* … = ", words)]
    assert sums[0].endswith(f"… = {made[2][4]:.2f}".replace("-", "−"))
    assert re.findall(r"\d\.\d\d", sums[0])[:3] == [f"{abs(one):.2f}" for one in products]


TAKEN = 'root.querySelectorAll("image[data-links=sum]").length'


def test_the_weighted_sum_is_seen_only_after_the_softmax(show):
    page = show(ModelFlow(stop=4, written=5, stage=1))
    for stage, shown in ((1, 0), (2, 0), (3, 1)):
        page.set(stage=stage)
        assert page.read(TAKEN) == shown
        assert any("takes along" in words for words in page.written()) == bool(shown)
        assert any(words.startswith("exp(") for words in page.written()) == bool(shown)


def test_the_opening_shows_each_vector_behind_every_part(show):
    page = show(ModelFlow(written=2))
    run, values = translation(TEXT, 2)[0].values, []
    encoder = ["source_embedding.output", *ENCODED]
    decoder = ["target_embedding.output", *DECODED]
    for name in encoder + decoder:
        values += [row[:16] for row in run[name]]
    assert_strips(page.read(PIXELS), values)
    page.click("Step", "Step")  # the words, and the first look
    assert len(page.read(PIXELS)) == 2 * 7


@pytest.mark.parametrize("text", [TEXT, "the child does the window ."])
def test_the_last_stop_opens_where_the_model_hesitates(text, show):
    page = show(ModelFlow(text=text, stop=6))
    page.click("Next ›")
    shown, written = page.get("text", "written")
    shares = [translation(shown, i)[0].values["probabilities"][0] for i in range(6)]
    doubts = [-(share * share.log()).sum().item() for share in shares]
    assert written == doubts.index(max(doubts))
    assert shown == text if text != TEXT else shares[written].topk(2).values[1] > 0.05
    assert page.said.startswith("Here it hesitates most.")


def test_the_cut_is_drawn_where_it_is_and_the_bars_are_linear_or_log(show):
    page = show(ModelFlow(stop=7, temperature=2.0))
    assert "25 %" in page.written() and "0.1 %" not in page.written()
    page.set(top_k=5, log=True)
    assert "top-k cuts: shares of 0" in page.written()
    assert "0.1 %" in page.written() and page.written().count("✗ 0") == 3


def test_an_example_is_picked_beside_the_text(show):
    page = show(ModelFlow())
    texts = [page.get("text")]
    for _ in range(6):
        page.click("Example ›")
        texts.append(page.get("text"))
        assert "<unk>" not in page.said
    assert len({*texts}) == 5 and texts[0] == texts[5]


GUESSES = {  # by stop: an answer and its verdict
    2: ("yes", "“yes” is right. Place 3 adds"),
    4: ("6", "You guessed “6”. 3 of 9"),
    6: ("+ thinks", None),
}


def test_a_guess_comes_before_each_task_and_is_answered_when_it_is_done(show):
    page = show(ModelFlow())
    for stop, (guess, verdict) in GUESSES.items():
        page.set(stop=stop, text=TEXT, written=2)
        assert page.read(TURN)[1].startswith("○Guess, then ")
        page.named(guess).last.click()
        assert page.read(TURN)[0] == "to do"  # a guess alone is no answer
        page.set(**TURNS[stop][0])
        sign, words = page.read(TURN)[1][:1], page.read(TURN)[1][1:]
        assert sign == ("✗" if words.startswith("You guessed") else "✓")
        right = "“+ thinks” is right" if "most at “+ thinks”" in words else "You guessed “+ thinks”"
        assert words.startswith(verdict or right)
    heads = translation(TEXT, 2)[0].values["encoder.1.self_attention.weights"][:, 1]
    others = heads[:, [0, 2, 3, 4, 5]].max(1).values  # without itself and <eos>
    best = [*TEXT.split(), "<eos>"][first_largest(heads[first_largest(others)])]
    page.set(stop=3)
    answers = page.read('[...root.querySelectorAll(".turn button")].map(one => one.textContent)')
    assert len(answers) == 3 and best in answers
    page.named(best).last.click()
    page.click("row 1, “child”")
    assert f"“{best}” is right. “child” looks" in page.read(TURN)[1]


KNOWN = """[root.querySelector(".near span")?.textContent,
    ...[...root.querySelectorAll(".near button")].map(one => one.textContent)]"""


def test_known_words_are_offered_by_the_letters_typed(show):
    page = show(ModelFlow())
    assert page.read(KNOWN) == [None]
    page.page.get_by_label("Text", exact=True).fill("the child opens the in")
    words = sorted(one for one in page.get("source_words") if one.startswith("in"))
    begins = f"{len(words)} of 257 known words begin with “in”:"
    assert page.read(KNOWN)[0] == begins and page.read(KNOWN)[-len(words) :] == words
    page.named("invite").first.click()
    assert page.get("text") == "the child opens the invite"
