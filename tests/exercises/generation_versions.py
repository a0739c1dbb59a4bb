"""Other right ways of writing lesson 09's exercises."""

from transformer_lesson.exercises.mistakes.generation import beams, cached, greedy, top_k, top_p

GENERATION_RIGHT = {
    "greedy_decode": [greedy],
    "top_k_filter": [top_k, lambda logits, k: top_k(logits.double(), k)],
    "top_p_filter": [top_p, lambda logits, p: top_p(logits.double(), p)],
    "beam_search": [beams, lambda *inputs: list(beams(*inputs))],
    "append_to_cache": [cached, lambda *inputs: [part.double() for part in cached(*inputs)]],
}
