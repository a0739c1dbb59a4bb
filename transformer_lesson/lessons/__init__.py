"""The lessons: a folder for each, with all that only it uses. None imports from another.

`python -m transformer_lesson.lessons.lesson_13.measure_longer` measures again what is stored there.
"""

from pathlib import Path

from transformer_lesson.stored import explain_if_asked

explain_if_asked(__name__, Path(__file__).parent)

# The catalog imports every lesson's exercises: were one's own half imported, it would lack them.
import transformer_lesson.exercises  # noqa: E402, F401
