"""`generate` writes what a loop over one sentence would, whatever the batch, cache or padding."""

import dataclasses
from itertools import product

import numpy as np
import pytest
import torch

from tests.generation import writers
from tests.generation.writers import BOS, EOS, PAD, SENTENCES, assert_same, lively, padded, start_of
from tests.parity import randomized, small_config
from transformer_lesson.generation import Beam, Greedy, Sample, generate, greedy_decode
from transformer_lesson.generation.strategies import top_k_filter, top_p_filter
from transformer_lesson.model import transformers
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer

NEW = 6
STRATEGIES = [Greedy(), Sample(temperature=1.3, top_k=9, top_p=0.95, seed=4), Beam(3, 0.6)]
VARIANTS = [  # tests/model/test_cache.py has each with each
    {"norm_position": "pre", "positions": "sinusoidal", "tie_embeddings": True},
    {"norm_position": "pre", "positions": "rotary", "tie_embeddings": False},
    {"norm_position": "post", "positions": "learned", "tie_embeddings": False},
    {"norm_position": "post", "positions": "rotary", "tie_embeddings": True},
]

each_kind = pytest.mark.parametrize("kind", writers.KINDS)
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: type(s).__name__)
each_variant = pytest.mark.parametrize("changes", VARIANTS, ids=str)


@pytest.mark.slow
@each_variant
@each_kind
def test_a_cache_changes_nothing_and_greedy_equals_the_plain_loop(kind, changes):
    model = lively(kind, **changes)
    for strategy, given in product(STRATEGIES, (SENTENCES[:1], SENTENCES)):
        cached = generate(model, given, NEW, strategy)
        assert_same(cached, generate(model, given, NEW, strategy, use_cache=False))
    written = generate(model, SENTENCES, NEW)
    for row, sentence in enumerate(SENTENCES):
        start, logits = start_of(model, sentence), writers.next_logits(model, sentence)
        ids, expected = list(start), []
        while len(ids) < len(start) + NEW and ids[len(start) :][-1:] != [EOS]:
            log_probs = logits(ids).log_softmax(0)
            ids.append(int(log_probs.argmax()))
            expected.append(log_probs.max().item())
        assert written.ids[row] == ids[len(start) :]
        assert written.finished[row] == (ids[-1] == EOS)
        assert written.log_probabilities[row] == pytest.approx(expected, abs=1e-4)
        assert written.sentence_log_probabilities[row] == pytest.approx(sum(expected), abs=1e-3)
        assert greedy_decode(writers.reading(logits), start, EOS, NEW) == written.ids[row]


@pytest.mark.slow
@each_kind
@each_strategy
def test_a_batch_writes_what_its_sentences_write_alone_however_they_are_given(strategy, kind):
    model = lively(kind)
    together = generate(model, SENTENCES, NEW, strategy)
    assert together.distributions is None and together.trees is None  # nobody asked for them
    tensors = [torch.tensor(sentence) for sentence in SENTENCES]
    for given in (tensors, padded(SENTENCES, "left"), padded(SENTENCES, "right")):
        assert_same(together, generate(model, given, NEW, strategy))
    for row, sentence in enumerate(SENTENCES):
        one = torch.tensor(sentence)
        forms = [sentence, [sentence], one, one[None], one.numpy(), one[None].numpy()]
        forms += [list(one), list(one.numpy())]
        if isinstance(strategy, Sample):  # its row decides what it gets, and nothing else
            forms = [[*[[9, 9, 3]] * row, sentence]]
        for alone in (generate(model, form, NEW, strategy) for form in forms):
            assert alone.ids[-1] == together.ids[row]
            expected = pytest.approx(together.log_probabilities[row], abs=1e-5)
            assert alone.log_probabilities[-1] == expected
    assert len(set(map(tuple, together.ids))) > 1


@pytest.mark.parametrize("use_cache", [True, False])
@each_strategy
@each_kind
def test_logits_are_computed_only_where_a_token_is_chosen(kind, strategy, use_cache, monkeypatch):
    model, computed = lively(kind), []
    linear = model.projection.forward
    monkeypatch.setattr(
        model.projection, "forward", lambda x: computed.append(x.size(1)) or linear(x)
    )
    written = generate(model, SENTENCES, NEW, strategy, use_cache)
    assert set(computed) == {1}
    computed.clear()
    with record(model) as run:  # whoever watches the logits gets all of them
        watched = generate(model, SENTENCES, NEW, strategy, use_cache)
    assert_same(written, watched)
    prompt = 1 if kind is EncoderDecoderTransformer else max(map(len, SENTENCES))
    assert computed[0] == prompt and run["logits"].size(1) == computed[-1]


