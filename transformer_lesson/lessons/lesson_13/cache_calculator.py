"""How much memory keys and values take, and how many texts fit beside a model's weights."""

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable

TOKENS = (1024, 8192, 32768, 131_072, 1_048_576)
WINDOW = 1024
"""Most tokens that a layer with a window keeps."""


class CacheCalculator(PageExplorable):
    """Choose the texts' length and see how many fit into memory, for four kinds of cache.

    Each head has its own keys and values, groups of heads share them, all heads share them, or one
    short latent vector replaces them all.

    Args:
        tokens: of each text.
        memory: GiB, for the weights and all texts.
        bits: of each cached number.
        every: one layer in so many sees all tokens, the others a window of 1,024; 1 for all.
        n_layers, n_heads, n_kv_heads, d_head: sizes of the model; n_kv_heads is that of groups.
        d_latent: size of the latent vector, including the numbers for positions.
        parameters: of the model, in 16 bits each.
    """

    tokens = traitlets.Enum(TOKENS, 8192).tag(sync=True)
    memory = traitlets.Enum((8, 24, 80, 640), 80).tag(sync=True)
    bits = traitlets.Enum((16, 8, 4), 16).tag(sync=True)
    every = traitlets.Enum((1, 2, 4, 6), 1).tag(sync=True)
    n_layers = traitlets.Int(32, min=1).tag(sync=True, fact=True)
    n_heads = traitlets.Int(32, min=1).tag(sync=True, fact=True)
    n_kv_heads = traitlets.Int(8, min=1).tag(sync=True, fact=True)
    d_head = traitlets.Int(128, min=1).tag(sync=True, fact=True)
    d_latent = traitlets.Int(576, min=1).tag(sync=True, fact=True)
    parameters = traitlets.Float(8.03e9, min=0).tag(sync=True, fact=True)
    local_window = traitlets.Int(WINDOW).tag(sync=True, fact=True)
