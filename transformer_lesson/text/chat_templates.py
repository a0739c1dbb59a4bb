"""The form in which a model chats, as its own file gives it: a template in the language Jinja.

Each family has a form of its own, with marks of its own. A template is a small program that writes
a conversation in that form. It comes from a stranger, so it runs in Jinja's sandbox, reaches no
files and no objects of Python's, and can neither loop nor write without end.

Source: the library transformers' utils/chat_template_utils.py, for what templates may call.
"""

import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError

from transformer_lesson.files import printable
from transformer_lesson.text.pretrained import PretrainedTokenizer, checked_messages

LONGEST_TEMPLATE, MOST_STEPS, LONGEST_TEXT = 100_000, 10_000, 10_000_000
"""Characters of a template, numbers that it may count through, and characters that it may write."""
NOT_IN_TEXTS = [chr(code) for code in range(0xFDD0, 0xFDF0)]
"""Unicode reserves these for programs: no text contains them."""
FAILURES = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What Python raises for a template that is wrong."""


class Generation(Extension):
    """Lets templates mark what the assistant says by `{% generation %}`; it changes no text."""

    tags = {"generation"}

    def parse(self, parser) -> list[nodes.Node]:
        """Return what is between `{% generation %}` and `{% endgeneration %}`."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class Sandbox(ImmutableSandboxedEnvironment):
    """What a template runs in, with the library's settings and with limits.

    Args:
        now: the moment that a template gets if it asks for the date.
    """

    intercepted_binops = frozenset(("*", "**", "%"))

    def __init__(self, now: datetime):
        extensions = ["jinja2.ext.loopcontrols", Generation]
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=extensions)
        self.steps = 0
        self.filters["tojson"] = _to_json
        self.globals |= {
            "range": self._range,
            "raise_exception": _refuse,
            "strftime_now": lambda form: now.strftime(form),
        }

    def _range(self, *bounds: int) -> range:
        counted = range(*bounds)
        self.steps += len(counted)
        if self.steps > MOST_STEPS:
            raise SecurityError(f"it counts through more than {MOST_STEPS:,} numbers")
        return counted

    def call_binop(self, context, operator: str, left: Any, right: Any) -> Any:
        """Compute a product, power or remainder of numbers; texts could become any length."""
        if not (isinstance(left, int | float) and isinstance(right, int | float)):
            raise SecurityError(f"it applies {operator} to something else than numbers")
        if operator == "**" and max(abs(left), abs(right)) > 1000:
            raise SecurityError("it computes a power of large numbers")
        return super().call_binop(context, operator, left, right)


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _refuse(message: str) -> None:
    raise TemplateError(message)


def template_prompt(
    tokenizer: PretrainedTokenizer,
    messages: Sequence[tuple[str, str]],
    now: datetime | None = None,
    **values: Any,
) -> list[int]:
    """Return the ids of a conversation up to where the assistant begins to write.

    The form is that of the tokenizer's `chat_template`, which was read with it.

    Args:
        tokenizer: of a model that was trained to chat.
        messages: pairs (role, text); the roles are system, user and assistant.
        now: for templates that tell the model the date; by default the clock's.
        values: what else the template asks for, such as enable_thinking.

    Raises:
        ValueError: a tokenizer without a template, a message that is no such pair, a template that
            refuses the conversation, such as one with a system message, or one that is damaged.

    Differs: in the library, the text "<|im_end|>" in a message ends it. Here it is ordinary
        characters.
    """
    template = getattr(tokenizer, "chat_template", None)
    if template is None:
        raise ValueError(
            "This tokenizer has no chat template: its model was not trained to chat, or its file "
            "leaves the form out; chat_prompt writes ChatML."
        )
    messages = checked_messages(messages)
    marks = tokenizer.marks
    is_mark = re.compile("|".join(map(re.escape, sorted(marks, key=len, reverse=True))) or "(?!)")
    shield = _unused(text for _, text in messages)
    shielded = [
        {"role": role, "content": is_mark.sub(lambda m: m[0][0] + shield + m[0][1:], text)}
        for role, text in messages
    ]
    written = _render(template, shielded, now or datetime.now(), tokenizer.mark_of_role | values)
    return _ids(tokenizer, written, is_mark, shield)


def _unused(texts) -> str:
    """Return a character that none of these texts has."""
    used = set("".join(texts))
    return next(character for character in NOT_IN_TEXTS if character not in used)


def _render(template: str, messages: list[dict], now: datetime, values: dict[str, Any]) -> str:
    variables = {
        "messages": messages,
        "add_generation_prompt": True,
        "tools": None,
        "documents": None,
    }
    try:
        if len(template) > LONGEST_TEMPLATE:
            raise SecurityError(f"it has over {LONGEST_TEMPLATE:,} characters")
        parts, length = [], 0
        for part in Sandbox(now).from_string(template).generate(variables | values):
            length += len(part)
            if length > LONGEST_TEXT:
                raise SecurityError(f"it writes over {LONGEST_TEXT:,} characters")
            parts.append(part)
        return "".join(parts)
    except (TemplateError, *FAILURES) as error:
        reason = printable(" ".join(str(error).split()), 200)
        raise ValueError(
            f"The model's chat template does not write this conversation: {reason.rstrip('.')}."
        ) from error


def _ids(tokenizer: PretrainedTokenizer, text: str, is_mark: re.Pattern, shield: str) -> list[int]:
    """Return a text's ids, with each mark as one id; some marks swallow the blanks beside them."""
    ids, start = [], 0
    marks = [*is_mark.finditer(text), None]
    swallows = False
    for mark in marks:
        piece = text[start : mark.start() if mark else len(text)].replace(shield, "")
        added = tokenizer.marks[mark[0]] if mark else None
        piece = piece.lstrip() if swallows else piece
        piece = piece.rstrip() if added and added.lstrip else piece
        ids += tokenizer.encode(piece) if piece else []
        if mark:
            ids.append(tokenizer.vocabulary[mark[0]])
            start, swallows = mark.end(), added.rstrip
    return ids
