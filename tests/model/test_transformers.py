"""The models equal PyTorch's stacks, hide padding and future, and refuse what they cannot read."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.generation.writers import padded
from tests.parity import assert_equal, copy_weights, randomized, small_config
from transformer_lesson.interpretability.causality import leaks_future
from transformer_lesson.model import transformers
from transformer_lesson.model.embedding import InputEmbedding, embed
from transformer_lesson.model.positions import sinusoidal_encoding
from transformer_lesson.model.transformers import EncoderDecoderTransformer, EncoderOnlyTransformer

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

PAD = 0
MODELS = [EncoderOnlyTransformer, transformers.DecoderOnlyTransformer, EncoderDecoderTransformer]
NORMS, POSITIONS = ["pre", "post"], ["sinusoidal", "learned", "rotary"]
SENTENCES = [[4, 7, 5, 9, 12], [3], [8, 8, 2]]
OTHERS = [[6, 2], [9, 1, 1, 5], [11, 3, 10]]  # of other lengths: targets, where a model has two

each_model = pytest.mark.parametrize("kind", MODELS)
VARIANTS = list(itertools.product(NORMS, POSITIONS))
each_variant = pytest.mark.parametrize(("norm_position", "positions"), VARIANTS)


def build(kind, **changes):
    torch.manual_seed(0)
    return randomized(kind(small_config(**changes))).eval()


def run(model, ids, others):
    return model(ids, others) if isinstance(model, EncoderDecoderTransformer) else model(ids)


def future(ids) -> torch.Tensor:
    return torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu(1)


def pads(ids, pad_id: int | None) -> torch.Tensor | None:
    return None if pad_id is None else ids == pad_id


def transformer(norm_position: str, activation: str = "relu") -> nn.Transformer:
    """Return PyTorch's model; in post-norm without the last norms that the paper lacks."""
    norm_first = norm_position == "pre"
    options = {"activation": activation, "batch_first": True, "norm_first": norm_first}
    made = randomized(nn.Transformer(12, 2, 2, 2, 17, 0.0, **options))
    if not norm_first:
        made.encoder.norm = made.decoder.norm = None
    return made


@pytest.mark.parametrize("pad_id", [None, PAD])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_position", NORMS)
def test_encoder_decoder_equals_nn_transformer(norm_position, activation, pad_id):
    theirs = transformer(norm_position, activation)
    options = {"norm_position": norm_position, "activation": activation, "pad_id": pad_id}
    ours = build(EncoderDecoderTransformer, **options)
    copy_weights(theirs, ours)
    source, target = padded(SENTENCES, "right"), padded(OTHERS, "right")
    output = theirs(
        ours.source_embedding(source),
        ours.target_embedding(target),
        tgt_mask=future(target),
        src_key_padding_mask=pads(source, pad_id),
        tgt_key_padding_mask=pads(target, pad_id),
        memory_key_padding_mask=pads(source, pad_id),
    )
    assert_equal(ours(source, target), F.linear(output, ours.source_embedding.weight))


@pytest.mark.parametrize("pad_id", [None, PAD])
@pytest.mark.parametrize("norm_position", NORMS)
def test_encoder_and_decoder_only_equal_transformer_encoder(norm_position, pad_id):
    theirs = transformer(norm_position).encoder
    options = {"norm_position": norm_position, "pad_id": pad_id}
    encoder, decoder = (build(kind, **options) for kind in MODELS[:2])
    # the stack's layers lie under `encoder.` and `decoder.` in our two models
    copy_weights(nn.ModuleDict({"encoder": theirs}), encoder)
    copy_weights(nn.ModuleDict({"decoder": theirs}), decoder)
    ids = padded(SENTENCES, "right")
    hidden = pads(ids, pad_id)
    assert_equal(encoder(ids), theirs(encoder.embedding(ids), src_key_padding_mask=hidden))
    output = theirs(decoder.embedding(ids), mask=future(ids), src_key_padding_mask=hidden)
    assert_equal(decoder(ids), F.linear(output, decoder.embedding.weight))


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("positions", POSITIONS)
def test_embedding_is_scaled_tokens_plus_positions(positions, scaled):
    embedding = InputEmbedding(small_config(positions=positions, scale_embedding=scaled))
    ids = torch.tensor([[3, 12, 3]])
    expected = embedding.weight[ids] * (math.sqrt(12) if scaled else 1)
    if scaled:
        assert_equal(embed(ids, embedding.weight), expected)
    if positions == "sinusoidal":
        expected = expected + sinusoidal_encoding(3, 12)
    elif positions == "learned":
        expected = expected + embedding.positions.weight[:3]
    assert_equal(embedding(ids), expected)


