"""A model of the library gives the values that our model with its weights gives, by our names."""

import pytest
import torch
import transformers

from tests.checkpoints.every_family import NAMES, TWO_TEXTS, inputs, made
from transformer_lesson.checkpoints import from_pretrained
from transformer_lesson.model.hooks import hook_point_names, record

NOT_THERE = ("queries", "keys", "values", "scores", "tokens")
"""What no module of the library returns or reads."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_values_have_our_names_and_are_our_models(name):
    theirs = made(name)
    ours, given = from_pretrained(theirs), inputs(name)
    usual = theirs.config._attn_implementation
    with record(theirs) as run:
        theirs(given[0], **{"decoder_input_ids": given[1]} if name in TWO_TEXTS else {})
    assert theirs.config._attn_implementation == usual
    with record(ours) as expected:
        ours(*given)
    names = [n for n in hook_point_names(ours) if n.rpartition(".")[2] not in NOT_THERE]
    missing = set(names) - set(run)
    allowed = {n for n in names if "after_" in n or n.endswith("embedding.output")}
    allowed |= {n for n in names if name == "OPT" and n.endswith("hidden")}
    assert not set(run) - set(names) and missing <= allowed
    for key, value in run.items():
        largest = max(1.0, value.abs().max().item())
        torch.testing.assert_close(value, expected[key], rtol=0, atol=3e-6 * largest)


@pytest.mark.parametrize("name", ["gpt2", "Qwen 3", "bert"])
def test_the_stream_has_all_of_its_places(name):
    theirs = made(name)
    with record(theirs) as run:
        theirs(torch.tensor([[5, 6, 7]]))
    stack = "encoder" if name == "bert" else "decoder"
    stream = [n for n in run if n.endswith(("output", "after_attention"))]
    blocks = range(theirs.config.num_hidden_layers)
    places = [f"{stack}.{i}.{place}" for i in blocks for place in ("after_attention", "output")]
    assert stream == ["embedding.output", *places]


def test_what_cannot_be_recorded_or_replaced_is_said_with_the_way_out():
    theirs = made("gpt2")
    refused = "replace: a GPT2LMHeadModel is the library's, in which .* by `from_pretrained`"
    with pytest.raises(ValueError, match=refused), record(theirs, {"logits": lambda x: x}):
        pass
    config = transformers.GPTJConfig(vocab_size=9, n_embd=8, n_layer=1, n_head=2, rotary_dim=2)
    other = transformers.GPTJForCausalLM(config)
    with pytest.raises(ValueError, match="model_type is 'gptj', but only"), record(other):
        pass
    assert not theirs._forward_hooks and not theirs._forward_pre_hooks
