"""Reactions whose atoms are known, and how heads are scored on them."""

import torch

from tests.parity import randomized, small_config
from transformer_lesson.lessons.lesson_12 import reactions
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import EncoderOnlyTransformer


def test_each_atom_of_a_product_is_the_atom_that_it_was():
    one = reactions.reaction("COC", "CCO")
    assert one.text == "NCCO.COCC(=O)O>>COCC(=O)NCCO"
    assert one.origin == [4, 5, 6, 7, 8, 0, 1, 2, 3]
    for one in reactions.all_reactions():
        before, product = one.sides()
        assert [before[i] for i in one.origin] == product
        assert {*range(len(before))} - {*one.origin} == {len(before) - 1}  # the acid's last O


@torch.no_grad()
def test_looks_are_those_of_a_products_atoms_at_atoms_before_the_arrow():
    letters = ["[CLS]", "[SEP]", *"NCOBrcl.=#()1>", "Br", "Cl", ">>"]
    ids_of = {letter: i for i, letter in enumerate(letters)}
    torch.manual_seed(0)
    model = randomized(EncoderOnlyTransformer(small_config(vocab_size=30, max_len=60))).eval()
    one = reactions.reaction("ClCC", "CC#N")
    looks = reactions.looks_back(model, ids_of, one)
    assert looks.shape[2:] == (len(one.origin), len(one.origin) + 1)
    pieces = ["N", "C", "C", "#", "N", ".", "Cl", "C", "C", "C", "(", "=", "O", ")", "O", ">>"]
    pieces += ["Cl", "C", "C", "C", "(", "=", "O", ")", "N", "C", "C", "#", "N"]
    with record(model) as run:
        model(torch.tensor([[ids_of[piece] for piece in ["[CLS]", *pieces, "[SEP]"]]]))
    weights = run["encoder.1.self_attention.weights"][0]
    assert torch.equal(looks[1, :, 0, 0], weights[:, 17, 1])  # the product's Cl at the first N
    assert torch.equal(looks[1, :, -1, -1], weights[:, 29, 15])  # its last N at the last O
