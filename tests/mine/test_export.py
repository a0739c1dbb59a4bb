"""A model leaves the course: as a folder of the library's, and as a page of its own."""

import copy
import json
import socket
import sys

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch.testing import assert_close

from tests.mine.small_translator import SOURCES, TARGETS, small_translator
from tests.parity import randomized
from transformer_lesson import mine
from transformer_lesson.checkpoints import is_ours
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.generation import generate, translate
from transformer_lesson.lessons.lesson_10 import size_and_text
from transformer_lesson.mine.trained import as_the_packages
from transformer_lesson.text.batches import pad_batch
from transformer_lesson.text.tokenizers import BytePairTokenizer, CharacterTokenizer, WordTokenizer

TEXT_FILES = {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}
TEXTS = ["a value of a type", "Every object has an identity, a type and a value."]


@pytest.fixture
def offline(monkeypatch):
    """Refuse every connection; the library would otherwise ask the Hub."""

    def refused(*_, **__):
        raise AssertionError("the library asked the network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)


def loaded(folder, kind):
    import transformers

    model, report = getattr(transformers, kind).from_pretrained(folder, output_loading_info=True)
    assert not any(report[f"{kind}_keys"] for kind in ("missing", "unexpected", "mismatched"))
    return model, transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "distinct"), [(lambda: trained_translator()[:2], 48), (small_translator, 1)]
)
@torch.no_grad()
def test_a_translator_is_the_librarys_marian(build, distinct, tmp_path, offline):
    model, tokenizer = build()
    folder = mine.export(tmp_path / "new" / "folder", model, tokenizer)
    assert {one.name for one in folder.iterdir()} == TEXT_FILES | {"model.safetensors"}
    theirs, their_tokenizer = loaded(folder, "AutoModelForSeq2SeqLM")
    assert type(theirs).__name__ == "MarianMTModel"
    batch = their_tokenizer(SOURCES, text_target=TARGETS, padding=True, return_tensors="pt")
    rows = [[*tokenizer.encode(text), tokenizer.eos_id] for text in SOURCES]
    assert_close(batch["input_ids"], pad_batch(rows, tokenizer.pad_id))
    decoder_ids = pad_batch([[tokenizer.bos_id, *tokenizer.encode(t)] for t in TARGETS], 0)
    source = {name: batch[name] for name in ("input_ids", "attention_mask")}
    logits = theirs(**source, decoder_input_ids=decoder_ids).logits
    ours, real = model(batch["input_ids"], decoder_ids), decoder_ids != 0
    assert (~real).any() and (batch["attention_mask"] == 0).any()
    assert_close(logits[real], ours[real], atol=1e-5 * ours.abs().max().item(), rtol=0)
    written = their_tokenizer.batch_decode(theirs.generate(**source), skip_special_tokens=True)
    assert written == translate(model, tokenizer, SOURCES)
    assert len(set(written)) == distinct
    ours = as_the_packages(copy.deepcopy(model)).double()(batch["input_ids"], decoder_ids)
    logits = theirs.double()(**source, decoder_input_ids=decoder_ids).logits
    assert_close(logits[real], ours[real], atol=1e-11, rtol=0)  # rounding was all


