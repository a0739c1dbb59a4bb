"""Hostile files: refused with one sentence that names the file, in little time and memory."""

import json
import os
import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

from tests.checkpoints.families import drawn_fields, library_model
from tests.checkpoints.signed import signed
from tests.parity import small_config
from tests.patience import AT_ONCE
from tools.browser import PATIENCE
from transformer_lesson import checkpoints
from transformer_lesson.checkpoints import TrainingState, from_pretrained, load_checkpoint
from transformer_lesson.checkpoints.untrusted import load_pickle, load_safetensors, parts_of
from transformer_lesson.exercises import progress
from transformer_lesson.exercises.engine.progress import PLACE
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.training import resume, train

HUGE = 10**12
DEEP = "[" * 100_000 + "]" * 100_000
MEASURED = """
import json, resource, sys, time
from transformer_lesson import exercises
from transformer_lesson.checkpoints import from_pretrained, load_checkpoint
from transformer_lesson.checkpoints.untrusted import load_pickle
from transformer_lesson.text import parallel_text
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 10**9, resource.RLIM_INFINITY))
for name, path in json.loads(sys.argv[1]).items():
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        globals()[name.partition(":")[0]](path)
    except ValueError as error:
        said = str(error)
    took = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps([name, path in said, "\\n" in said, took, time.process_time() - begun]))
"""


def assert_refused(call, path, about: str = "") -> None:
    with pytest.raises(ValueError) as caught:
        call(path)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 1000, message
    assert str(path) in message and about in message, message


# Checkpoints of our own


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "m.safetensors"
    config = small_config(n_layers=1, pad_id=0)
    training = TrainingState({"step": 1}, {"random.cpu": torch.get_rng_state()})
    checkpoints.save_checkpoint(path, DecoderOnlyTransformer(config), training=training)
    return path.read_bytes(), config


ALBERT = "AlbertTransformer"
BIG, ONLY = 10**7, "is 10000000, but there are only"
CONFIG_LIES = {
    "a text": {"vocab_size": "1e9"},
    "not a number": {"norm_epsilon": float("nan")},
    "huge vectors": {"d_model": HUGE},
    "a huge length": {"max_len": HUGE},
    "a million layers": {"n_layers": 10**6},
    "more than 64 bits": {"vocab_size": 10**400},
    "minus": {"n_heads": -1},
    "unknown": {"__class__": 1},
    # what no memory is asked for, and the words that say so
    **{f"a large {name}": {name: BIG} for name in ("vocab_size", "d_ff")},
    "classes": {"kind": "EncoderOnlyTransformer", "n_classes": BIG},
    "types": {"kind": "BertTransformer", "n_token_types": BIG},
    "Albert, short vectors": {"kind": ALBERT, "d_embedding": BIG, "about": "there are only"},
    "Albert, layers": {"kind": ALBERT, "n_layers": 10**6, "about": "repeated at most 100 times"},
    "Albert, words": {"kind": ALBERT, "vocab_size": 10**6, "about": "vocab_size is 1000000, but "},
    "Albert, vectors": {"kind": ALBERT, "d_model": 10**4, "about": "d_model is 10000, but there "},
}


@pytest.mark.parametrize("lie", CONFIG_LIES)
def test_a_signed_checkpoint_that_lies_about_its_sizes(lie, whole, tmp_path):
    data, config = whole
    path, lies = tmp_path / "lie.safetensors", dict(CONFIG_LIES[lie])
    kind, about = lies.pop("kind", "DecoderOnlyTransformer"), lies.pop("about", "")
    arguments = {"config": dict(vars(config))} | ({"d_embedding": 4} if kind == ALBERT else {})
    for name, value in lies.items():
        beside = name in ("n_classes", "n_token_types", "d_embedding")
        (arguments if beside else arguments["config"])[name] = value
        about = about or (f"{name} {ONLY}" if value == BIG else "")
    path.write_bytes(signed(data, model={"kind": kind, "arguments": arguments}))
    assert_refused(load_checkpoint, path, about)


def decoder(**arguments) -> dict:
    return {"model": {"kind": "DecoderOnlyTransformer", "arguments": arguments}}


