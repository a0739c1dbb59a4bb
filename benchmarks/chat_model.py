"""A chat model: how fast it writes, how much memory it takes, and what fewer bits cost."""

import copy
import subprocess
import sys
from collections.abc import Callable

import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn

from benchmarks.results import THREADS, Row, write
from benchmarks.timing import at_least, interleaved, ratios
from transformer_lesson.checkpoints import FAMILIES, from_pretrained
from transformer_lesson.checkpoints.llama_cpp import packed_llama, read_tokenizer
from transformer_lesson.checkpoints.weights import weights
from transformer_lesson.generation import generate
from transformer_lesson.model.packed import in_eight_bits
from transformer_lesson.text import manual
from transformer_lesson.text.pretrained import chat_prompt

N_NEW, ROUNDS, N_READ = 64, 7, 512
QUESTIONS = (
    "What is the capital of France?",
    "Why is the sky blue?",
    "What is a transformer in machine learning?",
    "How do bees make honey?",
    "Write a sentence about the sea.",
    "Why do we have seasons?",
)
NOTES = """
SmolLM2-135M-Instruct from its GGUF file (Q4_1: 4 bits a number and a scale for 32; the embedding in
8 bits). Greedy, "Why is the sky blue?" in the form of a chat, 64 tokens. The library has the same
numbers, dequantized, as its own loader of GGUF files has them, and in float32 both write the same
tokens (asserted). A ratio is the library's seconds divided by ours, so larger is faster. "4 bits"
is `packed_llama`: the file's own numbers, multiplied by PyTorch's kernels for bfloat16. "8 bits"
rounds each row to 255 levels.

Answers: how many of the tokens that float32 writes for six questions each form of the weights
writes as well before it first says something else, and the loss on sentences of CPython's manual.
Reading: a prompt of 512 tokens and the first token after it, which both sides choose alike
(asserted).
Memory: the process's largest resident set while it loads the file and writes 32 tokens, less what
it was after the imports and one small product, divided by the bytes of the weights.
"""
MEMORY = """
import psutil, torch
from transformer_lesson.checkpoints import from_pretrained
from transformer_lesson.checkpoints.llama_cpp import packed_llama
from transformer_lesson.checkpoints.weights import weights
from transformer_lesson.generation import generate
torch.set_num_threads({threads})
for dtype in (torch.float32, torch.bfloat16):  # the libraries' code is memory, too
    torch.nn.Linear(576, 576, dtype=dtype)(torch.ones(1, 576, dtype=dtype))
before = psutil.Process().memory_info().rss
model = {load}(weights("SmolLM2"))
generate(model, list(range(1000, 1032)), 32, eos_id=None)
held = {{part.data_ptr(): part.nbytes for part in [*model.parameters(), *model.buffers()]}}
lines = dict(line.split(":") for line in open("/proc/self/status"))
peak = int(lines["VmHWM"].split()[0]) * 1024  # since the process began
print(peak - before, sum(held.values()))
"""


def library_twin(model: nn.Module, kind: str = "llama") -> nn.Module:
    """Return the library's model of a family, by its name there, with the same numbers."""
    family = FAMILIES[kind]
    config = transformers.AutoConfig.for_model(kind, **family.write_config(model))
    theirs = transformers.AutoModelForCausalLM.from_config(config)
    weights_of = {family.rename(name): W for name, W in model.state_dict().items()}
    theirs.load_state_dict(family.pack(weights_of, model.config))
    return theirs.eval()


def forms_of(model: nn.Module) -> dict[str, nn.Module]:
    """Return one model with its weights in several formats."""
    return {
        "float32": model,
        "bfloat16": copy.deepcopy(model).bfloat16(),
        "float16": copy.deepcopy(model).half(),
        "8 bits": in_eight_bits(copy.deepcopy(model)),
        "4 bits": packed_llama(weights("SmolLM2")),
    }


