"""Look for files at which a loader crashes: `make fuzz`, or `make fuzz SECONDS=600`.

Atheris changes the bytes of valid files again and again, and keeps what reaches new lines of our
code. A loader may return or raise `ValueError` of one line; anything else is a find, which is
printed with the file that led to it. Each loader runs in a process of its own.
"""

import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

LOADERS = ("checkpoint", "facts", "config", "pickle", "pairs", "tokenizer", "progress")
MOST_MEMORY = 2048  # MB, far above what PyTorch takes
MISSING = (
    "The fuzzer is missing: run `make fuzz`, which installs it into .fuzz, or install it with "
    "`pip install atheris`."
)


def seeds(loader: str, folder: Path) -> list[bytes]:
    """Return valid files of a loader, from which the changes begin."""
    from transformer_lesson.checkpoints import save_checkpoint, to_transformers
    from transformer_lesson.exercises.progress import FORMAT
    from transformer_lesson.text.tokenizers import BytePairTokenizer, WordTokenizer

    if loader == "pairs":
        return [b"Go.\tGeh.\n1\tone\t2\teins\n", b"\xef\xbb\xbfa\tb\r\n", "ä\tß\n".encode()]
    if loader == "tokenizer":
        kinds = WordTokenizer, BytePairTokenizer
        return [kind.train(["ab ab cd"]).to_json().encode() for kind in kinds]
    if loader == "progress":
        state = {"format": FORMAT, "passed": {"a": True}, "predicted": {"b": {"right": True}}}
        return [json.dumps(state).encode()]
    model = tiny_model()
    if loader == "checkpoint":
        save_checkpoint(folder / "seed", model, WordTokenizer.train(["a b"]))
        return [(folder / "seed").read_bytes()]
    if loader == "facts":
        save_checkpoint(folder / "seed", model, WordTokenizer.train(["a b"]))
        return [json.dumps(header_facts((folder / "seed").read_bytes())).encode()]
    to_transformers(model, folder / "theirs")
    if loader == "config":
        return [(folder / "theirs" / "config.json").read_bytes()]
    import torch

    torch.save(model.state_dict(), folder / "seed")
    return [(folder / "seed").read_bytes()]


def tiny_model():
    """Return a GPT-2 of a few numbers."""
    from transformer_lesson import DecoderOnlyTransformer, ModelConfig

    config = ModelConfig(
        7, 4, 2, 1, 8, 8, activation="gelu_tanh", positions="learned", scale_embedding=False
    )
    return DecoderOnlyTransformer(config)


def header_facts(data: bytes) -> dict:
    """Return what a checkpoint of ours says about itself."""
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return json.loads(header["__metadata__"]["transformer_lesson"])


def target(loader: str, folder: Path) -> Callable[[bytes], object]:
    """Return what is done with the bytes that the fuzzer makes."""
    from transformer_lesson.checkpoints import from_pretrained, load_checkpoint, save_checkpoint
    from transformer_lesson.checkpoints.untrusted import load_pickle
    from transformer_lesson.exercises.progress import read_progress
    from transformer_lesson.text import parallel_text
    from transformer_lesson.text.tokenizers import tokenizer_from_json

    file = folder / "file"
    whole = folder / "whole"
    save_checkpoint(whole, tiny_model())
    original = whole.read_bytes()

    def read(call):
        def with_file(data):
            file.write_bytes(data)
            call(file)

        return with_file

    def signed(data):
        file.write_bytes(resigned(original, data))
        load_checkpoint(file)

    def config(data):
        (folder / "theirs" / "config.json").write_bytes(data)
        from_pretrained(folder / "theirs")

    return {
        "checkpoint": read(load_checkpoint),
        "facts": signed,
        "config": config,
        "pickle": read(load_pickle),
        "pairs": read(parallel_text),
        "tokenizer": lambda data: tokenizer_from_json(data.decode(errors="replace")),
        "progress": read(read_progress),
    }[loader]


def resigned(original: bytes, facts: bytes) -> bytes:
    """Return a checkpoint with other facts and the sum that fits them."""
    import hashlib

    from safetensors.torch import load, save

    text = facts.decode(errors="replace")
    data = save(load(original), metadata={"transformer_lesson": text})
    recorded = text[len('{"sha256": "') :][:64]
    data = data.replace(recorded.encode(), b"0" * 64, 1) if recorded else data
    return data.replace(b"0" * 64, hashlib.sha256(data).hexdigest().encode(), 1)


def fuzz(loader: str, seconds: int) -> None:
    """Fuzz one loader in this process, which ends when it is done."""
    try:
        import atheris
    except ModuleNotFoundError:
        sys.exit(MISSING)
    with atheris.instrument_imports(include=["transformer_lesson"]):
        pass
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(seeds(loader, folder)):
        (corpus / str(number)).write_bytes(seed)
    call = target(loader, folder)

    def once(data: bytes) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call(data)
        except ValueError as error:
            assert "\n" not in str(error), error
        for kept in folder.glob("*.damaged-*.json"):
            kept.unlink()

    limits = [f"-max_total_time={seconds}", f"-rss_limit_mb={MOST_MEMORY}", "-timeout=10"]
    options = [f"-artifact_prefix={folder}/", "-print_final_stats=1", "-max_len=65536"]
    atheris.Setup([sys.argv[0], *limits, *options, "-seed=1", str(corpus)], once)
    atheris.Fuzz()


def main(seconds: str = "60", loader: str = "") -> int:
    """Fuzz one loader, or all of them one after the other; return how many had a find."""
    if loader:
        fuzz(loader, int(seconds))
        return 0
    finds = 0
    for name in LOADERS:
        run = [sys.executable, __file__, seconds, name]
        done = subprocess.run(run, capture_output=True, text=True, errors="replace")
        if done.returncode and MISSING in done.stderr:
            sys.exit(MISSING)
        runs = [line for line in done.stderr.splitlines() if "number_of_executed_units" in line]
        print(f"{name}: {runs[0].split()[-1] if runs else 'no'} files, rc {done.returncode}")
        if done.returncode:
            finds += 1
            print(done.stdout[-3000:], done.stderr[-3000:], sep="\n")
    return finds


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