OTHER_LIES = {
    "no model": {"model": None},
    "another kind": {"model": {"kind": "Pickle", "arguments": {}}},
    "kinds": {"model": {"kind": [], "arguments": {}}},
    "a config of text": decoder(config="x"),
    "an argument": decoder(exec="x"),
    "a tokenizer of numbers": {"tokenizer": 5},
    "a deep tokenizer": {"tokenizer": DEEP},
    "a version": {"version": [9]},
}


@pytest.mark.parametrize("lie", OTHER_LIES.values(), ids=OTHER_LIES)
def test_a_signed_checkpoint_that_lies_about_its_parts(lie, whole, tmp_path):
    path = tmp_path / "lie.safetensors"
    path.write_bytes(signed(whole[0], **lie))
    assert_refused(load_checkpoint, path)


RUN_LIES = {
    "nothing": {},
    "a misspelt field": {"config": {"steps": 1, "betas": [0.9, 0.98], "stpes": 2}},
    "words for losses": {"history": {"losses": ["a"], "learning_rates": [], "gradient_norms": []}},
    "never saved": {"checkpoint_every": 0},
}


@pytest.mark.parametrize("lie", RUN_LIES)
def test_a_run_that_lies_is_not_gone_on_with(lie, tmp_path):
    from tests.training.small import batches_of, model_of, short

    path = tmp_path / "run.safetensors"
    train(model_of("language model"), batches_of("language model"), short(1), checkpoint=path)
    data = path.read_bytes()
    facts = load_checkpoint(path).training.facts
    path.write_bytes(signed(data, training=facts | RUN_LIES[lie] if RUN_LIES[lie] else {"a": 1}))
    assert_refused(lambda _: resume(path, batches_of("language model"), steps=2), "")


# Safetensors


def entry(dtype="F32", shape=(2,), begin=0, end=8):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


