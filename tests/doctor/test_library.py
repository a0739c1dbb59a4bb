"""The doctor on every model of the installed library that can be made small: no false fault.

What it says of these is true of them: looked up by hand, or by design (docs/doctor.md).
"""

import re

import pytest
import torch
import transformers

from transformer_lesson.doctor import examine
from transformer_lesson.doctor.scripts import around

MAPPINGS = {
    "causal": ("AutoModelForCausalLM", "MODEL_FOR_CAUSAL_LM_MAPPING"),
    "translator": ("AutoModelForSeq2SeqLM", "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING"),
    "encoder": ("AutoModelForMaskedLM", "MODEL_FOR_MASKED_LM_MAPPING"),
}
LABELS = {"labels_not_shifted"}  # huggingface/transformers#27517
PADDING = {"padding_read"}  # they mix positions before or without the mask
FAULTS = {
    ("translator", "FSMT"): {"sees_future"},  # no mask with its default use_cache=True
    ("encoder", "ConvBert"): PADDING,
    ("encoder", "FNet"): PADDING,
    ("encoder", "MobileBert"): PADDING,
    ("encoder", "Mra"): {"token_invisible", "no_positions"},  # without its kernel it returns zeros
    ("encoder", "Nystromformer"): PADDING,
    ("encoder", "Yoso"): PADDING,
    ("causal", "BigBirdPegasus"): LABELS | {"tie_lost"},
    ("causal", "CpmAnt"): {"positions_mixed"},  # its prompt sees all of itself
    ("causal", "HunYuanDenseV1"): {"rotary_not_relative"},  # a norm after the rotation
    ("causal", "HunYuanMoEV1"): {"rotary_not_relative"},
    ("causal", "XLM"): {"sees_future"},  # not causal as it is configured
}
FAULTS |= {
    ("causal", name): LABELS
    for name in (
        "Bart", "Blenderbot", "BlenderbotSmall", "Marian", "MBart", "Mvp", "PLBart", "Pegasus",
        "TrOCR", "Whisper",
    )
}  # fmt: skip
WIDTHS = {
    8: "head_dim d_kv rotary_dim qk_rope_head_dim qk_nope_head_dim v_head_dim",
    16: "q_lora_rank kv_lora_rank",
    32: "hidden_size n_embd d_model dim word_embed_proj_dim embedding_size emb_dim "
    "moe_intermediate_size shared_expert_intermediate_size",
    64: "d_ff intermediate_size ffn_dim hidden_dim n_inner encoder_ffn_dim decoder_ffn_dim "
    "max_position_embeddings n_positions n_ctx max_seq_len",
    61: "vocab_size decoder_vocab_size",
    4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads num_experts "
    "decoder_attention_heads num_local_experts n_routed_experts moe_num_experts",
    2: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers "
    "num_decoder_layers encoder_num_layers num_key_value_heads multi_query_group_num "
    "num_experts_per_tok moe_topk eos_token_id",
    1: "n_shared_experts bos_token_id decoder_start_token_id",
    0: "pad_token_id",
}
SMALL = {name: value for value, names in WIDTHS.items() for name in names.split()}
COMPOSITE = ("vision_config", "audio_config", "text_config", "encoder", "decoder")
MODELS = [
    (kind, config.__name__.removesuffix("Config"), config)
    for kind, (_, mapping) in MAPPINGS.items()
    for config in getattr(transformers, mapping)
]


def small(kind, config_class):
    """Return a small model; skip what is made of others, or cannot be made small by usual names."""
    auto = getattr(transformers, MAPPINGS[kind][0])
    if config_class is transformers.FalconH1Config:
        pytest.skip("minutes without its kernels")
    try:
        usual = config_class()
        if any(hasattr(usual, name) for name in COMPOSITE):
            pytest.skip("made of others")
        sizes = {name: value for name, value in SMALL.items() if hasattr(usual, name)}
        sizes |= dict.fromkeys(
            {"forced_eos_token_id", "forced_bos_token_id"} & set(dir(usual)), None
        )
        sizes |= {"is_decoder": True} if kind == "causal" and hasattr(usual, "is_decoder") else {}
        sizes |= {"decoder_start_token_id": 1} if kind == "translator" else {}
        with torch.device("meta"):
            count = sum(p.numel() for p in auto.from_config(config_class(**sizes)).parameters())
        if count > 3_000_000:
            pytest.skip(f"{count:,} numbers")
        torch.manual_seed(0)
        return auto.from_config(config_class(**sizes))
    except Exception as error:  # whatever a library of 300 models says
        pytest.skip(f"{type(error).__name__}: {str(error)[:100]}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("encoder", "ConvBert"),
        ("encoder", "Bart"),
        ("encoder", "MobileBert"),
        ("translator", "PegasusX"),
    ],
)
def test_paths_of_unusual_designs_are_no_suspects(kind, name):
    """A kernel for each query, two stacks of one text, three views of a word, a second stream."""
    model = small(kind, getattr(transformers, f"{name}Config"))
    assert examine(model, **around(model, kind), only={"paths", "gates"}).codes == []


@pytest.mark.release
@pytest.mark.parametrize(("kind", "name", "config"), MODELS, ids=[f"{k}-{n}" for k, n, _ in MODELS])
def test_no_fault_is_said_wrongly(kind, name, config):
    model = small(kind, config)
    handed = around(model, kind)
    batch = handed["batch"] if kind == "translator" else (handed["batch"],)
    try:
        handed["loss"](*batch).backward() if "loss" in handed else handed["forward"](*batch)
    except Exception as error:
        pytest.skip(f"{type(error).__name__}: {str(error)[:100]}")
    model.zero_grad()
    report = examine(model, **handed, seconds=120.0)
    failed = [
        why for why in report.skipped.values() if re.match(r"[A-Z]\w+(Error|Exception): ", why)
    ]
    assert not failed or name in ("Rwkv", "FSMT")  # their own losses, asked a second time
    every = (*report.causes, *report.others)
    faults = {one.code for one in every if one.level == "fault"}
    assert faults == FAULTS.get((kind, name), set()), str(report)
