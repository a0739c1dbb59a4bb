"""A Llama with the learner's forward pass: a real chat model's weights, the learner's code."""

import torch
from torch import Tensor

from transformer_lesson.mine.parts import LLAMA_PARTS, Parts, parts
from transformer_lesson.mine.transformer import padding_last
from transformer_lesson.model.cache import NO_CACHE, KeyValueCache
from transformer_lesson.model.llama import LLAMAS, llama_block_of
from transformer_lesson.model.transformers import DecoderOnlyTransformer


class MyLlama(DecoderOnlyTransformer):
    """A Llama run by the learner's functions.

    It has the weights of a `DecoderOnlyTransformer` with a Llama's choices, and generates like one.
    Everything between the embedding and the logits is computed by `llama_block`, `causal_mask`,
    `rms_norm` and the functions they call.
    """

    @classmethod
    def with_weights_of(cls, model: DecoderOnlyTransformer, own: Parts | None = None) -> "MyLlama":
        """Return an instance that shares a model's parameters, in the same mode.

        Args:
            model: with a Llama's choices.
            own: the functions; by default those of the learner that pass.

        Raises:
            ValueError: a choice of the model that `llama_block` does not implement.
        """
        with torch.device("meta"):  # its own weights would only take memory
            mine = cls(model.config)
        for name, module in model.named_children():
            setattr(mine, name, module)
        mine.parts = own or parts(LLAMA_PARTS)
        mine.blocks = [llama_block_of(block, model.config) for block in model.decoder]
        return mine.train(model.training)

    def forward(
        self, ids: Tensor, cache: KeyValueCache | None = None, last_only: bool = False
    ) -> Tensor:
        """Return logits from the learner's functions, which recompute all tokens each time."""
        cache = cache or NO_CACHE
        all_ids = cache.with_new(ids)
        x = padding_last(all_ids, self.config.pad_id, self._read)  # (batch, n, d_model)
        x = x[:, -1:] if last_only else x[:, cache.length :]
        logits = self.projection(x)  # (batch, new, vocab_size)
        cache.commit(all_ids)
        return logits

    def _read(self, ids: Tensor) -> Tensor:
        """Return the normed vectors after the last block; padding after a text is ignored."""
        functions, n = self.parts.functions, ids.size(1)
        x = self.embedding(ids)  # (batch, n, d_model)
        mask, positions = functions["causal_mask"](n), torch.arange(n, device=ids.device)
        for block in self.blocks:
            x = functions["llama_block"](x, block, mask, positions)
        return functions["rms_norm"](x, self.decoder_norm.weight, LLAMAS["norm_epsilon"])
