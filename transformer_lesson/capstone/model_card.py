"""A model card: what a model is, its training data, its quality, and its limits."""

from torch import nn

from transformer_lesson.capstone.material import Material
from transformer_lesson.capstone.plan import LENGTH, Plan, digits, duration
from transformer_lesson.files import printable
from transformer_lesson.model.parameters import count_parameters

CARD = """# {name}

A model of {parameters:,} parameters that {does}. Its training took {time} on one computer, with
the course Transformer Lesson ({minutes:g} minutes were asked for, measuring included).

| | |
|---|---|
| kind | {kind} |
| sizes | {blocks}, d_model {d_model}, {n_heads} heads, {vocab_size} byte pairs |
| reads | at most {length} tokens |
| data | {data}, read {passes:.1f} times |
| held out | {held_out}, never learned from |
| steps | {steps:,} |

## How good it is

- Expected before training: {expected} bits per character, between {low} and {high}.
- Reached on what is held out: {bits} bits per character (95 % interval of the mean
  {bits_low} to {bits_high}, a bootstrap over pieces).
{score}{notes}
It writes:

> {written}

## What it is not for

- It knows nothing but its data, and repeats what is wrong or private in there: look at the data
  before you pass the model on.
- Its data may belong to somebody. The course does not know their license: write it here first.
- What is held out comes from the same source. On other texts it is worse, by how much was not
  measured.
- One run was trained: another seed would give slightly other numbers, which the intervals leave
  out.

## Files

`model/` is what the library transformers loads (`AutoModel{auto}.from_pretrained`), `page.html`
opens in a browser without a network, `run.safetensors` is the checkpoint that training goes on
from.
"""


def model_card(
    plan: Plan,
    material: Material,
    model: nn.Module,
    seconds: float,
    bits: tuple[float, float, float],
    score: tuple[float, float, float] | None,
    written: str,
) -> str:
    """Return the card in Markdown, including the notes about the material.

    Source: Mitchell and others, "Model Cards for Model Reporting" (2019): the sections on the
        model, its data, its measured quality and its limits.
    """
    text, c = material.kind == "text", model.config
    unit, size = ("characters", len) if text else ("pairs", lambda pairs: len(pairs))
    line = "- BLEU on the held-out pairs: {:.1f} (95 % interval {:.1f} to {:.1f}).\n"
    return CARD.format(
        name=printable(material.name),
        parameters=count_parameters(model),
        does="goes on with a text" if text else "translates sentences",
        time=duration(seconds),
        minutes=plan.minutes,
        kind="decoder only (GPT-2)" if text else "encoder and decoder (Marian)",
        blocks="1 block" if plan.depth == 1 else f"{plan.depth} blocks",
        d_model=c.d_model,
        n_heads=c.n_heads,
        vocab_size=c.vocab_size,
        length=LENGTH,
        data=f"{size(material.training):,} {unit}",
        passes=plan.passes,
        held_out=f"{len(material.held_out)} {'pieces of text' if text else 'pairs'}",
        steps=plan.steps,
        **{name: digits(getattr(plan, name)) for name in ("expected", "low", "high")},
        **dict(zip(("bits", "bits_low", "bits_high"), map(digits, bits), strict=True)),
        notes="".join(f"- {printable(note)}\n" for note in (material.read_as, *material.notes)),
        score=line.format(*score) if score else "",
        written=printable(written),
        auto="ForCausalLM" if text else "ForSeq2SeqLM",
    )
