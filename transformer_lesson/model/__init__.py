"""The Transformer. Read the modules in this order:

`config` (sizes and choices), `masks` (which query may attend to which key), `positions`,
`embedding`, `attention`, `cache`, `norm`, `feed_forward`, `blocks`, `transformers` (the three
models), `forward` (the paper's model as functions alone), `gpt` (a decoder-only model likewise),
`llama` (a Llama's block), `experts`, `linear_attention` (later ideas, as functions), `parameters`
(how many numbers are learned), `hooks` (watch and change a forward pass), `evaluation` (dropout off
for a while), `fast` (the same numbers, faster).
"""
