"""Whatever is in a file, a loader returns or raises `ValueError`: thousands of random files."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checkpoints.families import drawn_fields, library_model
from tests.checkpoints.gguf_files import gguf
from tests.checkpoints.llama_files import llama_file, small_llama, vocabulary_file
from tests.checkpoints.signed import signed
from tests.training.small import batches_of, model_of, short
from transformer_lesson.checkpoints import from_pretrained, load_checkpoint
from transformer_lesson.checkpoints.llama_cpp import read_tokenizer
from transformer_lesson.exercises.engine.progress import FORMAT, read_progress
from transformer_lesson.text import parallel_text
from transformer_lesson.text.tokenizers import WordTokenizer, tokenizer_from_json
from transformer_lesson.training import resume, train

pytestmark = [pytest.mark.slow, pytest.mark.everything]
FUZZ = settings(max_examples=100, deadline=None, derandomize=True, database=None)
NUMBERS = st.integers(-(10**20), 10**20) | st.floats() | st.sampled_from([0, 1, 2**31, 10**12])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=8,
)
CHANGES = st.lists(st.tuples(st.integers(0, 2**16), VALUES), min_size=1, max_size=3)


def places(value, path=()):
    inside = value.items() if isinstance(value, dict) else ()
    inside = enumerate(value) if isinstance(value, list) else inside
    for key, one in inside:
        yield from places(one, (*path, key))
    if path:
        yield path


def changed(value, changes):
    value = json.loads(json.dumps(value))
    for number, new in changes:
        known = list(places(value))
        if known:
            *way, last = known[number % len(known)]
            inner = value
            for key in way:
                inner = inner[key]
            inner[last] = new
    return value


def mutated(data: bytes, changes) -> bytes:
    for place, length, new in changes:
        at = place % (len(data) + 1)
        data = data[:at] + new + data[at + length :]
    return data


BYTES = st.lists(
    st.tuples(st.integers(0, 2**20), st.integers(0, 9), st.binary(max_size=9)),
    min_size=1,
    max_size=4,
)


def assert_loads_or_refuses(call, *arguments) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(*arguments)
    except ValueError as error:
        assert "\n" not in str(error)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A file with a training run and a tokenizer in it: path, bytes and facts."""
    path = tmp_path_factory.mktemp("run") / "run.safetensors"
    model, batches = model_of("language model"), batches_of("language model")
    words = WordTokenizer.train(["a b c d e f g h i"])
    train(model, batches, short(2), checkpoint=path, tokenizer=words)
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return path, data, json.loads(header["__metadata__"]["transformer_lesson"])


@FUZZ
@given(changes=CHANGES, cuts=BYTES)
def test_checkpoints_signed_by_somebody_else_or_damaged(run, changes, cuts):
    path, data, facts = run
    for content in (signed(data, **changed(facts, changes)), mutated(data, cuts)):
        path.write_bytes(content)
        assert_loads_or_refuses(load_checkpoint, path)


@settings(FUZZ, max_examples=40)
@given(changes=CHANGES)
def test_training_runs_signed_by_somebody_else(run, changes):
    path, data, facts = run
    path.write_bytes(signed(data, training=changed({"t": facts["training"]}, changes)["t"]))
    assert_loads_or_refuses(lambda: resume(path, batches_of("language model"), steps=2))


@pytest.fixture(scope="module", params=["gpt2", "llama", "bert", "albert", "marian"])
def directory(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    library_model(request.param, **drawn_fields(request.param, 0)).save_pretrained(folder)
    facts = json.loads((folder / "config.json").read_text())
    return folder, facts, (folder / "model.safetensors").read_bytes()


@settings(FUZZ, max_examples=60)
@given(changes=CHANGES, cuts=BYTES)
def test_configs_and_weights_of_others(directory, changes, cuts):
    folder, facts, data = directory
    for config, weights in ((changed(facts, changes), data), (facts, mutated(data, cuts))):
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "model.safetensors").write_bytes(weights)
        assert_loads_or_refuses(from_pretrained, folder)


@pytest.fixture(scope="module")
def gguf_data():
    """A GGUF file with a Llama and a tokenizer in it, and the length of its header."""
    metadata, tensors = llama_file(small_llama())
    tokenizer = vocabulary_file(tokens=["<e>", "a", "b", "ab"], merges=["a b"])
    tokenizer["tokenizer.ggml.token_type"] = np.array([3, 1, 1, 1], dtype="<i4")
    data = gguf(metadata | tokenizer, tensors)
    return data, len(data) - 4 * sum(tensor.size for tensor in tensors.values())


@settings(FUZZ, max_examples=400)
@given(changes=BYTES)
def test_gguf_files(gguf_data, tmp_path_factory, changes):
    data, header = gguf_data
    path = tmp_path_factory.getbasetemp() / "model.gguf"
    path.write_bytes(mutated(data[:header], changes) + data[header:])
    for reader in (from_pretrained, read_tokenizer):
        assert_loads_or_refuses(reader, path)


@settings(FUZZ, max_examples=100)
@given(value=VALUES, name=st.sampled_from(["vocab.json", "tokenizer.json", "index"]))
def test_vocabularies_and_indexes_of_others(directory, value, name):
    folder, facts, data = directory
    (folder / "config.json").write_text(json.dumps(facts))
    (folder / "model.safetensors").write_bytes(data)
    files = {"vocab.json": value, "tokenizer.json": {"model": value, "added_tokens": value}}
    path = folder / name
    if name == "index":
        path = folder / "model.safetensors.index.json"
        (folder / "model.safetensors").unlink(missing_ok=True)
    path.write_text(json.dumps(files.get(name, {"weight_map": value})))
    assert_loads_or_refuses(from_pretrained, folder)
    path.unlink()


LINES = st.lists(st.sampled_from([b"Go.", b"\t", b"\n", b"\r\n", b"\xef\xbb\xbf", b"7"]))
TEXTS = st.binary(max_size=60) | st.builds(b"".join, LINES)


@settings(FUZZ, max_examples=400)
@given(source=TEXTS, target=st.none() | TEXTS)
def test_texts(tmp_path_factory, source, target):
    folder = tmp_path_factory.getbasetemp()
    (folder / "source").write_bytes(source)
    if target is not None:
        (folder / "target").write_bytes(target)
    second = None if target is None else folder / "target"
    assert_loads_or_refuses(parallel_text, folder / "source", second)


@settings(FUZZ, max_examples=400)
@given(
    text=st.text(max_size=50)
    | st.builds(json.dumps, VALUES)
    | st.builds(
        lambda kind, learned: json.dumps({"kind": kind, "learned": learned}),
        st.sampled_from(["WordTokenizer", "CharacterTokenizer", "BytePairTokenizer"]),
        VALUES | st.lists(st.text(max_size=4) | st.sampled_from(["a b", "Ġ a", "<pad>", " "])),
    )
)
def test_tokenizers(text):
    assert_loads_or_refuses(tokenizer_from_json, text)


@settings(FUZZ, max_examples=300)
@given(
    data=st.binary(max_size=60)
    | st.builds(
        lambda passed, predicted: json.dumps(
            {"format": FORMAT, "passed": passed, "predicted": predicted}
        ).encode(),
        VALUES,
        VALUES | st.dictionaries(st.text(max_size=5), VALUES),
    )
)
def test_progress(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "my_progress.json"
    path.write_bytes(data)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        state = read_progress(path)
    assert all(isinstance(answer, dict) for answer in state["predicted"].values())
    assert path.exists() or "is kept as" in str(told[0].message)
    for kept in path.parent.glob("my_progress.damaged-*.json"):
        kept.unlink()
