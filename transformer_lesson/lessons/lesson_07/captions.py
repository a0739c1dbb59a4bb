"""Pictures in, sentences out: the model of lesson 07 reads patches and describes the picture."""

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from transformer_lesson.lessons.lesson_07.scenes import N_PATCHES, PATCH, THINGS, Drawings
from transformer_lesson.lessons.lesson_07.vision import patches
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.evaluation import evaluating
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.stored import read_stored
from transformer_lesson.text.batches import Batch, EndlessBatches, pad_batch, shift_right
from transformer_lesson.text.tokenizers import WordTokenizer
from transformer_lesson.training.config import TrainConfig

TOKENIZER = WordTokenizer.train([f"a {' '.join(THINGS)} left of above"])
MOST_TOKENS = 10  # of a caption, <bos> and <eos> included
TRAINING = TrainConfig(steps=800, learning_rate=3e-3, weight_decay=0.05)

STORED = Path(__file__).with_name("captions.json")


class Captioner(EncoderDecoderTransformer):
    """Lesson 07's model with an embedding of patches instead of words as its input.

    Source: Vinyals et al., "Show and Tell" (2014): a caption as a translation of the picture; Xu
        et al., "Show, Attend and Tell" (2015): attention over places while each word is written.
    Differs: both read with a convolutional network and write with a recurrent one.
    """

    def __init__(self, d_model: int = 48, n_heads: int = 4, n_layers: int = 1, seed: int = 0):
        torch.manual_seed(seed)
        sizes = {"d_model": d_model, "n_heads": n_heads, "n_layers": n_layers, "dropout": 0.0}
        other_sizes = {"d_ff": 4 * d_model, "max_len": MOST_TOKENS, "pad_id": TOKENIZER.pad_id}
        super().__init__(ModelConfig(TOKENIZER.vocab_size, **sizes, **other_sizes))
        self.source_embedding = nn.Linear(PATCH * PATCH, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(N_PATCHES, d_model))

    def encode(self, pictures: Float[Tensor, "n 24 24"]) -> Float[Tensor, "n patches d_model"]:
        """Return the memory: one vector per patch."""
        x = self.source_embedding(patches(pictures, PATCH)) + self.positions
        for block in self.encoder:
            x = block(x)  # (n, patches, d_model)
        return self.encoder_norm(x)

    def forward(
        self, pictures: Float[Tensor, "n 24 24"], ids: Int64[Tensor, "n words"]
    ) -> Float[Tensor, "n words vocab_size"]:
        """Return, at each position of the captions, logits for the next word."""
        no_padding = torch.ones(len(pictures), N_PATCHES, dtype=torch.int64)
        return self.decode(ids, self.encode(pictures), no_padding)


class CaptionBatches(EndlessBatches):
    """Endless random batches of pictures and captions for `transformer_lesson.training.train`.

    A batch's inputs are the pictures and the captions from <bos> on; labels are the next words.
    """

    def __init__(self, drawings: Drawings, batch_size: int = 64, seed: int = 0):
        super().__init__(batch_size, seed)
        self.pictures = drawings.pictures
        encoded = [TOKENIZER.encode(str(scene), add_special=True) for scene in drawings.scenes]
        self.ids = pad_batch(encoded, TOKENIZER.pad_id)

    def _choices(self, generator: random.Random) -> Iterator[list[int]]:
        while True:
            yield generator.choices(range(len(self.ids)), k=self.batch_size)

    def _batch(self, choice: list[int]) -> Batch:
        inputs, labels = shift_right(self.ids[choice])
        return Batch((self.pictures[choice], inputs), labels)


@torch.no_grad()
def write(model: Captioner, pictures: Float[Tensor, "n 24 24"]) -> list[str]:
    """Return the model's captions, decoded greedily as in lesson 09."""
    ids = torch.full((len(pictures), 1), TOKENIZER.bos_id)
    with evaluating(model):
        while ids.size(1) < MOST_TOKENS:
            likeliest = model(pictures, ids)[:, -1:].argmax(-1)  # (n, 1)
            ids = torch.cat([ids, likeliest], dim=1)
    texts = [TOKENIZER.decode(row, keep_special=True) for row in ids.tolist()]
    return [text.removeprefix("<bos> ").partition(" <eos>")[0] for text in texts]


@torch.no_grad()
def next_word(model: Captioner, beginning: str, pictures: Float[Tensor, "n 24 24"]) -> Counter[str]:
    """Return each word's share as the next one after a given beginning, a mean over pictures."""
    ids = torch.tensor([[TOKENIZER.bos_id, *TOKENIZER.encode(beginning)]] * len(pictures))
    with evaluating(model):
        shares = model(pictures, ids)[:, -1].softmax(dim=-1).mean(dim=0)  # (vocab_size,)
    return Counter({TOKENIZER.decode([i]): share for i, share in enumerate(shares.tolist())})


def count_right(model: Captioner, drawings: Drawings) -> int:
    """Return how many pictures get exactly the right caption."""
    captions = write(model, drawings.pictures)
    return sum(text == str(scene) for text, scene in zip(captions, drawings.scenes, strict=True))


def said_of(thing: str, model: Captioner, drawings: Drawings) -> Counter[str]:
    """Count the names that a model gives a thing, such as "small triangle", where one is drawn."""
    counts = Counter()
    for scene, text in zip(drawings.scenes, write(model, drawings.pictures), strict=True):
        names = re.findall(r"\ba (\w+ \w+)", text)
        for thing_drawn, name in zip(scene[::2], names, strict=False):
            counts.update([name] * (thing_drawn == thing))
    return counts


@torch.no_grad()
def looks(model: Captioner, drawings: Drawings) -> Float[Tensor, "n words patches"]:
    """Return the last block's cross-attention, averaged over heads, for each word of the captions.

    Row i belongs to the query that predicts word i.
    """
    pictures, ids = CaptionBatches(drawings)._batch(list(range(len(drawings.scenes)))).inputs
    with evaluating(model), record(model) as recorded:
        model(pictures, ids)
    return recorded[f"decoder.{len(model.decoder) - 1}.cross_attention.weights"].mean(dim=1)


def noun_shares(model: Captioner, drawings: Drawings) -> Float[Tensor, "3"]:
    """Return how the captions' nouns distribute their cross-attention, on average.

    Returns:
        The weight on patches of the named shape, the weight on patches of only the other shape, and
        the named shape's share of all patches, which uniform attention would give it.
    """
    rows, seen_by_word = [], looks(model, drawings)
    for scene, seen, where in zip(drawings.scenes, seen_by_word, drawings.where, strict=True):
        for place, word in enumerate((2, 5 + len(scene.relation.split()))):  # the two nouns
            named, other = where[place], where[1 - place] & ~where[place]
            rows.append([seen[word][named].sum(), seen[word][other].sum(), named.float().mean()])
    return torch.tensor(rows).mean(dim=0)


def stored_runs() -> list[dict]:
    """Return the results of three seeds, stored by `measure_captions.py`.

    Raises:
        ValueError: the file is missing or damaged.
    """
    return read_stored(STORED, f"{__package__}.measure_captions")["seeds"]
