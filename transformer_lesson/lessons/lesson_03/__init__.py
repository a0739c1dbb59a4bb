"""Lesson 03, Attention: what only this lesson uses.

- `exercises.py`: `own_noun`, `scaled_dot_product_attention`; behind the lesson
  `attention_scores`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `solutions.py`: solutions as the lesson shows them
- `torn_head.py`: the head built by hand, for words with their places
- `articles.py`: the sentences from which the smallest attention model learns
- `figures.py`: places as hands; training runs, a dot each
- `attention_film.py`, `.js`: explorable: where two words look, step by step of a training
- `mask_explorer.py`, `.js`: explorable: the masks of a typed batch and how they combine
- `long_range.py`: a recurrent and an attending reader of the same size, by distance
"""
