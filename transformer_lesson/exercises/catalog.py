"""All exercises by name."""

import difflib
from importlib import import_module

from transformer_lesson.exercises.engine.specification import Exercise

HOMES = "01 02 03 04 05 06 07 08 09 10 11 12 13 14".split()
MODULES = [import_module(f"{__package__}.lesson_{home}") for home in HOMES]
EXERCISES = {
    one.name: one
    for module in MODULES
    for one in vars(module).values()
    if isinstance(one, Exercise)
}

LESSONS = {
    "00": ("Start here",),
    "01": ("Tokens and embeddings", "encode", "embed", "pad_batch"),
    "02": ("Positional encoding", "sinusoidal_encoding", "shift_matrix"),
    "03": (
        "Attention",
        *("attention_scores", "causal_mask", "padding_mask", "scaled_dot_product_attention"),
    ),
    "04": (
        "Multi-head attention",
        *("look_back_head", "split_heads", "merge_heads", "multi_head_attention"),
    ),
    "05": (
        "Add & norm, feed-forward",
        *("feed_forward", "layer_norm", "residual_branch", "residual_branch_pre"),
    ),
    "06": ("Encoder", "encoder_block", "encoder_forward", "count_encoder_parameters"),
    "07": ("Decoder", "cross_attention", "decoder_block", "decoder_forward", "leaks_future"),
    "08": ("Training", "shift_right", "label_smoothed_loss", "training_step", "warmup_rate"),
    "09": (
        "Inference",
        *("greedy_decode", "top_k_filter", "top_p_filter", "beam_search", "append_to_cache"),
        "accept_and_residual",
    ),
    "10": ("A language model", "bits_per_character", "windows", "gpt_forward", "write_on"),
    "11": ("What heads learn", "induction_score", "ablate_head"),
    "12": (
        "A real chat model",
        *("our_name", "dequantize_q4_1", "chat_prompt", "most_similar"),
    ),
    "13": ("Since 2017", "rms_norm", "apply_rotary", "swiglu", "repeat_kv"),
    "14": (
        "Bug hunt",
        *("gpt_block", "next_token_logits", "mask_for_batch", "weights_of_real_keys"),
        *("half_precision_weights", "cut_into_heads", "all_heads", "is_linear"),
        *("projection_parameters", "encoding_by_formula", "encoding_of_any_width"),
        *("add_positions", "frequencies", "add_and_norm", "close_branch", "last_logits"),
        *("smoothed_targets", "next_token_loss", "continue_text", "look_up", "fill_up"),
        *("width_message", "run_listing", "gpt2_d_model"),
    ),
    "15": ("Scaling up",),
}
"""Each lesson's title, and the exercises that it checks."""


def find(name: str) -> Exercise:
    """Return the exercise of that name.

    Raises:
        ValueError: there is none; the message suggests close names.
    """
    if name in EXERCISES:
        return EXERCISES[name]
    close = difflib.get_close_matches(str(name), EXERCISES) or sorted(EXERCISES)
    raise ValueError(f"There is no exercise {name!r}. Did you mean {' or '.join(close)}?")
