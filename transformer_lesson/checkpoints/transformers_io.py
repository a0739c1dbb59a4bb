"""Other people's checkpoints in the Hugging Face library's format: into our models and back."""

import json
from dataclasses import fields
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from transformer_lesson.checkpoints.albert import AlbertFamily
from transformer_lesson.checkpoints.bert import BertFamily, DistilBertFamily, RobertaFamily
from transformer_lesson.checkpoints.family import Facts, Family, Tensors
from transformer_lesson.checkpoints.gguf import GGUF, is_gguf, read_gguf
from transformer_lesson.checkpoints.gpt2 import GPT2Family, OPTFamily
from transformer_lesson.checkpoints.gpt_neox import NEOX
from transformer_lesson.checkpoints.hub import fetch, is_hub_name
from transformer_lesson.checkpoints.library_tokenizer import tokenizer_files
from transformer_lesson.checkpoints.llama import RELATIVES
from transformer_lesson.checkpoints.llama_cpp import stored_llama
from transformer_lesson.checkpoints.llama_cpp_t5 import KIND as T5_KIND
from transformer_lesson.checkpoints.llama_cpp_t5 import stored_t5
from transformer_lesson.checkpoints.marian import MarianFamily
from transformer_lesson.checkpoints.own_format import KINDS, check_weights
from transformer_lesson.checkpoints.t5 import MT5Family, T5Family
from transformer_lesson.checkpoints.untrusted import (
    CONFIG,
    WEIGHTS,
    Stored,
    read_directory,
    read_model,
    readable_errors,
    require_room,
)
from transformer_lesson.checkpoints.zero_copy import (
    SkipsRandomInit,
    parameters_on_meta,
    take_over,
)
from transformer_lesson.files import printable, write_atomically
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.feed_forward import GATES
from transformer_lesson.model.transformers import (
    DecoderOnlyTransformer,
    EncoderDecoderTransformer,
    EncoderOnlyTransformer,
)
from transformer_lesson.text.tokenizers import Tokenizer

GPT2, BERT, ALBERT = GPT2Family(), BertFamily(), AlbertFamily()
MARIAN, LLAMA = MarianFamily(), RELATIVES[0]
MODEL = WEIGHTS[0]
WRITTEN_BY, US = "written_by", "transformer_lesson"
"""Marks our own files of weights; the library's `save_pretrained` writes no such mark."""
T5 = T5Family()
OTHERS = OPTFamily(), RobertaFamily(), DistilBertFamily(), MT5Family()
"""They are read, and written as a GPT-2, a BERT or a T5, which compute the same."""
FAMILIES = {
    family.model_type: family
    for family in (GPT2, BERT, ALBERT, MARIAN, T5, NEOX, *RELATIVES, *OTHERS)
}


def from_pretrained(source) -> nn.Module:
    """Return our model with the weights of a checkpoint, in float32 and evaluation mode.

    GPT-2, GPT-NeoX, Llama and its `RELATIVES` become a `DecoderOnlyTransformer`, BERT an
    `EncoderOnlyTransformer` with its own parts (`BertTransformer`, with a token head if the
    checkpoint has one), ALBERT a BERT whose layers share one block (`AlbertTransformer`), T5 an
    `EncoderDecoderTransformer`, Marian one with its own parts (`MarianTransformer`). The model is
    returned whole or not at all: every tensor must have its place.

    Args:
        source: a directory in the library's format (config.json and model.safetensors, or a
            pickle, which is read with `weights_only=True`); a file of weights in one; a Llama, a
            relative, a GPT-NeoX or a T5 in a GGUF file (known by its first bytes, whatever its
            name), whose numbers are dequantized; a live model of the library; or a name on the
            Hugging Face Hub. Only a name uses the network, and only if it is not on this machine
            yet.

    Raises:
        ValueError: a family that our models do not have, a field of the config that they cannot
            represent, tensors that are missing, too many or of another shape, damaged or unsafe
            files, or a tokenizer with ids that the model does not have.
        ConnectionError: a name on the Hub, and no network.

    Differs: the library recognizes padding by a mask, our models by its id; see `padding_of`.
    """
    stored = _read(source)
    try:
        return _fill(stored)
    except ValueError as error:
        raise ValueError(f"{stored.where}: {error}") from error


def check_gguf(file: GGUF) -> None:
    """Judge by its head whether `from_pretrained` can read a GGUF file.

    Raises:
        ValueError: it cannot.
    """
    _fill(_stored(file, with_numbers=False))


def _stored(file: GGUF, with_numbers: bool = True) -> Stored:
    """Return config and tensors of a GGUF file as the library's."""
    is_t5 = file.metadata.get("general.architecture") == T5_KIND
    return (stored_t5 if is_t5 else stored_llama)(file, with_numbers)


def family_of(facts: Facts) -> Family:
    """Return the family of a config.

    Raises:
        ValueError: it is none of ours.
    """
    family = facts.get("model_type")
    if not isinstance(family, str) or family not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise ValueError(f"model_type is {family!r}, but only {known} can be loaded.")
    return FAMILIES[family]


