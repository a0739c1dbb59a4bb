"""Real models in our modules: the library's numbers, and answers that make sense."""

import subprocess
import sys

import gguf
import pytest
import torch
import transformers
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from tests.checkpoints.hard_texts import TEXTS
from tests.real_weights import needs_weights
from transformer_lesson.checkpoints import FAMILIES, compare_layers, from_pretrained
from transformer_lesson.checkpoints.gguf import read_gguf
from transformer_lesson.checkpoints.llama_cpp import our_name, read_tokenizer
from transformer_lesson.checkpoints.weights import COURSE, weights
from transformer_lesson.checkpoints.zero_copy import parameters_on_meta
from transformer_lesson.generation import generate
from transformer_lesson.text.chat_templates import template_prompt
from transformer_lesson.text.pretrained import PretrainedTokenizer, chat_prompt

pytestmark = pytest.mark.slow
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
QUESTION = [("system", SYSTEM), ("user", "What is the capital of France?")]


@pytest.fixture(scope="module")
def smollm2():
    return from_pretrained(weights("SmolLM2"))


@pytest.fixture(scope="module")
def words():
    return read_tokenizer(weights("SmolLM2"))


@pytest.fixture(scope="module")
def theirs():
    """The library's Llama, read by its own loader of GGUF files."""
    path = str(weights("SmolLM2"))
    config = transformers.LlamaConfig(**load_gguf_checkpoint(path)["config"])
    model = transformers.LlamaForCausalLM(config)
    read = load_gguf_checkpoint(path, return_tensors=True, model_to_load=model)["tensors"]
    assert model.load_state_dict(read, strict=False).missing_keys == ["lm_head.weight"]
    return model.eval()


@pytest.mark.everything
@needs_weights("SmolLM2")
@torch.no_grad()
def test_smollm2_gives_the_librarys_logits(smollm2, theirs, words):
    for messages in (QUESTION, [("user", "Count from 1 to 12. Ça va? 日本")]):
        ids = torch.tensor([chat_prompt(words, messages)])
        comparison = compare_layers(smollm2, theirs, ids, quiet=True)
        assert comparison.first is None and len(comparison.layers) == 3 * 30 + 3
        logits = comparison.layers[-1]
        assert logits.scale > 20 and logits.largest < 5e-6 * logits.scale


@needs_weights("SmolLM2")
def test_smollm2_knows_the_capital_of_france(smollm2, words):
    written = generate(smollm2, chat_prompt(words, QUESTION), 20)
    assert words.decode(written.ids[0]) == "The capital of France is Paris."
    assert written.ids[0][-1] == words.vocabulary["<|im_end|>"] and written.finished == [True]


@needs_weights("SmolLM2")
def test_the_chat_is_the_one_that_the_file_describes(words):
    another = read_tokenizer(weights("SmolLM2"))._library
    another.encode_special_tokens = False  # the library's way: a template is one text
    template = read_gguf(weights("SmolLM2")).metadata["tokenizer.chat_template"]
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=another, chat_template=template)
    more = [*QUESTION, ("assistant", "Paris."), ("user", "And\n\n of  Spain, in 1999?")]
    for messages in (QUESTION, more, more[1:]):
        told = [{"role": role, "content": text} for role, text in messages]
        expected = theirs.apply_chat_template(told, add_generation_prompt=True)
        spoken = messages if messages[0][0] == "system" else [QUESTION[0], *messages]
        assert chat_prompt(words, spoken) == expected["input_ids"]
        assert template_prompt(words, messages) == expected["input_ids"]


@pytest.fixture(scope="module")
def minilm():
    folder = weights("MiniLM")
    names = {"bos": "[CLS]", "eos": "[SEP]", "pad": "[PAD]", "unk": "[UNK]"}
    words = PretrainedTokenizer.from_file(folder / "tokenizer.json", **names)
    return from_pretrained(folder), words, transformers.BertModel.from_pretrained(folder)


SENTENCES = [
    "How do I end a loop early?",
    'The "break" statement terminates the nearest enclosing loop.',
    "A tuple is an immutable sequence; über-naïve CAPS, 12.5%!",
]


@needs_weights("MiniLM")
@torch.no_grad()
def test_minilm_gives_the_librarys_vectors(minilm):
    ours, words, theirs = minilm
    rows = [words.encode(sentence, add_special=True) for sentence in SENTENCES]
    n = max(map(len, rows))
    ids = torch.tensor([row + [words.pad_id] * (n - len(row)) for row in rows])
    comparison = compare_layers(ours, theirs.eval(), (ids,), quiet=True)
    assert comparison.first is None and len(comparison.layers) == 1 + 4 * 6
    real = (ids != words.pad_id).unsqueeze(-1)
    expected = theirs(ids, attention_mask=real.squeeze(-1).long()).last_hidden_state
    assert ((ours(ids) - expected) * real).abs().max() < 1e-5