@each_kind
def test_with_a_cache_every_token_is_read_once(kind):
    model = lively(kind)
    name = "embedding" if kind is DecoderOnlyTransformer else "target_embedding"
    part, read = model.get_submodule(f"{name}.tokens"), []
    part.register_forward_hook(lambda _module, _inputs, x: read.append(x.size(1)))
    first = len(start_of(model, SENTENCES[0]))
    generate(model, SENTENCES[0], NEW, eos_id=None)
    assert read == [first] + [1] * (NEW - 1)
    read.clear()
    generate(model, SENTENCES[0], NEW, eos_id=None, use_cache=False)
    assert read == list(range(first, first + NEW))


def test_source_and_target_may_have_paddings_of_their_own():
    target = lively(EncoderDecoderTransformer).config
    source = dataclasses.replace(target, pad_id=11, tie_embeddings=False)
    model = randomized(EncoderDecoderTransformer(source, target))
    sentences = [[0, 7, 5, 9], [3], [0, 8]]  # here 0 is a word, and 11 is none
    together = generate(model, sentences, NEW, eos_id=None)
    for row, sentence in enumerate(sentences):
        alone = generate(model, [11, *sentence], NEW, eos_id=None)
        expected = pytest.approx(together.log_probabilities[row], abs=1e-5)
        assert alone.log_probabilities[0] == expected
        assert PAD not in alone.ids[0]
    longer = [3, 4, 5, 6, 7, 8, 9, 10] * 2  # than its translation
    assert_same(generate(model, longer, 2), generate(model, longer, 2, use_cache=False))


@each_kind
def test_writing_ends_when_all_sentences_have(kind):
    model, calls = lively(kind), []

    def end_row_by_row(logits):
        calls.append(1)
        logits = logits.clone()
        logits[:, -1, EOS] = -99.0
        logits[len(calls) - 1, -1, EOS] = 99.0
        return logits

    with record(model, replace={"logits": end_row_by_row}):
        written = generate(model, SENTENCES, NEW)
    assert len(calls) == 3
    assert [len(ids) for ids in written.ids] == [1, 2, 3] and written.finished == [True] * 3
    assert [len(chances) for chances in written.log_probabilities] == [1, 2, 3]
    assert generate(model, SENTENCES, NEW, eos_id=None).finished == [False] * 3
    [[first]] = generate(model, SENTENCES[:1], 1, eos_id=None).ids
    assert generate(model, SENTENCES[:1], 1, eos_id=first).finished == [True]  # at the last step


@pytest.mark.slow
@each_kind
@each_strategy
def test_padding_is_never_written(strategy, kind):
    model = lively(kind)
    likeliest = torch.zeros(13)
    likeliest[PAD] = 99.0
    with record(model, replace={"logits": lambda x: x + likeliest}) as run:
        written = generate(model, SENTENCES, NEW, strategy)
    assert run["logits"].isfinite().all()  # what is recorded stays the model's own
    assert all(PAD not in ids for ids in written.ids)
    assert_same(written, generate(model, SENTENCES, NEW, strategy))


@pytest.mark.slow
@each_kind
@each_strategy
def test_distributions_are_the_models_own_at_every_step(strategy, kind):
    model = lively(kind)
    written = generate(model, SENTENCES, NEW, strategy, distributions=True)
    for row, sentence in enumerate(SENTENCES):
        ids, probabilities = written.ids[row], written.distributions[row]
        assert probabilities.shape == (len(ids), 13)
        assert (probabilities[:, PAD] == 0).all()
        for step in range(len(ids)):
            expected = writers.next_logits(model, sentence)(start_of(model, sentence) + ids[:step])
            torch.testing.assert_close(probabilities[step], expected.softmax(0))
            chosen = probabilities[step, ids[step]].log().item()
            assert written.log_probabilities[row][step] == pytest.approx(chosen, abs=1e-5)


