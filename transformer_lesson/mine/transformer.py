"""A Transformer with the learner's forward pass: the package's weights, the learner's code."""

from collections.abc import Callable

import torch
from torch import Tensor

from transformer_lesson.checkpoints.zero_copy import SkipsRandomInit
from transformer_lesson.mine.parts import Parts, parts
from transformer_lesson.model.cache import NO_CACHE, KeyValueCache
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.forward import weights_of
from transformer_lesson.model.transformers import EncoderDecoderTransformer


class MyTransformer(EncoderDecoderTransformer):
    """The paper's model, run by the learner's functions.

    It has the weights of an `EncoderDecoderTransformer` under the same names, and trains and
    generates like one. Its modules only hold the weights: `encode` and `decode` pass them to
    `encoder_forward` and `decoder_forward`. Checkpoints, pages and hook points need the package's
    own modules: use `as_the_packages()`.

    Args:
        source_config, target_config, share_embeddings: as in `EncoderDecoderTransformer`.
        own: the functions; by default those that `parts()` finds.

    Raises:
        ValueError: a choice that the functions do not implement; see `weights_of`.
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
        """Return an instance that shares a model's parameters, in the same mode."""
        with SkipsRandomInit():  # leave the random generator as it was
            return _sharing(cls(model.source_config, model.config, own=own), model)

    def as_the_packages(self) -> EncoderDecoderTransformer:
        """Return the package's model with these parameters, to save, draw or record."""
        with SkipsRandomInit():
            return _sharing(EncoderDecoderTransformer(self.source_config, self.config), self)

    def encode(self, source_ids: Tensor) -> Tensor:
        """Return the memory from the learner's `encoder_forward`."""
        forward = self.parts.functions["encoder_forward"]
        pad_id = self.source_config.pad_id
        return padding_last(source_ids, pad_id, lambda ids: forward(ids, weights_of(self)))

    def decode(
        self,
        target_ids: Tensor,
        memory: Tensor,
        source_ids: Tensor,
        cache: KeyValueCache | None = None,
        last_only: bool = False,
    ) -> Tensor:
        """Return logits from the learner's `decoder_forward`, which recomputes all tokens."""
        cache = cache or NO_CACHE
        all_ids = cache.with_new(target_ids)
        forward = self.parts.functions["decoder_forward"]
        logits = forward(all_ids, memory, source_ids, weights_of(self))
        start = cache.length
        cache.commit(all_ids)
        return logits[:, -1:] if last_only else logits[:, start:]


def padding_last(ids: Tensor, pad_id: int | None, read: Callable[[Tensor], Tensor]) -> Tensor:
    """Return read(ids), of shape (batch, n, d), where read counts positions from the first token.

    So a batch padded on the left, as for generation, is passed in with its words first, and the
    result is moved back.
    """
    padded = torch.zeros_like(ids, dtype=torch.bool) if pad_id is None else ids == pad_id
    if not padded[:, 0].any():
        return read(ids)
    order = padded.long().argsort(dim=1, stable=True)
    x = read(ids.gather(1, order))  # (batch, n, d)
    return x.gather(1, order.argsort(dim=1)[:, :, None].expand_as(x))


def _sharing(mine, model: EncoderDecoderTransformer):
    """Return a model with another's modules, in the same mode."""
    for name, module in model.named_children():
        setattr(mine, name, module)
    return mine.train(model.training)