@needs_weights("MiniLM")
def test_minilms_tokens_are_the_librarys(minilm):
    _, words, _ = minilm
    folder = weights("MiniLM")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    for sentence in (*SENTENCES, "", "[MASK] is typed", "a\tb  c"):
        given = sentence.replace("[MASK]", "mask")
        expected = theirs(given, truncation=False, padding=False).input_ids
        assert words.encode(given, add_special=True) == expected
    assert words.vocabulary["[MASK]"] not in words.encode("[MASK] is typed")


@needs_weights("RXNMapper")
@torch.no_grad()
def test_rxnmapper_gives_the_librarys_outputs():
    ours = from_pretrained(weights("RXNMapper"))
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(weights("RXNMapper")).eval()
    comparison = compare_layers(ours, theirs, torch.arange(11, 40)[None], quiet=True)
    assert comparison.first is None and len(comparison.layers) == 3 * 12 + 3


GEMMA = {  # as Google's config.json has it; layers, windows and angles are the library's own
    **{"vocab_size": 262144, "hidden_size": 640, "intermediate_size": 2048, "head_dim": 256},
    **{"num_hidden_layers": 18, "num_attention_heads": 4, "num_key_value_heads": 1},
    **{"sliding_window": 512, "query_pre_attn_scalar": 256, "max_position_embeddings": 32768},
}
TEXTS_FOR_GEMMA = (
    "To peel a peach, drop it into boiling water for ten seconds.",
    "Ça va? 日本の首都は東京です。 Где библиотека? 👩‍👩‍👧",
    "def f(x):\n    return {k: v for k, v in x.items() if v > 3.14}\n\n\n",
)


@pytest.fixture(scope="module")
def gemma():
    path = weights("Gemma")
    return from_pretrained(path), read_tokenizer(path)


@pytest.fixture(scope="module")
def gemmas_peer():
    """The library's Gemma with the file's numbers as the package gguf reads them."""
    family, tensors = FAMILIES["gemma3_text"], {}
    for tensor in gguf.GGUFReader(weights("Gemma")).tensors:
        W = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
        tensors[family.rename(our_name(tensor.name, family))] = W - 1 if W.dim() == 1 else W
    with parameters_on_meta():
        model = transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(**GEMMA))
    missing = model.load_state_dict(tensors, strict=False, assign=True).missing_keys
    assert missing == ["lm_head.weight"]
    model.tie_weights()
    return model.eval()


@pytest.mark.everything
@needs_weights("Gemma")
@torch.no_grad()
def test_gemma_gives_the_librarys_logits_past_its_window_too(gemma, gemmas_peer):
    ours, words = gemma
    for text in TEXTS_FOR_GEMMA:
        ids = torch.tensor([words.start(text)])
        expected = gemmas_peer(ids).logits
        assert (ours(ids) - expected).abs().max() < 5e-6 * expected.abs().max()
    long = words.start((COURSE / "CONTRIBUTING.md").read_text(encoding="utf-8"))[:600]
    expected = gemmas_peer(torch.tensor([long]), logits_to_keep=1).logits
    logits = ours(torch.tensor([long]), last_only=True)
    assert (logits - expected).abs().max() < 5e-6 * expected.abs().max()
    options = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    written = gemmas_peer.generate(torch.tensor([long]), **options)[0, len(long) :].tolist()
    assert generate(ours, long, 8, eos_id=None).ids[0] == written


@pytest.mark.everything
@needs_weights("Gemma")
def test_gemmas_tokens_are_the_librarys(gemma):
    _, words = gemma
    path = weights("Gemma")
    theirs = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    for text in TEXTS:  # whose marks are ordinary characters, here
        assert words.start(text) == theirs(text, split_special_tokens=True).input_ids, text


LOADED = """
import time, torch
torch.set_num_threads(1)
from transformer_lesson.checkpoints import from_pretrained
from transformer_lesson.checkpoints.llama_cpp import read_tokenizer
from transformer_lesson.checkpoints.weights import weights
start = time.process_time()
path = weights("Gemma")
model, words = from_pretrained(path), read_tokenizer(path)
print(time.process_time() - start)
"""


@needs_weights("Gemma")
def test_gemma_is_here_within_ten_seconds_of_the_processor():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, check=True)
    assert float(done.stdout) < 10


@pytest.mark.everything
@needs_weights("Gemma")
def test_gemma_continues_a_list(gemma):
    model, words = gemma
    written = generate(model, words.start("Monday, Tuesday, Wednesday,"), 3, eos_id=None)
    assert words.decode(written.ids[0]).startswith(" Thursday, Friday")
