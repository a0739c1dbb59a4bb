"""Other people's weights in our models give other people's logits, or are refused by name."""

import json
import re
from unittest.mock import MagicMock

import pytest
import safetensors.torch
import torch
import transformers

from tests.checkpoints.families import FAMILIES, drawn_fields, inputs_of, library_model
from tests.parity import small_config
from transformer_lesson.checkpoints import (
    compare_layers,
    from_pretrained,
    hub,
    load_checkpoint,
    save_checkpoint,
    to_transformers,
)
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
CLASSES = {
    "gpt2": DecoderOnlyTransformer,
    "llama": DecoderOnlyTransformer,
    "bert": BertTransformer,
    "bert base": BertTransformer,
    "albert": AlbertTransformer,
    "albert base": AlbertTransformer,
    "marian": MarianTransformer,
}


def saved(tmp_path, family="gpt2", **changes):
    """A directory in the library's format, and the model in it."""
    theirs = library_model(family, **drawn_fields(family, 0) | changes)
    theirs.save_pretrained(tmp_path)
    return tmp_path, theirs


def edit(directory, **changes) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def their_logits(family, theirs, inputs):
    if family == "marian":
        return theirs(input_ids=inputs[0], decoder_input_ids=inputs[1]).logits
    if family in ("bert", "albert"):
        return theirs(inputs[0], token_type_ids=inputs[1]).logits
    if family in ("bert base", "albert base"):
        return theirs(inputs[0], token_type_ids=inputs[1]).last_hidden_state
    return theirs(*inputs).logits


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_logits_equal_the_librarys(family, seed, tmp_path):
    theirs = library_model(family, **drawn_fields(family, seed))
    theirs.save_pretrained(tmp_path)
    ours = from_pretrained(tmp_path)
    assert type(ours) is CLASSES[family] and not ours.training
    inputs = inputs_of(family, theirs)
    logits = ours.predict_tokens(*inputs) if family in ("bert", "albert") else ours(*inputs)
    expected = their_logits(family, theirs, inputs)
    atol = RELATIVE * expected.abs().max().item()
    torch.testing.assert_close(logits, expected, atol=atol, rtol=0)
    for padding in (None, "right") if family == "marian" else (None, "right", "left"):
        comparison = compare_layers(ours, theirs, inputs_of(family, theirs, padding), quiet=True)
        assert comparison.first is None, (padding, str(comparison))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 8, 3))
@pytest.mark.parametrize("family", FAMILIES)
def test_there_and_back(family, seed, tmp_path):
    theirs = library_model(family, **drawn_fields(family, seed))
    ours = from_pretrained(theirs)
    assert to_transformers(ours, tmp_path / "new") == tmp_path / "new"
    back, report = type(theirs).from_pretrained(tmp_path / "new", output_loading_info=True)
    pooler = {name for name in report["missing_keys"] if "pooler" not in name}
    assert not pooler and not report["unexpected_keys"] and not report["mismatched_keys"]
    assert compare_layers(ours, back, inputs_of(family, theirs), quiet=True).first is None
    again = from_pretrained(tmp_path / "new")
    assert again.config == ours.config
    assert again.state_dict().keys() == ours.state_dict().keys()
    assert all(torch.equal(again.state_dict()[n], w) for n, w in ours.state_dict().items())


@pytest.mark.parametrize("family", FAMILIES)
def test_our_own_file_keeps_it(family, tmp_path):
    ours = from_pretrained(library_model(family, **drawn_fields(family, 1)))
    save_checkpoint(tmp_path / "m.safetensors", ours)
    again = load_checkpoint(tmp_path / "m.safetensors").model
    inputs = inputs_of(family, library_model(family, **drawn_fields(family, 1)))
    with torch.no_grad():
        assert torch.equal(ours(*inputs), again(*inputs))
    shared = [len(list(model.parameters())) for model in (ours, again)]
    assert shared[0] == shared[1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 5])
