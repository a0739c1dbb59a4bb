"""Real models in our modules: the library's numbers, and answers that make sense."""

import time

import pytest
import torch
import transformers
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from tests.real_weights import needs_weights
from transformer_lesson.checkpoints import compare_layers, from_pretrained
from transformer_lesson.checkpoints.gguf import read_gguf
from transformer_lesson.checkpoints.llama_cpp import read_tokenizer
from transformer_lesson.checkpoints.weights import weights
from transformer_lesson.generation import generate
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


@pytest.fixture(scope="module")
def gemma():
    path = weights("Gemma")
    return from_pretrained(path), read_tokenizer(path)


@pytest.mark.everything
@needs_weights("Gemma")
@torch.no_grad()
def test_gemma_gives_the_librarys_logits_past_its_window_too(gemma):
    ours, words = gemma
    path = weights("Gemma")
    options = {"gguf_file": path.name, "dtype": torch.float32}
    theirs = transformers.Gemma3ForCausalLM.from_pretrained(path.parent, **options).eval()
    ids = torch.tensor([words.start("To peel a peach, drop it into boiling water. Ça va? 日本")])
    expected = theirs(ids).logits
    assert (ours(ids) - expected).abs().max() < 5e-6 * expected.abs().max()
    ids = ids.repeat(1, 40)[:, :540]
    expected = theirs(ids, logits_to_keep=1).logits
    assert (ours(ids, last_only=True) - expected).abs().max() < 5e-6 * expected.abs().max()


@needs_weights("Gemma")
def test_gemma_is_here_within_ten_seconds_of_the_processor_and_continues_a_list():
    start = time.process_time()
    path = weights("Gemma")
    model, words = from_pretrained(path), read_tokenizer(path)
    assert time.process_time() - start < 10
    written = generate(model, words.start("Monday, Tuesday, Wednesday,"), 3, eos_id=None)
    assert words.decode(written.ids[0]).startswith(" Thursday, Friday")
