"""The reference implementation that the lessons build, check against and import.

Start with `model`: the Transformer itself, whose modules are read in the order that its docstring
gives. `text` makes batches of real sentences, `training` learns from them, `generation` writes,
`checkpoints` keeps models in files, `interpretability` asks what is in a model, `figures` and
`explorables` draw, `exercises` and `grading` check answers, `mine` runs the model on a learner's
functions, `capstone` trains one on a learner's text, `command` is `transformer-lesson`. What only
one lesson uses is in its folder in `lessons`.

The names below are imported when they are first used, so that `environment` can say what is wrong
if PyTorch is missing or broken.
"""

from importlib import import_module

_HOMES = {
    "DecoderOnlyTransformer": "model.transformers",
    "EncoderDecoderTransformer": "model.transformers",
    "EncoderOnlyTransformer": "model.transformers",
    "ModelConfig": "model.config",
    "MultiHeadAttention": "model.attention",
    "causal_mask": "model.masks",
    "padding_mask": "model.masks",
    "record": "model.hooks",
    "scaled_dot_product_attention": "model.attention",
    "sinusoidal_encoding": "model.positions",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
