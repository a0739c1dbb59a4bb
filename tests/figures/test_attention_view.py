"""Attention views show what a model recorded, always in the same bytes, and ask for no network."""

import html
import json
import re
import warnings
from types import SimpleNamespace

import ipywidgets
import numpy as np
import pytest
import torch
import transformers
from lxml.html import document_fromstring

from tests.figures.views import SHOWN
from tests.parity import randomized, small_config
from transformer_lesson.figures.attention_view import view as attention_view
from transformer_lesson.figures.attention_view.view import head_view, model_view
from transformer_lesson.generation import Generation
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer

SOURCE = ["The", "quick", "brown", "fox", "<eos>"]
TARGET = ["Der", "Fuchs", "<eos>"]
SOURCE_IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
TARGET_IDS = torch.tensor([[2, 7, 1], [8, 2, 8]])
VIEWS = [head_view, model_view]


def frame_page(view) -> str:
    frame = document_fromstring(view.html).find(".//iframe")
    return frame.get("srcdoc")


def data(view) -> dict:
    return json.loads(re.search(r"const VIEW = (.*);\n", frame_page(view))[1])


def weights(queries: int = 5, keys: int = 5, layers: int = 2, heads: int = 3) -> list[torch.Tensor]:
    return [torch.rand(2, heads, queries, keys).softmax(-1) for _ in range(layers)]


def recorded(model, *ids):
    with record(randomized(model).eval()) as run:
        model(*ids)
    return run


@pytest.fixture
def run():
    return recorded(EncoderDecoderTransformer(small_config()), SOURCE_IDS, TARGET_IDS)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("sentence", [0, 1])
def test_a_view_holds_the_recorded_weights_and_words_of_one_sentence(run, view, sentence):
    shown = data(view(run, SOURCE, TARGET, sentence=sentence))["attention"]
    expected = {
        "encoder": ("encoder.{}.self_attention.weights", SOURCE, SOURCE),
        "decoder": ("decoder.{}.self_attention.weights", TARGET, TARGET),
        "cross": ("decoder.{}.cross_attention.weights", TARGET, SOURCE),
    }
    assert [part["name"] for part in shown] == list(expected)
    for part, (name, queries, keys) in zip(shown, expected.values(), strict=True):
        truth = torch.stack([run[name.format(i)][sentence] for i in range(2)])
        torch.testing.assert_close(torch.tensor(part["attn"]), truth, atol=6e-5, rtol=0)
        assert (part["left_text"], part["right_text"]) == (queries, keys)


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_one_part_is_shown_alone_and_without_a_menu(run, part):
    view = head_view(run, SOURCE, None if part == "encoder" else TARGET, part=part)
    (shown,) = data(view)["attention"]
    assert shown["name"] == part and 'id="filter"' not in frame_page(view)
    assert shown["left_text"] == (SOURCE if part == "encoder" else TARGET)


def test_a_list_of_tensors_is_shown_layer_by_layer_and_with_target_words_as_cross_attention():
    layers = weights()
    layers[0][:, :, 0] = 0  # a row with every key masked
    (shown,) = data(head_view(layers, SOURCE))["attention"]
    truth = torch.stack([layer[0] for layer in layers])
    torch.testing.assert_close(torch.tensor(shown["attn"]), truth, atol=6e-5, rtol=0)
    assert shown["attn"][0][0][0] == [0.0] * 5
    (shown,) = data(model_view(weights(3, 5), SOURCE, TARGET))["attention"]
    assert (shown["left_text"], shown["right_text"]) == (TARGET, SOURCE)


def test_what_people_hold_is_shown_as_a_list_of_tensors_is(unchecked):
    layers = weights()
    right = data(head_view(layers, SOURCE))["attention"]
    arrays = [layer.numpy() for layer in layers]
    for same in (
        arrays,
        np.stack(arrays),
        torch.stack(layers),
        [layer[0] for layer in layers],
        {"attentions": tuple(layers)},
        SimpleNamespace(attentions=layers),
    ):
        assert data(head_view(same, SOURCE))["attention"] == right
    one = data(head_view(layers[:1], SOURCE))["attention"]
    assert data(head_view(layers[0], SOURCE))["attention"] == one
    assert data(model_view(layers[0][0], np.array(SOURCE)))["attention"] == one


def test_outputs_of_the_library_are_shown_by_their_parts():
    config = transformers.MarianConfig(
        vocab_size=20, d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8, eos_token_id=1,
        decoder_start_token_id=0, pad_token_id=0, attn_implementation="eager",
    )  # fmt: skip
    marian = transformers.MarianModel(config).eval()
    ids = {"input_ids": SOURCE_IDS[:1], "decoder_input_ids": TARGET_IDS[:1]}
    output = marian(**ids, output_attentions=True)
    shown = data(head_view(output, SOURCE, TARGET))["attention"]
    assert [part["name"] for part in shown] == ["encoder", "decoder", "cross"]
    truth = torch.stack(output.encoder_attentions)[:, 0].detach()
    torch.testing.assert_close(torch.tensor(shown[0]["attn"]), truth, atol=6e-5, rtol=0)
    alone = marian.encoder(ids["input_ids"], output_attentions=True)
    assert data(head_view(alone, SOURCE))["attention"][0]["attn"] == shown[0]["attn"]
    with pytest.raises(ValueError, match="output_attentions=True"):
        head_view(marian.encoder(ids["input_ids"]), SOURCE)


