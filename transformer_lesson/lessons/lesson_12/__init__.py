"""Lesson 12, A real chat model: what only this lesson uses.

- `exercises.py`: `dequantize_q4_1`, `chat_prompt`, `llama_block`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `asking.py`: a question, and what the model answers
- `reactions.py`: reactions whose every atom is known, and which heads find where each was
- `small_store.py`: a folder laid out like Ollama's, with SmolLM2 or a tiny Llama in it
- `figures.py`: numbers kept in few bits, a comparison by layer, heads found and removed
- `removal.py`, `.json`: what the model loses without each head and each block;
  `measure_removal.py` made the file
- `answer_explorer.py`, `.js`: explorable: an answer, its alternatives, where heads looked, and what
  is lost without them
"""
