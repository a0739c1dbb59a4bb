"""Many requests, one model: one pass serves all of them, and their keys and values live in pages.

A model that writes for one request waits for memory, because each token needs every weight once.
Eight requests that are read together share that wait. Two ideas make it possible:

- **Continuous batching.** Requests come and end at any time, so the batch is rebuilt for every
  token: finished requests leave, waiting ones enter. Norms, projections and feed-forward networks
  take the new tokens of all requests as one long row; only attention goes request by request.
- **A paged cache.** How long a text will get is unknown, so no request reserves memory for the
  longest. The memory is cut into pages of a few tokens, a request takes a page whenever its last
  one is full, and a table lists its pages in order.

Source: Yu et al., "Orca" (2022), section 3, for the batches; Kwon et al., "Efficient Memory
    Management for Large Language Model Serving with PagedAttention" (2023), section 4, for pages.
Differs: their kernel reads keys in place; here a request's pages are first copied together.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lesson.generation.session import Row, check_length, require_no_nan, sentences_of
from transformer_lesson.generation.strategies import GREEDY
from transformer_lesson.model.attention import merge_heads, split_heads
from transformer_lesson.model.config import size
from transformer_lesson.model.embedding import check_ids
from transformer_lesson.model.evaluation import evaluating
from transformer_lesson.model.masks import target_masks
from transformer_lesson.model.transformers import DecoderOnlyTransformer


@dataclass(eq=False)
class Request:
    """A text that grows.

    Args:
        number: of the request, from 0.
        ids: the prompt and what was written so far.
        n: tokens of the prompt.
        most: tokens that the text may have in the end.
        read: number of tokens whose keys and values are in the cache.
        table: the request's pages; the first holds its first tokens.
    """

    number: int
    ids: list[int]
    n: int
    most: int
    read: int = 0
    table: list[int] = field(default_factory=list)


class PagedCache:
    """Memory for the keys and values of many texts, cut into pages of equal size.

    Args:
        model: whose keys and values they are.
        pages: how many there are.
        page_size: tokens of a page.
    """

    def __init__(self, model: DecoderOnlyTransformer, pages: int, page_size: int):
        config, weight = model.config, model.embedding.weight
        heads, d_head = config.n_kv_heads or config.n_heads, config.d_head
        self.pages, self.page_size, self.free = pages, page_size, list(range(pages))
        shape = (2, config.n_layers, pages * page_size, heads, d_head)
        self.keys, self.values = weight.detach().new_zeros(shape)

    def pages_for(self, tokens: int) -> int:
        """Return how many pages this many tokens need."""
        return -(-tokens // self.page_size)

    def grow(self, table: list[int], tokens: int) -> bool:
        """Give a table pages for this many tokens in all; or none, if too few are free."""
        missing = max(0, self.pages_for(tokens) - len(table))
        if missing > len(self.free):
            return False
        table += [self.free.pop() for _ in range(missing)]
        return True

    def release(self, table: list[int]) -> None:
        """Take back all pages of a table."""
        self.free += table
        table.clear()

    def extend(
        self,
        layer: int,
        request: Request,
        K: Float[Tensor, "1 kv_head new d_head"],
        V: Float[Tensor, "1 kv_head new d_head"],
    ) -> tuple[Tensor, Tensor]:
        """Put a layer's new keys and values into a request's pages; return all that are there.

        Returns:
            Keys and values, each of shape (1, kv_head, n, d_head), in the order of the text.
        """
        n, pages = request.read + K.size(2), torch.tensor(request.table, device=K.device)
        within = torch.arange(self.page_size, device=K.device)
        places = (pages[:, None] * self.page_size + within).flatten()[:n]  # (n,)
        self.keys[layer, places[request.read :]] = K[0].transpose(0, 1)
        self.values[layer, places[request.read :]] = V[0].transpose(0, 1)
        keys, values = self.keys[layer, places], self.values[layer, places]  # (n, kv_head, d_head)
        return keys.transpose(0, 1)[None], values.transpose(0, 1)[None]


def read_together(
    model: DecoderOnlyTransformer, requests: Sequence[Request], cache: PagedCache
) -> Float[Tensor, "request vocab_size"]:
    """Read each request's new tokens, all in one pass; return the logits of what comes next.

    A new request has a whole prompt to read, the others one token. The pages must have room for
    all of them. Hook points of attention are skipped.
    """
    device = model.embedding.weight.device
    texts = [torch.tensor([request.ids], device=device) for request in requests]  # (1, n) each
    of_all = zip(texts, requests, strict=True)
    masks = [target_masks(ids, model.config, a.read) for ids, a in of_all]  # by request and layer
    new = [len(request.ids) - request.read for request in requests]
    placed = [model.embedding.placed(ids, a.read) for ids, a in zip(texts, requests, strict=True)]
    x = torch.cat(placed, dim=1)  # (1, all new tokens, d_model)
    for layer, block in enumerate(model.decoder):

        def attend(h, layer=layer, attention=block.self_attention):
            """Let each request's new tokens attend to all of its own."""
            V = split_heads(attention.W_V(h), attention.n_kv_heads)
            together = attention.projected_queries(h), attention.projected_keys(h), V
            Q, K, V = (heads.split(new, dim=2) for heads in together)
            heads = []
            for request, mask, q, k, v in zip(requests, masks, Q, K, V, strict=True):
                q, k = attention.rotate(q, request.read), attention.rotate(k, request.read)
                keys, values = cache.extend(layer, request, k, v)
                readable = keys, values, mask[layer], request.read
                heads.append(attention.attend(q, *readable))  # (1, head, new, d_head)
            return attention.W_O(merge_heads(torch.cat(heads, dim=2)))

        x = block.after_both(x, attend, block.feed_forward)
    last = torch.tensor(new, device=device).cumsum(0) - 1  # (request,)
    return model.read_out(x[0, last])


