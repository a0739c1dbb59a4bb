"""Your own model: from a text or sentence pairs to a tokenizer, a trained model and its exports.

`own` is the one call. Read the modules in this order: `material` reads your data, `plan` turns
depth and minutes into sizes and steps and forecasts the result, `own` trains, measures and exports,
`card` describes the model to others. `claim` tests what you believe about training.
"""

from transformer_lesson.capstone.claim import Claim, claim
from transformer_lesson.capstone.material import SHIPPED, Material, read
from transformer_lesson.capstone.own import Own, own
from transformer_lesson.capstone.plan import Plan, foresee

__all__ = ["SHIPPED", "Claim", "Material", "Own", "Plan", "claim", "foresee", "own", "read"]
