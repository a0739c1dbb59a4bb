"""The page reads every kind of number, and says in one sentence why a file cannot be used."""

import dataclasses
from pathlib import Path

import torch
from safetensors.torch import save

from tests.explorables.page_modules import in_node
from transformer_lesson import DecoderOnlyTransformer, ModelConfig
from transformer_lesson.checkpoints.own_format import KEY, TrainingState, as_bytes
from transformer_lesson.checkpoints.translator import TRANSLATOR
from transformer_lesson.text.tokenizers import CharacterTokenizer

CONFIG = ModelConfig(vocab_size=7, d_model=4, n_heads=2, n_layers=1, d_ff=6, max_len=8)
TOKENIZER = CharacterTokenizer.train(["abc"])
WHOLE = as_bytes(DecoderOnlyTransformer(CONFIG), TOKENIZER)
OLDER = save({}, metadata={KEY: '{"version": 1}'})


def loaded(folder: Path, *files: bytes) -> tuple:
    """What the page makes of files; one node reads them all."""
    for number, file in enumerate(files):
        (folder / f"{number}").write_bytes(file)
    return in_node("load.js", folder, [f"{number}" for number in range(len(files))])


REFUSED = {
    "it is cut off or not a safetensors file": b"",
    "it is cut off or no": WHOLE[:50],
    "its header is not JSON": WHOLE[:8] + b"x" * (len(WHOLE) - 8),
    "it holds another program's tensors": save({"x": torch.ones(2)}),
    "its description is not JSON": save({}, metadata={KEY: "{"}),
    "it has version 1 of the format, not 2": OLDER,
    "it was changed after it was written": WHOLE[:-4],
    "is 65 MB, but a page reads at most 64 MB": bytes(64_000_001),
}


def test_what_cannot_be_used_is_said_in_one_sentence(tmp_path):
    answers, _ = loaded(tmp_path, *REFUSED.values())
    for answer, reason in zip(answers, REFUSED, strict=True):
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
