"""What a step holds, or a model that writes, in the page: the package's numbers in every state."""

import itertools
import re

import pytest

from transformer_lesson.explorables import WillItFit
from transformer_lesson.lessons.lesson_15.will_it_fit import MODELS
from transformer_lesson.training.memory_needs import (
    GIB,
    KEYS,
    kept_of_a_token,
    memory_to_train,
    memory_to_write,
)

UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": GIB}
NUMBER = r"([\d.,e+]+) ([KMG]iB)"


def bytes_in(text: str) -> list[float]:
    return [float(n.replace(",", "")) * UNITS[unit] for n, unit in re.findall(NUMBER, text)]


def test_every_model_device_and_change_has_the_packages_numbers(show):
    page, both = show(WillItFit()), (True, False)
    names = ("size", "bits", "table", "twice")
    sizes = itertools.product(range(len(MODELS)), (32, 16), both, both)
    states = [dict(zip(names, one, strict=True)) for one in sizes]
    states += [dict(batch=batch, tokens=tokens) for batch in (1, 64) for tokens in (128, 8192)]
    states += [dict(devices=devices, memory=memory) for devices, memory in ((8, 8), (512, 141))]
    first = dict(zip(names, (1, 32, True, False), strict=True))
    first |= dict(batch=8, tokens=1024, devices=1, memory=24)
    whole = [first | state for state in states]
    for state, shown in zip(whole, page.states(whole), strict=True):
        sizes = list(MODELS.values())[state["size"]]
        options = {name: state[name] for name in ("bits", "table", "twice", "devices")}
        needs = memory_to_train(sizes, state["batch"], state["tokens"], **options)
        held = bytes_in(shown["said"].partition(". Of")[0])
        assert held == pytest.approx(needs, rel=0.006), state
        assert bytes_in(shown["title"])[0] == pytest.approx(sum(needs), rel=0.006), state
        fits = "it fits into" in shown["title"]
        assert fits == (sum(needs) <= state["memory"] * GIB), state


def test_a_change_is_a_button_that_says_what_it_makes_of_it(show):
    page = show(WillItFit(size=3, devices=8))
    sizes = MODELS["GPT-3 6.7B"]
    told = page.told()
    assert len(told) == 6 * 4 + 5  # four parts now and with each change, and five buttons
    said = dict(name.split(": ", 1) for name in told if name.count(":") == 1 and "now" not in name)
    wanted = memory_to_train(sizes, 8, 1024, table=False, devices=8)
    assert bytes_in(said["attention in blocks"])[0] == pytest.approx(sum(wanted), rel=0.006)
    page.click("attention in blocks: " + said["attention in blocks"])
    assert page.get("table") is False and page.title.startswith("To train GPT-3 6.7B takes")
    assert not any(name.startswith("attention in blocks") for name in page.told())


def test_a_model_that_writes_has_the_packages_numbers_too(show):
    page, states = show(WillItFit(to="write")), []
    for size, bits, keys in itertools.product(range(len(MODELS)), (32, 16, 8, 4), KEYS):
        states.append(dict(size=size, bits=bits, kept=keys, batch=8, tokens=1024, devices=1))
    states += [states[-1] | dict(batch=64, tokens=8192), states[-1] | dict(devices=64)]
    for state, shown in zip(states, page.states(states), strict=True):
        sizes = list(MODELS.values())[state["size"]]
        chosen = [state[name] for name in ("batch", "tokens", "bits", "kept", "devices")]
        needs = memory_to_write(sizes, *chosen)
        token = kept_of_a_token(sizes, state["kept"]) * sizes.n_layers * max(state["bits"], 16) / 8
        held = bytes_in(shown["said"].partition(" Of")[0])
        assert held == pytest.approx([*needs, token], rel=0.006), state
        assert bytes_in(shown["title"])[0] == pytest.approx(sum(needs), rel=0.006), state


def test_a_change_of_writing_is_a_button_and_what_only_training_has_is_gone(show):
    page = show(WillItFit(to="write", size=3, bits=16))
    wanted = memory_to_write(MODELS["GPT-3 6.7B"], 8, 1024, 16, "latent")
    (name,) = [one for one in page.told() if re.match(r"a latent vector: [\d.,]+ ", one)]
    assert bytes_in(name)[0] == pytest.approx(sum(wanted), rel=0.006)
    page.click(name)
    assert page.get("kept") == "latent" and page.title.startswith("To write with GPT-3 6.7B takes")
    assert not page.named("computed twice").is_visible()