def speed(forms: dict[str, nn.Module], theirs: nn.Module, prompt: Tensor) -> list[Row]:
    """Return a row for each form of the weights: how much faster it writes than the library."""

    def library(model: nn.Module) -> Callable[[], list[int]]:
        options = {"max_new_tokens": N_NEW, "min_new_tokens": N_NEW, "do_sample": False}
        options |= {"attention_mask": torch.ones_like(prompt), "pad_token_id": 0}
        return lambda: model.generate(prompt, **options)[0, prompt.size(1) :].tolist()

    def ours(model: nn.Module) -> Callable[[], list[int]]:
        return lambda: generate(model, prompt, N_NEW, eos_id=None).ids[0]

    runs = {"library": library(theirs), "float32": ours(forms["float32"])}
    for name in ("bfloat16", "float16"):  # a model beside its peer
        runs[f"library, {name}"] = library(copy.deepcopy(theirs).to(getattr(torch, name)))
        runs[name] = ours(forms[name])
    runs |= {name: ours(model) for name, model in forms.items() if name not in runs}
    assert runs["float32"]() == runs["library"]()
    seconds = interleaved(runs, ROUNDS, warm_up=1)
    peer = f"`transformers` in float32 = 1.00 ({N_NEW / min(seconds['library']):.0f} tokens/s)"
    rows = []
    for name in forms:
        speed_ups = ratios(seconds["library"], seconds[name])
        limit = 1.2 if name == "4 bits" else 0.0
        rows.append(Row(f"Greedy, weights in {name}", peer, "–", *at_least(limit, speed_ups)))
        if f"library, {name}" in seconds:
            same = at_least(0.0, ratios(seconds[f"library, {name}"], seconds[name]))
            rows.append(Row(f"The same, {name} on both sides", "1.00", "–", *same))
    return [row if row.reach.endswith("1.20") else row._replace(reach="–", reached=None)
            for row in rows]  # fmt: skip


def long_prompt(words) -> Tensor:
    """Return the first ids of a chapter of CPython's manual, shape (1, N_READ)."""
    return torch.tensor([words.encode(" ".join(manual.sentences("execmodel")))[:N_READ]])


def reading(model: nn.Module, theirs: nn.Module, words) -> Row:
    """Return a row for a long prompt: only the logits of its last token are needed."""
    prompt = long_prompt(words)
    options = {"max_new_tokens": 1, "do_sample": False, "pad_token_id": 0}
    options |= {"attention_mask": torch.ones_like(prompt)}
    runs = {
        "library": lambda: theirs.generate(prompt, **options)[0, prompt.size(1) :].tolist(),
        "ours": lambda: generate(model, prompt, 1, eos_id=None).ids[0],
    }
    assert prompt.size(1) == N_READ and runs["ours"]() == runs["library"]()
    seconds = interleaved(runs, ROUNDS, warm_up=1)
    peer = f"`transformers` in float32 = 1.00 ({min(seconds['library']):.2f} s)"
    speed_ups = ratios(seconds["library"], seconds["ours"])
    return Row(f"Reads {N_READ} tokens, float32", peer, "–", *at_least(0.9, speed_ups))


def answers(forms: dict[str, nn.Module], words) -> list[Row]:
    """Return a row for each form of the weights: where its answers differ from float32's."""
    prompts = [chat_prompt(words, [("user", question)]) for question in QUESTIONS]
    texts = {
        name: [generate(model, prompt, N_NEW).ids[0] for prompt in prompts]
        for name, model in forms.items()
    }
    ids = torch.tensor([words.encode(" ".join(manual.EXAMPLES))])
    rows = []
    for name, model in forms.items():
        pairs = zip(texts[name], texts["float32"], strict=True)
        same = sum(first_difference(text, exact) for text, exact in pairs)
        with torch.no_grad():
            loss = F.cross_entropy(model(ids[:, :-1])[0].float(), ids[0, 1:]).item()
        measured = f"**{same} of {sum(map(len, texts['float32']))}** tokens, {loss:.3f} nats"
        rows.append(Row(f"Answers, weights in {name}", "float32", "–", "–", measured, None))
    return rows


def first_difference(one: list[int], other: list[int]) -> int:
    """Return how many tokens two texts have in common from their beginning."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def memory() -> list[Row]:
    """Return a row for each way to load the file: its peak, relative to the weights."""
    rows = []
    for name, load in {"float32": "from_pretrained", "4 bits": "packed_llama"}.items():
        program = MEMORY.format(threads=THREADS, load=load)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
        peak, held = map(int, done.stdout.split())
        measured = f"**{peak / held:.2f}** ({peak / 1e6:.0f} of {held / 1e6:.0f} MB)"
        enough = peak <= 1.1 * held
        rows.append(Row(f"Peak, weights in {name}", "–", "2.4", "at most 1.1", measured, enough))
    return rows


def main() -> None:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(THREADS)
    path = weights("SmolLM2")
    words, model = read_tokenizer(path), from_pretrained(path)
    theirs, forms = library_twin(model), forms_of(model)
    prompt = torch.tensor([chat_prompt(words, [("user", QUESTIONS[1])])])
    rows = [*speed(forms, theirs, prompt), reading(model, theirs, words)]
    rows += [*answers(forms, words), *memory()]
    write("chat_model", rows, NOTES)


if __name__ == "__main__":
    main()
