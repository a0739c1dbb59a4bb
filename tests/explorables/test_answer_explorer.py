"""The answer explorer in the page: every number is what the package's model computes anew."""

import re

import pytest
import torch

from tests.explorables.shown import Shown, same_numbers
from tests.explorables.tiny_models import language_model, translator
from tests.parity import randomized, small_config
from transformer_lesson.explorables import AnswerExplorer, answer_explorer
from transformer_lesson.generation import generate
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.ranking import first_largest, from_largest
from transformer_lesson.text.tokenizers import BytePairTokenizer

browser = pytest.mark.browser
WINDOW = {"width": 1100, "height": 900}
LINES = "the value\nof the thing\nis the other thing"


def letters():
    model, tokenizer = language_model(4)
    return randomized(model), tokenizer, tokenizer.encode("bad cafe hi")


def lines_of_text():
    """A Llama in small: rotary positions, shared keys and values, and tokens of whole words."""
    tokenizer = BytePairTokenizer.train([LINES], 275)
    choices = {"positions": "rotary", "norm": "rms", "norm_position": "pre", "n_kv_heads": 1}
    choices |= {"max_len": 60, "tie_embeddings": False}
    torch.manual_seed(4)
    config = small_config(vocab_size=tokenizer.vocab_size, **choices)
    model = randomized(DecoderOnlyTransformer(config)).eval()
    with torch.no_grad():
        model.projection.weight.mul_(4)  # some tokens are likely
    return model, tokenizer, tokenizer.encode(LINES)


class Step:
    """What the package computes for one step, from 0, by reading the text before it alone.

    Args:
        explorable: whose texts and sizes it shows.
        head: whose weights are shown, as (layer, head).
        watched: the token of the map; by default the one that the head looks at most.
    """

    def __init__(self, model, tokenizer, prompt, explorable, at, head=(0, 0), watched=None):
        self.tokens, self.at, self.head = explorable.tokens, at, head
        self.before, self.n = len(prompt) + at, len(explorable.choices)
        self.written = generate(model, prompt, self.n).ids[0]
        ids = [*prompt, *self.written][: self.before]
        with torch.no_grad(), record(model) as run:
            logits = model(torch.tensor([ids]))[0, -1]
        if model.config.pad_id is not None:
            logits[model.config.pad_id] = -torch.inf
        self.P, self.token = logits.softmax(-1), tokenizer.token
        points = [f"decoder.{i}.self_attention.weights" for i in range(model.config.n_layers)]
        self.weights = torch.stack([run[point][0, :, -1] for point in points])  # (layer, head, key)
        self.own = self.weights[head]
        self.favorite = int(first_largest(self.own))
        self.watched = self.favorite if watched is None else watched
        self.heads = [(i, j) for i in range(len(self.weights)) for j in range(self.weights.size(1))]
        self.given = self.weights[..., self.watched].flatten()

    def word(self, i: int) -> str:
        return f"“{self.tokens[i]}”"

    def candidates(self) -> list[str]:
        shown, chosen = from_largest(self.P, 10), self.written[self.at]
        told = [
            f"“{self.token(i)}”: probability {chance(self.P[i])}" + ", written" * (i == chosen)
            for i in shown
        ]
        rest = 1 - self.P[shown].sum()
        return [*told, f"{len(self.P) - len(shown)} others: probability {chance(rest)}"]

    def text(self) -> list[str]:
        return [
            f"token {i}, {self.word(i)}: weight {weight:.3f}"
            for i, weight in enumerate(self.own.tolist())
        ]

    def map(self) -> list[str]:
        at = f"of its attention at {self.word(self.watched)}"
        pairs = zip(self.heads, self.given.tolist(), strict=True)
        return [f"layer {i}, head {j}: {given:.3f} {at}" for (i, j), given in pairs]

    def lookers(self) -> list[str]:
        order = [k for k in from_largest(self.given, 5) if self.given[k] >= 0.005]
        named = [(*self.heads[k], self.given[k]) for k in order]
        return [f"layer {i}, head {j}: {given:.3f}" for i, j, given in named]

    def said(self) -> str:
        rivals = [i for i in from_largest(self.P, 10) if i != self.written[self.at]][:2]
        rivals = ", ".join(f"“{self.token(i)}” {self.P[i]:.3f}" for i in rivals)
        (i, j), p = self.head, self.P[self.written[self.at]]
        own = [(k, self.own[k]) for k in from_largest(self.own, 3)]
        looked = ", ".join(f"{self.word(k)} (token {k}) {share:.2f}" for k, share in own)
        most = ", ".join(
            "head {}.{} {:.2f}".format(*self.heads[k], self.given[k])
            for k in from_largest(self.given, 3)
        )
        return (
            f"Token {self.at + 1} of {self.n}, {self.word(self.before)}, had the probability "
            f"{p:.3f}; likeliest after it: {rivals}. From {self.word(self.before - 1)}, head "
            f"{i}.{j} (layer {i}, head {j}) looked at {looked}. At {self.word(self.watched)}, "
            f"token {self.watched}, looked most: {most}. All {len(self.heads)} heads together "
            f"gave {self.weights[..., 0].mean():.2f} of their attention to the first token, "
            f"{self.word(0)}."
        )

    def title(self) -> str:
        written, (i, j) = self.word(self.before), self.head
        looked = f"{self.word(self.favorite)} ({self.own[self.favorite]:.2f})"
        return f"As {written} was written, head {i}.{j} looked most at {looked}"


