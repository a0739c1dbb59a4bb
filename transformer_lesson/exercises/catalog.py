"""All exercises by name."""

import difflib

from transformer_lesson.exercises import lesson_03, lesson_04, lesson_13, lesson_14
from transformer_lesson.exercises.block_exercises import BLOCK_EXERCISES
from transformer_lesson.exercises.bug_hunt.exercises import BUG_HUNT_EXERCISES
from transformer_lesson.exercises.generation_exercises import GENERATION_EXERCISES
from transformer_lesson.exercises.induction_exercises import INDUCTION_EXERCISES
from transformer_lesson.exercises.language_exercises import LANGUAGE_EXERCISES
from transformer_lesson.exercises.specification import Exercise
from transformer_lesson.exercises.text_exercises import TEXT_EXERCISES
from transformer_lesson.exercises.training_exercises import TRAINING_EXERCISES

MARKED = (lesson_03, lesson_04, lesson_13, lesson_14)  # a module for each lesson
EXERCISES = {
    exercise.name: exercise
    for exercise in TEXT_EXERCISES
    + BLOCK_EXERCISES
    + TRAINING_EXERCISES
    + GENERATION_EXERCISES
    + LANGUAGE_EXERCISES
    + INDUCTION_EXERCISES
    + BUG_HUNT_EXERCISES
    + tuple(one for lesson in MARKED for one in vars(lesson).values() if isinstance(one, Exercise))
}

LESSONS = {
    "00": ("Start here",),
    "01": ("Tokens and embeddings", "encode", "pad_batch", "embed"),
    "02": ("Positional encoding", "sinusoidal_encoding"),
    "03": (
        "Attention",
        *("attention_scores", "causal_mask", "padding_mask", "scaled_dot_product_attention"),
    ),
    "04": ("Multi-head attention", "split_heads", "merge_heads", "multi_head_attention"),
    "05": (
        "Add & norm, feed-forward",
        *("feed_forward", "layer_norm", "residual_branch", "residual_branch_pre"),
    ),
    "06": ("Encoder", "encoder_block", "count_encoder_parameters"),
    "07": ("Decoder", "decoder_block", "leaks_future"),
    "08": ("Training", "shift_right", "label_smoothed_loss", "warmup_rate"),
    "09": (
        "Inference",
        *("greedy_decode", "top_k_filter", "top_p_filter", "beam_search", "append_to_cache"),
    ),
    "10": ("A language model", "bits_per_character"),
    "11": ("What heads learn", "induction_score", "ablate_head"),
    "12": ("Real checkpoints",),
    "13": ("Since 2017", "rms_norm", "apply_rotary", "swiglu", "repeat_kv"),
    "14": (
        "Bug hunt",
        *(one.name for one in vars(lesson_14).values() if isinstance(one, Exercise)),
        *(exercise.name for exercise in BUG_HUNT_EXERCISES),
    ),
    "15": ("Scaling up",),
}
"""Each lesson's title, and the exercises that it checks."""


def find(name: str) -> Exercise:
    """Return the exercise of that name.

    Raises:
        ValueError: there is none; the message suggests close names.
    """
    if name in EXERCISES:
        return EXERCISES[name]
    close = difflib.get_close_matches(str(name), EXERCISES) or sorted(EXERCISES)
    raise ValueError(f"There is no exercise {name!r}. Did you mean {' or '.join(close)}?")
