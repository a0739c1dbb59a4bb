"""A config that breaks a rule is refused with field, value and rule; a good one stays as it is."""

import copy
import dataclasses
import pickle

import pytest

from tests.parity import small_config
from transformer_lesson.model.config import ModelConfig

pytestmark = pytest.mark.usefixtures("unchecked")

SIZES = ("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len")
SWITCHES = ("tie_embeddings", "bias", "scale_embedding")
BAD_SIZES = [(name, value) for name in SIZES for value in (0, -1, 2.0, "8", None, True)]
BAD_PROBABILITIES = [
    (name, value)
    for name in ("dropout", "attention_dropout", "feed_forward_dropout")
    for value in (-0.1, 1, 1.0, 1.5, float("nan"), "0.1", None, False)
]
BAD_CHOICES = [
    (name, value)
    for name in ("norm_position", "activation", "positions", "norm")
    for value in ("", "Pre", "Swish", None, 0, ["pre"])
]


def assert_refused(field: str, value, rule: str, **changes) -> None:
    with pytest.raises(ValueError) as caught:
        small_config(**{field: value} | changes)
    message = str(caught.value)
    assert message.startswith(f"{field} is {value!r}, but it must be ") and rule in message


@pytest.mark.parametrize(("field", "value"), BAD_SIZES)
def test_a_size_is_an_integer_of_at_least_1(field, value):
    assert_refused(field, value, "an int >= 1")


@pytest.mark.parametrize(("field", "value"), BAD_PROBABILITIES)
def test_dropout_is_a_probability_below_1(field, value):
    assert_refused(field, value, "a probability in [0, 1)")


@pytest.mark.parametrize(("field", "value"), BAD_CHOICES)
def test_an_unknown_option_is_answered_with_the_known_ones(field, value):
    rules = {
        "norm_position": "one of pre, post",
        "activation": "one of relu, gelu, gelu_tanh, swish, swiglu",
        "positions": "one of sinusoidal, learned, rotary",
        "norm": "one of layer, rms",
    }
    assert_refused(field, value, rules[field])


@pytest.mark.parametrize("field", SWITCHES)
@pytest.mark.parametrize("value", [1, 0, None, "yes"])
def test_a_switch_is_true_or_false(field, value):
    assert_refused(field, value, "True or False")


@pytest.mark.parametrize("value", [-1, 13, 0.0, "0", True])
def test_pad_id_is_none_or_in_the_vocabulary(value):
    in_12 = "id from 0 to vocab_size - 1 = 12"
    assert_refused("pad_id", value, f"None or an {in_12 if value == 13 else 'int >= 0'}")


@pytest.mark.parametrize(
    ("value", "rule", "changes"),
    [
        (10, "divisible by n_heads = 4", {"n_heads": 4}),
        (7, "even with sinusoidal positions", {"n_heads": 7}),
    ],
)
def test_d_model_fits_heads_and_positions(value, rule, changes):
    assert_refused("d_model", value, rule, **changes)


@pytest.mark.parametrize("field", ["n_kv_heads", "attention_window"])
@pytest.mark.parametrize("value", [0, -1, 2.0, "2", True])
def test_an_optional_size_is_none_or_an_integer(field, value):
    assert_refused(field, value, "None or an int >= 1")


@pytest.mark.parametrize("field", ["norm_epsilon", "rotary_base"])
@pytest.mark.parametrize("value", [0, -1.0, None, "1", float("inf"), True])
def test_an_epsilon_or_a_base_is_positive(field, value):
    assert_refused(field, value, "a number > 0")


@pytest.mark.parametrize("value", [-1, 1.0, "1", True])
def test_bos_id_is_none_or_an_id(value):
    assert_refused("bos_id", value, "None or an int >= 0")
    assert small_config(bos_id=None).bos_id is None


@pytest.mark.parametrize("value", [2, None, [-1], (-1,), (2, 1.0), (True,), "2"])
def test_eos_ids_are_a_tuple_of_ids(value):
    assert_refused("eos_ids", value, "a tuple of any values, each an int >= 0")
    assert small_config(eos_ids=()).eos_ids == ()
    assert small_config(eos_ids=[2, 3]).eos_ids == (2, 3)  # as JSON keeps it


@pytest.mark.parametrize("value", [2, 4])
def test_query_heads_share_key_heads_evenly(value):
    assert_refused("n_kv_heads", value, "a divisor of n_heads = 3", n_heads=3)


def test_rotary_positions_need_an_even_d_head():
    with pytest.raises(ValueError, match="d_head is 3, but it must be even with rotary"):
        small_config(d_model=6, n_heads=2, positions="rotary")


def test_odd_sizes_are_fine_with_learned_positions():
    assert small_config(d_model=15, n_heads=3, positions="learned").d_head == 5


def test_a_misspelt_field_is_answered_with_the_nearest_one():
    with pytest.raises(ValueError, match="ModelConfig: no field 'n_head'; did you mean n_heads?"):
        small_config(n_head=4)
    with pytest.raises(ValueError, match="no field 'droput'; did you mean dropout?"):
        dataclasses.replace(small_config(), droput=0.2)
    with pytest.raises(ValueError, match="no field 'x'; it has vocab_size, d_model, n_heads, n_la"):
        small_config(x=1)


def test_a_field_without_a_default_must_be_given():
    with pytest.raises(TypeError, match="max_len"):
        ModelConfig(10, 8, 2, 1, 16)


def test_edges_of_the_rules_are_allowed():
    config = small_config(vocab_size=1, n_layers=1, pad_id=0, dropout=0, attention_dropout=0.999)
    assert (config.pad_id, config.dropout, config.attention_dropout) == (0, 0, 0.999)


def test_defaults_are_those_of_the_docstring():
    config = ModelConfig(10, 8, 2, 1, 16, 5)
    assert dataclasses.astuple(config)[6:] == (
        *(0.1, 0.0, 0.0, "pre", "relu", "sinusoidal"),
        *(True, None, True),
        *("layer", 1e-5, None, None, 10000.0),
        *(True, 1, (2,)),
    )


def test_a_config_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        small_config().d_model = 16


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
def test_a_copy_is_equal_and_hashes_alike(duplicate):
    config = small_config(pad_id=0)
    assert duplicate(config) == config and hash(duplicate(config)) == hash(config)
