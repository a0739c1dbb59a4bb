"""Step through a decoding: what the model thinks, what a strategy makes of it, what is cached."""

from functools import lru_cache

import ipywidgets
from torch import nn

from transformer_lesson.explorables.base import Explorable, Rendering, sendable
from transformer_lesson.explorables.base import sentence as say
from transformer_lesson.explorables.beam_tree import render_beams
from transformer_lesson.explorables.decoding import Decoding, watch_decoding
from transformer_lesson.explorables.next_token_bars import render_distribution
from transformer_lesson.explorables.trained import MISSING, english_words, trained_translator
from transformer_lesson.explorables.typed_sentence import read_sentence, source_ids
from transformer_lesson.generation import Beam, Greedy, Sample
from transformer_lesson.generation.strategies import Strategy
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.text.tokenizers import Tokenizer

TEXT = "Today the old dog sees the small cat."
TOP_K = (1, 2, 3, 5, 10, 20, 50)
USED_BY = {  # strategy to the controls that matter for it
    "greedy": (),
    "sample": ("temperature", "top_k", "top_p", "seed"),
    "beam": ("width",),
}


class DecodingStepper(Explorable):
    """Watch a model choose one token after the other, by any strategy.

    Without a model it takes the trained translator that comes with the package.

    Args:
        model: an encoder-decoder or decoder-only model.
        tokenizer: of its vocabulary.
        text: the source, or the prompt to go on from.
        max_new_tokens: most tokens to write.

    Raises:
        ValueError: a model without its tokenizer, or `max_new_tokens` under 1.
    """

    def __init__(
        self,
        model: nn.Module | None = None,
        tokenizer: Tokenizer | None = None,
        text: str = TEXT,
        max_new_tokens: int = 20,
    ):
        if (model is None) != (tokenizer is None):
            raise ValueError("a model and its tokenizer belong together: pass both or none.")
        if max_new_tokens < 1:
            raise ValueError(f"max_new_tokens is {max_new_tokens}, but it must be at least 1.")
        self.source_words = None
        if model is None and trained_translator():
            model, tokenizer, _ = trained_translator()
            self.source_words = english_words()
        self.model, self.tokenizer, self.max_new_tokens = model, tokenizer, max_new_tokens
        self.attempt = lru_cache(maxsize=64)(self._attempt)
        self.step = ipywidgets.IntSlider(1, 1, max_new_tokens, description="Step")
        typed = ipywidgets.Text(sendable(text), description="Text", continuous_update=False)
        typed.layout.width = "38em"
        self.controls = {"text": typed} | _strategy_controls()
        for control in self.controls.values():
            control.observe(self._fit, "value")
        self._fit()
        super().__init__(self.controls | {"step": self.step})

    @property
    def strategy(self) -> Strategy:
        """The strategy that the controls describe."""
        get = {name: control.value for name, control in self.controls.items()}
        if get["strategy"] == "greedy":
            return Greedy()
        if get["strategy"] == "beam":
            return Beam(get["width"])
        top_p = None if get["top_p"] == 1 else get["top_p"]
        return Sample(get["temperature"], get["top_k"] or None, top_p, get["seed"])

    def render(self) -> Rendering:
        """Draw the present step."""
        made = self.attempt(self.controls["text"].value, self.strategy)
        if isinstance(made, str):
            return say(made)
        draw = render_beams if made.tree else render_distribution
        return draw(made, self.tokenizer, self.step.value - 1)

    def _attempt(self, text: str, strategy: Strategy) -> Decoding | str:
        """Return the whole decoding of a text, or what to change in it."""
        if self.model is None:
            return MISSING
        ids, max_len = self._ids(text), self.model.config.max_len
        translates = isinstance(self.model, EncoderDecoderTransformer)
        longest = self.model.source_config.max_len if translates else max_len - 1
        if len(ids) == translates:  # nothing but <eos>
            return "There is no text to begin with: type some and press Enter."
        if len(ids) > longest:
            return (
                f"The text has {len(ids):,} tokens, but the model has room for {longest}: shorten "
                "it and press Enter."
            )
        room = max_len - (1 if translates else len(ids))
        n_new = min(self.max_new_tokens, room)
        return watch_decoding(self.model, self.tokenizer, ids, strategy, n_new)

    def _ids(self, text: str) -> list[int]:
        text = sendable(text)
        if self.source_words:
            return source_ids(self.tokenizer, read_sentence(text, self.source_words, "."))
        ids = self.tokenizer.encode(text)
        translates = isinstance(self.model, EncoderDecoderTransformer)
        return [*ids, self.tokenizer.eos_id] if translates else ids

    def _fit(self, change=None) -> None:
        """Offer the steps that there are, and only what matters for the strategy."""
        made = self.attempt(self.controls["text"].value, self.strategy)
        with self.held():
            self.step.max = 1 if isinstance(made, str) else made.n_steps
            for strategy, names in USED_BY.items():
                for name in names:
                    self.controls[name].disabled = strategy != self.controls["strategy"].value


def _strategy_controls() -> dict[str, ipywidgets.DOMWidget]:
    top_k = [("off", 0), *((str(k), k) for k in TOP_K)]
    return {
        "strategy": ipywidgets.ToggleButtons(options=list(USED_BY), description="Strategy"),
        "temperature": ipywidgets.FloatLogSlider(
            1, min=-1, max=0.7, step=0.05, description="Temperature", readout_format=".2f"
        ),
        "top_k": ipywidgets.SelectionSlider(options=top_k, description="top-k"),
        "top_p": ipywidgets.FloatSlider(
            1, min=0.05, max=1, step=0.05, description="top-p (1: off)"
        ),
        "seed": ipywidgets.IntSlider(0, 0, 20, description="Seed"),
        "width": ipywidgets.IntSlider(3, 1, 5, description="Beam width"),
    }
