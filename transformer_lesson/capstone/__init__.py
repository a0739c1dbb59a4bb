"""Your own: a text or pairs of sentences become a tokenizer, a model and all that it leaves with.

`own` is the one call. Read it in this order: `material` takes what you bring, `plan` turns depth
and minutes into sizes and steps and foresees what they reach, `own` trains, measures and exports,
`card` describes the model to others.
"""

from transformer_lesson.capstone.material import SHIPPED, Material, read
from transformer_lesson.capstone.own import Own, own
from transformer_lesson.capstone.plan import Plan, foresee

__all__ = ["SHIPPED", "Material", "Own", "Plan", "foresee", "own", "read"]