@pytest.mark.parametrize("view", VIEWS)
def test_a_notebook_stores_a_picture_and_a_widget_that_shows_the_frame(view, monkeypatch):
    shown, widget, kind = [], ipywidgets.HTML(), "application/vnd.jupyter.widget-view+json"
    monkeypatch.setattr(ipywidgets, "HTML", lambda text, **_: shown.append(text) or widget)
    layers = weights()
    made, again = view(layers, SOURCE), view([layer.clone() for layer in layers], list(SOURCE))
    bundle, _ = made._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "image/png", kind}
    assert bundle["image/png"].startswith(b"\x89PNG") and len(bundle["image/png"]) < 300_000
    assert shown == [made.html] and bundle[kind]["model_id"] == widget.model_id
    assert made.picture.axes[0].axison == (view is model_view)
    assert made.html == again.html and made.picture.png() == again.picture.png()


@pytest.mark.parametrize("view", VIEWS)
def test_the_page_names_nothing_to_fetch_and_may_only_run_scripts(view):
    made = view(weights(), SOURCE)
    assert ' sandbox="allow-scripts" ' in made.html and made.html.count("<") == 2
    assert html.unescape(made.html).endswith('</body></html>\n"></iframe>')
    page = frame_page(made)
    tree = document_fromstring(page)
    assert tree.xpath("//*[@src or @href]") == [] and len(tree.xpath("//script")) == 5
    hosts = set(re.findall(r"https?://([\w.-]+)", page))
    assert hosts <= {"www.w3.org", "d3js.org", "github.com"}  # XML namespaces and credits
    assert "cdn" not in page.lower() and "require.config" not in page
    (policy,) = tree.xpath("//meta[@http-equiv]/@content")
    assert policy.startswith("default-src 'none'; script-src 'nonce-")


@pytest.mark.parametrize("view", VIEWS)
def test_no_word_can_leave_the_data(view):
    made = view(weights(len(SHOWN), len(SHOWN)), list(SHOWN))
    line = re.search(r"const VIEW = (.*);\n", frame_page(made))[1]
    assert line.isascii() and not set("<>&") & set(line)
    assert data(made)["attention"][0]["left_text"] == list(SHOWN.values())
    assert len(document_fromstring(frame_page(made)).xpath("//script")) == 5


@pytest.mark.parametrize("view", VIEWS)
def test_words_outside_the_font_warn_nobody(view):
    made = view(weights(), ["$x_1$", "猫", "👩\u200d🔬", "שלום", "\ud800"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bundle, _ = made._repr_mimebundle_()
    assert caught == [] and bundle["image/png"]


BAD = {
    r"holds 0 layers, and some hold no weights: .* attn_implementation='eager'": [()],
    r"a list for each step, as generate returns it: call the model once": [[weights(), weights()]],
    r"of type Generation, which holds no weights": [Generation([], [], [])],
    r"holds a str where a layer's weights should be": [["a", "b"]],
    r"an output without attentions": [SimpleNamespace(logits=1, attentions=None)],
    r"tokens are 'The cat', but must be a list of words": [weights(), "The cat"],
    r"layer 0 has weights of shape \(5, 5\): pass \(batch, head": [[weights()[0][0, 0]]],
    r"shape \(2, 3, 5, 5\), but there are 4 query and 4 key tokens": [weights(), SOURCE[1:]],
    r"0, 0\) query and key tokens: give at least one": [weights(), []],
    r"token 7 is not text": [weights(), [7, 1, 2, 3, 4]],
    r"adds up to nan, not 1": [[torch.full((1, 1, 5, 5), torch.nan)]],
    r"adds up to 1.000, not 1": [[torch.tensor([[[[1.5, -0.5], [1.0, 0.0]]]])], SOURCE[:2]],
    r"layers of self differ in batch or heads": [weights() + weights(heads=4)],
    r"147000 weights, more than the 100000 lines": [weights(70, 70, 10), ["a"] * 70],
}
BAD_OPTIONS = {
    r"sentence 2 does not exist here: choose from \[0, 1\]": {"sentence": 2},
    r"part 'cross' does not exist here: choose from \['self'\]": {"part": "cross"},
    r"layer 2 does not exist here: choose from \[0, 1\]": {"layer": 2},
    r"head 3 does not exist here: choose from \[0, 1, 2\]": {"heads": [0, 3]},
}


@pytest.mark.parametrize("message", BAD | BAD_OPTIONS)
def test_bad_input_is_refused_with_a_sentence(unchecked, message):
    attention, *tokens = BAD.get(message, [weights()])
    options = BAD_OPTIONS.get(message, {})
    for view in VIEWS if options.keys() <= {"sentence", "part"} else [head_view]:
        with pytest.raises(ValueError, match=message):
            view(attention, *(tokens or [SOURCE]), **options)


def test_two_texts_need_the_words_of_both_and_stacks_of_one_size_and_one_text_its_own(run):
    with pytest.raises(ValueError, match="target_tokens is missing.*or part='encoder'"):
        head_view(run, SOURCE)
    run = recorded(DecoderOnlyTransformer(small_config()), SOURCE_IDS)
    with pytest.raises(ValueError, match="reads one text: leave it out"):
        head_view(run, SOURCE, TARGET)
    source, target = small_config(), small_config(n_layers=3)
    run = recorded(EncoderDecoderTransformer(source, target), SOURCE_IDS, TARGET_IDS)
    with pytest.raises(ValueError, match=r"the parts differ.*layers \[0, 1, 2\].*part='cross'"):
        head_view(run, SOURCE, TARGET)
    assert len(data(head_view(run, SOURCE, TARGET, part="cross"))["attention"][0]["attn"]) == 3


def test_another_bertviz_is_named(monkeypatch):
    monkeypatch.setitem(attention_view.MENDS, "head_view", {"no such line": ""})
    with pytest.raises(RuntimeError, match=r"another head_view.js than 1.4.1"):
        head_view(weights(), SOURCE)
