"""Mistakes in lessons 06 and 07: blocks, their size, and the test for seeing the future."""

from transformer_lesson.exercises.mistakes.branches import BRANCH_MISTAKES, post
from transformer_lesson.exercises.specification import Mistake


def _residual_of_the_input(x, attention, feed_forward, norm_1, norm_2):
    return norm_2(x + feed_forward(norm_1(x + attention(x))))


def _encoder_in_place(x, attention, feed_forward, norm_1, norm_2):
    x += attention(x)
    return post(norm_1(x), feed_forward, norm_2)


def count(d_model, d_ff, n_layers, maps=4, d_bias=5, f_bias=1, norms=4, layers=True):
    """Count a stack of encoder blocks, with places for a bug."""
    bias = d_bias * d_model + f_bias * d_ff
    one = maps * d_model**2 + 2 * d_model * d_ff + bias + norms * d_model
    return one * n_layers if layers else one


def decoder(y, memory, self_attention, cross_attention, feed_forward, *norms):
    """The decoder block of 2017 as three branches."""
    y = post(y, self_attention, norms[0])
    y = post(y, lambda queries: cross_attention(queries, memory), norms[1])
    return post(y, feed_forward, norms[2])


def _pre_norm_decoder(y, memory, self_attention, cross_attention, feed_forward, *norms):
    y = y + self_attention(norms[0](y))
    y = y + cross_attention(norms[1](y), memory)
    return y + feed_forward(norms[2](y))


def _no_cross_residual(y, memory, self_attention, cross_attention, feed_forward, *norms):
    y = post(y, self_attention, norms[0])
    return post(norms[1](cross_attention(y, memory)), feed_forward, norms[2])


def _cross_attention_first(y, memory, self_attention, cross_attention, feed_forward, *norms):
    y = norms[0](y + cross_attention(y, memory))
    return post(post(y, self_attention, norms[1]), feed_forward, norms[2])


def _memory_left_out(y, memory, self_attention, cross_attention, feed_forward, *norms):
    return post(post(y, self_attention, norms[0]), feed_forward, norms[2])


def leaks_if(positions, new_id=lambda old: (old == 0).long(), compared=lambda t: slice(t)):
    """A causality test that changes some positions and compares some outputs."""

    def leaks_future(model, ids):
        """Tell whether any of the changes moved any of the outputs."""
        for t in positions(ids.size(1)):
            changed = ids.clone()
            changed[:, t] = new_id(ids[:, t])
            moved = (model(changed) - model(ids))[:, compared(t)].abs()
            if (moved > 1e-5).any():
                return True
        return False

    return leaks_future


def every_token(n):
    """All positions that have one before them."""
    return range(1, n)