@pytest.mark.parametrize("family", ["gpt2", "llama", "marian"])
@torch.no_grad()
def test_twenty_greedy_tokens_are_identical(family, seed):
    fields = drawn_fields(family, seed)
    fields |= {} if family == "marian" else {"pad_token_id": None}
    theirs = library_model(family, **fields)
    ours, source = from_pretrained(theirs), torch.randint(4, 35, (1, 7))
    ids = torch.tensor([[36]]) if family == "marian" else source
    expected = ids
    for _ in range(20):
        inputs = (source, expected) if family == "marian" else (expected,)
        logits = their_logits(family, theirs, inputs)[:, -1]
        if family == "marian":
            logits[:, 36] = -torch.inf  # padding is never written
        expected = torch.cat([expected, logits.argmax(dim=-1, keepdim=True)], dim=1)
    for cached in (True, False):
        written = generate(ours, source, 20, use_cache=cached, eos_id=None)
        assert written.ids[0] == expected[0, ids.size(1) :].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("family", ["gpt2", "llama", "marian"])
@torch.no_grad()
def test_texts_begin_and_end_where_the_librarys_do(family, several, tmp_path):
    fields = drawn_fields(family, 0) | {"bos_token_id": 7}
    source = torch.randint(4, 35, (1, 7))
    theirs = library_model(family, **fields | {"forced_eos_token_id": None})
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
    save_checkpoint(tmp_path / "m.safetensors", ours)
    to_transformers(ours, tmp_path / "theirs")
    written = json.loads((tmp_path / "theirs" / "config.json").read_text())
    assert written["eos_token_id"] == ends
    others = load_checkpoint(tmp_path / "m.safetensors").model, from_pretrained(tmp_path / "theirs")
    for model in (ours, *others):
        for strategy in (Greedy(), Beam(1)):
            made = generate(model, source, 20, strategy)
            assert made.ids[0] == expected and made.finished == [True]


@pytest.mark.parametrize(("end", "ends"), [(None, ()), (99, ()), ([1, 99], (1,)), (-1, ())])
def test_an_end_that_the_vocabulary_lacks_ends_nothing(end, ends, tmp_path):
    directory, _ = saved(tmp_path, "gpt2")
    edit(directory, eos_token_id=end, bos_token_id=end if isinstance(end, int) else None)
    config = from_pretrained(directory).config
    assert (config.bos_id, config.eos_ids) == (None, ends)


def test_a_translation_that_begins_with_nothing_is_refused(tmp_path):
    directory, _ = saved(tmp_path, "marian")
    edit(directory, decoder_start_token_id=None)
    with pytest.raises(ValueError, match="config has no bos_id: say with which id a translation"):
        generate(from_pretrained(directory), [5, 6], 3)


def test_a_changed_weight_is_found_where_it_is(capsys):
    theirs = library_model("gpt2", **drawn_fields("gpt2", 0) | {"n_layer": 3})
    ours = from_pretrained(theirs)
    inputs = inputs_of("gpt2", theirs)
    compare_layers(ours, theirs, inputs)
    assert capsys.readouterr().out.startswith("All 12 outputs agree to 3e-05 of ")
    with torch.no_grad():
        ours.decoder[1].feed_forward.W_2.bias[0] += 0.01
    comparison = compare_layers(ours, theirs, inputs)
    assert comparison.first.ours == "decoder.1.feed_forward"
    assert (
        "first layer that differs is decoder.1.feed_forward (theirs: transformer.h.1.mlp): by 0.01"
        in (capsys.readouterr().out)
    )


def test_a_comparison_leaves_modes_and_random_numbers_alone():
    theirs = library_model("gpt2", **drawn_fields("gpt2", 0)).train()
    before = torch.get_rng_state()
    ours = from_pretrained(theirs)
    assert torch.equal(before, torch.get_rng_state())
    theirs.transformer.h[0].eval()
    modes = [part.training for part in theirs.modules()]
    compare_layers(ours, theirs, torch.tensor([[5, 6]]), quiet=True)
    assert [part.training for part in theirs.modules()] == modes and not ours.training


