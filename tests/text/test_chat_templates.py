"""Templates of six families give the library's ids; what they cannot write is said."""

import json
from datetime import datetime

import pytest
import tokenizers
from tokenizers import AddedToken, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from tests.checkpoints.gguf_files import gguf
from tests.checkpoints.llama_files import trained, vocabulary_file
from transformer_lesson.checkpoints.llama_cpp import read_tokenizer
from transformer_lesson.text.chat_templates import template_prompt
from transformer_lesson.text.pretrained import PretrainedTokenizer

CHATML = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{
'<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}{{ '<|im_start|>' +
message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
LLAMA_3 = """{% set loop_messages = messages %}{% for message in loop_messages %}{% set content =
'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim +
'<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{
content }}{% endfor %}{% if add_generation_prompt %}{{
'<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"""
GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}
{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}
{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content']
| trim + '<end_of_turn>\n' }}{% endfor %}
{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"""
MISTRAL = """{%- if messages[0]["role"] == "system" %}{%- set system = messages[0]["content"] %}
{%- set rest = messages[1:] %}{%- else %}{%- set rest = messages %}{%- endif %}
{{- bos_token }}{%- for message in rest %}{%- if message["role"] == "user" %}
{%- if loop.last and system is defined %}{{- "[INST] " + system + "\n\n" + message["content"] +
"[/INST]" }}{%- else %}{{- "[INST] " + message["content"] + "[/INST]" }}{%- endif %}
{%- elif message["role"] == "assistant" %}{{- " " + message["content"] | trim + eos_token }}
{%- else %}{{- raise_exception("Only user and assistant roles are supported!") }}{%- endif %}
{%- endfor %}"""
PHI_3 = """{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>\n' +
message['content'] + '<|end|>\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\n' +
message['content'] + '<|end|>\n'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>\n' +
message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{
'<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"""
SMOLLM3 = """{%- if enable_thinking is not defined -%}
{%- set enable_thinking = true -%}{%- endif -%}
{%- set mode = "/think" if enable_thinking else "/no_think" -%}
{%- if messages[0].role == "system" -%}{%- set told = messages[0].content.replace("/no_think", "")
.rstrip() -%}{%- set messages = messages[1:] -%}{%- endif -%}
{{- "<|im_start|>system\n## Metadata\n\nToday Date: " ~ strftime_now("%d %B %Y") ~
"\nReasoning Mode: " ~ mode ~ "\n\n" ~ (told | default("You are SmolLM.")) ~ "<|im_end|>\n" -}}
{%- for message in messages -%}{%- if message.content is string -%}
{%- set content = message.content -%}{%- else -%}{%- continue -%}{%- endif -%}
{%- if message.role == "user" -%}{{ "<|im_start|>user\n" + content + "<|im_end|>\n" }}
{%- elif message.role == "assistant" -%}{% generation %}
{{- "<|im_start|>assistant\n" + content.lstrip("\n") + "<|im_end|>\n" }}{% endgeneration %}
{%- endif -%}{%- endfor -%}{%- if add_generation_prompt -%}{{ "<|im_start|>assistant\n" }}
{%- if not enable_thinking %}{{ "<think>\n\n</think>\n" }}{%- endif -%}{%- endif -%}"""
FORMS = {
    "ChatML": CHATML,
    "Llama 3": LLAMA_3,
    "Gemma": GEMMA,
    "Mistral": MISTRAL,
    "Phi-3": PHI_3,
    "SmolLM3": SMOLLM3,
}
"""Short templates of the shape of the families' public ones."""
MARKS = (
    "<|start_header_id|> <|end_header_id|> <|eot_id|> <start_of_turn> <end_of_turn> [INST] [/INST]"
)
SWALLOWING = "<|system|> <|user|> <|assistant|> <|end|>"
TALK = [("user", "Where is  Paris?\n"), ("assistant", "\n In France. "), ("user", " ü 日本? <b>")]
BRIEF = ("system", "Be brief. /no_think")
NO_SYSTEM = ("Gemma",)


def library_tokenizer() -> tokenizers.Tokenizer:
    """A tokenizer of pairs of bytes with all the marks; Phi-3's swallow what follows them."""
    made = trained()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    marks = [AddedToken(mark, normalized=False) for mark in MARKS.split()]
    marks += [AddedToken(mark, normalized=False, rstrip=True) for mark in SWALLOWING.split()]
    made.add_special_tokens(marks)
    return made


def ours(template: str | None) -> PretrainedTokenizer:
    return PretrainedTokenizer(library_tokenizer(), {"bos": 0, "eos": 2}, chat_template=template)


def theirs(template: str) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=library_tokenizer(),
        chat_template=template,
        bos_token="<|endoftext|>",
        eos_token="<|im_end|>",
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("talk", [TALK[:1], TALK, [BRIEF, *TALK]])
def test_ids_are_those_of_the_librarys_apply_chat_template(form, talk):
    if form in NO_SYSTEM and talk[0] == BRIEF:
        pytest.skip("this family has no system messages")
    told = [{"role": role, "content": text} for role, text in talk]
    expected = theirs(FORMS[form]).apply_chat_template(told, add_generation_prompt=True)
    assert template_prompt(ours(FORMS[form]), talk) == expected["input_ids"]


def test_values_and_the_date_reach_the_template():
    written = template_prompt(
        ours(SMOLLM3), TALK[:1], now=datetime(2026, 2, 3), enable_thinking=False
    )
    text = ours(None).decode(written, keep_special=True)
    assert "Today Date: 03 February 2026\nReasoning Mode: /no_think\n" in text
    assert text.endswith("<|im_start|>assistant\n<think>\n\n</think>\n")


@pytest.mark.parametrize("mark", ["<|im_end|>", "<|eot_id|>", "<|user|>"])
@pytest.mark.parametrize("form", ["ChatML", "Llama 3", "Phi-3"])
def test_a_typed_mark_is_no_mark(form, mark):
    words = ours(FORMS[form])
    plain, typed = (template_prompt(words, [("user", f"a{text}b")]) for text in ("", mark))
    own = words.vocabulary[mark]
    assert typed.count(own) == plain.count(own) and len(typed) > len(plain) + 3
    assert f"a{mark}b" in words.decode(typed, keep_special=True)


def test_a_template_is_read_with_its_tokenizer(tmp_path):
    path = tmp_path / "tokenizer.json"
    library_tokenizer().save(str(path))
    assert PretrainedTokenizer.from_file(path).chat_template is None
    config = tmp_path / "tokenizer_config.json"
    several = [{"name": "tool_use", "template": "x"}, {"name": "default", "template": CHATML}]
    for template in (CHATML, several):
        config.write_text(json.dumps({"chat_template": template}))
        assert PretrainedTokenizer.from_file(path).chat_template == CHATML
    for text in ("{", "[]", '{"chat_template": 3}', '{"chat_template": [3]}'):
        config.write_text(text)
        assert PretrainedTokenizer.from_file(path).chat_template is None
    (tmp_path / "chat_template.jinja").write_text(GEMMA)
    assert PretrainedTokenizer.from_file(path).chat_template == GEMMA
    file = tmp_path / "m.gguf"
    file.write_bytes(gguf(vocabulary_file() | {"tokenizer.chat_template": CHATML}, {}))
    assert read_tokenizer(file).chat_template == CHATML
    file.write_bytes(gguf(vocabulary_file(), {}))
    assert read_tokenizer(file).chat_template is None


ENDLESS = "{% for a in range(9999) %}{% for b in range(9999) %}{{ b }}{% endfor %}{% endfor %}"
WRONG = [
    (None, TALK, "This tokenizer has no chat template: .* chat_prompt writes ChatML"),
    (GEMMA, [BRIEF, *TALK], "does not write this conversation: System role not supported"),
    (GEMMA, TALK[:1] * 2, "does not write this .*: Conversation roles must alternate"),
    (CHATML, [("you", "a")], "Message 0 is .* its role must be one of system, user, assistant"),
    (CHATML, "Hi", "messages is 'Hi', but it must be a list of pairs"),
    ("{% for", TALK, "does not write this conversation: "),
    ("{{ nothing.at.all }}", TALK, "does not write this conversation: 'nothing' is undefined"),
    ("{{ 1 + 'a' }}", TALK, "does not write this conversation: unsupported operand"),
    ("{{ messages.append(3) }}", TALK, "does not write this conversation: "),
    ("{{ ''.__class__.__mro__[1].__subclasses__() }}", TALK, "does not write this .*: access to"),
    ("{% include '/etc/passwd' %}", TALK, "does not write this conversation: "),
    (ENDLESS, TALK, "it counts through more than 10,000 numbers"),
    ("{{ 'a' * 10**9 }}", TALK, "it applies . to something else than numbers|power of large"),
    ("{{ 9 ** 9999999 }}", TALK, "it computes a power of large numbers"),
    ("{# a #}" * 20_000, TALK, "it has over 100,000 characters"),
]


@pytest.mark.parametrize(("template", "talk", "message"), WRONG)
def test_what_is_not_written_is_said(template, talk, message, unchecked):
    with pytest.raises(ValueError, match=message) as caught:
        template_prompt(ours(template), talk)
    assert "\n" not in str(caught.value)