def test_distributions_can_take_part_in_training():
    model = lively(DecoderOnlyTransformer)
    [probabilities] = generate(model, [3], 2, distributions=True).distributions
    weight = torch.ones(13, requires_grad=True)
    (probabilities * weight).sum().backward()
    assert torch.equal(weight.grad, probabilities.sum(0))


@pytest.mark.slow
@each_kind
@each_strategy
def test_the_models_own_ids_begin_and_end_its_texts(kind, strategy):
    model = lively(kind)
    free = generate(model, SENTENCES, NEW, strategy, eos_id=None, bos_id=9).ids
    ends = (free[0][2], free[1][3])
    named = generate(model, SENTENCES, NEW, strategy, eos_id=ends, bos_id=9)
    assert any(named.finished) and all(ids[-1] in ends for ids in named.ids if len(ids) < NEW)
    own = lively(kind, bos_id=9, eos_ids=ends)
    assert_same(named, generate(own, SENTENCES, NEW, strategy))
    assert_same(named, generate(own, SENTENCES, NEW, strategy, use_cache=False))
    endless = lively(kind, bos_id=9, eos_ids=())
    assert generate(endless, SENTENCES, NEW, strategy).ids == free


@each_kind
def test_one_seed_writes_the_same_and_rows_and_neighboring_seeds_share_no_text(kind):
    model, prompts = lively(kind), [[3, 4]] * 4
    texts = [
        generate(model, prompts, NEW, Sample(3.0, seed=seed), eos_id=None).ids
        for seed in (0, 0, 1, 2)
    ]
    assert texts[0] == texts[1] and len({tuple(ids) for rows in texts for ids in rows}) == 12