@pytest.mark.slow
@torch.no_grad()
def test_padding_is_never_written_and_the_librarys_labels_train_the_same_model(tmp_path, offline):
    model, tokenizer = small_translator()
    ids = torch.tensor([[*tokenizer.encode(SOURCES[0]), tokenizer.eos_id]])
    begin, output = torch.tensor([[tokenizer.bos_id]]), model.projection.weight
    output[tokenizer.pad_id] = 2 * output[model(ids, begin).argmax()]
    assert model(ids, begin).argmax() == tokenizer.pad_id
    folder = mine.export(tmp_path, model, tokenizer)
    theirs, their_tokenizer = loaded(folder, "AutoModelForSeq2SeqLM")
    (ours,) = generate(model, ids, 28).ids
    assert theirs.generate(ids)[0].tolist() == [tokenizer.bos_id, *ours]
    assert tokenizer.pad_id not in ours
    batch = their_tokenizer(SOURCES[:1], text_target=TARGETS[:1], return_tensors="pt")
    target = torch.tensor([tokenizer.encode(TARGETS[0], add_special=True)])
    logits = model(batch["input_ids"], target[:, :-1])
    assert_close(theirs(**batch).loss, F.cross_entropy(logits[0], target[0, 1:]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [BytePairTokenizer, CharacterTokenizer, WordTokenizer])
@torch.no_grad()
def test_a_gpt_is_the_librarys_gpt_2(kind, tmp_path, offline):
    tokenizer = kind.train(TEXTS)
    model = randomized(size_and_text.build(tokenizer.vocab_size, d_model=24)).eval()
    folder = mine.export(tmp_path, model, tokenizer)
    theirs, their_tokenizer = loaded(folder, "AutoModelForCausalLM")
    assert type(theirs).__name__ == "GPT2LMHeadModel"
    batch = their_tokenizer(TEXTS, padding=True, return_tensors="pt")
    positions = (batch["attention_mask"].cumsum(1) - 1).clamp(min=0)
    logits = theirs(**batch, position_ids=positions).logits
    new = theirs.generate(**batch, max_new_tokens=9, do_sample=False)[:, positions.size(1) :]
    for text, row, mask, made in zip(TEXTS, logits, batch["attention_mask"], new, strict=True):
        ids = tokenizer.encode(text)
        assert_close(row[mask.bool()], model(torch.tensor([ids]))[0], atol=1e-5, rtol=1e-6)
        (ours,) = generate(model, ids, 9).ids
        assert made[: len(ours)].tolist() == ours
    for text in (*TEXTS, "Don't  a… <eos> 🙂 <pad>a", " x\ny ", "", "a value , ."):
        ids, read = tokenizer.encode(text), their_tokenizer(text).input_ids
        assert read == ids
        read = their_tokenizer.decode([*ids, 2, 0], skip_special_tokens=True)
        assert read == tokenizer.decode(ids)


def same(folder, other):
    """Whether two folders hold the same; safetensors orders its metadata by chance."""
    weights = [load_file(one / "model.safetensors") for one in (folder, other)]
    return (
        weights[0].keys() == weights[1].keys()
        and all(torch.equal(tensor, weights[1][name]) for name, tensor in weights[0].items())
        and all((folder / name).read_text() == (other / name).read_text() for name in TEXT_FILES)
    )


def test_what_is_not_ours_is_never_overwritten(tmp_path):
    model, tokenizer = small_translator()
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "other.html").write_text("<!doctype html>")
    (tmp_path / "folder.html").mkdir()
    for leave, name, message in (
        (mine.export, "", "already holds other files, such as"),
        (mine.export, "notes.txt", "is a file: give a folder"),
        (mine.page, "notes.txt", "must end in .html"),
        (mine.page, "other.html", "exists and isn't a page of this course"),
        (mine.page, "folder.html", "exists and isn't a page of this course"),
    ):
        with pytest.raises(ValueError, match=message):
            leave(tmp_path / name, model=model, tokenizer=tokenizer)
    assert {one.name for one in tmp_path.iterdir()} == {"notes.txt", "other.html", "folder.html"}
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "other.html").read_text() == "<!doctype html>"


def test_what_is_ours_is_written_anew_until_the_library_has_saved_into_it(tmp_path, offline):
    model, tokenizer = small_translator()
    path = mine.page(tmp_path / "new" / "page.html", "a", model, tokenizer)
    assert "<title>new: a model of my own, word by word</title>" in path.read_text("utf-8")
    size = path.stat().st_size
    assert mine.page(path, "a dog sees", model, tokenizer).stat().st_size > size
    folder = mine.export(tmp_path / "folder", model, tokenizer)
    before = (folder / "model.safetensors").read_bytes()
    mine.export(folder, randomized(model), tokenizer)
    assert (folder / "model.safetensors").read_bytes() != before and is_ours(folder)
    theirs, _ = loaded(folder, "AutoModelForSeq2SeqLM")
    theirs.save_pretrained(folder)  # as after a training of theirs
    assert not is_ours(folder)
    with pytest.raises(ValueError, match="already holds other files, such as config.json"):
        mine.export(folder, model, tokenizer)


def test_the_translator_that_was_kept_leaves(folder, tmp_path):
    for leave in (mine.export, mine.page):
        with pytest.raises(ValueError, match="^no translator of yours is kept yet: train one in"):
            leave(tmp_path / "out.html")
    model, tokenizer = small_translator()
    mine.save_model(model, tokenizer)
    kept, handed = mine.export(tmp_path / "out"), mine.export(tmp_path / "two", model, tokenizer)
    assert same(kept, handed)
    (folder / "translator.safetensors").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="^yours could not be read .*: train one in lesson 08"):
        mine.export(tmp_path / "three")
    assert not (tmp_path / "three").exists() and not (tmp_path / "out.html").exists()


def test_half_of_a_model_is_refused(tmp_path):
    model, tokenizer = small_translator()
    for half in ({"model": model}, {"tokenizer": tokenizer}):
        for leave in (mine.export, mine.page):
            with pytest.raises(ValueError, match="belong together: pass both or none"):
                leave(tmp_path / "out.html", **half)
    with pytest.raises(ValueError, match="the tokenizer has 6 tokens, but the model "):
        mine.export(tmp_path / "out", model, WordTokenizer.train(["a b"]))
    assert list(tmp_path.iterdir()) == []


def test_writing_needs_no_library_and_no_chance(tmp_path, monkeypatch):
    for name in [one for one in sys.modules if one.split(".")[0] == "transformers"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "transformers", None)  # an import of it fails
    model, tokenizer = small_translator()
    before = torch.get_rng_state()
    one, other = (mine.export(tmp_path / n, model, tokenizer) for n in ("one", "other"))
    assert torch.equal(before, torch.get_rng_state())
    assert same(one, other)
    facts = json.loads((one / "config.json").read_text())
    special = ("decoder_start_token_id", "eos_token_id", "pad_token_id")
    assert [facts[name] for name in special] == [1, 2, 0]
