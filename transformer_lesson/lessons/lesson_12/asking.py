"""Asking a chat model: conversations, the form that makes one text of them, and what it writes."""

from collections.abc import Callable, Sequence

from torch import nn

from transformer_lesson.generation import generate
from transformer_lesson.text.pretrained import chat_prompt
from transformer_lesson.text.tokenizers import Tokenizer

Messages = Sequence[tuple[str, str]]
SHOWN: tuple[Messages, ...] = (
    [("user", "What is the capital of France?")],
    [("system", "Be brief."), ("user", "Hi"), ("assistant", "Hello!"), ("user", "2 + 2?")],
)
"""Conversations whose ids are enough to find the form."""
GERMAN = {
    "the child opens the window .": "das Kind macht das Fenster auf .",
    "the old man sees the dog .": "der alte Mann sieht den Hund .",
    "they know that the queen is good .": "sie wissen , dass die Königin gut ist .",
    "the woman closes the door .": "die Frau macht die Tür zu .",
    "the red book is good .": "das rote Buch ist gut .",
    "the child sleeps .": "das Kind schläft .",
}
"""Sentences of the grammar that the translator was trained on, and their right translations."""
EVERYDAY = (
    "I am hungry .",
    "Where is the station ?",
    "Good morning .",
    "The water is cold .",
    "My name is Anna .",
    "Thank you very much .",
)
"""Sentences that the grammar does not have."""


def ask(
    model: nn.Module,
    tokenizer: Tokenizer,
    prompt: str | Messages,
    longest: int = 50,
    form: Callable[[Tokenizer, list], Sequence[int]] = chat_prompt,
) -> str:
    """Return what a chat model answers.

    Args:
        model: that writes greedily.
        tokenizer: its own.
        prompt: a question, or a conversation that ends with one: pairs (role, text).
        longest: most tokens to write.
        form: makes ids of a conversation.
    """
    messages = [("user", prompt)] if isinstance(prompt, str) else list(prompt)
    written = generate(model, list(form(tokenizer, messages)), longest)
    return tokenizer.decode(written.ids[0])


def ids_and_tokens(tokenizer: Tokenizer, messages: Messages) -> str:
    """Return a conversation's ids, each over its token, in lines of at most 100 characters."""
    columns = [(str(id_), tokenizer.token(id_)) for id_ in chat_prompt(tokenizer, messages)]
    lines = [[]]
    for column in columns:
        wide = max(map(len, column)) + 2
        if lines[-1] and sum(n for _, n in lines[-1]) + wide > 90:
            lines.append([])
        lines[-1].append((column, wide))
    return "\n".join(
        "".join(column[row].ljust(wide) for column, wide in line).rstrip()
        for line in lines
        for row in (0, 1)
    )
