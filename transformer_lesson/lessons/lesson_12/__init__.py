"""Lesson 12, A real chat model: what only this lesson uses.

- `exercises.py`: `dequantize_q4_1`, `chat_prompt`, `llama_block`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `figures.py`: numbers kept in few bits, and losses without some heads
- `answer_explorer.py`, `.js`: explorable: an answer, its alternatives and where heads looked
"""