class Server:
    """Writes for many requests at once, greedily, with one model and one pool of pages.

    A request's result does not depend on the others: it is what `generate` writes for it alone.
    If no page is left, the newest request gives its pages back and waits; once there is room
    again, it reads its text so far again.

    Args:
        model: a decoder-only model.
        pages: of the pool.
        page_size: tokens of a page.
        eos_ids: each ends a text; by default the model's own.

    Attributes:
        passes: how often the model was called.
        most_pages: the largest number of pages in use at the same time.
        written: the new tokens of each request that has ended, by its number.

    Raises:
        ValueError: another kind of model, or no page at all.
    """

    def __init__(
        self,
        model: nn.Module,
        pages: int,
        page_size: int = 16,
        eos_ids: Sequence[int] | None = None,
    ):
        if not isinstance(model, DecoderOnlyTransformer):
            raise ValueError(
                f"{type(model).__name__} cannot be served: use a DecoderOnlyTransformer, whose "
                "requests need nothing but their own text."
            )
        pages, page_size = size.check("pages", pages), size.check("page_size", page_size)
        self.model, self.cache = model, PagedCache(model, pages, page_size)
        self.ends = model.config.eos_ids if eos_ids is None else tuple(eos_ids)
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []  # oldest first
        self.written: dict[int, list[int]] = {}
        self.asked = self.passes = self.most_pages = 0

    def ask(self, ids: Row, max_new_tokens: int) -> int:
        """Queue a request, and return its number, from 0.

        Args:
            ids: its prompt.
            max_new_tokens: most tokens to write.

        Raises:
            ValueError: an empty prompt, ids outside the vocabulary, a text that would exceed
                max_len or not fit into all pages together.
        """
        (prompt,) = sentences_of([ids], self.model.config.pad_id)
        check_ids(torch.tensor([prompt]), 0, self.model.config)
        new = check_length(len(prompt), max_new_tokens, self.model.config.max_len)
        most = len(prompt) + new
        needed = self.cache.pages_for(most - 1)  # the last token is never read
        if needed > self.cache.pages:
            raise ValueError(
                f"a text of {most} tokens needs {needed} pages of {self.cache.page_size} tokens, "
                f"but there are {self.cache.pages}: make the server with more pages."
            )
        self.waiting.append(Request(self.asked, prompt, len(prompt), most))
        self.asked += 1
        return self.asked - 1

    def step(self) -> None:
        """Write one token for every request that has room."""
        self._make_room()
        if not self.running:
            return
        model, pad_id = self.model, self.model.config.pad_id
        with evaluating(model), torch.inference_mode():
            logits = read_together(model, self.running, self.cache)  # (request, vocab_size)
            require_no_nan(logits, model)
            if pad_id is not None:
                logits[:, pad_id] = -torch.inf
            tokens = GREEDY.choose(logits, None).tolist()
        self.passes += 1
        self.most_pages = max(self.most_pages, self.cache.pages - len(self.cache.free))
        for request, token in zip(list(self.running), tokens, strict=True):
            request.read = len(request.ids)
            request.ids.append(token)
            if token in self.ends or len(request.ids) == request.most:
                self._leave(request)
                self.written[request.number] = request.ids[request.n :]

    def run(self) -> list[list[int]]:
        """Write until all requests have ended; return the new tokens of each, in order."""
        while self.waiting or self.running:
            self.step()
        return [self.written[number] for number in range(self.asked)]

    def _make_room(self) -> None:
        """Give pages to running requests, the oldest first, and then to waiting ones."""
        for request in list(self.running):
            while request in self.running and not self.cache.grow(request.table, len(request.ids)):
                youngest = self.running[-1]
                self._leave(youngest)
                youngest.read = 0
                self.waiting.appendleft(youngest)
        while self.waiting and self.cache.grow(self.waiting[0].table, len(self.waiting[0].ids)):
            self.running.append(self.waiting.popleft())

    def _leave(self, request: Request) -> None:
        self.running.remove(request)
        self.cache.release(request.table)
