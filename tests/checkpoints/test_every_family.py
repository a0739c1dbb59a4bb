"""What looks into a model takes one of every family: views, lens, interventions, an explorable."""

import copy

import pytest
import torch

from tests.checkpoints.every_family import NAMES, TWO_TEXTS, WRITERS, inputs, made
from transformer_lesson.checkpoints import from_pretrained
from transformer_lesson.explorables import AnswerExplorer
from transformer_lesson.explorables.in_page import bare_weights, own_weights
from transformer_lesson.figures.attention_view import head_view, model_view
from transformer_lesson.interpretability.head_matrices import head_matrices
from transformer_lesson.interpretability.interventions import (
    heads_of,
    patching_grid,
    stream_sites,
    without_heads,
)
from transformer_lesson.model.hooks import record
from transformer_lesson.text.tokenizers import BytePairTokenizer

EACH = [name for name in NAMES if "," not in name and "base" not in name]
WORDS = BytePairTokenizer.train(["the value of the thing is the other thing"], 275)


class Unrotated(torch.nn.Module):
    def forward(self, heads, start):
        return heads


@pytest.fixture(scope="module", params=EACH)
def family(request):
    torch.manual_seed(3)
    return request.param, from_pretrained(made(request.param))


@pytest.mark.slow
@torch.no_grad()
def test_head_views_take_what_was_recorded_and_heads_can_be_removed(family):
    name, model = family
    given = inputs(name)
    with record(model) as run:
        whole = model(*given)
    words = [list("abcdefghi"), list("abcde")][: len(given)]
    part = "cross" if name in TWO_TEXTS else None
    for view in (head_view, model_view):
        assert view(run, *words, part=part)._repr_mimebundle_()
    heads = heads_of(model)
    stacks = ("source_config", "config") if name in TWO_TEXTS else ("config",)
    expected = sum(
        getattr(model, stack).n_layers * getattr(model, stack).n_heads for stack in stacks
    )
    if name in TWO_TEXTS:
        expected += model.config.n_layers * model.config.n_heads  # cross-attention
    assert len(heads) == expected
    with without_heads(model, heads[:1]) as without:
        assert not torch.equal(model(*given), whole)
    attention, number = heads[0]
    assert (without[f"{attention}.heads"][:, number] == 0).all()


@pytest.mark.slow
@torch.no_grad()
def test_the_lens_reads_the_stream_after_every_block_and_patching_finds_it(family):
    name, model = family
    if "bert" in name.lower():
        pytest.skip("an encoder has no next token")
    given = inputs(name)
    with record(model) as run:
        logits = model(*given)
    last, stream = len(model.decoder) - 1, [n for _, n, _ in stream_sites(model, "decoder")]
    assert torch.equal(model.read_out(run[f"decoder.{last}.output"]), logits)
    for point in stream:
        assert model.read_out(run[point]).shape == logits.shape
    clean, corrupted = ([part[row : row + 1] for part in given] for row in (0, 1))
    if name in TWO_TEXTS:
        corrupted[0] = clean[0]
    sites = stream_sites(model, "decoder")
    grid = patching_grid(
        model, tuple(clean), tuple(corrupted), sites, lambda logits: logits[:, -1, 5]
    )
    assert grid.shape == (last + 2, given[-1].size(1)) and grid[-1, :-1].abs().max() < 1e-4
    assert abs(grid[-1, -1] - 1) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in WRITERS if name in EACH])
def test_the_answer_explorer_takes_it(name):
    model = from_pretrained(made(name))
    explorer = AnswerExplorer(model, WORDS, [5, 6, 7, 8], max_new_tokens=5)
    assert explorer.shape == [model.config.n_layers, model.config.n_heads]
    assert len(explorer.tokens) == 4 + len(explorer.choices)


@pytest.mark.slow
@torch.no_grad()
def test_a_heads_matrices_give_its_scores_and_what_it_hands_on(family):
    name, model = family
    attention, number = heads_of(model)[-2]
    layer = copy.deepcopy(model.get_submodule(attention))
    n = layer.W_Q.in_features
    for projection in (layer.W_Q, layer.W_K, layer.W_V, layer.W_O):
        if projection.bias is not None:
            projection.bias.zero_()
    layer.relative, layer.score_cap, layer.norm_Q, layer.norm_K = None, None, None, None
    layer.rotate = Unrotated()
    x = torch.randn(1, 6, n)
    with record(layer) as run:
        layer(x, x, x)
    head = head_matrices(layer, number)
    scores, scale = x @ head.QK @ x.mT, run["scores"].abs().max()
    assert (run["scores"][:, number] - scores).abs().max() < 1e-5 * scale
    expected = run["weights"][:, number] @ x @ head.W_V
    assert (run["heads"][:, number] - expected).abs().max() < 1e-5 * expected.abs().max()


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("Qwen 3", "head_size is 12, but a page computes only with None"),
        ("OLMo 2", "norm_position is 'output', but a page computes only with 'post' or 'pre'"),
        ("GPT-NeoX", "d_rotary is 2, but a page computes only with None"),
        ("1.0", "positions is 'relative', but a page computes only with 'sinusoidal' or 'lear"),
    ],
)
def test_a_page_refuses_what_it_would_compute_otherwise(name, refusal):
    model = from_pretrained(made(name))
    with pytest.raises(ValueError, match=refusal):
        own_weights(model, WORDS)
    if name not in TWO_TEXTS:
        with pytest.raises(ValueError, match=refusal):
            bare_weights(model)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_page_takes_what_it_computes(name):
    assert own_weights(from_pretrained(made(name)), WORDS).data