def chance(p) -> str:
    return "under 0.0001" if p < 0.0001 else f"{p:.4f}"


def check(page: Shown, step: Step) -> None:
    """Everything that the page shows at one step is what the package computes."""
    told, n = page.told(), step.n
    wanted = [*step.candidates(), *step.text(), *step.map(), *step.lookers()]
    assert len(told) == n + len(wanted)
    pairs = zip(told[n:], wanted, strict=True)
    assert [pair for pair in pairs if not same_numbers(*pair)] == []
    p, i = chance(step.P[step.written[step.at]]), step.at
    own = f"token {i + 1} of the answer, {step.word(step.before)}: probability {p}"
    assert same_numbers(told[i], own)
    assert same_numbers(page.said, step.said()) and same_numbers(page.title, step.title())


@browser
@pytest.mark.parametrize("example", [letters, lines_of_text])
def test_every_number_is_that_of_the_packages_model(show, example):
    model, tokenizer, prompt = example()
    explorable = AnswerExplorer(model, tokenizer, prompt, 8)
    written = [tokenizer.token(i) for i in generate(model, prompt, 8).ids[0]]
    assert explorable.tokens[len(prompt) :] == written and len(set(written)) > 2
    page = show(explorable, viewport=WINDOW)
    last = (model.config.n_layers - 1, model.config.n_heads - 1)
    for at, head, watched in [(0, (0, 1), None), (3, last, None), (len(written) - 1, (1, 0), 2)]:
        page.set(step=at + 1, layer=head[0], head=head[1], watched=watched)
        check(page, Step(model, tokenizer, prompt, explorable, at, head, watched))


@browser
def test_numbers_stand_in_the_picture(show):
    model, tokenizer, prompt = letters()
    explorable = AnswerExplorer(model, tokenizer, prompt, 6, step=4, layer=1, head=2)
    page, step = show(explorable), Step(model, tokenizer, prompt, explorable, 3, (1, 2))
    written = page.written()
    wanted = [f"{one['probabilities'][one['chosen']]:.2f}" for one in explorable.choices]
    likely = from_largest(step.P, 10)
    wanted += [
        "<0.001" if p < 0.0005 else f"{p:.3f}" for p in [*step.P[likely], 1 - step.P[likely].sum()]
    ]
    wanted += [f"{weight:.2f}" for weight in step.own if weight >= 0.005]
    numbers = [text for text in written if re.fullmatch(r"<?\d\.\d+", text)]
    assert len(numbers) == len(wanted) and all(map(same_numbers, numbers, wanted))
    assert "3 · where head 1.2 looked" in written
    assert f"4 · who looked at {step.word(step.watched)}?" in written


@browser
def test_bars_and_shades_are_as_large_as_their_numbers(show):
    model, tokenizer, prompt = letters()
    explorable = AnswerExplorer(model, tokenizer, prompt, 6, step=4, layer=1, head=2)
    page, step = (
        show(explorable, viewport=WINDOW),
        Step(model, tokenizer, prompt, explorable, 3, (1, 2)),
    )

    def drawn(selector: str, attribute: str) -> list[str]:
        read = f"nodes => nodes.map(node => node.getAttribute('{attribute}'))"
        return page.page.locator(f"svg rect{selector}").evaluate_all(read)

    P = step.P[from_largest(step.P, 10)]
    bars = torch.tensor([float(w) for w in drawn("[aria-label*=': prob'][role=img]", "width")[:10]])
    assert torch.allclose(bars, (P * bars[0] / P[0]).clamp(min=1.5), atol=0.1)
    levels = torch.tensor([float(h) for h in drawn("[fill*='38%']", "height")])
    assert torch.allclose(levels / 36, step.own, atol=1e-3)
    boxes = [float(w) - 8 for w in drawn("[aria-label*='of the answer']", "width")]
    sure = [float(w) for w in drawn("[fill='var(--value)']:not([role])", "width")]
    chances = [one["probabilities"][one["chosen"]] for one in explorable.choices]
    shares = [long / most for long, most in zip(sure, boxes, strict=True)]
    assert shares == pytest.approx(chances, abs=1e-3)
    shades = [
        float(fill.split("%")[0].split()[-1]) for fill in drawn("[aria-label*='of its']", "fill")
    ]
    assert shades == pytest.approx((100 * step.given.sqrt()).tolist(), abs=0.2)


