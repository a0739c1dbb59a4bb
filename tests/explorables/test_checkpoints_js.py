"""The page reads every kind of number, and says in one sentence why a file cannot be used."""

import dataclasses
import json
import struct
from pathlib import Path

import torch
from safetensors.torch import load, save

from tests.explorables.page_modules import in_node
from transformer_lesson import DecoderOnlyTransformer, ModelConfig
from transformer_lesson.checkpoints.own_format import KEY, TrainingState, as_bytes
from transformer_lesson.checkpoints.translator import TRANSLATOR
from transformer_lesson.text.tokenizers import CharacterTokenizer

CONFIG = ModelConfig(vocab_size=7, d_model=4, n_heads=2, n_layers=1, d_ff=6, max_len=8)
TOKENIZER = CharacterTokenizer.train(["abc"])
WHOLE = as_bytes(DecoderOnlyTransformer(CONFIG), TOKENIZER)
HEADER = WHOLE[8 : 8 + struct.unpack("<Q", WHOLE[:8])[0]]
FACTS = json.loads(json.loads(HEADER)["__metadata__"][KEY])
WEIGHT = "model.decoder.0.self_attention.W_Q.weight"


def changed(tensors: dict | None = None, **facts) -> bytes:
    """A file with other tensors, without those that are `None`, and with other facts."""
    kept = {name: one for name, one in (load(WHOLE) | (tensors or {})).items() if one is not None}
    return save(kept, metadata={KEY: json.dumps(FACTS | facts)})


def described(**changes) -> dict:
    arguments = {"config": FACTS["model"]["arguments"]["config"] | changes}
    return {"kind": "DecoderOnlyTransformer", "arguments": arguments}


def loaded(folder: Path, *files: bytes) -> tuple:
    """What the page makes of files that must be as they were written; one node reads them all."""
    for number, file in enumerate(files):
        (folder / f"{number}").write_bytes(file)
    cases = [{"name": f"{number}", "asWritten": True} for number in range(len(files))]
    return in_node("load.js", folder, cases)


BERT = described() | {"kind": "BertTransformer"}
REFUSED = {
    "empty": (b"", "it is cut off or no safetensors file"),
    "cut off in the header": (WHOLE[:50], "it is cut off or no safetensors file"),
    "cut off in the numbers": (WHOLE[:-4], "bytes instead of"),
    "no JSON": (WHOLE[:8] + b"x" * (len(WHOLE) - 8), "its header is not JSON"),
    "a program's": (save({"x": torch.ones(2)}), "it holds another program's tensors"),
    "description": (save({}, metadata={KEY: "{"}), "its description is not JSON"),
    "version": (changed(version=1), "it has version 1 of the format, not 2"),
    "kind": (changed(model=BERT), "its model is a BertTransformer, not one of"),
    "no kind": (changed(model=None), "it describes no model"),
    "size": (changed(model=described(n_layers=0)), "its n_layers is 0, not a whole number above 0"),
    "lost": (changed({WEIGHT: None}), f"it lacks {WEIGHT.removeprefix('model.')}"),
    "shape": (changed({WEIGHT: torch.ones(4, 3)}), "has the shape 4,3 instead of 4,4"),
    "number": (changed({WEIGHT: torch.ones(4, 4, dtype=torch.int8)}), "is of the kind I8"),
    "too large": (bytes(64_000_001), "has 65 MB, but a page reads at most 64 MB"),
}


def test_what_cannot_be_used_is_said_in_one_sentence(tmp_path):
    for name, (content, _) in REFUSED.items():
        (tmp_path / name).write_bytes(content)
    answers, _ = in_node("load.js", tmp_path, [{"name": name} for name in REFUSED])
    for answer, (_, reason) in zip(answers, REFUSED.values(), strict=True):
        assert reason in answer
        assert answer.startswith("The model's file") and answer.endswith(".") and "\n" not in answer


def test_a_file_is_as_it_was_written_whatever_it_holds_and_a_changed_one_is_refused(tmp_path):
    odd = CharacterTokenizer.train(['a"\\\x7f\n é ß € 😀'])
    model = DecoderOnlyTransformer(dataclasses.replace(CONFIG, vocab_size=odd.vocab_size))
    tensors = {"training.moments": torch.ones(2, 3), "training.step": torch.tensor(3)}
    tensors["training.random"] = torch.arange(5, dtype=torch.uint8)
    state = TrainingState({"step": 1e-05, "name": "é"}, tensors)
    files = [as_bytes(model, odd, state), as_bytes(model), TRANSLATOR.read_bytes()]
    number = WHOLE[:-4] + bytes([WHOLE[-4] ^ 1]) + WHOLE[-3:]
    fact = WHOLE.replace(rb"\"max_len\": 8", rb"\"max_len\": 9")
    name = WHOLE.replace(b'"model.', b'"madel.', 1)
    assert len({WHOLE, number, fact, name}) == 4
    (*whole, first, second, third), _ = loaded(tmp_path, *files, number, fact, name)
    assert all("model" not in answer and len(answer) == 2 for answer in whole)
    for answer in (first, second, third):
        assert answer.startswith("The model's file cannot be used, it ") and "\n" not in answer
    assert all("it was changed after it was written" in answer for answer in (first, second))


def test_every_kind_of_number_is_read(tmp_path):
    special = torch.tensor([6e-8, -1e-5, 65504.0, torch.inf, -0.0, 1 / 3])
    kinds = [torch.float64, torch.float16, torch.bfloat16, torch.float32]
    models = [DecoderOnlyTransformer(CONFIG).to(dtype) for dtype in kinds]
    for model in models:
        with torch.no_grad():
            model.decoder[0].feed_forward.W_1.bias.copy_(special)
    answers, numbers = loaded(tmp_path, *(as_bytes(model, TOKENIZER) for model in models))
    left = torch.from_numpy(numbers)
    for dtype, model, (names, texts) in zip(kinds, models, answers, strict=True):
        assert texts == list(TOKENIZER.vocabulary)
        weights = dict(model.named_parameters())
        for name in names:
            expected = weights.get(name, model.embedding.weight).detach().float().flatten()
            page, left = left[: len(expected)], left[len(expected) :]
            assert torch.equal(page, expected), (dtype, name)
    assert len(left) == 0
