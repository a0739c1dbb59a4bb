"""What was saved comes back; what was cut off, changed or written by others is refused by name."""

import errno
import os
import pickle
import stat
from dataclasses import replace

import pytest
import safetensors.torch
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from tests.checkpoints.cost import Bomb, little_memory
from tests.checkpoints.signed import facts_of, signed, with_facts
from tests.parity import small_config
from transformer_lesson import (
    DecoderOnlyTransformer,
    EncoderDecoderTransformer,
    EncoderOnlyTransformer,
)
from transformer_lesson.checkpoints import (
    KEY,
    TrainingState,
    load_checkpoint,
    own_format,
    save_checkpoint,
    to_transformers,
)
from transformer_lesson.checkpoints.albert import AlbertTransformer
from transformer_lesson.checkpoints.bert import BertTransformer
from transformer_lesson.checkpoints.marian import MarianTransformer
from transformer_lesson.files import write_atomically
from transformer_lesson.model.packed import EightBitLinear
from transformer_lesson.text.tokenizers import BytePairTokenizer, CharacterTokenizer, WordTokenizer

CONFIG = small_config(pad_id=0, dropout=0.1)
WIDE = replace(CONFIG, vocab_size=17, n_layers=1)
UNTIED = replace(CONFIG, tie_embeddings=False, positions="learned", norm_position="post")
LLAMAS = replace(
    CONFIG, norm="rms", positions="rotary", activation="swiglu", bias=False, dropout=0.0
)
IDS = torch.tensor([[3, 5, 7, 11, 0]])


def run(model):
    if isinstance(model, EncoderOnlyTransformer):
        return model.predict_tokens(IDS) if model.projection else model.classify(IDS)
    return model(IDS, IDS) if isinstance(model, EncoderDecoderTransformer) else model(IDS)


MODELS = {
    "classifier": lambda: EncoderOnlyTransformer(CONFIG, n_classes=3),
    "token head": lambda: EncoderOnlyTransformer(UNTIED, token_head=True),
    "decoder": lambda: DecoderOnlyTransformer(CONFIG),
    "llama": lambda: DecoderOnlyTransformer(LLAMAS),
    "translator": lambda: EncoderDecoderTransformer(CONFIG),
    "untied": lambda: EncoderDecoderTransformer(UNTIED),
    "two sizes": lambda: EncoderDecoderTransformer(CONFIG, WIDE),
    "alike, apart": lambda: EncoderDecoderTransformer(CONFIG, CONFIG),
    "bert": lambda: BertTransformer(UNTIED, 3, token_head=True),
    "albert": lambda: AlbertTransformer(replace(UNTIED, n_layers=40), 20, 3, token_head=True),
    "marian": lambda: MarianTransformer(replace(CONFIG, bos_id=11, eos_ids=(3, 12))),
    "marian, two sizes": lambda: MarianTransformer(
        CONFIG, replace(CONFIG, n_layers=1), share_embeddings=True
    ),
}
TEXTS = ["Der Hund schläft.", "„Öffnen …“", "数 e\u0301 \U0001f600 <eos> \\ \" 'x'", "0" * 70]


