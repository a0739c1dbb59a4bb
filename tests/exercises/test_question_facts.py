"""What prose says of the trained translator, where no cell shows it."""

import torch
import torch.nn.functional as F

from transformer_lesson import record
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.explorables import TranslationPlayground


def test_what_the_translator_that_reads_the_running_example_is_said_to_do():
    playground, (model, tokenizer, _) = TranslationPlayground(), trained_translator()
    source, target = "the child opens the window .", "das Kind macht das Fenster auf ."
    source_ids = torch.tensor([[*tokenizer.encode(source), tokenizer.eos_id]])
    target_ids = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(target)]])
    with torch.no_grad(), record(model) as run:
        model(source_ids, target_ids)
    weights = run[f"decoder.{playground.layer}.cross_attention.weights"]
    assert weights[0, playground.head, 5].argmax() == 2
    begun, ended = run["source_embedding.tokens"][0], run["encoder.1.output"][0]
    alike = F.cosine_similarity(begun, ended, dim=-1)
    assert alike.argmin() == 0  # "the" changes most, as lesson 05's task has it