def _read(source) -> Stored:
    if hasattr(source, "state_dict") and hasattr(source, "config"):
        if not hasattr(source.config, "to_dict"):
            raise ValueError(
                f"a {type(source).__name__} is not a model of the library transformers."
            )
        return read_model(source)
    if not isinstance(source, str | Path):
        raise ValueError(
            f"source is a {type(source).__name__}, but it must be a directory, a name on the Hub "
            "or a model of the library transformers."
        )
    path = Path(source)
    if path.suffix == ".gguf" or is_gguf(path):
        return _stored(read_gguf(path))
    if path.exists():
        return read_directory(path)
    if isinstance(source, str) and is_hub_name(source):
        return read_directory(fetch(source))._replace(where=source)
    raise ValueError(
        f"{source}: there is no such directory, and it is not a name on the Hub. (Of a model of "
        "Ollama's, `gguf_of` gives the file.)"
    )


def _fill(stored: Stored) -> nn.Module:
    facts = _without_dequantized(stored)
    family = family_of(facts)
    with readable_errors(CONFIG):
        configs = family.read_config(facts)
        require_room(family.stored(configs, facts), stored.tensors)
        tensors = family.tidy(facts, _with_prefix(family, stored.tensors))
    with parameters_on_meta():
        model = family.build(configs, facts, tensors)
    tensors = _without_twins(family, model, tensors)
    _check(family.packed(model), tensors)
    weights = family.unpack(tensors, model.config)
    take_over(model, {name: weights[family.rename(name)] for name, _ in model.named_parameters()})
    return model.eval()


def _without_dequantized(stored: Stored) -> Facts:
    """Leave out a GGUF file's quantization if the library has dequantized its numbers.

    Its config still names it.
    """
    quantization = stored.facts.get("quantization_config")
    is_gguf = isinstance(quantization, dict) and quantization.get("quant_method") == "gguf"
    if is_gguf and all(map(_is_real, stored.tensors.values())):
        return {name: fact for name, fact in stored.facts.items() if fact is not quantization}
    return stored.facts


def _with_prefix(family: Family, tensors: Tensors) -> Tensors:
    """Add the prefix that a checkpoint without a head leaves out."""
    if any(name.startswith(family.prefix) for name in tensors):
        return dict(tensors)
    return {family.prefix + name: tensor for name, tensor in tensors.items()}


def _without_twins(family: Family, model: nn.Module, tensors: Tensors) -> Tensors:
    """Keep one of several names of the same matrix; refuse if they are not equal."""
    tensors = dict(tensors)
    for name, aliases in family.aliases(model).items():
        present = [alias for alias in (name, *aliases) if alias in tensors]
        for other in present[1:]:
            if not torch.equal(tensors[present[0]], tensors[other]):
                raise ValueError(
                    f"{present[0]} and {other} differ, but tie_word_embeddings says that they are "
                    "one matrix."
                )
        if present:
            twins = [tensors.pop(alias) for alias in present]
            tensors[name] = twins[0]
    return tensors


def _check(expected: Tensors, tensors: Tensors) -> None:
    """Refuse a set of tensors that is not exactly the model's, and list by name what is wrong."""
    both = [name for name in expected if name in tensors]
    wrong = {
        "missing": [name for name in expected if name not in tensors],
        "extra": [name for name in tensors if name not in expected],
        "of another shape": [
            f"{name} {tuple(tensors[name].shape)} instead of {tuple(expected[name].shape)}"
            for name in both
            if tensors[name].shape != expected[name].shape
        ],
        "not of floating point": [name for name in both if not _is_real(tensors[name])],
    }
    parts = [f"{kind}: {printable(', '.join(names))}" for kind, names in wrong.items() if names]
    if parts:
        raise ValueError(f"its tensors are not those of its config; {'; '.join(parts)}.")


