"""The decoding stepper, in the page: every number against the package's model and strategies."""

import re
from collections.abc import Iterator
from copy import deepcopy

import pytest
import torch
from torch import nn

from tests.explorables.shown import assert_agree, assert_refused, assert_tells, lines
from tests.explorables.tiny_models import language_model
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.explorables import DecodingStepper
from transformer_lesson.generation import Beam, Sample, generate, length_normalized
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer
from transformer_lesson.ranking import from_largest
from transformer_lesson.text.tokenizers import BytePairTokenizer

MICE = "when two big mice do not like teachers , our mouse carries a red apple ."
KNOBS = [
    {"temperature": 0.7, "top_k": 8, "top_p": 0.9, "seed": 0},
    {"temperature": 2.0, "top_k": 0, "top_p": 0.5, "seed": 3},
    {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "seed": 20},
]


def mulberry32(seed: int) -> Iterator[float]:
    while True:
        seed = (seed + 0x6D2B79F5) % 2**32
        mixed = (seed ^ seed >> 15) * (seed | 1) % 2**32
        mixed ^= (mixed + (mixed ^ mixed >> 7) * (mixed | 61)) % 2**32
        yield ((mixed ^ mixed >> 14) % 2**32) / 2**32


def byte_pair_model() -> tuple[DecoderOnlyTransformer, BytePairTokenizer]:
    tokenizer = BytePairTokenizer.train(["the value of the thing is the other thing"], 280)
    torch.manual_seed(1)
    return DecoderOnlyTransformer(ModelConfig(tokenizer.vocab_size, 12, 3, 2, 20, 40)), tokenizer


class Written:
    """What the package's model and strategies make of one text, with the page's chance."""

    def __init__(self, model, tokenizer, text: str, knobs: dict | None, most: int = 20):
        self.model, self.tokenizer, self.knobs = model.eval(), tokenizer, knobs
        self.start, source = tokenizer.encode(text), []
        if isinstance(model, EncoderDecoderTransformer):
            source = [torch.tensor([[*self.start, tokenizer.eos_id]])]
            self.start = [tokenizer.bos_id]
        self.ids, self.logits, self.draws = [], [], []
        uniform = mulberry32(knobs["seed"]) if knobs else None
        while len(self.ids) < most and self.ids[-1:] not in [[id_] for id_ in model.config.eos_ids]:
            with torch.no_grad():
                logits = model(*source, torch.tensor([[*self.start, *self.ids]]))[0, -1]
            if model.config.pad_id is not None:
                logits[model.config.pad_id] = -torch.inf
            self.logits.append(logits)
            self.draws.append(next(uniform) if knobs else 0.0)
            drawn = torch.tensor(self.draws[-1:])
            token = self.sample.choose(logits[None], drawn) if knobs else logits.argmax()
            self.ids.append(int(token))

    @property
    def sample(self) -> Sample:
        knobs = self.knobs | {"top_k": self.knobs["top_k"] or None}
        return Sample(**knobs | {"top_p": None if knobs["top_p"] == 1 else knobs["top_p"]})

    def told_tokens(self, step: int) -> list[str]:
        n, texts = len(self.start), map(self.tokenizer.token, [*self.start, *self.ids])
        reused = 0 if step == 0 else n + step - 1
        kinds = ["in the cache"] * reused + ["read now"] * (n + step - reused) + ["chosen"]
        told = lines("token {}, “{}”: {}", zip(range(len(kinds)), texts, kinds, strict=False))
        return told[max(0, n - 12) :]


def check(page, written: Written, step: int) -> None:
    told, logits, chosen = page.told(), written.logits[step], written.ids[step]
    columns, token = {"the model": logits.softmax(-1)}, written.tokenizer.token
    ids = from_largest(columns["the model"], 10)
    if chosen not in ids:
        ids[-1] = chosen
    assert [one for one in told if one.startswith("token ")] == written.told_tokens(step)
    assert [one.endswith(", chosen") for one in told if one[0] == "“"][:10] == [
        one == chosen for one in ids
    ]
    if knobs := written.knobs:
        columns["temperature .*"] = (logits / knobs["temperature"]).softmax(-1)
        columns["drawn from"] = final = written.sample.probabilities(logits)
        kept, ends = [i for i in sorted(ids) if final[i] > 0], final.cumsum(-1)
        assert_tells(told, r"lies from ([\d.]+) to", [ends[i] - final[i] for i in kept])
        assert_tells(told, r"lies from .* to ([\d.]+)", ends[kept])
        assert_tells(told, r"the draw ([\d.]+) falls", [written.draws[step]])
        top = from_largest(logits, knobs["top_k"] or len(logits))
        cut = ["top-p" if i in top else "top-k" for i in ids if final[i] == 0]
        assert [one.rpartition(" ")[2] for one in told if ": cut by" in one] == cut
    for name, values in columns.items():
        shares = [values[i] for i in ids if values[i] > 0]
        assert_tells(
            told, rf"”, {name}: ([\d.]+)$", [*shares, (1 - values[ids].sum()).clamp(min=0)]
        )
    assert page.title.startswith(f"Step {step + 1} of {len(written.ids)}: “{token(chosen)}” ")


