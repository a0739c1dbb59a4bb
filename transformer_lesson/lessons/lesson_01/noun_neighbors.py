"""Nouns of the trained table: which lie nearest to one of them, and what they share with it."""

import torch
import torch.nn.functional as F
import traitlets

from transformer_lesson.caching import copied
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.text.grammar.lexicon import NOUNS

NEAREST = 5


@copied
def forms() -> list[dict]:
    """Return singulars, then plurals: each with its nearest others, and its place on a map.

    The map is the widest plane through the rows of the singulars.
    """
    nouns = [(noun, False) for noun in NOUNS.values()]
    nouns += [(noun, True) for noun in NOUNS.values() if noun.english_plural]
    words = [noun.english_plural if plural else noun.english for noun, plural in nouns]
    translator, tokenizer, _ = trained_translator()
    table = translator.source_embedding.weight.detach()
    rows = table[[tokenizer.vocabulary[word] for word in words]]  # (form, d_model)
    cosines = F.normalize(rows, dim=-1) @ F.normalize(rows, dim=-1).mT  # (form, form)
    best = cosines.fill_diagonal_(-1).topk(NEAREST)
    singulars = rows[: len(NOUNS)]
    directions = torch.linalg.svd(singulars - singulars.mean(dim=0)).Vh[:2]  # (2, d_model)
    places = (rows - singulars.mean(dim=0)) @ directions.T  # (form, 2)
    places *= places[0].sign()  # the first noun is at the right and above, whatever the signs
    return [
        {
            "word": word,
            "noun": noun.english,
            "plural": plural,
            "kind": noun.kinds.split()[0],
            "gender": f"{noun.article} {noun.german}",
            "place": [round(x, 3) for x in place],
            "near": [[i, round(cosine, 2)] for i, cosine in zip(ids, values, strict=True)],
        }
        for word, (noun, plural), place, ids, values in zip(
            words, nouns, places.tolist(), best.indices.tolist(), best.values.tolist(), strict=True
        )
    ]


class NounNeighbors(PageExplorable):
    """Choose a noun and see its nearest neighbors by cosine, and what they share with it.

    Args:
        noun: an English noun of the lexicon, in the singular.
        plural: whether its plural is meant; a noun without one stays in the singular.
        mark: what is compared: "kind", "gender" (of the German noun) or "number"; `None` before
            the learner has chosen, when nothing is colored.
    """

    noun = traitlets.Enum(list(NOUNS), "child").tag(sync=True)
    plural = traitlets.Bool(False).tag(sync=True)
    mark = traitlets.Enum(["kind", "gender", "number"], None, allow_none=True).tag(sync=True)
    forms = traitlets.List().tag(sync=True, fact=True)

    def __init__(self, noun: str = "child", **values):
        super().__init__(noun=noun, forms=forms(), **values)
