"""The page writes what the package writes: greedy, by beam search, and with the same knobs."""

import random

import pytest
import torch

from tests.explorables.page_modules import in_node
from transformer_lesson.checkpoints.translator import TRANSLATOR, trained_translator
from transformer_lesson.generation import Beam, Sample, generate, length_normalized
from transformer_lesson.generation.beam import Tree
from transformer_lesson.ranking import from_largest
from transformer_lesson.text import grammar
from transformer_lesson.training.tasks import N_GRAMMAR, N_TESTS

pytestmark = pytest.mark.slow
LONGEST, WIDTH, CLOSE = 40, 3, 1e-4
BEAMS = 4  # of the sentences, one in so many is also searched with beams: they take minutes


def drawn_knobs(draw: random.Random, logits: torch.Tensor) -> dict[str, float]:
    """Knobs that cut some tokens, none of them so near to top_p that rounding decides."""
    temperature, top_k = draw.choice((1e-3, 0.3, 1.0, 4.0)), draw.choice((None, 1, 5, 100))
    after = Sample(temperature, top_k).probabilities(logits).sort(descending=True).values
    sums = after.cumsum(dim=-1)
    top_p = draw.choice((None, 1.0, 0.05, 0.5, 0.9))
    while top_p not in (None, 1.0) and (sums - top_p).abs().min() < CLOSE:
        top_p *= 0.99
    return {"temperature": temperature, "top_k": top_k, "top_p": top_p}


def held_out_sources() -> list[list[int]]:
    """The ids of every sentence that the translator's training held out."""
    tokenizer = trained_translator().tokenizer
    split = grammar.splits(N_GRAMMAR, N_TESTS, seed=0)
    pairs = [*split.unseen, *split.combinations]
    return [[*tokenizer.encode(pair.source), tokenizer.eos_id] for pair in pairs]


@pytest.fixture(scope="module", params=[8, pytest.param(1, marks=pytest.mark.everything)])
def cases(request):
    """Everything that the page is asked, at once: a node of its own for each would be slow.

    Of the held-out sentences, `make test` takes one in eight.
    """
    draw, generator = random.Random(0), torch.Generator().manual_seed(0)
    rows = 3 * torch.randn(300, 50, generator=generator)
    rows[::3, 7] = -torch.inf
    samples = [{"logits": row, "knobs": drawn_knobs(draw, row)} for row in rows]
    probabilities = [0.5, 0.0, 0.25, 0.25]
    sources = held_out_sources()[:: request.param]
    return {
        "sources": sources,
        "searched": sources[::BEAMS],
        "longest": LONGEST,
        "width": WIDTH,
        "samples": samples,
        "draws": [[probabilities, uniform] for uniform in (0.0, 0.4, 0.6, 0.8, 0.99)],
        "rankings": [[[1.0, 3.0, 3.0 + 1e-6, -2.0], 3], [[-1.0, -1.0 + 1e-7, -3.0], 9]],
    }


@pytest.fixture(scope="module")
def page(cases, tmp_path_factory):
    """The page's answers, and the probabilities that it computed."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "translator.safetensors").write_bytes(TRANSLATOR.read_bytes())
    names = {"temperature": "temperature", "top_k": "topK", "top_p": "topP"}
    samples = [
        {
            "logits": sample["logits"].clamp(min=-1e30).tolist(),  # JSON has no infinity
            "knobs": {names[name]: value for name, value in sample["knobs"].items()},
        }
        for sample in cases["samples"]
    ]
    return in_node("write.js", folder, cases | {"samples": samples})


def test_greedy_translations_of_held_out_sentences(cases, page):
    model = trained_translator().model
    ours = generate(model, cases["sources"], LONGEST, distributions=True)
    for written, ids, finished, rows in zip(
        page[0]["written"], ours.ids, ours.finished, ours.distributions, strict=True
    ):
        first, second = rows.topk(2).values.log().unbind(dim=-1)
        tie = (first - second).min() < CLOSE
        assert tie or (written["ids"], written["finished"]) == (ids, finished)


def test_a_draft_changes_no_text(page):
    for written, drafted in zip(page[0]["written"], page[0]["drafted"], strict=False):
        assert [draft["ids"] for draft in drafted] == [written["ids"]] * 5
        assert [draft["foreseen"] for draft in drafted] == [True, False, False, False, False]


def kept(tree: Tree) -> list[list[tuple]]:
    return [[(one.parent, one.token, one.finished) for one in step if one.kept] for step in tree]


def test_beam_search_of_held_out_sentences(cases, page):
    model, differing = trained_translator().model, 0
    ours = generate(model, cases["searched"], LONGEST, Beam(WIDTH), trees=True)
    totals = ours.sentence_log_probabilities
    for beam, ids, total, tree in zip(
        page[0]["searched"], ours.ids, totals, ours.trees, strict=True
    ):
        theirs = [
            [(c["parent"], c["token"], c["finished"]) for c in step if c["kept"]]
            for step in beam["tree"]
        ]
        differing += theirs != kept(tree)
        scores = [
            length_normalized(log_p, len(written), 0.6)
            for log_p, written in ((beam["logProbability"], beam["ids"]), (total, ids))
        ]
        assert beam["ids"] == ids or abs(scores[0] - scores[1]) < CLOSE
    assert differing <= 0.01 * len(ours.ids)  # two texts may be as likely as each other


def test_a_tree_has_the_candidates_that_were_dropped_too(cases, page):
    model, sources = trained_translator().model, cases["searched"][:20]
    ours = generate(model, sources, LONGEST, Beam(WIDTH), trees=True)
    for beam, tree in zip(page[0]["searched"], ours.trees, strict=False):
        for theirs, level in zip(beam["tree"], tree, strict=True):
            numbers = [[c["logProbability"] for c in theirs], [c.log_probability for c in level]]
            torch.testing.assert_close(*map(torch.tensor, numbers), atol=1e-3, rtol=1e-3)


def test_knobs_give_the_packages_probabilities(cases, page):
    ours = [Sample(**s["knobs"]).probabilities(s["logits"]) for s in cases["samples"]]
    theirs = torch.from_numpy(page[1]).view(len(ours), -1)
    torch.testing.assert_close(theirs, torch.stack(ours), atol=1e-6, rtol=0)


def test_a_token_is_drawn_where_the_sum_passes_the_number(page):
    assert page[0]["drawn"] == [0, 0, 2, 3, 3]


def test_equals_are_named_in_their_order(cases, page):
    ours = [from_largest(torch.tensor(values), count) for values, count in cases["rankings"]]
    assert page[0]["largest"] == ours
