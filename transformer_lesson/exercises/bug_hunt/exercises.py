"""Lesson 14: functions to repair, from masks to reading code."""

from collections.abc import Callable

from transformer_lesson.exercises.bug_hunt import inputs, rules
from transformer_lesson.exercises.specification import Exercise


def _repair(
    name: str, make_inputs: Callable, returns: dict[str, str], hints: tuple[str, ...], *broken
) -> Exercise:
    """Return an exercise that starts from the bug of that name."""
    return Exercise(
        name=name,
        reference=f"transformer_lesson.exercises.bug_hunt.repairs:{name}",
        start=f"transformer_lesson.exercises.bug_hunt.bugs:{name}",
        make_inputs=make_inputs,
        returns=returns,
        hints=hints,
        invariants=broken,
    )


BUG_HUNT_EXERCISES = (
    _repair(
        "frequencies",
        lambda draw: (2 * draw.size("pair"),),
        {"frequencies": "pair"},
        (
            "10000^(-2i / d_model) has 2i in the exponent. Where is it in this code?",
            "exp(a · b) is not a · exp(b). Each entry needs an exponent of its own, and a minus.",
            "`torch.exp(two_i * (-math.log(10000.0) / d_model))`",
        ),
        rules.fastest_comes_first,
    ),
    _repair(
        "add_and_norm",
        inputs.add_inputs,
        {"output": "batch n d_model"},
        (
            "Dropout makes holes. The next sub-layer should get what the norm promises: for each "
            "token mean 0 and deviation 1. So which of the two comes last?",
            "The residual path carries x past the sub-layer whole. Only what the sub-layer adds "
            "may lose numbers.",
            "Dropout acts on `sublayer(x)` alone: `norm(x + dropout(sublayer(x)))`.",
        ),
        rules.ends_with_the_norm,
        rules.silent_sublayer,
    ),
    _repair(
        "close_branch",
        inputs.close_inputs,
        {"output": "batch n d_model"},
        (
            "What `nn.Dropout(0.3)` returns is a new module. It is in training mode, whatever "
            "the model is in.",
            "What `nn.LayerNorm(...)` returns is a new module too, with scale 1 and shift 0. What "
            "the optimizer trained lies in another one.",
            "The block was made once and has both: `block.dropout` and `block.norm`.",
        ),
        rules.same_twice,
        rules.norm_is_trained,
    ),
    _repair(
        "last_logits",
        inputs.last_inputs,
        {"logits": "batch vocab_size"},
        (
            "Logits are any numbers, negative ones too. Do yours look like that?",
            "Whoever gets logits does the softmax: the loss, or the one who samples. Done twice, "
            "it makes all tokens nearly alike.",
            "The projection of the last position is the result: `x[:, -1] @ W + b`.",
        ),
        rules.are_no_probabilities,
    ),
    _repair(
        "smoothed_targets",
        inputs.target_inputs,
        {"targets": "n n_classes"},
        (
            "In PyTorch's convention the smoothing is mixed in: (1 - smoothing) of the label, "
            "plus smoothing of a distribution that is even over all classes.",
            "Even over all classes means 1 / n_classes for each, the label too. So how much does "
            "the label have in the end?",
            "Fill with `smoothing / n_classes`, then add `1 - smoothing` at the labels (`+=`).",
        ),
        rules.rows_sum_to_one,
        rules.all_spread,
    ),
    _repair(
        "next_token_loss",
        inputs.loss_inputs,
        {"loss": ""},
        (
            "Probabilities lie between 0 and 1. As logits that is a very narrow range: how far "
            "apart can a softmax of them get?",
            "`F.cross_entropy` does log_softmax itself. How many softmaxes are there in total?",
            "Give it what the model gives: `F.cross_entropy(logits.flatten(0, 1), "
            "labels.flatten())`.",
        ),
        rules.sure_and_right,
    ),
    _repair(
        "continue_text",
        inputs.text_inputs,
        {"ids": "token"},
        (
            "Nothing in a model ends a loop. Who looks at the token that was written?",
            "Look at the token that was appended, not at the prompt: an `<eos>` may stand there. "
            "The `<eos>` that ends the text stays in the list.",
            "After the append: `if ids[-1] == eos_id: break`.",
        ),
        rules.stops_at_the_end,
    ),
    _repair(
        "look_up",
        inputs.word_inputs,
        {"ids": "token"},
        (
            "What does a dictionary's `get` return for a word that it does not have?",
            "Every word has to become an id, and an unknown one the id that says so. Leaving it "
            "out would change the sentence without a trace.",
            "`get` takes a second argument, what to return for a missing key: "
            "`vocabulary.get(word, unk_id)`. (`or unk_id` would also replace id 0.)",
        ),
    ),
    _repair(
        "fill_up",
        inputs.fill_inputs,
        {"ids": "batch length"},
        (
            "`len` of a tensor is the size of its first axis. What does that axis count here?",
            "`best` holds one token for each text, shape (batch,). To stand at the end of each "
            "row it needs shape (batch, 1). Which one does `unsqueeze(0)` make?",
            "`length - start.size(1)` rounds, and `best.unsqueeze(1)`.",
        ),
    ),
    _repair(
        "width_message",
        inputs.message_inputs,
        {"message": ""},
        (
            "Print `table[1]` and `table.shape`. Which of them holds two numbers?",
            "The table has shape (n_positions, d_model). You want the second of these sizes.",
            "`table.shape[1]` instead of `table[1]`.",
        ),
        rules.names_two_widths,
    ),
    _repair(
        "run_listing",
        inputs.listing_inputs,
        {"logits": "batch n vocab_size"},
        (
            "Run it on any model with these parts and read the error: which name is missing, and "
            "which ones are there? Then run it again.",
            "A function that ends without `return` returns `None`, whatever it has computed.",
            "`model.embedding(ids)` in the first line, `return model.out(x)` in the last.",
        ),
    ),
    _repair(
        "gpt2_d_model",
        inputs.gpt2_inputs,
        {"d_model": ""},
        (
            "All four sizes of GPT-2 have heads of the same width. GPT-2 small: 12 heads and a "
            "d_model of 768.",
            "Try a width for medium, count the parameters, and compare with the 354,823,168 of "
            "the published model.",
            "1024 numbers in 16 heads, 768 in 12: `d_head = 64`.",
        ),
        rules.weighs_what_was_published,
    ),
)
