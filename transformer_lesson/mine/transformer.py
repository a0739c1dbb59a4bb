"""A Transformer whose forward pass is the learner's: the package's weights, the learner's code."""

from collections.abc import Callable

import torch
from torch import Tensor

from transformer_lesson.checkpoints.in_place import NothingDrawn
from transformer_lesson.mine.parts import Parts, parts
from transformer_lesson.model.cache import NO_CACHE, KeyValueCache
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.forward import weights_of
from transformer_lesson.model.transformers import EncoderDecoderTransformer


class MyTransformer(EncoderDecoderTransformer):
    """The paper's model, run by functions that were put together from the learner's.

    It has the weights of an `EncoderDecoderTransformer` under the same names, and is trained and
    writes like one. Its modules only hold them: `encode` and `decode` hand them to
    `encoder_forward` and `decoder_forward`. What needs the package's own modules, such as a
    checkpoint, a page or hook points, takes `as_the_packages()`.

    Args:
        source_config, target_config, share_embeddings: as in `EncoderDecoderTransformer`.
        own: the functions; those that `parts()` finds if none are given.

    Raises:
        ValueError: a choice that the functions do not know; see `weights_of`.
    """

    def __init__(
        self,
        source_config: ModelConfig,
        target_config: ModelConfig | None = None,
        share_embeddings: bool = False,
        own: Parts | None = None,
    ):
        super().__init__(source_config, target_config, share_embeddings)
        weights_of(self)  # refuses other choices
        self.parts = own or parts()

    @classmethod
    def with_weights_of(
        cls, model: EncoderDecoderTransformer, own: Parts | None = None
    ) -> "MyTransformer":
        """Return one that shares the parameters of a model, in the model's own mode."""
        with NothingDrawn():  # what is trained next is as it would have been
            return _sharing(cls(model.source_config, model.config, own=own), model)

    def as_the_packages(self) -> EncoderDecoderTransformer:
        """Return the package's model with these parameters, to be saved, drawn or watched."""
        with NothingDrawn():
            return _sharing(EncoderDecoderTransformer(self.source_config, self.config), self)

    def encode(self, source_ids: Tensor) -> Tensor:
        """Return the memory, by the learner's `encoder_forward`."""
        forward = self.parts.functions["encoder_forward"]
        pad_id = self.source_config.pad_id
        return padding_last(source_ids, pad_id, lambda ids: forward(ids, weights_of(self)))

    def decode(
        self,
        target_ids: Tensor,
        memory: Tensor,
        source_ids: Tensor,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Return logits, by the learner's `decoder_forward`, which reads all tokens each time."""
        cache = cache or NO_CACHE
        all_ids = cache.with_new(target_ids)
        forward = self.parts.functions["decoder_forward"]
        logits = forward(all_ids, memory, source_ids, weights_of(self))
        start = cache.length
        cache.commit(all_ids)
        return logits[:, start:]


def padding_last(ids: Tensor, pad_id: int | None, read: Callable[[Tensor], Tensor]) -> Tensor:
    """Return read(ids), of shape (batch, n, d), where read counts positions from the first token.

    So what is padded on the left, as a batch that is written from may be, goes in with its words
    first, and comes out as it stood.
    """
    padded = torch.zeros_like(ids, dtype=torch.bool) if pad_id is None else ids == pad_id
    if not padded[:, 0].any():
        return read(ids)
    order = padded.long().argsort(dim=1, stable=True)
    x = read(ids.gather(1, order))  # (batch, n, d)
    return x.gather(1, order.argsort(dim=1)[:, :, None].expand_as(x))


def _sharing(made, model: EncoderDecoderTransformer):
    """Return a model that has another one's modules, and is in the same mode."""
    for name, module in model.named_children():
        setattr(made, name, module)
    return made.train(model.training)
