"""Other people's weights in our models give other people's logits, or are refused by name."""

import json
import re
from unittest.mock import MagicMock

import pytest
import safetensors.torch
import torch
import transformers
from huggingface_hub import errors

from tests.checkpoints.families import FAMILIES, drawn_fields, inputs_of, library_model
from tests.parity import small_config
from transformer_lesson import checkpoints
from transformer_lesson.checkpoints import compare_layers, from_pretrained, hub, to_transformers
from transformer_lesson.checkpoints.albert import AlbertTransformer
from transformer_lesson.checkpoints.bert import BertTransformer
from transformer_lesson.checkpoints.layer_by_layer import RELATIVE
from transformer_lesson.checkpoints.marian import MarianTransformer
from transformer_lesson.generation import Beam, Greedy, generate
from transformer_lesson.model.transformers import (
    DecoderOnlyTransformer,
    EncoderDecoderTransformer,
    EncoderOnlyTransformer,
)

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
CLASSES = dict.fromkeys(("gpt2", "llama"), DecoderOnlyTransformer)
CLASSES |= dict.fromkeys(("bert", "bert base"), BertTransformer)
CLASSES |= dict.fromkeys(("albert", "albert base"), AlbertTransformer)
CLASSES |= {"marian": MarianTransformer}


def made(family="gpt2", seed=0, **changes):
    return library_model(family, **drawn_fields(family, seed) | changes)


def saved(tmp_path, family="gpt2", **changes):
    theirs = made(family, **changes)
    theirs.save_pretrained(tmp_path)
    return tmp_path, theirs


def assert_same(ours, theirs, inputs=None, family="gpt2", padding=None) -> None:
    """Every layer of both computes the same; `ours` may be what it is read from."""
    ours = ours if isinstance(ours, torch.nn.Module) else from_pretrained(ours)
    inputs = inputs_of(family, theirs, padding) if inputs is None else inputs
    comparison = compare_layers(ours, theirs, inputs, quiet=True)
    assert comparison.first is None, (padding, str(comparison))


def change_tensors(directory, change) -> None:
    """Write what a function makes of the stored tensors by name."""
    path = directory / "model.safetensors"
    tensors = change(safetensors.torch.load_file(path))
    safetensors.torch.save_file(tensors, path)


def edit(directory, **changes) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def their_logits(family, theirs, inputs):
    if family == "marian":
        return theirs(input_ids=inputs[0], decoder_input_ids=inputs[1]).logits
    if "bert" not in family:
        return theirs(*inputs).logits
    output = theirs(inputs[0], token_type_ids=inputs[1])
    return output.last_hidden_state if "base" in family else output.logits