@pytest.mark.parametrize("knobs", [None, *KNOBS], ids=["greedy", "cold", "hot", "plain"])
def test_every_number_is_that_of_the_packages_model(show, knobs):
    model, tokenizer, _ = trained_translator()
    written = Written(model, tokenizer, MICE, knobs)
    page = show(DecodingStepper(strategy="sample" if knobs else "greedy"))
    page.set(**(knobs or {}))
    for step in range(0, len(written.ids), 2):
        page.set(step=step + 1)
        check(page, written, step)


@pytest.mark.parametrize("make", [language_model, byte_pair_model], ids=["letters", "byte pairs"])
def test_a_language_model_goes_on_from_a_prompt(show, make):
    model, tokenizer = make()
    text = "abc" if make is language_model else "the value of the other thing is the value of"
    page = show(DecodingStepper(model, tokenizer, text, 15, **KNOBS[1]))
    written = Written(model, tokenizer, text, KNOBS[1], 15)
    for step in (0, 1, len(written.ids) - 1):
        page.set(step=step + 1)
        check(page, written, step)
    hidden = len(tokenizer.encode(text)) - 12
    more = any(text.startswith(f"… {hidden} more tokens") for text in page.written())
    assert more == (hidden > 0)


def path_of(tree, step: int, i: int) -> list[int]:
    one = tree[step][i]
    return [*(path_of(tree, step - 1, one.parent) if step else []), one.token]


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_the_tree_is_that_of_the_packages_beam_search(show, width):
    model, tokenizer, _ = trained_translator()
    source = [*tokenizer.encode(MICE), tokenizer.eos_id]
    made = generate(model, source, 20, Beam(width), trees=True)
    tree = made.trees[0]

    def words(step: int, i: int) -> str:
        return f"“{' '.join(map(tokenizer.token, path_of(tree, step, i)))}”"

    page = show(DecodingStepper(strategy="beam", width=width))
    for at in (0, 8, len(tree) - 1):
        page.set(step=at + 1)
        ended = [
            (length_normalized(one.log_probability, s + 1, 0.6), one.log_probability, words(s, i))
            for s, level in enumerate(tree[: at + 1])
            for i, one in enumerate(level)
            if one.finished
        ]
        order = from_largest(torch.tensor([one[0] for one in ended]), 3) if ended else []
        texts = lines("normalized {:.2f}, log P {:.2f}: {}", (ended[k] for k in order))
        boxes = [
            f"step {s + 1}, {'finished' if one.finished else 'kept' if one.kept else 'dropped'}: "
            f"{words(s, i)}, log P {one.log_probability:.2f}"
            for s in range(max(0, at - 6), at + 1)
            for i, one in enumerate(tree[s][: width + (2 if width > 3 else 4) * (s == at)])
        ]
        told = [told for told in page.told() if not told.startswith("token ")]
        assert_agree(told, [*boxes, *(f"finished: {text}" for text in texts)])


def test_strategies_change_the_picture_and_its_knobs(show):
    page = show(DecodingStepper())
    for name, n in (("sample", 5), ("greedy", 1), ("beam", 2), ("sample", 5)):
        page.named(name, exact=True).click()
        page.set()
        assert page.page.locator("input[type=range]:visible").count() == n
    page.click("token 4, “Mäuse”")
    assert page.get("step") == 4 and re.match(r"Step 4 of \d+: “Mäuse” was drawn", page.title)


def test_a_long_text_is_gone_on_from_as_far_as_there_is_room(show):
    page = show(DecodingStepper(*language_model(), "a" * 39, max_new_tokens=50, step=99))
    assert page.title.startswith("Step 1 of 1: ")  # max_len is 40
    page.set(text="a" * 40)
    assert page.said == "The text has 40 tokens, but the model has room for 39: shorten it."
    page.set(text="ab\ud83d")
    assert page.title.startswith("Step 37 of 37: ")


def test_a_softmax_in_the_place_of_logits_is_shown_and_wrong_arguments_are_refused(show, unchecked):
    mad, tokenizer = deepcopy(trained_translator().model), trained_translator().tokenizer
    mad.logits = nn.Softmax(-1)
    written = Written(mad, tokenizer, MICE, KNOBS[0], 5)
    check(show(DecodingStepper(mad, tokenizer, MICE, 5, **KNOBS[0], step=2)), written, 1)
    assert written.logits[1].softmax(-1).max() < 0.01
    mad.logits = nn.Tanh()
    tanh = "last part is a Tanh, which a page cannot repeat"
    assert_refused(tanh, DecodingStepper, mad, tokenizer)
    assert_refused("belong together", DecodingStepper, mad)
    few = "max_new_tokens is 0, but it must be at least 1"
    assert_refused(few, DecodingStepper, max_new_tokens=0)
