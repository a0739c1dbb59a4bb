"""The bank of named mistakes: for each exercise wrong versions that people really write.

`recognition.recognize` compares a failed answer with them; the tests see to it that every check
fails each of them and calls it by its name.
"""

from transformer_lesson.exercises.mistakes.attention import ATTENTION_MISTAKES
from transformer_lesson.exercises.mistakes.blocks import BLOCK_MISTAKES
from transformer_lesson.exercises.mistakes.bug_hunt import BUG_HUNT_MISTAKES
from transformer_lesson.exercises.mistakes.generation import GENERATION_MISTAKES
from transformer_lesson.exercises.mistakes.induction import INDUCTION_MISTAKES
from transformer_lesson.exercises.mistakes.language import LANGUAGE_MISTAKES
from transformer_lesson.exercises.mistakes.modern import MODERN_MISTAKES
from transformer_lesson.exercises.mistakes.text import TEXT_MISTAKES
from transformer_lesson.exercises.mistakes.training import TRAINING_MISTAKES

MISTAKES = (
    TEXT_MISTAKES
    | ATTENTION_MISTAKES
    | BLOCK_MISTAKES
    | TRAINING_MISTAKES
    | GENERATION_MISTAKES
    | LANGUAGE_MISTAKES
    | INDUCTION_MISTAKES
    | MODERN_MISTAKES
    | BUG_HUNT_MISTAKES
)
"""The mistakes of each exercise."""