@browser
def test_pointing_asks_all_heads_about_a_token_and_a_head_about_all_tokens(show):
    model, tokenizer, prompt = letters()
    explorable = AnswerExplorer(model, tokenizer, prompt, 6, step=3)
    page = show(explorable, viewport=WINDOW)
    pointed = Step(model, tokenizer, prompt, explorable, 2, watched=4)
    page.page.get_by_role("button", name="token 4, ", exact=False).hover()
    told = [words for words in page.told() if "of its attention" in words]
    assert all(map(same_numbers, told, pointed.map())) and len(told) == 6
    page.page.get_by_role("button", name="layer 1, head 2: ").first.hover()
    told = [words for words in page.told() if ": weight " in words]
    other = Step(model, tokenizer, prompt, explorable, 2, (1, 2))
    assert all(map(same_numbers, told, other.text())) and len(told) == len(prompt) + 2
    assert "3 · where head 1.2 looked" in page.written()
    assert (page.get("layer"), page.get("head"), page.get("watched")) == (0, 0, None)
    page.page.mouse.move(2, 2)
    check(page, Step(model, tokenizer, prompt, explorable, 2))


@browser
def test_clicks_and_keys_choose(show):
    model, tokenizer, prompt = letters()
    page = show(AnswerExplorer(model, tokenizer, prompt, 6), viewport=WINDOW)
    page.page.get_by_role("button", name="token 5 of the answer").click()
    page.page.get_by_role("button", name="layer 1, head 1: ").first.click()
    assert (page.get("step"), page.get("layer"), page.get("head")) == (5, 1, 1)
    assert page.press("ArrowLeft").startswith("layer 0, head 1: ")
    assert page.press("ArrowDown").startswith("layer 0, head 2: ")
    page.press("Enter")
    assert (page.get("layer"), page.get("head")) == (0, 2)
    token = page.page.get_by_role("button", name="token 6, ")
    token.click()
    assert page.get("watched") == 6 and token.get_attribute("aria-pressed") == "true"
    assert "token 6, kept until you click it again" in page.written()
    token.click()
    assert page.get("watched") is None
    page.page.get_by_role("slider").nth(1).press("End")
    assert page.get("layer") == 1


@browser
def test_play_writes_the_answer_to_its_end(show):
    model, tokenizer, prompt = letters()
    page = show(AnswerExplorer(model, tokenizer, prompt, 3, step=2))
    page.page.get_by_role("button", name="Play").click()
    page.page.wait_for_function(
        "() => document.querySelector('div.explorable').model.get('step') === 3"
    )
    assert page.title.startswith(f"As “{page.get('tokens')[-1]}” was written")


@browser
def test_past_the_ends(show):
    model, tokenizer, prompt = letters()
    explorable = AnswerExplorer(model, tokenizer, prompt, 6, step=99, layer=99, head=99)
    page, last = show(explorable, viewport=WINDOW), len(explorable.choices) - 1
    check(page, Step(model, tokenizer, prompt, explorable, last, (1, 2)))
    page.set(step=1, watched=len(prompt) + 1)  # not there yet
    check(page, Step(model, tokenizer, prompt, explorable, 0, (1, 2)))
    one = AnswerExplorer(model, tokenizer, prompt[:1], 1)
    page = show(one)
    check(page, Step(model, tokenizer, prompt[:1], one, 0))
    assert page.title.endswith("(1.00)")


@browser
def test_a_line_of_the_text_begins_a_line_of_the_picture(show):
    model, tokenizer, prompt = lines_of_text()
    explorable = AnswerExplorer(model, tokenizer, prompt, 2)
    ends = [i for i in explorable.line_ends if i < len(prompt)]
    assert [tokenizer.decode([prompt[i]]).endswith("\n") for i in ends] == [True, True]
    page = show(explorable, viewport=WINDOW)
    tokens = page.page.get_by_role("button", name=": weight ")
    left = [tokens.nth(i).get_attribute("x") for i in (0, *(end + 1 for end in ends), ends[0])]
    assert left[0] == left[1] == left[2] != left[3]


