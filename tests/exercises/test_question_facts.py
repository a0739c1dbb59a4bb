"""What the questions call right is what the package does."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from transformer_lesson import (
    DecoderOnlyTransformer,
    EncoderDecoderTransformer,
    EncoderOnlyTransformer,
    ModelConfig,
    MultiHeadAttention,
    record,
    scaled_dot_product_attention,
    sinusoidal_encoding,
)
from transformer_lesson.exercises.question_bank import find_question
from transformer_lesson.explorables.trained import trained_translator
from transformer_lesson.generation import Sample, bleu, generate, top_p_filter
from transformer_lesson.interpretability.causality import changed_positions
from transformer_lesson.mine import translation
from transformer_lesson.model.attention import attention_scores, multi_head_attention
from transformer_lesson.model.blocks import EncoderBlock
from transformer_lesson.model.embedding import embed
from transformer_lesson.model.feed_forward import FeedForward
from transformer_lesson.model.masks import causal_mask
from transformer_lesson.model.norm import layer_norm
from transformer_lesson.model.parameters import count_encoder_parameters, count_parameters
from transformer_lesson.text import pad_batch
from transformer_lesson.text.batches import shift_right
from transformer_lesson.training import bits_per_character, label_smoothed_loss, warmup_rate


def right(name):
    question = find_question(name)
    return f"{question.answer.text} {question.answer.explanation}"


def small(**changes):
    sizes = dict(vocab_size=50, d_model=64, n_heads=8, n_layers=2, d_ff=256, max_len=40)
    return ModelConfig(**{**sizes, **changes})


def test_00():
    model = DecoderOnlyTransformer(small()).eval()
    ids = torch.arange(5)[None]
    assert model(ids).shape == (1, 5, 50) and "250" in right("00.outputs")
    assert torch.equal(model(ids), model(ids))
    base = ModelConfig(37000, 512, 8, 1, 2048, 512)
    attention = 18 * count_parameters(MultiHeadAttention(512, 8))
    feed_forward, embedding = 12 * count_parameters(FeedForward(base)), 37000 * 512
    assert (attention, feed_forward, embedding) == (18_911_232, 25_196_544, 18_944_000)
    assert "25.2 million" in right("00.where_parameters")


def test_01():
    batch = pad_batch([[5] * 3, [5] * 5, [5] * 9], pad_id=0)
    assert int((batch == 0).sum()) == 10 and "10" in right("01.padded_batch")
    table = torch.randn(1000, 512) / math.sqrt(512)
    one_hot = nn.functional.one_hot(torch.tensor([7]), 1000).float()
    assert torch.allclose(one_hot @ table, table[7:8])
    length = table.norm(dim=-1).mean()
    position = sinusoidal_encoding(10, 512).norm(dim=-1).mean()
    scaled = embed(torch.arange(1000)[None], table).norm(dim=-1).mean()
    assert abs(length - 1) < 0.01 and abs(position - 16) < 0.01 and abs(scaled - 22.6) < 0.1


def test_02():
    x = torch.randn(1, 6, 8)
    order = torch.randperm(6)
    once, again = (scaled_dot_product_attention(y, y, y)[0] for y in (x, x[:, order]))
    assert torch.allclose(once[:, order], again, atol=1e-6)
    encoding = sinusoidal_encoding(70, 64)
    assert torch.equal(encoding[0], torch.tensor([0.0, 1.0]).repeat(32))
    assert torch.allclose(encoding[10] @ encoding[15], encoding[60] @ encoding[65], atol=1e-4)
    steps = encoding.diff(dim=0).abs().mean(dim=0)
    assert steps[0] > 100 * steps[-2]


def test_03():
    Q, K = torch.randn(1, 1, 500, 64), torch.randn(1, 1, 500, 64)
    assert abs((attention_scores(Q, K) * 8).std() - 8) < 0.2 and "8" in right("03.score_spread")
    _, weights = scaled_dot_product_attention(Q, K, K)
    assert torch.allclose(weights.sum(-1), torch.ones(1), atol=1e-5)
    assert weights.sum(-2).std() > 0.1
    assert ((weights * causal_mask(500)).sum(-1)[..., :-1] < 1).all()
    run = reading("the child opens the window .")
    assert "`window`" in right("03.second_the")
    assert abs(run[HEADS][0, 3, 3, 4] - 0.99) < 0.005
    x = run["encoder.0.output"][0]  # (n, d_model)
    alone = (x @ x.T / math.sqrt(128)).softmax(-1)
    assert alone.diagonal().min() > 0.9 and "at itself" in right("03.own_vectors")
    unscaled = translation("the child opens the window .", attention_scores=lambda Q, K: Q @ K.mT)
    assert unscaled.mine == unscaled.packages and unscaled.largest > 0.1


HEADS = "encoder.1.self_attention.weights"


def reading(sentence):
    """What the trained translator computes when it reads a sentence."""
    translator, tokenizer, _ = trained_translator()
    ids = torch.tensor([[*tokenizer.encode(sentence), tokenizer.eos_id]])
    with torch.no_grad(), record(translator) as run:
        translator(ids, torch.tensor([[tokenizer.bos_id]]))
    return run


def test_04():
    tokens = torch.arange(4).repeat_interleave(4)[None]
    assert tokens.view(1, 2, 4, 2)[0, 0, :, 0].tolist() == [0, 0, 1, 1]
    counts = {count_parameters(MultiHeadAttention(64, n_heads)) for n_heads in (1, 8)}
    assert counts == {16_640}
    x, *matrices = torch.randn(1, 6, 64), *(torch.randn(64, 64) / 8 for _ in range(4))
    swap = torch.cat([torch.arange(8, 16), torch.arange(8), torch.arange(16, 64)])
    W_Q, W_K, W_V, W_O = matrices
    swapped = multi_head_attention(x, W_Q[:, swap], W_K[:, swap], W_V[:, swap], W_O[swap], 8)
    assert torch.allclose(multi_head_attention(x, *matrices, 8), swapped, atol=1e-5)
    model = EncoderOnlyTransformer(small()).eval()
    with record(model) as run:
        model(torch.arange(6)[None])
    assert run["encoder.0.self_attention.weights"].shape == (1, 8, 6, 6)
    run = reading("the small child opens the old window .")
    assert run[HEADS][0, 3, 4, 6] > 0.95 and "`window`" in right("04.adjective_between")


def test_05():
    x = torch.randn(2, 5, 64)
    louder = x.clone()
    louder[0, 3] *= 100
    ones, zeros = torch.ones(64), torch.zeros(64)
    once, again = (layer_norm(y, ones, zeros, 1e-5) for y in (x, louder))
    assert (once - again).abs().max() < 1e-3
    feed_forward = FeedForward(small())
    moved = (feed_forward(louder) - feed_forward(x)).abs().amax(-1)
    assert moved.nonzero().tolist() == [[0, 3]]
    assert gradient(residual=False) < 1e-8 * gradient(residual=True)
    stream = torch.randn(1, 10, 64)
    sizes = []
    for block in [EncoderBlock(small(norm_position="pre")).eval() for _ in range(12)]:
        stream = block(stream)
        sizes.append(stream.std().item())
    assert sizes == sorted(sizes) and sizes[-1] > sizes[0]


def gradient(residual):
    """Norm of the gradient that reaches the input of 24 stacked feed-forward networks."""
    x = torch.randn(1, 4, 64, requires_grad=True)
    y = x
    for _ in range(24):
        y = FeedForward(small())(y) + (y if residual else 0)
    y.norm().backward()
    return x.grad.norm()


def test_06():
    model = EncoderOnlyTransformer(small(pad_id=0)).eval()
    alone, other = torch.tensor([[3, 4, 5, 6]]), [7] * 9
    together = pad_batch([alone[0].tolist(), other], pad_id=0)
    assert model(together).shape == (2, 9, 64)
    assert torch.allclose(model(together)[0, :4], model(alone)[0], atol=1e-5)
    ratio = count_encoder_parameters(1024, 4096, 6) / count_encoder_parameters(512, 2048, 6)
    assert 3.9 < ratio < 4
    share = count_parameters(MultiHeadAttention(512, 8)) / count_encoder_parameters(512, 2048, 1)
    assert abs(share - 1 / 3) < 0.01


def test_07():
    ids = torch.arange(5)[None]
    decoder = DecoderOnlyTransformer(small()).eval()
    assert changed_positions(decoder, ids, 3).gt(1e-5).tolist() == [False] * 3 + [True] * 2
    first, second = MultiHeadAttention(64, 8), MultiHeadAttention(64, 8)
    table = torch.randn(50, 64)

    def leaking(ids):
        x = table[ids]
        x = x + first(x, x, x, causal_mask(5))
        return x + second(x, x, x)

    assert changed_positions(leaking, ids, 4).gt(1e-5).all()
    model = EncoderDecoderTransformer(small()).eval()
    with record(model) as run:
        model(torch.arange(4)[None], ids)
    assert run["decoder.0.cross_attention.weights"].shape[-2:] == (5, 4)
    assert right("07.cross_shape").startswith("(5, 4)")


def test_08():
    inputs, labels = shift_right(torch.tensor([[1, 10, 11, 12, 13, 2]]))  # <bos> ... <eos>
    assert labels[0, inputs[0].tolist().index(12)] == 13 and "glücklich" in right("08.label")
    certain, label = F.one_hot(torch.tensor(0), 1000).double(), torch.tensor(0)
    assert f"{F.cross_entropy(certain, label):.2f}" == right("08.second_softmax")[:4]
    assert torch.tensor([4.0] * 4 + [0.0] * 4).mean() == int(right("08.padding_counted")[0])
    p = torch.linspace(0.01, 0.999, 990)[:, None]
    logits = torch.cat([p, ((1 - p) / 3).expand(-1, 3)], dim=1).log()
    losses = [label_smoothed_loss(row, label, 0.1) for row in logits]
    assert abs(p[torch.stack(losses).argmin()] - 0.925) < 0.001
    for gradient in (0.001, 1000.0):
        weight = torch.zeros(1, requires_grad=True)
        weight.grad = torch.full((1,), gradient)
        torch.optim.Adam([weight], lr=0.1).step()
        assert torch.isclose(weight.detach(), torch.tensor(-0.1), rtol=1e-4)
    assert math.isclose(warmup_rate(16_000, 512, 16_000), warmup_rate(4000, 512, 4000) / 2)


def test_09():
    model = DecoderOnlyTransformer(small()).eval()
    endless = generate(model, [1, 4], 10, eos_id=None)
    assert len(endless.ids[0]) == 10 and endless.finished == [False]
    start = torch.zeros(1, 5)
    assert 5 + 30 - len(start) == 34 == int(right("09.len_of_batch")[:2])
    cold = Sample(temperature=0.5).probabilities(torch.tensor([3.0, 1.0]).log())
    assert torch.allclose(cold[0] / cold[1], torch.tensor(9.0))
    kept = top_p_filter(torch.tensor([0.5, 0.3, 0.15, 0.05]).log(), 0.6).isfinite()
    assert kept.tolist() == [True, True, False, False]
    assert math.log(0.5) * 2 > math.log(0.8) * 8
    assert sum(range(101)) == 5050 and right("09.recomputed").startswith("5,050")
    nicht = "der Hund sieht die Katze nicht ."
    hypotheses = ("der Hund sieht die Katze .", "die Katze sieht der Hund nicht .")
    A, B = (bleu([hypothesis], [nicht]).score for hypothesis in hypotheses)
    assert A > 2 * B


def test_10():
    A, B = bits_per_character(1.5, 3000, 3000), bits_per_character(3.0, 1000, 3000)
    assert B < A and right("10.same_unit").startswith("B")
    ids, untied = torch.arange(30)[None], {"tie_embeddings": False, "vocab_size": 100}
    logits = DecoderOnlyTransformer(small(**untied)).eval()(ids)
    assert abs(F.cross_entropy(logits[0, :-1], ids[0, 1:]) - math.log(100)) < 0.7
    assert "ln V" in right("10.untrained")
    sizes = dict(d_model=64, n_heads=8, n_layers=2, d_ff=256, max_len=40, vocab_size=50)
    counts = {
        name: count_parameters(DecoderOnlyTransformer(small(**{name: 2 * size})))
        for name, size in sizes.items()
    }
    same = count_parameters(DecoderOnlyTransformer(small()))
    assert {name for name in counts if counts[name] == same} == {"n_heads", "max_len"}
    assert all(f"`{name}`" in right("10.double_it") for name in ("n_heads", "max_len"))
    x, pe = torch.zeros(16, 20, 256), sinusoidal_encoding(100, 256)[:, None]
    assert torch.equal((x + pe[:16])[1], pe[1].expand(20, 256))
    table, blocks = 51_281 * 768, count_encoder_parameters(768, 3072, 12)
    assert table + blocks + 2 * 768 == 124_439_808 and round(table / 124_439_808, 2) == 0.32
    assert "32 %" in right("10.gpt2_embedding")