@pytest.mark.parametrize(
    ("family", "field", "value"),
    [
        ("gpt2", "scale_attn_weights", False),
        ("gpt2", "scale_attn_by_inverse_layer_idx", True),
        ("gpt2", "add_cross_attention", True),
        ("gpt2", "activation_function", "tanh"),
        ("gpt2", "quantization_config", {"bits": 4}),
        ("bert", "position_embedding_type", "relative_key"),
        ("bert", "is_decoder", True),
        ("bert", "add_cross_attention", True),
        ("bert", "hidden_act", "mish"),
        ("albert", "num_hidden_groups", 2),
        ("albert", "inner_group_num", 2),
        ("marian", "normalize_before", True),
        ("marian", "normalize_embedding", True),
        ("marian", "add_final_layer_norm", True),
        ("marian", "static_position_embeddings", False),
        ("marian", "d_model", 7),
        ("llama", "mlp_bias", True),
        ("llama", "head_dim", 32),
        ("llama", "hidden_act", "gelu"),
        ("llama", "rope_parameters", {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}),
        ("llama", "rope_scaling", {"type": "dynamic", "factor": 2.0}),
        ("llama", "partial_rotary_factor", 0.5),
        ("llama", "rope_parameters", {"rope_type": "default", "rope_theta": "high"}),
        ("gpt2", "model_type", "gpt_neox"),
        ("gpt2", "model_type", None),
        ("gpt2", "n_embd", None),
    ],
)
def test_what_our_models_cannot_represent_is_refused_by_its_field(family, field, value, tmp_path):
    directory, _ = saved(tmp_path, family)
    edit(directory, **{field: value})
    field = "rope_theta" if "high" in str(value) else field
    with pytest.raises(ValueError, match=field) as caught:
        from_pretrained(directory)
    assert str(caught.value).startswith(f"{directory}: ")


def test_a_gguf_quantization_that_the_library_has_undone_is_none(tmp_path):
    theirs = library_model("llama", **drawn_fields("llama", 0))
    theirs.config.quantization_config = {"quant_method": "gguf", "dequantize": False}
    ours = from_pretrained(theirs)
    assert compare_layers(ours, theirs, inputs_of("llama", theirs), quiet=True).first is None
    directory, _ = saved(tmp_path, "llama")
    edit(directory, quantization_config={"quant_method": "gguf"})
    from_pretrained(directory)
    path = directory / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    tensors["model.layers.0.mlp.up_proj.weight"] = torch.zeros(3, 20, dtype=torch.uint8)  # blocks
    safetensors.torch.save_file(tensors, path)
    with pytest.raises(ValueError, match="quantization_config is {'quant_method': 'gguf'}, but"):
        from_pretrained(directory)


@pytest.mark.parametrize("family", FAMILIES)
def test_missing_extra_and_misshaped_tensors_are_listed_by_name(family, tmp_path):
    directory, _ = saved(tmp_path, family)
    path = directory / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    biases = [name for name in tensors if "layers.0" in name or ".0." in name or "h.0" in name]
    gone, wrong = biases[0], biases[1]
    tensors.pop(gone)
    tensors[wrong] = torch.zeros(2, 3, 5)
    tensors["strange.weight"] = torch.zeros(2)
    safetensors.torch.save_file(tensors, path)
    with pytest.raises(ValueError) as caught:
        from_pretrained(directory)
    message = str(caught.value)
    prefix = {"bert base": "bert.", "albert base": "albert."}.get(family, "")
    assert f"missing: {prefix}{gone}" in message
    assert f"{wrong} (2, 3, 5) instead of (" in message and "strange.weight" in message


