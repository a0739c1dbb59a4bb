"""Lesson 09, Inference: what only this lesson uses.

- `exercises.py`: greedy decoding, top-k, top-p, fixed formats, beams, a cache, guessing ahead
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `solutions.py`: four of these solutions as the lesson shows them
- `figures.py`: a tree of words, competing beams, what filters keep, the cache, draft tokens
"""
