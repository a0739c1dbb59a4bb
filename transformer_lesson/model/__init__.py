"""The Transformer. Read the modules in this order:

`config` (sizes and choices), `masks` (who may look at whom), `positions`, `embedding`, `attention`,
`cache`, `norm`, `feed_forward`, `blocks`, `transformers` (the three models), `forward` (the paper's
model as functions alone), `gpt` (a decoder-only model likewise), `llama` (a Llama's block),
`experts`, `latent_attention`, `linear_attention` (what came after it, as functions), `parameters`
(how many numbers are learned), `hooks` (watch and change a forward pass), `evaluation` (no dropout,
for a while), `fast` (the same numbers sooner).
"""