def test_numbers_that_are_not_real_are_refused(tmp_path):
    directory, _ = saved(tmp_path)
    path = directory / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    tensors["transformer.wpe.weight"] = tensors["transformer.wpe.weight"].to(torch.int8)
    safetensors.torch.save_file(tensors, path)
    with pytest.raises(ValueError, match="not of floating point: transformer.wpe.weight"):
        from_pretrained(directory)


def test_tied_matrices_that_differ_are_refused(tmp_path):
    directory, _ = saved(tmp_path, "gpt2", tie_word_embeddings=False)
    edit(directory, tie_word_embeddings=True)
    with pytest.raises(ValueError, match=r"lm_head.weight differ, but tie_word_embeddings says"):
        from_pretrained(directory)


def test_marians_stored_positions_must_be_the_formulas(tmp_path):
    directory, theirs = saved(tmp_path, "marian")
    state = dict(theirs.state_dict())
    safetensors.torch.save_file(
        {n: t.clone() for n, t in state.items()}, directory / "model.safetensors"
    )
    assert (
        compare_layers(
            from_pretrained(directory), theirs, inputs_of("marian", theirs), quiet=True
        ).first
        is None
    )
    name = "model.encoder.embed_positions.weight"
    state[name] = state[name].flip(0)
    safetensors.torch.save_file(
        {n: t.clone() for n, t in state.items()}, directory / "model.safetensors"
    )
    with pytest.raises(ValueError, match=re.escape(name)):
        from_pretrained(directory)


def test_old_names_and_unused_parts_of_real_files_are_understood(tmp_path):
    directory, theirs = saved(tmp_path, "bert")
    tensors = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): t
        for name, t in safetensors.torch.load_file(directory / "model.safetensors").items()
    }
    tensors |= {
        "cls.seq_relationship.weight": torch.zeros(2, 3),
        "bert.pooler.dense.bias": torch.ones(3),
    }
    safetensors.torch.save_file(tensors, directory / "model.safetensors")
    ours = from_pretrained(directory)
    assert compare_layers(ours, theirs, inputs_of("bert", theirs), quiet=True).first is None


def test_a_gpt2_without_head_and_with_stored_masks_is_read(tmp_path):
    directory, theirs = saved(tmp_path)
    tensors = {
        name.removeprefix("transformer."): t
        for name, t in safetensors.torch.load_file(directory / "model.safetensors").items()
    }
    tensors["h.0.attn.bias"] = torch.ones(1, 1, 4, 4)
    safetensors.torch.save_file(tensors, directory / "model.safetensors")
    assert (
        compare_layers(
            from_pretrained(directory), theirs, torch.tensor([[5, 6, 7]]), quiet=True
        ).first
        is None
    )


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.999])
def test_a_truncated_file_is_refused(share, tmp_path):
    directory, _ = saved(tmp_path)
    path = directory / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(
        ValueError, match="model.safetensors is no safetensors file, or only a part"
    ):
        from_pretrained(directory)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "pytorch_model.pt"])
def test_a_pickle_of_tensors_is_read(name, tmp_path):
    directory, theirs = saved(tmp_path)
    (directory / "model.safetensors").unlink()
    torch.save(theirs.state_dict(), directory / name)
    assert (
        compare_layers(from_pretrained(directory), theirs, torch.tensor([[5, 6]]), quiet=True).first
        is None
    )
    by_file = from_pretrained(directory / name)
    assert compare_layers(by_file, theirs, torch.tensor([[5, 6]]), quiet=True).first is None


