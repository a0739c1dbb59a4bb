"""A config that breaks a rule is refused with field, value and rule; a good one stays as it is."""

import dataclasses

import pytest

from tests.parity import small_config
from transformer_lesson.model.config import ModelConfig

pytestmark = pytest.mark.usefixtures("unchecked")

NAN, INFINITY = float("nan"), float("inf")
SIZES = ("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len")
RULES = {  # fields, what they must be, and what is not that
    (*SIZES, "relative_buckets", "relative_distance"): (
        "an int >= 1",
        (0, -1, 2.0, "8", None, True),
    ),
    ("n_kv_heads", "attention_window", "head_size", "d_rotary"): (
        "None or an int >= 1",
        (0, -1, 2.0, "2", True),
    ),
    ("query_scale", "score_cap", "logit_cap", "window_rotary_base"): (
        "None or a number > 0",
        (0, -1.0, "1", INFINITY, True),
    ),
    ("layers_without_window", "layers_without_positions"): (
        "a tuple of any values, each an int >= 0",
        (2, None, (-1,), (1.0,), "2"),
    ),
    ("rotary_divisors",): ("a tuple of any values, each a number > 0", (2.0, None, (0.0,), ("1",))),
    ("dropout", "attention_dropout", "feed_forward_dropout"): (
        "a probability in [0, 1)",
        (-0.1, 1, 1.0, 1.5, NAN, "0.1", None, False),
    ),
    (
        *("tie_embeddings", "bias", "scale_embedding", "output_bias", "parallel"),
        "feed_forward_bias",
    ): ("True or False", (1, 0, None, "yes")),
    ("norm_epsilon", "rotary_base"): ("a number > 0", (0, -1.0, None, "1", INFINITY, True)),
    ("pad_id", "bos_id"): ("None or an int >= 0", (-1, 0.0, "0", True)),
    ("eos_ids",): (
        "a tuple of any values, each an int >= 0",
        (2, None, [-1], (-1,), (2, 1.0), (True,), "2"),
    ),
}
CHOICES = {
    "norm_position": "one of pre, post, output, both",
    "activation": "one of relu, gelu, gelu_tanh, swish, swiglu, geglu",
    "qk_norm": "one of none, head, all",
    "positions": "one of sinusoidal, learned, rotary, relative",
    "norm": "one of layer, rms",
}
RULES |= {(name,): (rule, ("", "Pre", "Swish", None, 0, ["pre"])) for name, rule in CHOICES.items()}
ROTARY = {"positions": "rotary", "d_model": 12, "n_heads": 3}
RELATIVE = {"positions": "relative"}
CASES = [(f, v, rule) for fields, (rule, bad) in RULES.items() for f in fields for v in bad]


def assert_refused(field: str, value, rule: str, **changes) -> None:
    with pytest.raises(ValueError) as caught:
        small_config(**{field: value} | changes)
    message = str(caught.value)
    assert message.startswith(f"{field} is {value!r}, but it must be ") and rule in message


@pytest.mark.parametrize(("field", "value", "rule"), CASES)
def test_a_bad_value_is_refused(field, value, rule):
    assert_refused(field, value, rule)


def test_every_field_has_a_rule():
    assert {f for fields in RULES for f in fields} == {
        f.name for f in dataclasses.fields(ModelConfig)
    }


@pytest.mark.parametrize(
    ("field", "value", "rule", "changes"),
    [
        ("d_model", 10, "divisible by n_heads = 4", {"n_heads": 4}),
        ("d_model", 7, "even with sinusoidal positions", {"n_heads": 7}),
        ("pad_id", 13, "None or an id from 0 to vocab_size - 1 = 12", {}),
        ("n_kv_heads", 2, "a divisor of n_heads = 3", {"n_heads": 3}),
        ("n_kv_heads", 4, "a divisor of n_heads = 3", {"n_heads": 3}),
        ("layers_without_positions", (2,), "numbers of layers, from 0 to 1", ROTARY),
        ("layers_without_positions", (1,), '() unless positions is "rotary"', {}),
        ("rotary_divisors", (2.0,), "() or 2 numbers, one for each pair", ROTARY),
        ("d_rotary", 3, "even with rotary positions", ROTARY),
        ("d_rotary", 6, "None or at most d_head = 4", ROTARY),
        ("layers_without_window", (0,), "() without an attention_window", {}),
        ("window_rotary_base", 7.0, "None without an attention_window", ROTARY),
        ("relative_buckets", 8, '32 unless positions is "relative"', {}),
        ("relative_distance", 64, '128 unless positions is "relative"', ROTARY),
        ("relative_buckets", 6, "a multiple of 4", RELATIVE),
        ("relative_distance", 16, "over relative_buckets / 2 = 16", RELATIVE),
        ("parallel", True, 'False unless norm_position is "pre"', {"norm_position": "post"}),
    ],
)
def test_fields_fit_each_other(field, value, rule, changes):
    assert_refused(field, value, rule, **changes)
    with pytest.raises(ValueError, match="d_head is 3, but it must be even with rotary"):
        small_config(d_model=6, n_heads=2, positions="rotary")


def test_a_misspelt_field_is_answered_with_the_nearest_one_and_a_missing_one_with_its_name():
    with pytest.raises(ValueError, match="ModelConfig: no field 'n_head'; did you mean n_heads?"):
        small_config(n_head=4)
    with pytest.raises(ValueError, match="no field 'droput'; did you mean dropout?"):
        dataclasses.replace(small_config(), droput=0.2)
    with pytest.raises(ValueError, match="no field 'x'; it has vocab_size, d_model, n_heads, n_la"):
        small_config(x=1)
    with pytest.raises(TypeError, match="max_len"):
        ModelConfig(10, 8, 2, 1, 16)


def test_edges_of_the_rules_are_allowed():
    config = small_config(vocab_size=1, n_layers=1, pad_id=0, dropout=0, attention_dropout=0.999)
    assert (config.pad_id, config.dropout, config.attention_dropout) == (0, 0, 0.999)
    config = small_config(bos_id=None, eos_ids=[2, 3])  # a list, as JSON keeps it
    assert (config.bos_id, config.eos_ids) == (None, (2, 3))
    assert small_config(eos_ids=()).eos_ids == ()
    assert small_config(d_model=15, n_heads=3, positions="learned").d_head == 5
    config = small_config(d_model=7, n_heads=2, head_size=6, positions="rotary", n_layers=3)
    assert config.d_head == 6 and config.windows == (None, None, None)
    config = dataclasses.replace(config, attention_window=4, layers_without_window=[1])
    assert config.windows == (4, None, 4)


def test_defaults_are_those_of_the_docstring_and_stay():
    config = ModelConfig(10, 8, 2, 1, 16, 5)
    assert dataclasses.astuple(config)[6:] == (
        *(0.1, 0.0, 0.0, "pre", "relu", "sinusoidal"),
        *(True, None, True),
        *("layer", 1e-5, None, None, 10000.0),
        *(True, 1, (2,)),
        *(None, True, "none", None, None, None, (), (), None, (), None),
        *(False, True, 32, 128),
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.d_model = 16
