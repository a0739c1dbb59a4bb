"""Controls around pure render functions: one explorable in each file.

`from transformer_lesson.explorables import MaskExplorer` loads ipywidgets and that one file.
"""

from importlib import import_module

_MODULES = {
    "ArchitectureMap": "architecture_map",
    "AttentionExplorer": "attention",
    "HeadSplitExplorer": "head_split",
    "LeakProbe": "leak_probe",
    "MaskExplorer": "mask",
    "NormExplorer": "norm",
    "PositionalEncodingExplorer": "positional_encoding",
    "ShapeFlow": "shape_flow",
    "TokenizerExplorer": "tokenizer",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str):
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