class Attack:
    """Would make a file if it were unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_a_pickle_that_could_run_something_is_refused_and_runs_nothing(tmp_path):
    directory, theirs = saved(tmp_path)
    (directory / "model.safetensors").unlink()
    state = dict(theirs.state_dict()) | {"x": Attack(tmp_path / "harm")}
    torch.save(state, directory / "pytorch_model.bin")
    with pytest.raises(
        ValueError, match="pytorch_model.bin is refused: it is damaged, or a pickle"
    ):
        from_pretrained(directory)
    assert not (tmp_path / "harm").exists()
    torch.save([torch.ones(2)], directory / "pytorch_model.bin")
    with pytest.raises(ValueError, match="does not hold tensors by name"):
        from_pretrained(directory)
    (directory / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ValueError, match="is refused: it is damaged"):
        from_pretrained(directory)


def test_weights_in_parts_are_read_and_a_lost_part_is_named(tmp_path):
    theirs = library_model("gpt2", **drawn_fields("gpt2", 0))
    theirs.save_pretrained(tmp_path, max_shard_size="4KB")
    assert not (tmp_path / "model.safetensors").exists()
    assert (
        compare_layers(from_pretrained(tmp_path), theirs, torch.tensor([[5, 6]]), quiet=True).first
        is None
    )
    lost = next(tmp_path.glob("model-00002*"))
    lost.unlink()
    with pytest.raises(ValueError, match=f"names {lost.name}: not all is here"):
        from_pretrained(tmp_path)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_becomes_float32(dtype, tmp_path):
    directory, theirs = saved(tmp_path)
    theirs.to(dtype).save_pretrained(directory)
    ours = from_pretrained(directory)
    assert {parameter.dtype for parameter in ours.parameters()} == {torch.float32}
    assert compare_layers(ours, theirs.float(), torch.tensor([[5, 6]]), quiet=True).first is None


def test_directories_without_config_or_weights(tmp_path):
    with pytest.raises(ValueError, match="has no config.json"):
        from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="config.json is no JSON"):
        from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(ValueError, match="has no weights: put one of model.safetensors"):
        from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("vocab.json", json.dumps({"a": 0, "b": 37})),
        ("vocab.txt", "\n".join("x" * 38)),
        (
            "tokenizer.json",
            json.dumps({"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 37}]}),
        ),
        ("tokenizer.json", json.dumps({"model": {"vocab": [["a", 0.0]] * 38}})),
    ],
)
def test_a_tokenizer_that_does_not_match_is_refused(name, text, tmp_path):
    directory, _ = saved(tmp_path)
    (directory / name).write_text(text)
    with pytest.raises(ValueError, match=f"{name} does not match the model: its largest id is 37"):
        from_pretrained(directory)


@pytest.mark.parametrize("source", ["./nowhere", "/no/such/directory", "a/b/c", ""])
def test_a_path_that_does_not_exist_never_asks_the_hub(source, monkeypatch):
    monkeypatch.setattr(hub, "_download", lambda name: pytest.fail("asked the hub"))
    with pytest.raises(ValueError):
        from_pretrained(source)


def test_a_hub_name_without_a_network_gets_one_sentence(monkeypatch):
    def no_network(*_):
        raise OSError("no network")

    monkeypatch.setattr("socket.getaddrinfo", no_network)
    for name in hub.PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with pytest.raises(
        ConnectionError, match="'nobody/nothing' is not on this machine, and the Hub"
    ):
        from_pretrained("nobody/nothing")
    assert not hub.is_cached("nobody/nothing")


def test_a_cached_name_is_read_without_a_network(tmp_path, monkeypatch):
    directory, theirs = saved(tmp_path)
    monkeypatch.setattr(
        "huggingface_hub.try_to_load_from_cache", lambda name, file: str(directory / file)
    )
    monkeypatch.setattr(hub, "_download", lambda name: pytest.fail("asked the hub"))
    assert hub.is_cached("some/name")
    assert (
        compare_layers(from_pretrained("some/name"), theirs, torch.tensor([[5]]), quiet=True).first
        is None
    )


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_name_is_downloaded_file_by_file(in_parts, tmp_path, monkeypatch):
    from huggingface_hub import errors

    theirs = library_model("gpt2", **drawn_fields("gpt2", 0))
    theirs.save_pretrained(tmp_path, max_shard_size="4KB" if in_parts else "1GB")
    asked = []

    def download(name, file):
        asked.append(file)
        if not (tmp_path / file).exists():
            raise errors.RemoteEntryNotFoundError("no such file", response=MagicMock())
        return str(tmp_path / file)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    monkeypatch.setattr(hub, "_reachable", lambda: True)
    ours = from_pretrained("some/name")
    assert compare_layers(ours, theirs, torch.tensor([[5]]), quiet=True).first is None
    assert asked[:2] == ["config.json", "model.safetensors"]
    for path in tmp_path.glob("model*"):
        path.unlink()
    with pytest.raises(ValueError, match="'some/name' on the Hub has none of model.safetensors"):
        from_pretrained("some/name")
    (tmp_path / "config.json").unlink()
    with pytest.raises(ValueError, match="'some/name' on the Hub has no config.json"):
        from_pretrained("some/name")


def test_a_name_that_the_hub_does_not_have(monkeypatch):
    from huggingface_hub import errors

    def download(name, file):
        raise errors.RepositoryNotFoundError("nothing", response=MagicMock())

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    monkeypatch.setattr(hub, "_reachable", lambda: True)
    with pytest.raises(ValueError, match="The Hub has no public model 'some/name'"):
        from_pretrained("some/name")


def test_fields_that_old_files_hold_and_that_change_nothing_are_allowed(tmp_path):
    directory, theirs = saved(tmp_path, "marian")
    edit(
        directory,
        extra_pos_embeddings=58101,
        normalize_before=False,
        num_beams=6,
        classif_dropout=0.0,
    )
    edit(directory, static_position_embeddings=True, add_bias_logits=False, bad_words_ids=[[36]])
    ours = from_pretrained(directory)
    assert compare_layers(ours, theirs, inputs_of("marian", theirs), quiet=True).first is None


def translator(**changes) -> EncoderDecoderTransformer:
    return EncoderDecoderTransformer(small_config(norm_position="post", **changes))


@pytest.mark.parametrize("source", [3, None, torch.nn.Linear(2, 2)])
def test_what_is_no_source_is_refused(source):
    with pytest.raises(ValueError, match="source is a"):
        from_pretrained(source)


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: DecoderOnlyTransformer(small_config(norm_position="post")), "norm_position"),
        (lambda: DecoderOnlyTransformer(small_config(attention_window=3)), "attention_window"),
        (lambda: MarianTransformer(small_config()), "norm_position"),
        (lambda: EncoderDecoderTransformer(small_config()), "norm_position"),
        (lambda: translator(positions="learned"), "positions"),
        (lambda: translator(positions="rotary"), "positions"),
        (lambda: translator(activation="swiglu"), "activation_function"),
        (lambda: translator(attention_window=3), "attention_window"),
        (lambda: EncoderOnlyTransformer(small_config(), n_classes=2), "only a BertTransformer can"),
        (lambda: BertTransformer(small_config(), token_head=True), "norm_position"),
        (lambda: DecoderOnlyTransformer(small_config(norm="rms")), "activation"),
        (lambda: torch.nn.Linear(2, 2), "Linear is none of"),
    ],
)
def test_a_model_that_no_family_represents_is_not_written(build, field, tmp_path):
    with pytest.raises(ValueError, match=field):
        to_transformers(build(), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_padding_that_also_ends_texts_is_none_of_ours():
    fields = drawn_fields("gpt2", 0) | {"pad_token_id": 5, "eos_token_id": 5}
    assert from_pretrained(library_model("gpt2", **fields)).config.pad_id is None


def test_a_name_with_a_line_break_stays_in_one_line(tmp_path):
    library_model("gpt2", **drawn_fields("gpt2", 0)).save_pretrained(tmp_path)
    tensors = safetensors.torch.load_file(tmp_path / "model.safetensors")
    safetensors.torch.save_file(tensors | {"a\nb": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"extra: transformer\.a\\nb|extra: a\\nb"):
        from_pretrained(tmp_path)