FEW = (0, 1, 6, 7)  # of the seeds: each activation, tied and untied, scaled, shared and not
SEEDS = [pytest.param(n, marks=() if n in FEW else pytest.mark.everything) for n in range(8)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_logits_equal_the_librarys_and_what_a_file_leaves_out_is_its_default(
    family, seed, tmp_path
):
    directory, theirs = saved(tmp_path, family, seed=seed)
    ours = from_pretrained(directory)
    assert type(ours) is CLASSES[family] and not ours.training
    inputs = inputs_of(family, theirs)
    logits = ours.predict_tokens(*inputs) if family in ("bert", "albert") else ours(*inputs)
    expected = their_logits(family, theirs, inputs)
    atol = RELATIVE * expected.abs().max().item()
    torch.testing.assert_close(logits, expected, atol=atol, rtol=0)
    for padding in (None, "right") if family == "marian" else (None, "right", "left"):
        assert_same(ours, theirs, family=family, padding=padding)
    defaults, path = type(theirs.config)().to_dict(), directory / "config.json"
    facts = json.loads(path.read_text())
    told = {name: value for name, value in facts.items() if defaults.get(name, "") != value}
    path.write_text(json.dumps(told | {"model_type": facts["model_type"]}))
    assert len(told) < len(facts) - 2
    assert_same(directory, theirs, family=family)
    assert to_transformers(ours, tmp_path / "new") == tmp_path / "new"
    back, report = type(theirs).from_pretrained(tmp_path / "new", output_loading_info=True)
    pooler = {name for name in report["missing_keys"] if "pooler" not in name}
    assert not pooler and not report["unexpected_keys"] and not report["mismatched_keys"]
    assert_same(ours, back, inputs_of(family, theirs))
    again = from_pretrained(tmp_path / "new")
    assert again.config == ours.config
    assert again.state_dict().keys() == ours.state_dict().keys()
    assert all(torch.equal(again.state_dict()[n], w) for n, w in ours.state_dict().items())


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("family", ["gpt2", "llama", "marian"])
@torch.no_grad()
def test_texts_begin_and_end_where_the_librarys_do(family, several, tmp_path):
    source = torch.randint(4, 35, (1, 7))
    theirs = made(family, bos_token_id=7, forced_eos_token_id=None)
    end = generate(from_pretrained(theirs), source, 20, eos_id=None).ids[0][5]
    ends = [35, end] if several else end
    theirs.config.eos_token_id = theirs.generation_config.eos_token_id = ends
    options = {"bad_words_ids": [[36]]} if family == "marian" else {"pad_token_id": 3}
    mask = torch.ones_like(source)
    options |= {"do_sample": False, "max_new_tokens": 20, "num_beams": 1, "attention_mask": mask}
    expected = theirs.generate(source, **options)[0, 1 if family == "marian" else 7 :].tolist()
    assert expected[-1] == end and len(expected) <= 6
    ours = from_pretrained(theirs)
    assert ours.config.eos_ids == ((35, end) if several else (end,))
    assert ours.config.bos_id == (36 if family == "marian" else 7)
    checkpoints.save_checkpoint(tmp_path / "m.safetensors", ours)
    to_transformers(ours, tmp_path / "theirs")
    written = json.loads((tmp_path / "theirs" / "config.json").read_text())
    assert written["eos_token_id"] == ends
    others = (
        checkpoints.load_checkpoint(tmp_path / "m.safetensors").model,
        from_pretrained(tmp_path / "theirs"),
    )
    for model in (ours, *others):
        for strategy in (Greedy(), Beam(1)):
            text = generate(model, source, 20, strategy)
            assert text.ids[0] == expected and text.finished == [True]


@pytest.mark.parametrize(("end", "ends"), [(None, ()), (99, ()), ([1, 99], (1,)), (-1, ())])
def test_an_end_that_the_vocabulary_lacks_ends_nothing(end, ends, tmp_path):
    directory, _ = saved(tmp_path)
    edit(directory, eos_token_id=end, bos_token_id=end if isinstance(end, int) else None)
    config = from_pretrained(directory).config
    assert (config.bos_id, config.eos_ids) == (None, ends)


def test_a_translation_that_begins_with_nothing_is_refused(tmp_path):
    directory, _ = saved(tmp_path, "marian")
    edit(directory, decoder_start_token_id=None)
    with pytest.raises(ValueError, match="config has no bos_id: say which id a translation"):
        generate(from_pretrained(directory), [5, 6], 3)


def test_a_changed_weight_is_found_where_it_is(capsys):
    theirs = made(n_layer=3)
    ours = from_pretrained(theirs)
    inputs = inputs_of("gpt2", theirs)
    compare_layers(ours, theirs, inputs)
    assert capsys.readouterr().out.startswith("All 12 outputs agree to 3e-05 of ")
    with torch.no_grad():
        ours.decoder[1].feed_forward.W_2.bias[0] += 0.01
    comparison = compare_layers(ours, theirs, inputs)
    assert comparison.first.ours == "decoder.1.feed_forward"
    where = "decoder.1.feed_forward (theirs: transformer.h.1.mlp): by 0.01"
    assert f"first layer that differs is {where}" in capsys.readouterr().out


def test_a_comparison_leaves_modes_and_random_numbers_alone():
    theirs = made().train()
    before = torch.get_rng_state()
    ours = from_pretrained(theirs)
    assert torch.equal(before, torch.get_rng_state())
    theirs.transformer.h[0].eval()
    modes = [part.training for part in theirs.modules()]
    compare_layers(ours, theirs, torch.tensor([[5, 6]]), quiet=True)
    assert [part.training for part in theirs.modules()] == modes and not ours.training


DYNAMIC = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
HIGH = {"rope_type": "default", "rope_theta": "high"}
NOT_OURS = {
    "gpt2": {"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True}
    | {"add_cross_attention": True, "activation_function": "tanh", "n_embd": None}
    | {"quantization_config": {"bits": 4}, "model_type": "gptj"},
    "bert": {"position_embedding_type": "relative_key", "is_decoder": True, "hidden_act": "mish"},
    "albert": {"num_hidden_groups": 2, "inner_group_num": 2},
    "marian": {"normalize_before": True, "normalize_embedding": True, "d_model": 7}
    | {"add_final_layer_norm": True, "static_position_embeddings": False},
    "llama": {"mlp_bias": True, "head_dim": "32", "hidden_act": "gelu", "rope_parameters": HIGH}
    | {"rope_scaling": {"type": "dynamic", "factor": 2.0}, "partial_rotary_factor": 0.5},
}


@pytest.mark.parametrize(
    ("family", "field", "value"),
    [(family, *item) for family, bad in NOT_OURS.items() for item in bad.items()]
    + [("llama", "rope_parameters", DYNAMIC), ("gpt2", "model_type", None)],
)
def test_what_our_models_cannot_represent_is_refused_by_its_field(family, field, value, tmp_path):
    directory, _ = saved(tmp_path, family)
    edit(directory, **{field: value})
    field = "rope_theta" if "high" in str(value) else field
    with pytest.raises(ValueError, match=field) as caught:
        from_pretrained(directory)
    assert str(caught.value).startswith(f"{directory}: ")


def test_a_gguf_quantization_that_the_library_has_undone_is_none(tmp_path):
    theirs = made("llama")
    theirs.config.quantization_config = {"quant_method": "gguf", "dequantize": False}
    assert_same(from_pretrained(theirs), theirs, family="llama")
    directory, _ = saved(tmp_path, "llama")
    edit(directory, quantization_config={"quant_method": "gguf"})
    from_pretrained(directory)
    blocks = {"model.layers.0.mlp.up_proj.weight": torch.zeros(3, 20, dtype=torch.uint8)}
    change_tensors(directory, lambda tensors: tensors | blocks)
    with pytest.raises(ValueError, match="quantization_config is {'quant_method': 'gguf'}, but"):
        from_pretrained(directory)


@pytest.mark.parametrize("family", FAMILIES)
def test_missing_extra_and_misshaped_tensors_are_listed_by_name(family, tmp_path):
    directory, _ = saved(tmp_path, family)
    tensors = safetensors.torch.load_file(directory / "model.safetensors")
    gone, wrong, *_ = [n for n in tensors if "layers.0" in n or ".0." in n or "h.0" in n]
    del tensors[gone]
    tensors |= {wrong: torch.zeros(2, 3, 5), "strange.weight": torch.zeros(2)}
    change_tensors(directory, lambda _: tensors | {"a\nb": torch.zeros(1)})
    with pytest.raises(ValueError) as caught:
        from_pretrained(directory)
    message = str(caught.value)
    prefix = {"bert base": "bert.", "albert base": "albert."}.get(family, "")
    assert f"missing: {prefix}{gone}" in message
    assert "\n" not in message and r"a\nb" in message
    assert f"{wrong} (2, 3, 5) instead of (" in message and "strange.weight" in message


def test_tied_matrices_that_differ_and_numbers_that_are_not_real_are_refused(tmp_path):
    directory, _ = saved(tmp_path, tie_word_embeddings=False)
    edit(directory, tie_word_embeddings=True)
    with pytest.raises(ValueError, match=r"lm_head.weight differ, but tie_word_embeddings says"):
        from_pretrained(directory)
    edit(directory, tie_word_embeddings=False)
    name = "transformer.wpe.weight"
    change_tensors(directory, lambda tensors: tensors | {name: tensors[name].to(torch.int8)})
    with pytest.raises(ValueError, match=f"not of floating point: {name}"):
        from_pretrained(directory)


def test_marians_old_fields_change_nothing_and_stored_positions_must_be_the_formulas(tmp_path):
    directory, theirs = saved(tmp_path, "marian")
    old = {"extra_pos_embeddings": 58101, "normalize_before": False, "num_beams": 6}
    old |= {"classif_dropout": 0.0, "static_position_embeddings": True}
    edit(directory, **old, add_bias_logits=False, bad_words_ids=[[36]])
    state = {name: tensor.clone() for name, tensor in theirs.state_dict().items()}
    change_tensors(directory, lambda _: state)
    assert_same(directory, theirs, family="marian")
    name = "model.encoder.embed_positions.weight"
    change_tensors(directory, lambda _: state | {name: state[name].flip(0)})
    with pytest.raises(ValueError, match=re.escape(name)):
        from_pretrained(directory)


def test_old_names_and_unused_parts_of_real_files_are_understood(tmp_path):
    directory, theirs = saved(tmp_path, "bert")
    unused = {"cls.seq_relationship.weight": torch.zeros(2, 3)}
    unused |= {"bert.pooler.dense.bias": torch.ones(3)}

    def old(name):
        return name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")

    change_tensors(directory, lambda tensors: {old(n): t for n, t in tensors.items()} | unused)
    assert_same(directory, theirs, family="bert")


def test_a_gpt2_without_head_and_with_stored_masks_is_read(tmp_path):
    directory, theirs = saved(tmp_path)
    mask = {"h.0.attn.bias": torch.ones(1, 1, 4, 4)}
    start = "transformer."
    change_tensors(directory, lambda ts: {n.removeprefix(start): t for n, t in ts.items()} | mask)
    assert_same(directory, theirs)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.999])
