"""Writing with a trained model: choosing tokens one by one, and judging the result.

`generate` does all of it in one call; `greedy_decode` and `beam_search` show its ideas in their
plainest form.
"""

from transformer_lesson.generation.beam import Candidate
from transformer_lesson.generation.bleu import Bleu, NGram, bleu, exact_match, ngram_matches
from transformer_lesson.generation.constrained import legal_next
from transformer_lesson.generation.generate import Generation, generate
from transformer_lesson.generation.plain import beam_search, greedy_decode
from transformer_lesson.generation.serving import Server
from transformer_lesson.generation.speculative import (
    Speculation,
    accept_and_residual,
    speculative_decode,
)
from transformer_lesson.generation.strategies import (
    Beam,
    Greedy,
    Sample,
    length_normalized,
    top_k_filter,
    top_p_filter,
)
from transformer_lesson.generation.translate import translate

__all__ = [
    "Beam",
    "Bleu",
    "Candidate",
    "Generation",
    "Greedy",
    "NGram",
    "Sample",
    "Server",
    "Speculation",
    "accept_and_residual",
    "beam_search",
    "bleu",
    "exact_match",
    "generate",
    "greedy_decode",
    "legal_next",
    "length_normalized",
    "ngram_matches",
    "speculative_decode",
    "top_k_filter",
    "top_p_filter",
    "translate",
]
