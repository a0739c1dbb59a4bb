"""The answer explorer in the page: every number is what the package's model computes anew."""

import pytest
import torch

from tests.explorables.shown import Shown, assert_agree, assert_refused, lines, same_numbers
from tests.explorables.tiny_models import language_model, translator
from tests.parity import randomized, small_config
from transformer_lesson.explorables import AnswerExplorer
from transformer_lesson.generation import generate
from transformer_lesson.lessons.lesson_12 import answer_explorer
from transformer_lesson.lessons.lesson_12.answer_explorer import Measure
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.ranking import first_largest, from_largest
from transformer_lesson.text.tokenizers import BytePairTokenizer

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


def measured() -> list[Measure]:
    """A probability and a loss, as they might be without each of 2 blocks of 3 heads."""
    heads = torch.tensor([[0.8, 0.75, 0.1], [0.81, 0.4, 0.8]])
    losses = torch.tensor([[3.1, 3.0, 3.05], [3.4, 3.2, 3.0]])
    return [
        Measure("P(it)", 0.8, 0.0, heads, torch.tensor([0.0, 0.3])),
        Measure("loss on it", 3.0, 5.0, losses, torch.tensor([9.0, 3.5])),
    ]


class Lost:
    """What a measure says of a part: a head (block, head), or a block (block, None)."""

    def __init__(self, measure: Measure, part: tuple[int, int | None]):
        self.measure, (block, head) = measure, part
        self.name = f"block {block}" if head is None else f"head {block}.{head}"
        self.all = (measure.blocks if head is None else measure.heads.flatten()).tolist()
        self.value = measure.blocks[block] if head is None else measure.heads[block, head]
        worse = 1 if measure.worst > measure.whole else -1
        self.costlier = sum(worse * one > worse * float(self.value) for one in self.all)
        self.digits = 3 if measure.whole <= 1 else 2

    def write(self, value) -> str:
        return f"{float(value):.{self.digits}f}"

    def told(self) -> str:
        whole, value = self.write(self.measure.whole), self.write(self.value)
        return (
            f"{self.measure.name}: {whole} with all, {value} without {self.name}; "
            f"{self.costlier} of {len(self.all) - 1} others cost more"
        )


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
            f"“{self.token(i)}”: {chance(self.P[i])}" + ", written" * (i == chosen) for i in shown
        ]
        return [*told, f"{len(self.P) - len(shown)} others: {chance(1 - self.P[shown].sum())}"]

    def text(self) -> list[str]:
        return [f"token {i}, {self.word(i)}: weight {one:.3f}" for i, one in enumerate(self.own)]

    def map(self) -> list[str]:
        at = f"block {{}}, head {{}}: {{:.3f}} of its attention at {self.word(self.watched)}"
        return lines(
            at, ((*head, given) for head, given in zip(self.heads, self.given, strict=True))
        )

    def lookers(self, most: int) -> list[tuple]:
        return [(*self.heads[k], self.given[k]) for k in from_largest(self.given, most)]

    def told(self) -> list[str]:
        lookers = (one for one in self.lookers(5) if one[2] >= 0.005)
        named = lines("block {}, head {}: {:.3f}", lookers)
        return [*self.candidates(), *self.text(), *self.map(), *named]

    def title(self) -> str:
        written, (i, j) = self.word(self.before), self.head
        looked = f"{self.word(self.favorite)} ({self.own[self.favorite]:.2f})"
        return f"Before {written}, head {i}.{j} looked most at {looked}"


def chance(p) -> str:
    return "probability " + ("under 0.0001" if p < 0.0001 else f"{p:.4f}")


def check(page: Shown, *given) -> Step:
    shown, step = page.all(), Step(*given)
    told, p = shown["told"], chance(step.P[step.written[step.at]])
    own = f"token {step.at + 1} of the answer, {step.word(step.before)}: {p}"
    assert_agree([told[step.at], *told[step.n :]], [own, *step.told()])
    assert_agree([shown["title"]], [step.title()])
    drawn = [f"{one:.2f}" for one in step.own if one >= 0.005]
    runs = zip(*(shown["written"][k:] for k in range(len(drawn))), strict=False)
    assert any(all(map(same_numbers, run, drawn)) for run in runs), drawn
    return step


@pytest.mark.parametrize("example", [letters, lines_of_text])
def test_every_number_is_that_of_the_packages_model(show, example):
    model, tokenizer, prompt = example()
    explorable = AnswerExplorer(model, tokenizer, prompt, 8, step=99, layer=99, head=99)
    written = [tokenizer.token(i) for i in generate(model, prompt, 8).ids[0]]
    assert explorable.tokens[len(prompt) :] == written and len(set(written)) > 2
    page, given = show(explorable), (model, tokenizer, prompt, explorable)
    last = (model.config.n_layers - 1, model.config.n_heads - 1)
    check(page, *given, len(written) - 1, last)
    page.set(step=1, watched=len(prompt) + 1)  # not there yet
    check(page, *given, 0, last)
    for at, head, watched in [(0, (0, 1), None), (3, last, None), (len(written) - 1, (1, 0), 2)]:
        page.set(step=at + 1, layer=head[0], head=head[1], watched=watched)
        check(page, *given, at, head, watched)
    one = AnswerExplorer(model, tokenizer, prompt[:1], 1)
    check(show(one), model, tokenizer, prompt[:1], one, 0)


