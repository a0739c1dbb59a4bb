"""Explorables: values in Python, pictures that live in the page; one in each file.

`from transformer_lesson.explorables import MaskExplorer` loads ipywidgets and that one file, from
here or from the folder of the one lesson that shows it. `__all__` names the explorables.
"""

from importlib import import_module

MODULES = {
    "AnswerExplorer": "lessons.lesson_12.answer_explorer",
    "ArchitectureMap": "explorables.architecture_map",
    "AttentionExplorer": "explorables.attention_explorer",
    "BudgetExplorer": "lessons.lesson_15.budget_explorer",
    "CacheCalculator": "lessons.lesson_13.cache_calculator",
    "ChosenAndRejected": "lessons.lesson_16.chosen_and_rejected",
    "CircuitGraph": "lessons.lesson_11.circuit_graph",
    "Clinic": "lessons.lesson_14.clinic",
    "DecodingStepper": "explorables.decoding_stepper",
    "GroupExplorer": "lessons.lesson_16.group_explorer",
    "HeadAblation": "lessons.lesson_06.head_ablation",
    "HeadSplitExplorer": "lessons.lesson_04.head_split_explorer",
    "LeakProbe": "lessons.lesson_07.leak_probe",
    "Leash": "lessons.lesson_16.leash",
    "LengthExplorer": "lessons.lesson_13.length_explorer",
    "LiveCurves": "explorables.live_curves",
    "MaskExplorer": "lessons.lesson_03.mask_explorer",
    "NormExplorer": "lessons.lesson_05.norm_explorer",
    "OnlineSoftmax": "lessons.lesson_15.online_softmax",
    "PaperVsPractice": "lessons.lesson_13.paper_vs_practice",
    "PatchExplorer": "lessons.lesson_17.patch_explorer",
    "PatchingGrid": "lessons.lesson_11.patching_grid",
    "PipelineExplorer": "lessons.lesson_15.pipeline_explorer",
    "PositionalEncodingExplorer": "lessons.lesson_02.positional_encoding_explorer",
    "ModelFlow": "explorables.model_flow",
    "StreamExplorer": "lessons.lesson_05.stream_explorer",
    "TokenizerExplorer": "lessons.lesson_01.tokenizer_explorer",
    "TrainingReplay": "lessons.lesson_08.training_replay",
    "TranslationPlayground": "explorables.translation_playground",
    "WillItFit": "lessons.lesson_15.will_it_fit",
}
_BESIDE = {"ReplayRecorder": MODULES["TrainingReplay"], "task": "explorables.in_page"}
"""What explorables are made with."""

__all__ = sorted(MODULES)


def __getattr__(name: str):
    module = MODULES.get(name) or _BESIDE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"transformer_lesson.{module}"), name)


def __dir__() -> list[str]:
    return [*__all__, *_BESIDE]