def test_a_line_ends_behind_a_line_break():
    model, tokenizer, prompt = letters()
    texts = {prompt[0]: "a\n", prompt[1]: "\na"}
    tokenizer.decode = lambda ids: texts.get(ids[0], "a")
    assert AnswerExplorer(model, tokenizer, prompt, 1).line_ends == [0]


@browser
def test_of_equals_the_first_is_named_and_the_written_one_is_shown(show):
    model, tokenizer, prompt = letters()
    with torch.no_grad():
        for block in model.decoder:
            block.self_attention.W_Q.weight.zero_()
            if block.self_attention.W_Q.bias is not None:
                block.self_attention.W_Q.bias.zero_()
        model.projection.weight.zero_()
    late = torch.zeros(tokenizer.vocab_size)
    late[tokenizer.vocab_size - 1] = 1e-6  # the largest, but for rounding
    model.projection.register_forward_hook(lambda _module, _inputs, logits: logits + late)
    explorable = AnswerExplorer(model, tokenizer, prompt, 2)
    first = [tokenizer.token(i) for i in range(tokenizer.vocab_size)]
    shown = explorable.choices[0]
    never = [] if model.config.pad_id is None else [model.config.pad_id]
    assert shown["tokens"][:9] == [t for i, t in enumerate(first) if i not in never][:9]
    assert shown["chosen"] == 9 and shown["tokens"][9] == first[-1] == explorable.tokens[-1]
    page = show(explorable)
    share = f"{1 / len(prompt):.2f}"
    assert page.title.endswith(f"looked most at “{first[prompt[0]]}” ({share})")
    assert f"looked most: head 0.0 {share}, head 0.1 {share}, head 0.2 {share}." in page.said


@browser
def test_of_weights_that_differ_by_rounding_the_first_is_named(show, monkeypatch):
    model, tokenizer, prompt = letters()
    nearly = torch.tensor([0.49999, 0.50001]).expand(2, 3, 2, 2)  # two steps of a record apart
    monkeypatch.setattr(answer_explorer, "_weights", lambda model, ids: nearly)
    page = show(AnswerExplorer(model, tokenizer, prompt[:2], 1))
    assert page.title.endswith(f"looked most at “{tokenizer.token(prompt[0])}” (0.50)")
    assert sum(words.endswith(": 0.500") for words in page.told()) == 5
    alone = torch.tensor([0.996, 0.004]).expand(2, 3, 2, 2)
    monkeypatch.setattr(answer_explorer, "_weights", lambda model, ids: alone)
    page = show(AnswerExplorer(model, tokenizer, prompt[:2], 1, watched=1))
    assert "most:" not in page.written()  # nobody who is worth naming


def test_a_record_that_is_too_large_is_refused(monkeypatch):
    assert 2 * 270 * sum(range(60, 100)) <= answer_explorer.LARGEST_RECORD == 2 * 2**20
    model, tokenizer, prompt = letters()
    size = 2 * 6 * sum(range(len(prompt), len(prompt) + 3))
    monkeypatch.setattr(answer_explorer, "LARGEST_RECORD", size)
    assert len(AnswerExplorer(model, tokenizer, prompt, 3).choices) == 3
    monkeypatch.setattr(answer_explorer, "LARGEST_RECORD", size - 1)
    with pytest.raises(ValueError, match=r"2 layers of 3 heads over an answer of 3 tokens to a "):
        AnswerExplorer(model, tokenizer, prompt, 3)


def test_what_cannot_be_shown_is_refused(unchecked):
    model, tokenizer, prompt = letters()
    with pytest.raises(ValueError, match="EncoderDecoderTransformer is the model's kind, but"):
        AnswerExplorer(*translator(), prompt)
    with pytest.raises(ValueError, match="2 prompts were given, but one answer is shown"):
        AnswerExplorer(model, tokenizer, [prompt, prompt])
    with pytest.raises(ValueError, match="has no tokens"):
        AnswerExplorer(model, tokenizer, [[]])
    with pytest.raises(ValueError, match="max_new_tokens"):
        AnswerExplorer(model, tokenizer, prompt, 0)
    with pytest.raises(ValueError, match="max_len of 40: ask for at most 29 new tokens"):
        AnswerExplorer(model, tokenizer, prompt, 30)


def test_a_model_is_left_as_it_was():
    model, tokenizer, prompt = letters()
    known = AnswerExplorer(model, tokenizer, torch.tensor([prompt]), 4)
    model.train()
    again = AnswerExplorer(model, tokenizer, prompt, 4)
    assert model.training and all(part.training for part in model.modules())
    assert again.weights == known.weights and again.choices == known.choices