def test_pointing_asks_all_heads_about_a_token_or_a_head_about_all_and_clicks_and_keys_choose(show):
    model, tokenizer, prompt = letters()
    explorable = AnswerExplorer(model, tokenizer, prompt, 6, step=3)
    given, page = (model, tokenizer, prompt, explorable, 2), show(explorable)
    page.named("token 4, ").hover()
    told = [words for words in page.told() if "of its attention" in words]
    assert_agree(told, Step(*given, watched=4).map())
    page.named("block 1, head 2: ").first.hover()
    told = [words for words in page.told() if ": weight " in words]
    assert_agree(told, Step(*given, (1, 2)).text())
    assert "where head 1.2 looked" in page.written()
    assert page.get("layer", "head", "watched") == [0, 0, None]
    page.page.mouse.move(2, 2)
    check(page, *given)
    page.click("token 5 of the answer")
    page.named("block 1, head 1: ").first.click()
    assert page.get("step", "layer", "head") == [5, 1, 1]
    assert page.press("ArrowLeft").startswith("block 0, head 1: ")
    assert page.press("ArrowDown").startswith("block 0, head 2: ")
    page.press("Enter")
    assert page.get("layer", "head") == [0, 2]
    token = page.named("token 6, ")
    token.click()
    assert page.get("watched") == 6 and token.get_attribute("aria-pressed") == "true"
    token.click()
    assert page.get("watched") is None


def test_what_cannot_be_shown_or_is_too_large_is_refused_and_a_model_left_as_it_was(
    unchecked, monkeypatch
):
    model, tokenizer, prompt = letters()
    known = AnswerExplorer(model, tokenizer, torch.tensor([prompt]), 4)
    model.train()
    again = AnswerExplorer(model, tokenizer, prompt, 4)
    assert all(part.training for part in model.modules())
    assert again.weights == known.weights and again.choices == known.choices
    kind = "EncoderDecoderTransformer is the model's kind, but"
    assert_refused(kind, AnswerExplorer, *translator(), prompt)
    two = "2 prompts were given, but one answer is shown"
    assert_refused(two, AnswerExplorer, model, tokenizer, [prompt, prompt])
    wrong = measured()[0]._replace(heads=torch.zeros(3, 2))
    message = "is of .3, 2. heads and .2. blocks, but the model has 2 blocks of 3 heads"
    assert_refused(message, AnswerExplorer, model, tokenizer, prompt, 2, [wrong])
    monkeypatch.setattr(answer_explorer, "LARGEST_RECORD", 2 * 6 * len(prompt))
    large = "2 layers of 3 heads over an answer of 3 tokens to a "
    assert_refused(large, AnswerExplorer, model, tokenizer, prompt, 3)


def test_what_is_lost_without_a_head_or_a_block_is_what_was_measured(show):
    model, tokenizer, prompt = letters()
    measures = measured()
    explorable = AnswerExplorer(model, tokenizer, prompt, 6, measures, step=3)
    assert all(len(choice["tokens"]) <= 5 for choice in explorable.choices)
    page = show(explorable)
    for part in ((0, 0), (1, 1), (0, 2), (1, None), (0, None)):
        block, head = part
        chosen = {"layer": block, "whole_block": head is None}
        page.set(**chosen, head=0 if head is None else head, measure=None)
        lost = [Lost(measure, part) for measure in measures]
        told = [words for words in page.told() if "others cost more" in words]
        assert_agree(told, [one.told() for one in lost])


def test_a_measure_is_on_the_map_and_clicks_take_heads_and_blocks_away(show):
    model, tokenizer, prompt = letters()
    measures = measured()
    page = show(AnswerExplorer(model, tokenizer, prompt, 6, measures, step=3))
    page.click("P(it): ")
    assert page.get("measure", "whole_block") == [0, False]
    cells = page.page.locator("svg rect.cell[role=button]")
    read = 'nodes => nodes.map(node => node.getAttribute("aria-label"))'
    values = [*measures[0].heads.flatten().tolist(), *measures[0].blocks.tolist()]
    places = [f"block {i}, head {j}" for i in range(2) for j in range(3)]
    places += [f"block {i} as a whole" for i in range(2)]
    wanted = [f"{place}: P(it) {value:.3f}" for place, value in zip(places, values, strict=True)]
    assert_agree(cells.evaluate_all(read), wanted)
    page.named("block 1, head 1: ").first.click()
    assert page.get("layer", "head", "whole_block") == [1, 1, False]
    page.named("block 0 as a whole").click()
    assert page.get("layer", "whole_block") == [0, True]
    assert page.title == "Without block 0, P(it) falls from 0.800 to 0.000"
    page.click("P(it): ")
    assert page.get("measure") is None and "looked most at" in page.title