def test_a_truncated_file_is_refused(share, tmp_path):
    directory, _ = saved(tmp_path)
    path = directory / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ValueError, match="model.safetensors is not a safetensors file, or only pa"):
        from_pretrained(directory)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "pytorch_model.pt"])
def test_a_pickle_of_tensors_is_read(name, tmp_path):
    directory, theirs = saved(tmp_path)
    (directory / "model.safetensors").unlink()
    torch.save(theirs.state_dict(), directory / name)
    assert_same(directory, theirs)
    assert_same(directory / name, theirs)
    torch.save([torch.ones(2)], directory / name)
    with pytest.raises(ValueError, match="does not hold tensors by name"):
        from_pretrained(directory)


def test_weights_in_parts_are_read_and_a_lost_part_is_named(tmp_path):
    theirs = made()
    theirs.save_pretrained(tmp_path, max_shard_size="4KB")
    assert not (tmp_path / "model.safetensors").exists()
    assert_same(tmp_path, theirs)
    lost = next(tmp_path.glob("model-00002*"))
    lost.unlink()
    with pytest.raises(ValueError, match=f"names {lost.name}: the checkpoint is incomplete"):
        from_pretrained(tmp_path)


def test_directories_without_config_or_weights(tmp_path):
    with pytest.raises(ValueError, match="has no config.json"):
        from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="config.json is not JSON"):
        from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(ValueError, match="has no weights: put one of model.safetensors"):
        from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("vocab.json", {"a": 0, "b": 37}),
        ("vocab.txt", "\n".join("x" * 38)),
        ("tokenizer.json", {"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 37}]}),
        ("tokenizer.json", {"model": {"vocab": [["a", 0.0]] * 38}}),
    ],
)
def test_a_tokenizer_that_does_not_match_is_refused(name, content, tmp_path):
    directory, _ = saved(tmp_path)
    text = content if isinstance(content, str) else json.dumps(content)
    (directory / name).write_text(text)
    with pytest.raises(ValueError, match=f"{name} does not match the model: its largest id is 37"):
        from_pretrained(directory)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        *((path, "") for path in ("./nowhere", "/no/such/directory", "a/b/c", "")),
        *((thing, "source is a") for thing in (3, None, torch.nn.Linear(2, 2))),
    ],
)
def test_a_path_that_does_not_exist_or_is_none_never_asks_the_hub(source, message, monkeypatch):
    monkeypatch.setattr(hub, "_download", lambda name: pytest.fail("asked the hub"))
    with pytest.raises(ValueError, match=message):
        from_pretrained(source)


