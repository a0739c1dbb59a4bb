"""Explorables: values in Python, pictures that live in the page; one in each file.

`from transformer_lesson.explorables import MaskExplorer` loads ipywidgets and that one file.
`__all__` names the explorables.
"""

from importlib import import_module

MODULES = {
    "AnswerExplorer": "answer_explorer",
    "ArchitectureMap": "architecture_map",
    "AttentionExplorer": "attention_explorer",
    "BudgetExplorer": "budget_explorer",
    "CacheCalculator": "cache_calculator",
    "ChosenAndRejected": "chosen_and_rejected",
    "CircuitGraph": "circuit_graph",
    "Clinic": "clinic",
    "DecodingStepper": "decoding_stepper",
    "GroupExplorer": "group_explorer",
    "HeadAblation": "head_ablation",
    "HeadSplitExplorer": "head_split_explorer",
    "LeakProbe": "leak_probe",
    "Leash": "leash",
    "LengthExplorer": "length_explorer",
    "LiveCurves": "live_curves",
    "MaskExplorer": "mask_explorer",
    "NormExplorer": "norm_explorer",
    "OnlineSoftmax": "online_softmax",
    "PaperVsPractice": "paper_vs_practice",
    "PatchExplorer": "patch_explorer",
    "PatchingGrid": "patching_grid",
    "PipelineExplorer": "pipeline_explorer",
    "PositionalEncodingExplorer": "positional_encoding_explorer",
    "ModelFlow": "model_flow",
    "StreamExplorer": "stream_explorer",
    "TokenizerExplorer": "tokenizer_explorer",
    "TrainingReplay": "training_replay",
    "TranslationPlayground": "translation_playground",
    "WillItFit": "will_it_fit",
}
_BESIDE = {"ReplayRecorder": "training_replay", "task": "in_page"}
"""What explorables are made with."""

__all__ = sorted(MODULES)


def __getattr__(name: str):
    module = MODULES.get(name) or _BESIDE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return [*__all__, *_BESIDE]