HEADERS = {
    "overlapping": {"a": entry(), "b": entry(begin=4, end=12)},
    "beyond the end": {"a": entry(shape=(HUGE,), end=4 * HUGE)},
    "a shape that overflows": {"a": entry(shape=(2**62, 2**62))},
    "duplicate names": b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
    b'"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
    "numbers for texts": {"__metadata__": {"a": 1}},
    "deep": DEEP.encode(),
    "no text": b"\xff\xfe",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_safetensors_that_lie(header, tmp_path):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
    assert_refused(load_safetensors, path)
    assert_refused(load_checkpoint, path)


# Pickles


class RunsCommand:
    """Would leave a file behind if it were unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


BOMBS = {
    "runs a command": lambda harm: pickle.dumps(RunsCommand(harm)),
    "imports": lambda harm: b'cbuiltins\nexec\n(S\'open("%s", "w")\'\ntR.' % str(harm).encode(),
    "takes memory": lambda harm: b"cbuiltins\nbytearray\n(L1000000000000L\ntR.",
    "is deep": lambda harm: b"(" * 50_000 + b".",
    "an archive": lambda harm: b"PK\x03\x04" + bytes(100),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_pickle_bombs_do_not_go_off(bomb, tmp_path):
    path, harm = tmp_path / "pytorch_model.bin", tmp_path / "harm"
    path.write_bytes(BOMBS[bomb](harm))
    assert_refused(load_pickle, path, "is refused")
    assert not harm.exists()


# Directories of other people's


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {family: tmp_path_factory.mktemp(family) for family in ("gpt2", "llama")}
    for family, folder in made.items():
        library_model(family, **drawn_fields(family, 0)).save_pretrained(folder)
        from_pretrained(folder)
    return made


CONFIG = "config.json"


def copied(folder: Path, new: Path) -> Path:
    for name in (CONFIG, "model.safetensors"):
        (new / name).write_bytes((folder / name).read_bytes())
    return new


FILES = {  # changed fields of the config, or a file
    "vocab.json of texts": ("vocab.json", '{"a": "1"}'),
    "vocab.json, deep": ("vocab.json", DEEP),
    "tokens without ids": ("tokenizer.json", '{"added_tokens": [{}]}'),
    "huge ids": ("vocab.json", '{"a": 1000000000000}'),
    **{f"a config of {text[:9]!r}": (CONFIG, text) for text in (DEEP, "[1]")},
    "a config with many digits": (CONFIG, '{"model_type": ' + "9" * 5000 + "}"),
    "a text": {"vocab_size": "1e9"},
    "huge vectors": {"n_embd": HUGE, "n_head": 1},
    "a huge length": {"n_positions": HUGE},
    "many layers": {"n_layer": 10**9},
    "an activation of no text": {"activation_function": {}},
    "an odd padding": {"pad_token_id": "x"},
    "llama: rope of no object": {"rope_parameters": 5},
    "llama: no heads": {"num_attention_heads": 0, "head_dim": 4},
}


@pytest.mark.parametrize("lie", FILES)
def test_a_config_or_a_vocabulary_that_lies(lie, folders, tmp_path):
    folder = folders["llama" if lie.startswith("llama") else "gpt2"]
    facts, told = json.loads((copied(folder, tmp_path) / CONFIG).read_text()), FILES[lie]
    file, text = (CONFIG, json.dumps(facts | told)) if isinstance(told, dict) else told
    (tmp_path / file).write_text(text)
    assert_refused(from_pretrained, tmp_path)


NAMES = ["../../etc/passwd", "/etc/passwd", "..", "a/b", "a\\b", "C:x", "a\0b", "", "x" * 300]
NAMES += [".hidden", None, ["a"], "\ud800"]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_an_index_may_not_leave_its_folder(name, tmp_path):
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors", "b": name}}))
    assert_refused(parts_of, index, "must be files in its own folder")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    assert_refused(from_pretrained, tmp_path)


@pytest.mark.parametrize("listed", [[], "x", None])
def test_an_index_without_a_list_of_files_is_refused(listed, tmp_path):
    (tmp_path / "no_list.json").write_text(json.dumps({"weight_map": listed}))
    assert_refused(parts_of, tmp_path / "no_list.json")


# Sizes


def giant(path: Path, size: int, begin: bytes = b"") -> Path:
    with path.open("wb") as file:
        file.write(begin)
        file.truncate(size)
    return path


def archive_that_grows(path: Path) -> Path:
    """Write 200 MB of zeros as a pickle of tensors in an archive of less than 1 MB."""
    torch.save({"a": torch.zeros(50_000_000)}, path.with_name("flat"))
    with zipfile.ZipFile(path.with_name("flat")) as flat, zipfile.ZipFile(path, "w") as small:
        for one in flat.infolist():
            small.writestr(one.filename, flat.read(one), zipfile.ZIP_DEFLATED)
    path.with_name("flat").unlink()
    assert path.stat().st_size < 1_000_000
    return path


@pytest.mark.slow
def test_what_would_fill_the_memory_is_refused_first(whole, folders, tmp_path):
    data, config = whole
    lie = {"kind": "EncoderOnlyTransformer", "arguments": {"config": vars(config)}}
    lie["arguments"]["n_classes"] = HUGE
    (tmp_path / "lie.safetensors").write_bytes(signed(data, model=lie))
    for name in ("config", "vocabulary"):
        (tmp_path / name).mkdir()
        copied(folders["gpt2"], tmp_path / name)
    giant(tmp_path / "config" / "config.json", 5 * 10**9, b"{")
    giant(tmp_path / "vocabulary" / "vocab.txt", 5 * 10**9)
    files = {
        "load_checkpoint": tmp_path / "lie.safetensors",
        "load_checkpoint: giant": giant(tmp_path / "giant.safetensors", 5 * 10**9),
        "load_pickle": archive_that_grows(tmp_path / "pytorch_model.bin"),
        "from_pretrained: config": tmp_path / "config",
        "from_pretrained: vocabulary": tmp_path / "vocabulary",
        "parallel_text: one line": giant(tmp_path / "pairs.tsv", 10**9, b"Go.\tGeh.\n"),
        "parallel_text: one text": tmp_path / "long.tsv",
    }
    files["parallel_text: one text"].write_text("Go.\t" + "word " * 10**7)  # 50 times too long
    run = [sys.executable, "-c", MEASURED, json.dumps({k: str(v) for k, v in files.items()})]
    done = subprocess.run(run, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stderr == "", done.stderr[-2000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [name for name, *_ in lines] == list(files)
    for name, named, broken, kibibytes, seconds in lines:
        assert named and not broken, name
        assert kibibytes < 100_000 and seconds < AT_ONCE, (name, kibibytes, seconds)


# Progress


def test_giant_progress_is_set_aside_unread(tmp_path, monkeypatch):
    path = giant(tmp_path / "my_progress.json", 5 * 10**9)
    monkeypatch.setenv(PLACE, str(path))
    with pytest.warns(UserWarning, match="it has more than 10,000,000 bytes"):
        progress()