@each_strategy
def test_model_and_random_state_stay_as_they_were(strategy):
    model = lively(EncoderDecoderTransformer, dropout=0.5, attention_dropout=0.5).train()
    model.encoder.eval()
    modes = [module.training for module in model.modules()]
    state = torch.random.get_rng_state()
    texts = [generate(model, SENTENCES, NEW, strategy).ids for _ in range(2)]
    assert texts[0] == texts[1]  # no dropout
    with pytest.raises(ValueError, match="outside the vocabulary"):
        generate(model, [[99]], 2, strategy)
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.random.get_rng_state(), state)
    loss = model(padded(SENTENCES, "right"), padded(SENTENCES, "right")).sum()
    loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_half_precision_weights_write_with_float32_probabilities():
    model = lively(DecoderOnlyTransformer).bfloat16()
    written = generate(model, SENTENCES, NEW, distributions=True)
    again = generate(model, SENTENCES, NEW, use_cache=False)
    assert written.ids[0][0] == again.ids[0][0]
    for probabilities in written.distributions:
        assert probabilities.dtype == torch.float32
        torch.testing.assert_close(probabilities.sum(1), torch.ones(len(probabilities)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("use_cache", [True, False])
@each_strategy
@each_kind
def test_a_nan_among_the_weights_is_named(kind, strategy, use_cache, dtype, unchecked):
    model = kind(small_config(d_model=256, n_heads=2, max_len=20, pad_id=PAD)).to(dtype).eval()
    written = generate(model, [[3]], 2, strategy, use_cache)
    name, weight = list(model.named_parameters())[-1]
    weight.data.view(-1)[-1] = torch.nan
    with pytest.raises(ValueError, match=f"logits are NaN, because {name} holds NaN or an inf"):
        generate(model, [[3]], 2, strategy, use_cache)
    weight.data.view(-1)[-1] = 0.0
    assert len(generate(model, [[3]], 2, strategy, use_cache).ids) == len(written.ids)
    model.logits.register_forward_hook(lambda *arguments: arguments[-1] * torch.nan)
    with pytest.raises(ValueError, match="though all of its weights are finite"):
        generate(model, [[3]], 2, strategy, use_cache)


def test_a_word_that_has_the_id_of_the_sources_padding_is_written():
    config = small_config(pad_id=None, tie_embeddings=False)
    model = EncoderDecoderTransformer(dataclasses.replace(config, pad_id=0), config)
    torch.nn.init.zeros_(model.projection.weight)
    with torch.no_grad():  # the last norm's bias alone decides
        model.decoder_norm.weight.zero_()
        model.decoder_norm.bias.fill_(1.0)
        model.projection.weight[0] = 1.0
    assert generate(model, [[3]], 3, eos_id=None).ids == [[0, 0, 0]]


@each_kind
def test_numpys_scalars_and_arrays_are_numbers(kind, unchecked):
    model = lively(kind)
    for ends in (EOS, (EOS, 5)):
        right = generate(model, SENTENCES, 4, Sample(0.7, 5, 0.9, 3), True, ends, BOS)
        sample = Sample(np.float64(0.7), np.int32(5), np.float64(0.9), np.uint8(3))
        four, cached, end = np.int16(4), np.bool_(True), np.array(ends)
        assert right == generate(model, SENTENCES, four, sample, cached, end, np.int64(BOS))
        assert right == generate(model, SENTENCES, four, sample, cached, torch.tensor(ends), BOS)
    beams = generate(model, SENTENCES, 4, Beam(3, 0.5))
    assert beams == generate(model, SENTENCES, np.int64(4), Beam(np.int64(3), np.float32(0.5)))
    assert Sample(np.float32(0.7)).temperature == pytest.approx(0.7)
    logits = torch.randn(2, 7)
    assert torch.equal(top_k_filter(logits, np.int64(3)), top_k_filter(logits, 3))
    assert torch.equal(top_p_filter(logits, np.float64(0.5)), top_p_filter(logits, 0.5))


def test_an_encoder_writes_nothing(unchecked):
    model = transformers.EncoderOnlyTransformer(lively(DecoderOnlyTransformer).config)
    with pytest.raises(ValueError, match="EncoderOnlyTransformer does not predict the next token"):
        generate(model, [3], 2)


@each_kind
def test_more_than_max_len_is_refused_before_any_work(kind, unchecked):
    model = lively(kind)
    room = 20 - len(start_of(model, SENTENCES[0]))
    read = []
    model.register_forward_pre_hook(lambda *_: read.append(1))
    match = f"max_new_tokens = {room + 1} .* max_len of 20: ask for at most {room} new tokens"
    with pytest.raises(ValueError, match=match):
        generate(model, SENTENCES, room + 1)
    assert not read
    assert len(generate(model, SENTENCES, room, eos_id=None).ids[0]) == room


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt_or_source": []}, "there is no sentence"),
        ({"prompt_or_source": [[3], []]}, "sentence 1 has no tokens"),
        ({"prompt_or_source": torch.tensor([[3], [PAD]])}, "sentence 1 has no tokens"),
        ({"prompt_or_source": torch.ones(1, 2, 2).long()}, "must be whole numbers, one list"),
        ({"prompt_or_source": [[3.5]]}, r"ids are \[\[3.5\]\], but must be whole numbers"),
        ({"prompt_or_source": [[13]]}, "token id 13 is outside the vocabulary"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0, but it must be an int >= 1"),
        ({"max_new_tokens": 2.0}, "max_new_tokens is 2.0, but it must be an int >= 1"),
        ({"eos_id": (2, 13)}, "eos_id is 13, but the vocabulary has the ids 0 to 12"),
        ({"eos_id": "<eos>"}, "eos_id is '<eos>', but the vocabulary has the ids 0 to 12"),
        ({"bos_id": 1.5}, "bos_id is 1.5, but the vocabulary has the ids 0 to 12"),
        ({"bos_id": -1}, "bos_id is -1, but the vocabulary has the ids 0 to 12"),
        ({"strategy": "greedy"}, r"strategy is 'greedy', but it must be Greedy\(\)"),
        ({"trees": True}, r"only a beam search has trees: use Beam\(...\)"),
    ],
)
@each_kind
def test_bad_input_is_named(kind, changes, message, unchecked):
    arguments = {"prompt_or_source": [[3]], "max_new_tokens": 2} | changes
    with pytest.raises(ValueError, match=message):
        generate(lively(kind), **arguments)


@each_kind
def test_a_model_without_padding_takes_sentences_of_one_length(kind, unchecked):
    model = lively(kind, pad_id=None)
    texts = generate(model, [[3, 4], [5, 6]], NEW).ids
    assert texts == [generate(model, [s], NEW).ids[0] for s in ([3, 4], [5, 6])]
    with pytest.raises(ValueError, match="1 to 5 tokens need padding, but the model's pad_id is N"):
        generate(model, SENTENCES, NEW)