def test_a_hub_name_without_a_network_gets_one_sentence(monkeypatch):
    monkeypatch.setattr("socket.getaddrinfo", MagicMock(side_effect=OSError("no network")))
    for name in hub.PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with pytest.raises(ConnectionError, match="'nobody/nothing' is not on this machine, and the"):
        from_pretrained("nobody/nothing")


def test_a_cached_name_is_read_without_a_network(tmp_path, monkeypatch):
    directory, theirs = saved(tmp_path)
    look_up = "huggingface_hub.try_to_load_from_cache"
    monkeypatch.setattr(look_up, lambda name, file: str(directory / file))
    monkeypatch.setattr(hub, "_download", lambda name: pytest.fail("asked the hub"))
    assert_same("some/name", theirs)


@pytest.fixture
def downloads(monkeypatch):
    def install(download):
        monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
        monkeypatch.setattr(hub, "_reachable", lambda: True)

    return install


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_name_is_downloaded_file_by_file(in_parts, tmp_path, downloads):
    theirs = made()
    theirs.save_pretrained(tmp_path, max_shard_size="4KB" if in_parts else "1GB")
    asked = []

    def download(name, file):
        asked.append(file)
        if not (tmp_path / file).exists():
            raise errors.RemoteEntryNotFoundError("no such file", response=MagicMock())
        return str(tmp_path / file)

    downloads(download)
    assert_same("some/name", theirs)
    assert asked[:2] == ["config.json", "model.safetensors"]
    for pattern, message in (
        ("model*", "none of model.safetensors"),
        ("config*", "no config.json"),
    ):
        for path in tmp_path.glob(pattern):
            path.unlink()
        with pytest.raises(ValueError, match=f"'some/name' on the Hub has {message}"):
            from_pretrained("some/name")


