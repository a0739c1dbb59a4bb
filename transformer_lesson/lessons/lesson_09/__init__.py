"""Lesson 09, Inference: what only this lesson uses.

- `exercises.py`: `greedy_decode`, `top_p_filter`, `legal_next`, `beam_search`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `solutions.py`: solutions as the lesson shows them
- `figures.py`: a tree of words, competing beams, what filters keep, the cache, draft tokens
"""
