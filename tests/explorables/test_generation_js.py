"""The page writes what the package writes: greedy, by beam search, and with the same knobs."""

import random

import pytest
import torch

from tests.explorables.page_modules import in_node
from transformer_lesson.checkpoints.translator import TRANSLATOR, trained_translator
from transformer_lesson.generation import Beam, Sample, generate, length_normalized
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


@pytest.fixture(scope="module", params=[96, pytest.param(1, marks=pytest.mark.everything)])
def cases(request):
    """Everything that the page is asked, at once: a node of its own for each would be slow.

    Of the sentences that the translator's training held out, `make test` takes one in 96.
    """
    draw, generator = random.Random(0), torch.Generator().manual_seed(0)
    rows = 3 * torch.randn(300, 50, generator=generator)
    rows[::3, 7] = -torch.inf
    tokenizer, split = trained_translator().tokenizer, grammar.splits(N_GRAMMAR, N_TESTS, seed=0)
    pairs = [*split.unseen, *split.combinations][:: request.param]
    sources = [[*tokenizer.encode(pair.source), tokenizer.eos_id] for pair in pairs]
    uniforms = (0.0, 0.4, 0.6, 0.8, 0.99)
    return {
        "sources": sources,
        "searched": sources[::BEAMS],
        "longest": LONGEST,
        "width": WIDTH,
        "samples": [{"logits": row, "knobs": drawn_knobs(draw, row)} for row in rows],
        "draws": [[[0.5, 0.0, 0.25, 0.25], uniform] for uniform in uniforms],
        "rankings": [[[1.0, 3.0, 3.0 + 1e-6, -2.0], 3], [[-1.0, -1.0 + 1e-7, -3.0], 9]],
    }


@pytest.fixture(scope="module")
def page(cases, tmp_path_factory):
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


def test_greedy_translations_of_held_out_sentences_also_with_a_draft(cases, page):
    model, answers = trained_translator().model, page[0]
    ours = generate(model, cases["sources"], LONGEST, distributions=True)
    all_ = zip(answers["written"], ours.ids, ours.finished, ours.distributions, strict=True)
    for written, ids, finished, rows in all_:
        first, second = rows.topk(2).values.log().unbind(dim=-1)
        tie = (first - second).min() < CLOSE
        assert tie or (written["ids"], written["finished"]) == (ids, finished)
    for written, drafted in zip(answers["written"], answers["drafted"], strict=False):
        assert [draft["ids"] for draft in drafted] == [written["ids"]] * 5
        assert [draft["foreseen"] for draft in drafted] == [True, False, False, False, False]


def test_beam_search_of_held_out_sentences_and_what_it_dropped(cases, page):
    model, differing = trained_translator().model, 0
    ours = generate(model, cases["searched"], LONGEST, Beam(WIDTH), trees=True)
    texts = zip(ours.ids, ours.sentence_log_probabilities, strict=True)
    for beam, tree, (ids, total) in zip(page[0]["searched"], ours.trees, texts, strict=True):
        theirs = [
            [(c["parent"], c["token"], c["finished"]) for c in step if c["kept"]]
            for step in beam["tree"]
        ]
        kept = [[(c.parent, c.token, c.finished) for c in step if c.kept] for step in tree]
        differing += theirs != kept
        scores = [
            length_normalized(log_p, len(written), 0.6)
            for log_p, written in ((beam["logProbability"], beam["ids"]), (total, ids))
        ]
        assert beam["ids"] == ids or abs(scores[0] - scores[1]) < CLOSE
    assert differing <= 0.01 * len(ours.ids)  # two texts may be as likely as each other
    for beam, tree in zip(page[0]["searched"][:20], ours.trees[:20], strict=True):
        for theirs, level in zip(beam["tree"], tree, strict=True):
            numbers = [[c["logProbability"] for c in theirs], [c.log_probability for c in level]]
            torch.testing.assert_close(*map(torch.tensor, numbers), atol=1e-3, rtol=1e-3)


def test_knobs_draws_and_rankings_are_the_packages(cases, page):
    ours = [Sample(**s["knobs"]).probabilities(s["logits"]) for s in cases["samples"]]
    theirs = torch.from_numpy(page[1]).view(len(ours), -1)
    torch.testing.assert_close(theirs, torch.stack(ours), atol=1e-6, rtol=0)
    assert page[0]["drawn"] == [0, 0, 2, 3, 3]  # where the sum passes the number
    rankings = [from_largest(torch.tensor(values), count) for values, count in cases["rankings"]]
    assert page[0]["largest"] == rankings