def _is_real(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.element_size() > 1


def to_transformers(
    model: nn.Module, directory: str | Path, tokenizer: Tokenizer | None = None
) -> Path:
    """Write a model as the library's GPT-2, Llama, BERT, ALBERT, Marian or T5, in files it loads.

    What a Llama has no field for is written as one of its `RELATIVES`, or as a GPT-NeoX.

    That is config.json and model.safetensors, and with a tokenizer what `AutoTokenizer` reads and
    generation_config.json, which makes the library's `generate` write as ours does. The library
    need not be installed. The paper's translator becomes a Marian and a model with GPT-2's blocks a
    GPT-2, with other weights that compute the same; see `as_marian` and `as_gpt2`.

    Args:
        model: one of ours whose config one of the families can represent.
        directory: created if it does not exist; files of these names in it are replaced.
        tokenizer: of the model's vocabulary.

    Returns:
        The directory, for `AutoModel.from_pretrained`.

    Raises:
        ValueError: a model or a config that the family cannot represent; the message names the
            field. Or weights that are not those of the config, or a tokenizer of another
            vocabulary.
        OSError: a file cannot be written.
    """
    family = nearest_family(model)
    check_weights(model)
    _check_vocabulary(model, tokenizer)
    with SkipsRandomInit():
        model = family.converted(model)
    facts = family.write_config(model)
    _check_round_trip(family, model, facts)
    head = not isinstance(model, EncoderOnlyTransformer) or model.projection is not None
    architecture = (
        family.architecture if head else family.architecture.replace("ForMaskedLM", "Model")
    )
    facts |= {"architectures": [architecture], "model_type": family.model_type, "dtype": "float32"}
    files = {MODEL: _packed(family, model, head)}
    if tokenizer:
        files |= tokenizer_files(tokenizer, model)
    if tokenizer and not isinstance(model, EncoderOnlyTransformer):
        files["generation_config.json"] = _as_json(_writing(model, facts, tokenizer))
    files[CONFIG] = _as_json(facts)
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_atomically(directory / name, content)
    return directory


def _check_vocabulary(model: nn.Module, tokenizer: Tokenizer | None) -> None:
    for config in {model.config, getattr(model, "source_config", model.config)}:
        if tokenizer and tokenizer.vocab_size != config.vocab_size:
            raise ValueError(
                f"the tokenizer has {tokenizer.vocab_size} tokens, but the model "
                f"{config.vocab_size}: pass the one that it was trained with."
            )


def _packed(family: Family, model: nn.Module, head: bool) -> bytes:
    """Return model.safetensors, with each matrix under all of its names in the library."""
    tensors = {name: w.float().cpu().contiguous() for name, w in family.packed(model).items()}
    if not head:
        tensors = {name.removeprefix(family.prefix): w for name, w in tensors.items()}
    tensors |= {
        twin: tensors[name].clone()
        for name, twins in family.aliases(model).items()
        for twin in twins
    }
    return save(tensors, metadata={"format": "pt", WRITTEN_BY: US})


def is_ours(directory: Path) -> bool:
    """Whether the weights in a directory are as `to_transformers` wrote them."""
    try:
        with safe_open(directory / MODEL, framework="pt") as file:
            return (file.metadata() or {}).get(WRITTEN_BY) == US
    except (OSError, SafetensorError):  # no such file, or another kind of file
        return False


def _writing(model: nn.Module, facts: Facts, tokenizer: Tokenizer) -> dict:
    """Return the library's settings that make it write as `generate` does, to the last token."""
    ids = ("bos_token_id", "eos_token_id", "decoder_start_token_id")
    settings = {name: facts[name] for name in ids if name in facts}
    if facts["pad_token_id"] is not None:
        settings["bad_words_ids"] = [[facts["pad_token_id"]]]  # `<pad>` is never written
    return settings | {"pad_token_id": tokenizer.pad_id, "max_length": model.config.max_len}


def _as_json(facts: Facts) -> bytes:
    return json.dumps(facts, indent=2).encode()


def nearest_family(model: nn.Module) -> Family:
    """Return the family that a model of ours is closest to.

    Raises:
        ValueError: it is none of the three models, or an encoder without BERT's parts.
    """
    if KINDS.get(type(model).__name__) is not type(model):
        raise ValueError(f"a {type(model).__name__} is none of {', '.join(KINDS)}.")
    if isinstance(model, EncoderDecoderTransformer):
        return T5 if model.config.positions == "relative" else MARIAN
    if isinstance(model, DecoderOnlyTransformer):
        if model.config.norm != "rms" and model.config.positions != "rotary":
            return GPT2
        families = NEOX, *RELATIVES
        return next((family for family in families if _represents(family, model)), LLAMA)
    if not isinstance(model, BERT.model):
        raise ValueError(
            f"{BERT.name} has parts that a {type(model).__name__} lacks: only a "
            f"{BERT.model.__name__} can be written for the library."
        )
    return ALBERT if isinstance(model, ALBERT.model) else BERT


def _represents(family: Family, model: nn.Module) -> bool:
    try:
        _check_round_trip(family, model, family.write_config(model))
    except ValueError:
        return False
    return True


def _check_round_trip(family: Family, model: nn.Module, facts: dict) -> None:
    """Refuse a config that would come back changed."""
    ours = [model.config]
    if isinstance(model, EncoderDecoderTransformer):
        ours = [model.source_config, model.config]
    try:
        theirs = family.read_config(facts)
    except ValueError as error:
        raise ValueError(f"{family.name} cannot represent this model: {error}") from error
    for our, their in zip(ours, theirs, strict=True):
        for field in fields(ModelConfig):
            mine, its = getattr(our, field.name), getattr(their, field.name)
            if _effective(our, field.name) != _effective(their, field.name):
                raise ValueError(
                    f"{field.name} is {mine!r}, but {family.name} can only represent {its!r}: "
                    "this model cannot be written for the library."
                )


def _effective(config: ModelConfig, name: str):
    """A field's value, with its default filled in; `None` if it has no effect."""
    if name == "n_kv_heads":
        return config.n_kv_heads or config.n_heads
    if name == "rotary_base" and config.positions != "rotary":
        return None
    if name == "feed_forward_bias" and config.activation in GATES:
        return None
    return getattr(config, name)