def test_a_name_that_the_hub_does_not_have(downloads):
    missing = errors.RepositoryNotFoundError("nothing", response=MagicMock())
    downloads(MagicMock(side_effect=missing))
    with pytest.raises(ValueError, match="The Hub has no public model 'some/name'"):
        from_pretrained("some/name")


def translator(**changes) -> EncoderDecoderTransformer:
    return EncoderDecoderTransformer(small_config(norm_position="post", **changes))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: DecoderOnlyTransformer(small_config(norm_position="post")), "norm_position"),
        (lambda: DecoderOnlyTransformer(small_config(attention_window=3)), "attention_window"),
        (lambda: MarianTransformer(small_config()), "norm_position"),
        (lambda: translator(positions="rotary"), "positions"),
        (lambda: translator(activation="swiglu"), "activation_function"),
        (lambda: translator(attention_window=3), "attention_window"),
        (lambda: EncoderOnlyTransformer(small_config(), n_classes=2), "only a BertTransformer can"),
        (lambda: DecoderOnlyTransformer(small_config(norm="rms")), "activation"),
        (lambda: torch.nn.Linear(2, 2), "Linear is none of"),
    ],
)
def test_a_model_that_no_family_represents_is_not_written(build, field, tmp_path):
    with pytest.raises(ValueError, match=field):
        to_transformers(build(), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_padding_that_also_ends_texts_is_none_of_ours():
    assert from_pretrained(made(pad_token_id=5, eos_token_id=5)).config.pad_id is None
