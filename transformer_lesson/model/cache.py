"""The keys and values that attention layers keep while a model writes, so that every token is
read once.

Without a cache, writing token n + 1 computes the keys and values of the n tokens before it
again. They cannot have changed: under a causal mask no token sees what comes after it.
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

KeysAndValues = tuple[Tensor, Tensor]


class NoCache:
    """Remembers nothing: for a forward pass that reads all its tokens at once."""

    length = start = 0
    complete = False

    def with_new(self, ids: Tensor) -> Tensor:
        """Return the ids as they are: there are no earlier ones."""
        return ids

    def commit(self, ids: Tensor) -> None:
        """Do nothing."""

    def extend(self, K: Tensor, V: Tensor) -> KeysAndValues:
        """Return keys and values as they are."""
        return K, V

    def self_attention_cache(self, attention: nn.Module) -> "NoCache":
        """Return a layer's cache: none."""
        return self

    cross_attention_cache = self_attention_cache


NO_CACHE = NoCache()


class LayerCache:
    """The keys and values of one attention layer.

    Args:
        max_len: number of tokens to reserve memory for. `None` in cross-attention, where the
            source is read once and does not grow.
    """

    def __init__(self, max_len: int | None):
        self.max_len, self.start = max_len, 0  # start: how many tokens have been read
        self.keys = self.values = None

    @property
    def complete(self) -> bool:
        """True when nothing will be added: the source of cross-attention has been read."""
        return self.max_len is None and self.values is not None

    def extend(
        self,
        K: Float[Tensor, "batch head new d_head"],
        V: Float[Tensor, "batch head new d_head"],
    ) -> KeysAndValues:
        """Return the keys and values of all tokens: those read before, then the new ones."""
        if self.max_len is None:
            self.keys, self.values = K, V
            return K, V
        if self.values is None:
            reserved = *K.shape[:2], self.max_len, K.size(-1)
            self.keys, self.values = K.new_empty(reserved), V.new_empty(reserved)
        end = self.start + K.size(2)
        self.keys[:, :, self.start : end] = K
        self.values[:, :, self.start : end] = V
        return self.keys[:, :, :end], self.values[:, :, :end]

    def reorder(self, rows: Tensor, length: int) -> None:
        """Let row i go on from the first `length` tokens that row rows[i] held."""
        if self.max_len is None:
            self.keys, self.values = self.keys[rows], self.values[rows]
            return
        kept = self.keys[rows, :, :length], self.values[rows, :, :length]
        if len(rows) != len(self.keys):
            reserved = len(rows), *self.keys.shape[1:]
            self.keys, self.values = (x.new_empty(reserved) for x in kept)
        self.keys[:, :, :length], self.values[:, :, :length] = kept


class KeyValueCache:
    """What a whole model remembers of the tokens that it has read.

    Hand it to `model(ids, cache=cache)` or `model.decode(..., cache=cache)`: ids then holds only
    the new tokens. Use one cache for one text (or batch), and no gradients. A forward pass that
    is refused or interrupted leaves it as it was.

    Args:
        max_len: longest text, in tokens, prompt included; memory is reserved for all of it.

    Raises:
        ValueError: max_len is under 1.
    """

    def __init__(self, max_len: int):
        if max_len < 1:
            raise ValueError(f"max_len is {max_len}, but a cache must hold at least 1 token.")
        self.max_len, self.ids = max_len, None
        self.layers: dict[nn.Module, LayerCache] = {}

    @property
    def length(self) -> int:
        """How many tokens have been read."""
        return 0 if self.ids is None else self.ids.size(1)

    def with_new(self, ids: Int64[Tensor, "batch new"]) -> Int64[Tensor, "batch n"]:
        """Return the ids of all tokens: those read before, then the new ones.

        Raises:
            ValueError: more tokens than `max_len`, or another number of rows than before.
        """
        if self.length + ids.size(1) > self.max_len:
            raise ValueError(
                f"the cache has room for {self.max_len} tokens and holds {self.length}; "
                f"{ids.size(1)} more do not fit: make it with a larger max_len."
            )
        if self.ids is not None and len(ids) != len(self.ids):
            raise ValueError(
                f"the cache holds {len(self.ids)} rows, but {len(ids)} came: use a new cache for "
                "another batch."
            )
        return ids if self.ids is None else torch.cat([self.ids, ids], dim=1)

    def commit(self, ids: Int64[Tensor, "batch n"]) -> None:
        """Record all these tokens as read, once every layer has read them."""
        self.ids = ids

    def self_attention_cache(self, attention: nn.Module) -> LayerCache:
        """Return a self-attention layer's cache, which grows with every token."""
        layer = self.layers.setdefault(attention, LayerCache(self.max_len))
        layer.start = self.length
        return layer

    def cross_attention_cache(self, attention: nn.Module) -> LayerCache:
        """Return a cross-attention layer's cache, whose source is read only once."""
        return self.layers.setdefault(attention, LayerCache(None))

    def reorder(self, rows: Int64[Tensor, " rows"]) -> None:
        """Let row i go on from row rows[i], as when beams are chosen. Rows may be repeated."""
        self.ids = self.ids[rows]
        for layer in self.layers.values():
            layer.reorder(rows, self.length)
