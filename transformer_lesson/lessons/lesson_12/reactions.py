"""Chemical reactions whose every atom is known, and which heads of an ALBERT find where each was.

An acid, …C(=O)O, and an amine, N…, give off water and become an amide, …C(=O)N….
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lesson.model.hooks import record

ACIDS = ("CC", "COC", "C=C", "N#CC", "ClCC", "CC(C)C")
AMINES = ("CCO", "CC(C)C", "Cc1ccccc1", "CCc1ccncc1", "CC#N", "c1ccc(Br)cc1")


class Reaction(NamedTuple):
    """A reaction as it is written, and for each atom of its product which one it was before.

    Args:
        text: such as "NCCO.COCC(=O)O>>COCC(=O)NCCO".
        origin: numbers of atoms before the arrow, from 0.
    """

    text: str
    origin: list[int]

    def sides(self) -> tuple[list[str], list[str]]:
        """Return the atoms before the arrow, and those of the product."""
        before, product = self.text.split(">>")
        return atoms(before), atoms(product)


def atoms(text: str) -> list[str]:
    """Return the atoms of a molecule in the order in which they are written."""
    return re.findall("Br|Cl|[A-Za-z]", text)


def reaction(acid: str, amine: str) -> Reaction:
    """Return the reaction of an acid and an amine, without the parts that react."""
    n_amine = len(atoms(f"N{amine}"))
    of_acid = len(atoms(f"{acid}C(=O)"))  # its last O is given off
    text = f"N{amine}.{acid}C(=O)O>>{acid}C(=O)N{amine}"
    return Reaction(text, [*range(n_amine, n_amine + of_acid), *range(n_amine)])


def all_reactions() -> Iterator[Reaction]:
    """Yield every acid with every amine."""
    return (reaction(acid, amine) for acid in ACIDS for amine in AMINES)


def looks_back(
    model: nn.Module, ids_of: Mapping[str, int], example: Reaction
) -> Float[Tensor, "layer head product before"]:
    """Return how much each atom of a product looks at each atom before the arrow.

    Args:
        model: an encoder of letters.
        ids_of: its vocabulary.
        example: what it reads.
    """
    letters = re.findall("Br|Cl|>>|.", example.text)
    ids = torch.tensor([[ids_of[letter] for letter in ["[CLS]", *letters, "[SEP]"]]])
    places = [i for i, letter in enumerate(letters, start=1) if letter.isalpha()]  # 0 is [CLS]
    n_before = len(example.sides()[0])
    with record(model) as run:
        model(ids)
    points = [name for name in run if name.endswith(".self_attention.weights")]
    weights = torch.stack([run[name][0] for name in points])  # (layer, head, query, key)
    return weights[:, :, places[n_before:]][..., places[:n_before]]


def share_found(model: nn.Module, ids_of: Mapping[str, int]) -> Float[Tensor, "layer head"]:
    """Return at what share of all products' atoms a head looks most at where the atom was."""
    right, n = 0, 0
    for example in all_reactions():
        hits = looks_back(model, ids_of, example).argmax(dim=-1) == torch.tensor(example.origin)
        right, n = right + hits.sum(dim=-1), n + len(example.origin)
    return right / n


def share_by_letters() -> tuple[float, int]:
    """Return the same for taking the first equal letter from the left, and how many atoms."""
    right = n = 0
    for example in all_reactions():
        left, product = example.sides()
        for atom, origin in zip(product, example.origin, strict=True):
            right, n = right + (left.index(atom) == origin), n + 1
            left[left.index(atom)] = "taken"
    return right / n, n