BLOCK_MISTAKES = {
    "encoder_block": (
        Mistake(
            "a pre-norm block",
            "Here the norms stand before the sub-layers, as in GPT-2. The block of 2017 "
            "normalizes each sum, and weights trained for one do not work in the other. Where "
            "does each branch end?",
            lambda x, a, f, n_1, n_2: x + a(n_1(x)) + f(n_2(x + a(n_1(x)))),
        ),
        Mistake(
            "two sub-layers that both read x",
            "The feed-forward network then works on words that have not looked at each other yet. "
            "It must read what the first branch returns: which name holds that?",
            lambda x, a, f, n_1, n_2: n_2(n_1(x + a(x)) + f(x)),
        ),
        Mistake(
            "the norms in each other's place",
            "Each norm has learned the gamma and beta of its own place. A fresh model would not "
            "show it; loaded weights give wrong numbers. Which one belongs to attention?",
            lambda x, a, f, n_1, n_2: post(post(x, a, n_2), f, n_1),
        ),
        Mistake(
            "the first norm used twice",
            "Both places then share one gamma and beta, and `norm_2` is never trained. Did you "
            "copy a line and leave its norm as it was?",
            lambda x, a, f, n_1, n_2: post(post(x, a, n_1), f, n_1),
        ),
        Mistake(
            "the block's input in the second sum",
            "The second residual starts from x again, so what attention found reaches the output "
            "only through the feed-forward network. A branch adds to its own input.",
            _residual_of_the_input,
        ),
        Mistake(
            "attention without its residual",
            "A token's own vector is lost at the first step, unless it attends to itself, and "
            "gradients lose their short way. What does `norm_1` have to enclose?",
            lambda x, a, f, n_1, n_2: post(n_1(a(x)), f, n_2),
        ),
        Mistake(
            "the feed-forward network before attention",
            "The paper's tokens look at each other first and think about it afterwards. Weights "
            "trained in that order fit no other. Swap the two branches, norms and all.",
            lambda x, a, f, n_1, n_2: post(post(x, f, n_1), a, n_2),
        ),
        Mistake(
            "adding to x in place",
            "The output is right, but `x += ...` changes the caller's tensor: a second look at "
            "the same input sees another one. Write `x = x + ...`, which makes a new tensor.",
            _encoder_in_place,
        ),
    ),
    "count_encoder_parameters": (
        Mistake(
            "a count without biases",
            "Every projection and every map adds a vector as long as its output, and those "
            "numbers are learned too. How many outputs have the six maps of a block?",
            lambda *sizes: count(*sizes, d_bias=0, f_bias=0),
        ),
        Mistake(
            "leaving out half of what the norms learn",
            "A block has two norms, and each has both a gamma and a beta of d_model numbers. You "
            "count 2 * d_model for them: did you forget one norm, or all the betas?",
            lambda *sizes: count(*sizes, norms=2),
        ),
        Mistake(
            "a count without norms",
            "Each norm learns a gamma and a beta, one number each for every feature. A block has "
            "two of them: what does that add?",
            lambda *sizes: count(*sizes, norms=0),
        ),
        Mistake(
            "a count of one block",
            "Every block of the stack has weights of its own; nothing is shared between layers. "
            "Which argument have you not used?",
            lambda *sizes: count(*sizes, layers=False),
        ),
        Mistake(
            "attention without its output projection",
            "Queries, keys and values make three matrices. A fourth mixes the heads' results "
            "before they leave, and it has a bias too.",
            lambda *sizes: count(*sizes, maps=3, d_bias=4),
        ),
        Mistake(
            "a decimal number for a count",
            "The value is right, but parameters come whole. A single `/` or `2.0` makes the "
            "result a `float`: use `//`, or multiply whole numbers only.",
            lambda *sizes: float(count(*sizes)),
        ),
    ),
    "decoder_block": (
        Mistake(
            "a pre-norm block",
            "Your norms stand before the sub-layers. The decoder of 2017 normalizes each sum, and "
            "weights trained for one form do not work in the other. What is the last step of a "
            "branch?",
            _pre_norm_decoder,
        ),
        Mistake(
            "cross-attention without its residual",
            "After this step each target token is a mixture of source tokens alone: what had been "
            "written so far is lost. Cross-attention adds to y too.",
            _no_cross_residual,
        ),
        Mistake(
            "a memory that asks the target",
            "Your result has a row for each source token. It is the target that asks: queries "
            "come from y, keys and values from memory. Which argument of `cross_attention` comes "
            "first?",
            lambda y, memory, *parts: decoder(memory, y, *parts),
        ),
        Mistake(
            "cross-attention that reads the target",
            "The source sentence never reaches the decoder, so it writes fluent text that "
            "translates nothing. Where do the keys and values of `cross_attention` come from?",
            lambda y, memory, *parts: decoder(y, y, *parts),
        ),
        Mistake(
            "leaving out cross-attention",
            "This is a decoder-only block: it never sees the source, and a translator made of it "
            "invents. Three sub-layers, three norms: which one do you never call?",
            _memory_left_out,
        ),
        Mistake(
            "cross-attention before self-attention",
            "The target asks the source before its own words have seen each other, so the "
            "question lacks its context. In the paper self-attention is the first of the three.",
            _cross_attention_first,
        ),
        Mistake(
            "self-attention that reads the memory",
            "Both attentions then look at the source, and no target token knows the words written "
            "before it. Self-attention gets y alone.",
            lambda y, memory, a, c, *rest: decoder(y, memory, lambda q: a(q, memory), c, *rest),
        ),
    ),
    "leaks_future": (
        Mistake(
            "an answer of True for every model",
            "You find a leak even in a causal model. Do you look at outputs from position t on? "
            "These may move when token t changes; only those before it may not. Or does a change "
            "stay in `ids` for the next round?",
            leaks_if(every_token, compared=lambda t: slice(None)),
        ),
        Mistake(
            "an answer of False for every model",
            "A test that cannot fail finds no leak. Is the changed copy what the model reads? Do "
            "you compare outputs that could move, those before the change, and return `True` "
            "where one does?",
            lambda model, ids: False,
        ),
        Mistake(
            "an answer turned round",
            "You say `True` where earlier outputs stay as they were. The question is whether the "
            "future leaks: what does an output that moves mean?",
            lambda model, ids: not leaks_if(every_token)(model, ids),
        ),
        Mistake(
            "changing the last token only",
            "A model may see one token ahead and never the end; then only a change in the middle "
            "shows it. Let every position from 1 on have its turn.",
            leaks_if(lambda n: [n - 1]),
        ),
        Mistake(
            "changing token 1 only",
            "A leak may hide anywhere: this model may show position 0 the last token and no "
            "other. Let every position from 1 on have its turn.",
            leaks_if(lambda n: [1]),
        ),
        Mistake(
            "looking at the first output only",
            "Output 0 shows a leak that reaches the beginning, and no other. After a change at "
            "position t, outputs 0 to t - 1 must all stay: which slice holds them?",
            leaks_if(every_token, compared=lambda t: slice(1)),
        ),
    ),
} | BRANCH_MISTAKES
