"""Your Transformer: the paper's forward pass, run by the functions that you wrote and passed.

`parts()` says which functions are yours. `MyTransformer` runs them, with ours for missing ones, and
`MyLlama` runs a chat model on them; `translation` runs the trained translator on them,
`translations` counts how many unseen sentences come out right, and `Playground` translates what you
type. `function` returns any of your functions; `save_model` and
`trained` store and load the translator that you trained; `folder` is where all of it is kept.
`lines` says which lines of yours compute what `ModelFlow` shows.
`export` and `page` save a model for the library `transformers` and as a page that opens anywhere.
"""

from transformer_lesson.mine.export import export, page
from transformer_lesson.mine.lines import lines
from transformer_lesson.mine.llama import MyLlama
from transformer_lesson.mine.parts import LLAMA_PARTS, PARTS, Parts, assembled, parts
from transformer_lesson.mine.playground import Playground
from transformer_lesson.mine.side_by_side import Translation, translation
from transformer_lesson.mine.trained import Trained, folder, function, is_yours, save_model, trained
from transformer_lesson.mine.transformer import MyTransformer
from transformer_lesson.mine.unseen import Translations, translations

__all__ = [
    "LLAMA_PARTS",
    "PARTS",
    "MyLlama",
    "MyTransformer",
    "Parts",
    "Playground",
    "Trained",
    "Translation",
    "Translations",
    "assembled",
    "export",
    "folder",
    "function",
    "is_yours",
    "lines",
    "page",
    "parts",
    "save_model",
    "trained",
    "translation",
    "translations",
]