def test_token_vectors_start_with_deviation_1_dropout_falls_on_them_and_only_new_ids_are_checked():
    embedding, ids = InputEmbedding(small_config(pad_id=0)), torch.tensor([[99, 4, 5]])
    assert torch.equal(embedding(ids, 1), embedding(torch.tensor([[1, 4, 5]]), 1))
    embedding = InputEmbedding(small_config(vocab_size=500, d_model=64))
    assert embed(torch.arange(500), embedding.weight).std().item() == pytest.approx(1, abs=0.02)
    embedding = InputEmbedding(small_config(dropout=0.5)).train()
    assert (embedding(torch.tensor([[1, 2, 3]])) == 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("side", ["right", "left"])
@each_variant
@each_model
def test_a_padded_batch_gives_each_sentence_what_it_gets_alone(
    kind, norm_position, positions, side
):
    model = build(kind, norm_position=norm_position, positions=positions, pad_id=PAD)
    ids, others = padded(SENTENCES, side), padded(OTHERS, side)
    together = run(model, ids, others)
    written = others if kind is EncoderDecoderTransformer else ids
    for i in range(len(SENTENCES)):
        alone = run(model, torch.tensor([SENTENCES[i]]), torch.tensor([OTHERS[i]]))
        assert_equal(together[i, written[i] != PAD], alone[0])


@pytest.mark.slow
@pytest.mark.parametrize("pad_id", [None, PAD])
@each_variant
@each_model
def test_decoders_do_not_see_the_future_and_encoders_do(kind, norm_position, positions, pad_id):
    model = build(kind, norm_position=norm_position, positions=positions, pad_id=pad_id)
    source, target = torch.tensor([[5, 2, 9]]), torch.tensor([[4, 1, 3, 8, 6, 11]])
    leaks = leaks_future(lambda ids: run(model, source, ids) if two(model) else model(ids), target)
    assert leaks == (kind is EncoderOnlyTransformer)


def two(model) -> bool:
    return isinstance(model, EncoderDecoderTransformer)


@each_model
def test_a_batch_of_nothing_but_padding_has_finite_outputs_and_gradients(kind):
    model = build(kind, pad_id=PAD)
    output = run(model, torch.full((2, 3), PAD), torch.full((2, 4), PAD))
    output.square().sum().backward()
    assert output.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_source_and_target_may_have_vocabularies_and_depths_of_their_own_but_one_d_model():
    source = small_config(vocab_size=5, n_layers=1, pad_id=4, positions="rotary")
    model = EncoderDecoderTransformer(source, small_config(vocab_size=9, n_layers=3))
    assert (len(model.encoder), len(model.decoder)) == (1, 3)
    logits = model(torch.tensor([[1, 2, 4]]), torch.tensor([[8, 7]]))
    assert logits.shape == (1, 2, 9)
    assert model.projection.weight is model.target_embedding.weight
    assert model.source_embedding.weight is not model.target_embedding.weight
    model = EncoderDecoderTransformer(source, small_config(vocab_size=5), share_embeddings=True)
    assert model.source_embedding.weight is model.target_embedding.weight
    with pytest.raises(ValueError, match="the encoder's d_model is 12, the decoder's 24"):
        EncoderDecoderTransformer(small_config(), small_config(d_model=24))


@pytest.mark.parametrize("pad_id", [None, PAD])
def test_classifier_reads_the_mean_of_the_real_tokens(pad_id):
    model = randomized(EncoderOnlyTransformer(small_config(pad_id=pad_id), n_classes=3)).eval()
    ids = padded(SENTENCES, "right") if pad_id == PAD else torch.tensor([SENTENCES[0]])
    for row, logits in zip(ids, model.classify(ids), strict=True):
        alone = row[row != PAD][None]
        assert_equal(logits, model.classifier(model(alone)[0].mean(0)))
    assert model.classify(torch.full((1, 2), PAD)).isfinite().all()


def test_token_head_projects_every_vector_and_a_missing_head_says_how_to_build_it():
    ids, without = torch.tensor([SENTENCES[0]]), build(EncoderOnlyTransformer)
    model = EncoderOnlyTransformer(small_config(), token_head=True).eval()
    assert_equal(model.predict_tokens(ids), model(ids) @ model.embedding.weight.T)
    with pytest.raises(ValueError, match="n_classes=..."):
        without.classify(ids)
    with pytest.raises(ValueError, match="token_head=True"):
        without.predict_tokens(ids)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("positions", POSITIONS)
@each_model
def test_a_moved_model_computes_in_its_dtype(kind, positions, dtype):
    model = build(kind, positions=positions, pad_id=PAD).to(dtype)
    ids, others = padded(SENTENCES, "left"), padded(OTHERS, "right")
    output = run(model, ids, others)
    assert output.dtype == dtype and output.isfinite().all()
    exact = run(build(kind, positions=positions, pad_id=PAD), ids, others)
    tolerance = 1e-5 if dtype == torch.float64 else 0.3
    torch.testing.assert_close(output.float(), exact, atol=tolerance, rtol=tolerance)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[1, 13]], r"token id 13 is outside the vocabulary of 13 tokens \(0 to 12\)"),
        ([[-1, 2]], "token id -1 is outside the vocabulary of 13 tokens"),
        ([[1] * 8], "the sequence has 8 tokens, but max_len is 7"),
        ([1, 2], r"ids have shape \(2,\).*for one sentence use ids\[None\]"),
        ([[]], r"ids have shape \(1, 0\)"),
        ([[1.0, 2.0]], "dtype torch.float32, but they must be int64"),
    ],
)
@each_model
def test_ids_that_the_model_cannot_read_are_refused(kind, ids, message):
    model, good, ids = build(kind), torch.tensor([[1, 2]]), torch.as_tensor(ids)
    for inputs in ((ids, good), (good, ids)) if two(model) else ((ids, good),):
        with pytest.raises(ValueError, match=message):
            run(model, *inputs)


@each_model
def test_the_longest_sequence_the_last_token_and_int32_are_fine(kind):
    model, ids = build(kind), torch.full((1, 7), 12)
    assert run(model, ids, ids).shape[:2] == (1, 7)
    assert torch.equal(run(model, ids.int(), ids.int()), run(model, ids, ids))