DECODER = DecoderOnlyTransformer(CONFIG)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a checkpoint with everything in it, and a path to write changed ones to."""
    path = tmp_path_factory.mktemp("checkpoint") / "some.safetensors"
    training = TrainingState({"step": 3, "losses": [1.5, 0.1]}, {"random.cpu": torch.arange(9)})
    model = DecoderOnlyTransformer(replace(CONFIG, n_layers=1))
    save_checkpoint(path, model, WordTokenizer.train(TEXTS), training)
    assert load_checkpoint(path).training.facts == training.facts
    return path.read_bytes(), path


def refusal(path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(ValueError) as caught:
        load_checkpoint(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


OTHERS = ("two sizes", torch.bfloat16), ("albert", torch.float64)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), [*((name, torch.float32) for name in MODELS), *OTHERS])
def test_each_model_comes_back_as_it_was(name, dtype, tmp_path):
    model, path = MODELS[name]().to(dtype).eval(), tmp_path / "model.safetensors"
    random_state = torch.get_rng_state()
    save_checkpoint(path, model)
    loaded = load_checkpoint(path)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert type(loaded.model) is type(model) and loaded.model.config == model.config
    assert torch.equal(run(loaded.model), run(model)) and not loaded.model.training
    assert loaded.tokenizer is None and loaded.training is None
    names = [name for name, _ in model.named_parameters()]
    assert [name for name, _ in loaded.model.named_parameters()] == names  # tied as before
    saved = {tensor.data_ptr() for tensor in model.state_dict().values()}
    assert saved == {weight.data_ptr() for weight in model.parameters()}  # and nothing is missing


def test_tied_weights_are_stored_once_and_fixed_tables_never(tmp_path):
    path, model = tmp_path / "model.safetensors", EncoderDecoderTransformer(CONFIG)
    save_checkpoint(path, model)
    stored = safetensors.torch.load_file(path)
    assert sum(name.endswith("embedding.weight") for name in stored) == 1
    assert sum(t.numel() for t in stored.values()) == sum(p.numel() for p in model.parameters())
    assert all(name.startswith("model.") for name in stored)


@pytest.mark.parametrize("kind", [WordTokenizer, CharacterTokenizer, BytePairTokenizer])
def test_tokenizer_and_training_come_back(kind, tmp_path):
    path, tokenizer = tmp_path / "model.safetensors", kind.train(TEXTS)
    tensors = {"optimizer.step.a": torch.tensor(3.0), "random.cpu": torch.get_rng_state()}
    facts = {"losses": [0.1, 1 / 3, 2e-17], "text": 'ä\n"', "none": None, "yes": True}
    save_checkpoint(path, DECODER, tokenizer, TrainingState(facts, tensors))
    loaded = load_checkpoint(path)
    assert type(loaded.tokenizer) is kind
    for text in [*TEXTS, "Katze unbekannt"]:
        assert loaded.tokenizer.encode(text) == tokenizer.encode(text)
    assert loaded.training.facts == facts and set(loaded.training.tensors) == set(tensors)
    for name, tensor in tensors.items():
        assert torch.equal(loaded.training.tensors[name], tensor)
        assert loaded.training.tensors[name].dtype == tensor.dtype


@pytest.mark.slow
@settings(max_examples=100, deadline=None, derandomize=True)
@given(place=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255))
@example(place=0.0, change=1)
@example(place=0.9999999, change=1)
def test_one_changed_byte_anywhere_is_noticed(whole, place, change):
    data, path = whole
    at = int(place * len(data))
    message = refusal(path, data[:at] + bytes([data[at] ^ change]) + data[at + 1 :])
    header = 8 + int.from_bytes(data[:8], "little")
    assert at < header or "its checksum is not the recorded one" in message


@pytest.mark.slow
@settings(max_examples=50, deadline=None, derandomize=True)
@given(share=st.floats(0, 1, exclude_max=True))
@example(share=0.0)
@example(share=0.9999999)
def test_a_file_cut_off_anywhere_is_noticed(whole, share):
    data, path = whole
    message = refusal(path, data[: int(share * len(data))])
    assert "is no checkpoint, or only a part of one" in message


def test_the_same_content_makes_the_same_bytes_and_what_is_added_or_exchanged_is_noticed(
    whole, tmp_path
):
    data, path = whole
    path.write_bytes(data)
    save_checkpoint(tmp_path / "again", *load_checkpoint(path))
    assert (tmp_path / "again").read_bytes() == data
    for changed in (data + b"\0", b"\0" + data, data + data):
        refusal(path, changed)
    header = 8 + int.from_bytes(data[:8], "little")
    assert "checksum" in refusal(path, data[:header] + bytes(len(data) - header))


def foreign_files(folder):
    torch.save({"weights": torch.zeros(3)}, folder / "torch zip")
    text = b"{}\nThis is no checkpoint at all, but some text.\n"
    contents = {"pickle": pickle.dumps(Bomb()), "text": text, "empty": b""}
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    told = {"key": {KEY: "{}"}, "no json": {KEY: "[[["}, "pt": {"format": "pt"}}
    for name, metadata in told.items():
        safetensors.torch.save_file({"a": torch.zeros(3)}, folder / name, metadata=metadata)
    return sorted(folder.iterdir())


def test_files_of_other_programs_are_refused_by_name(tmp_path):
    files = foreign_files(tmp_path)
    assert len(files) == 7
    for path in files:
        with pytest.raises(ValueError) as caught:
            load_checkpoint(path)
        assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="pt holds another program's tensors"):
        load_checkpoint(str(tmp_path / "pt"))
    for missing in (tmp_path / "none.safetensors", tmp_path):
        with pytest.raises(ValueError, match=f"{missing}.*there is no such file"):
            load_checkpoint(missing)


def test_a_huge_header_is_refused_without_being_read(tmp_path):
    path = tmp_path / "huge"
    with open(path, "wb") as file:
        file.write((5 * 10**9).to_bytes(8, "little") + b"{")
        file.truncate(6 * 10**9)  # sparse: takes no room on the disk
    with little_memory(), pytest.raises(ValueError, match="huge is no checkpoint"):
        load_checkpoint(path)


def test_a_later_format_other_weights_edited_facts_and_no_checksum_are_refused(whole):
    data, path = whole
    path.write_bytes(signed(data))
    model = load_checkpoint(path).model
    later = refusal(path, signed(data, version=3))
    assert "has version 3 of the format, this package reads 2" in later
    arguments = {"config": vars(replace(model.config, d_ff=19))}
    other = signed(data, model={"kind": "DecoderOnlyTransformer", "arguments": arguments})
    assert "its weights are not those of a DecoderOnly" in refusal(path, other)
    facts = facts_of(data)
    del facts["checksum"]
    unsigned = with_facts(facts, safetensors.torch.load(data))
    assert "its checksum is not the recorded one" in refusal(path, unsigned)
    facts = facts_of(data)
    facts["model"]["arguments"]["config"]["dropout"] = 0.123
    edited = with_facts(facts, safetensors.torch.load(data))
    assert "its checksum is not the recorded one" in refusal(path, edited)


def first_edition(data: bytes, **flags) -> bytes:
    """A checkpoint as the first edition wrote it: other names, more fields, a sum of the file."""
    facts = facts_of(data)
    del facts["checksum"]
    config = facts["model"]["arguments"]["config"]
    del config["bos_id"], config["eos_ids"]
    config |= {"embedding_norm": False, "n_token_types": 0, "output_bias": False} | flags
    config.setdefault("head_transform", False)
    facts["training"] = {
        "config": {"steps": 3, "micro_batches": 2, "recompute": True},
        "history": {"losses": [1.5], "rates": [0.1]},
    }
    tensors = {
        name.replace("embedding.weight", "embedding.table"): tensor
        for name, tensor in safetensors.torch.load(data).items()
    }
    assert any("embedding.table" in name for name in tensors)
    return with_facts({"sha256": "0" * 64} | facts | {"version": 1}, tensors)


def test_a_file_of_the_first_edition_is_read(whole):
    data, path = whole
    path.write_bytes(data)
    expected = load_checkpoint(path)
    path.write_bytes(first_edition(data))
    model, tokenizer, training = load_checkpoint(path)
    assert model.config == expected.model.config
    assert torch.equal(model(IDS), expected.model(IDS))
    assert tokenizer.vocabulary == expected.tokenizer.vocabulary
    assert training.facts == {
        "config": {"steps": 3, "gradient_accumulation_steps": 2, "activation_checkpointing": True},
        "history": {"losses": [1.5], "learning_rates": [0.1]},
    }
    assert training.tensors.keys() == expected.training.tensors.keys()
    flags = {"n_token_types": 2, "head_transform": True}
    message = refusal(path, first_edition(data, **flags))
    assert "a BERT or a Marian as the first edition wrote it" in message


MyModel = type("MyModel", (DecoderOnlyTransformer,), {})
MyTokenizer = type("MyTokenizer", (WordTokenizer,), {})


@pytest.mark.parametrize(
    ("place", "model", "words", "message"),
    [
        ("model", MyModel(CONFIG), None, "cannot be saved: only EncoderOnlyTransformer, Dec"),
        ("model", DECODER, MyTokenizer.train(TEXTS), "kind of a tokenizer .*, got 'MyTokenizer'"),
        ("nowhere/model", DECODER, None, "the folder .*nowhere does not exist; create it first"),
        ("", DECODER, None, "is a folder: add the name of a file in it"),
    ],
)
def test_what_cannot_be_saved_is_refused(place, model, words, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        save_checkpoint(tmp_path / place, model, words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "save",
    [lambda m, p: save_checkpoint(p, m), to_transformers, lambda m, _: own_format.as_bytes(m)],
)
def test_a_model_that_would_lose_weights_is_refused_at_once(save, tmp_path):
    few_bits, fewer = DecoderOnlyTransformer(LLAMAS), DecoderOnlyTransformer(LLAMAS)
    few_bits.decoder[0].feed_forward.W_down = EightBitLinear(torch.randn(24, 16))
    del fewer.decoder[1]
    for model, sentence in (
        (few_bits, "^decoder.0.feed_forward.W_down is a matrix in few bits.* before in_eight_bi"),
        (fewer, "^decoder.1.* is not what the model's config describes, so it could not be"),
    ):
        with pytest.raises(ValueError, match=sentence):
            save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_the_disk_has_it_before_the_name_does(tmp_path, monkeypatch):
    path, events = tmp_path / "model.safetensors", []
    real_sync, real_replace = os.fsync, os.replace

    def sync(descriptor):
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        events.append("the folder" if folder else "the file")
        real_sync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", lambda a, b: (events.append(b), real_replace(a, b)))
    save_checkpoint(path, DECODER)
    assert events == ["the file", path, "the folder"] and list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_synced_is_no_error_but_a_broken_disk_is(tmp_path, monkeypatch):
    real_sync = os.fsync

    def failing(number):
        def sync(descriptor):
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise OSError(number, os.strerror(number))
            real_sync(descriptor)

        return sync

    monkeypatch.setattr(os, "fsync", failing(errno.EINVAL))
    write_atomically(tmp_path / "a", b"a")
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        write_atomically(tmp_path / "a", b"b")


def test_a_file_that_is_replaced_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    path, model = tmp_path / "model.safetensors", DecoderOnlyTransformer(CONFIG)
    save_checkpoint(path, model)
    model.projection.weight.data.fill_(2.0)
    opened = []

    def replaced_once(*arguments, **options):
        opened.append(safe_open(*arguments, **options))
        if len(opened) == 1:
            save_checkpoint(path, model)
        return opened[-1]

    monkeypatch.setattr(own_format, "safe_open", replaced_once)
    assert (load_checkpoint(path).model.projection.weight == 2.0).all()
    assert len(opened) == 2
