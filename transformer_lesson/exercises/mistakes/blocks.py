"""Mistakes in lessons 05 to 07: norms, branches, blocks, the test for seeing the future.

Long because it is data: many wrong versions of eight exercises.
"""

import torch

from transformer_lesson.exercises.specification import Mistake


def norm_by_hand(x, gamma, beta, epsilon, axis=-1, correction=0, outside=False, power=0.5):
    """Layer norm from means and variances, with places for a bug."""
    mean = x.mean(axis, keepdim=True)
    variance = x.var(axis, keepdim=True, correction=correction)
    spread = variance**power + epsilon if outside else (variance + epsilon) ** power
    return (x - mean) / spread * gamma + beta


def _norm_in_place(x, gamma, beta, epsilon):
    x -= x.mean(dim=-1, keepdim=True)
    return x / (x.square().mean(dim=-1, keepdim=True) + epsilon).sqrt() * gamma + beta


def _no_mean(x, gamma, beta, epsilon):
    return x / (x.square().mean(dim=-1, keepdim=True) + epsilon).sqrt() * gamma + beta


def _beta_scaled(x, gamma, beta, epsilon):
    return (norm_by_hand(x, 1, 0, epsilon) + beta) * gamma


def two_maps(x, W_1, b_1, W_2, b_2, middle=torch.relu, end=lambda y: y):
    """The feed-forward network with places for other activations."""
    return end(middle(x @ W_1 + b_1) @ W_2 + b_2)


def _bias_after_activation(x, W_1, b_1, W_2, b_2):
    return ((x @ W_1).relu() + b_1) @ W_2 + b_2


def post(x, sublayer, norm):
    """The residual branch of 2017: the norm comes last."""
    return norm(x + sublayer(x))


def _post_in_place(x, sublayer, norm):
    x += sublayer(x)
    return norm(x)


def _pre_in_place(x, sublayer, norm):
    x += sublayer(norm(x))
    return x


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
    "layer_norm": (
        Mistake(
            "epsilon outside the root",
            "Added to the deviation, 1e-5 protects less than its root, 0.003, would: where a "
            "token's numbers are all alike the gradient explodes, and loaded weights give other "
            "numbers. Add it to the variance, before you take the root.",
            lambda *inputs: norm_by_hand(*inputs, outside=True),
        ),
        Mistake(
            "the unbiased deviation",
            "`x.var()` and `x.std()` divide by d_model - 1 unless told otherwise, so your numbers "
            "come out slightly too small. The paper's norm divides by d_model: see the argument "
            "`correction`.",
            lambda *inputs: norm_by_hand(*inputs, correction=1),
        ),
        Mistake(
            "a norm over the tokens",
            "Each feature is compared with the same feature of the other tokens, so a token's "
            "vector depends on the length of the sentence, and a decoder sees the future. Which "
            "axis holds one token's own numbers?",
            lambda *inputs: norm_by_hand(*inputs, axis=1),
        ),
        Mistake(
            "a norm over tokens and features together",
            "One mean for a whole sentence lets each token depend on all others, padding and "
            "future included. Every token has a mean of its own: name one axis only.",
            lambda *inputs: norm_by_hand(*inputs, axis=(1, 2)),
        ),
        Mistake(
            "a norm over the batch",
            "This is batch norm: a sentence's output depends on which sentences happen to come "
            "with it. Layer norm looks at one token alone, whatever the batch.",
            lambda *inputs: norm_by_hand(*inputs, axis=(0, 1)),
        ),
        Mistake(
            "a norm without gamma",
            "Every feature is held at the same size, and the model cannot learn that one matters "
            "more. Multiply by `gamma` before you add `beta`.",
            lambda x, gamma, beta, epsilon: norm_by_hand(x, 1, beta, epsilon),
        ),
        Mistake(
            "beta multiplied by gamma",
            "You add `beta` too early, so `gamma` scales it too, and weights of a trained model "
            "give other numbers. First scale, then shift.",
            _beta_scaled,
        ),
        Mistake(
            "a norm that does not subtract the mean",
            "This is close to RMS norm, which newer models use (lesson 13). Layer norm first "
            "moves each token's mean to 0: subtract it above the fraction bar too.",
            _no_mean,
        ),
        Mistake(
            "dividing by the variance instead of its root",
            "Large vectors become small ones and small ones large, where all should get the size "
            "1. The variance is a square: what brings it back to the unit of `x`?",
            lambda *inputs: norm_by_hand(*inputs, power=1),
        ),
        Mistake(
            "a norm without epsilon",
            "Where all numbers of a token are equal, the variance is 0 and the division gives "
            "NaN, which spreads to every weight. Add `epsilon` to the variance.",
            lambda x, gamma, beta, epsilon: norm_by_hand(x, gamma, beta, 0.0),
        ),
        Mistake(
            "subtracting the mean in place",
            "The result is right, but `x -= mean` writes into the caller's tensor, and the "
            "residual path still needs it. Give the difference a name of its own.",
            _norm_in_place,
        ),
    ),
    "feed_forward": (
        Mistake(
            "two maps without an activation",
            "Two linear maps in a row are one linear map, so d_ff hidden numbers buy nothing. "
            "What stands between the two products in max(0, x W_1 + b_1) W_2 + b_2?",
            lambda *inputs: two_maps(*inputs, middle=lambda x: x),
        ),
        Mistake(
            "the activation at the end",
            "Between the maps it is missing, and after them it cuts off all negative numbers, so "
            "the block could only ever add to its input. Which of the two products does max(0, "
            "...) enclose?",
            lambda *inputs: two_maps(*inputs, middle=lambda x: x, end=torch.relu),
        ),
        Mistake(
            "a second activation",
            "ReLU at the end leaves no negative number, so the residual path can only grow. The "
            "second map is the last step: only the hidden numbers pass through max(0, ...).",
            lambda *inputs: two_maps(*inputs, end=torch.relu),
        ),
        Mistake(
            "the first bias after the activation",
            "The bias decides from where on a hidden number is switched on. Added afterwards, it "
            "moves no threshold: all thresholds are at 0. Where does b_1 stand in the formula's "
            "max?",
            _bias_after_activation,
        ),
        Mistake(
            "leaving out the first bias",
            "All hidden numbers then switch on at exactly 0, so x and 2x always switch on the "
            "same ones. Add `b_1` before the activation.",
            lambda x, W_1, b_1, W_2, b_2: two_maps(x, W_1, 0, W_2, b_2),
        ),
        Mistake(
            "leaving out the second bias",
            "A token whose hidden numbers are all 0 gets nothing added. The second map has a bias "
            "too: what stands at the end of the formula?",
            lambda x, W_1, b_1, W_2, b_2: two_maps(x, W_1, b_1, W_2, 0),
        ),
        Mistake(
            "a GELU in the place of ReLU",
            "Later models such as GPT-2 use it, and it works well, but the paper's formula is "
            "max(0, ...), which has a sharp bend at 0.",
            lambda *inputs: two_maps(*inputs, middle=torch.nn.functional.gelu),
        ),
        Mistake(
            "a residual connection inside the network",
            "The block around it adds x already, so x would count twice and grow from layer to "
            "layer. Return what the two maps give, nothing more.",
            lambda x, *weights: x + two_maps(x, *weights),
        ),
    ),
    "residual_branch": (
        Mistake(
            "pre-norm where post-norm is asked for",
            "Most models since GPT-2 do this and train more easily, but the 2017 paper, and "
            "weights trained by it, normalize the sum. The norm is the last thing that happens.",
            lambda x, f, norm: x + f(norm(x)),
        ),
        Mistake(
            "a branch without its residual",
            "Nothing carries x past the sub-layer, so gradients shrink from layer to layer, and a "
            "deep stack hardly learns. What is added to the sub-layer's output?",
            lambda x, f, norm: norm(f(x)),
        ),
        Mistake(
            "the norm before the sum",
            "You normalize the sub-layer's share alone, and the sum grows with every layer. In "
            "post-norm the brackets of the norm enclose the whole sum.",
            lambda x, f, norm: x + norm(f(x)),
        ),
        Mistake(
            "a branch without its norm",
            "The numbers grow with every layer, until softmax saturates and training breaks off. "
            "Which of the three arguments does your function never call?",
            lambda x, f, norm: x + f(x),
        ),
        Mistake(
            "adding to x in place",
            "The result is right, but `x += ...` changes the caller's tensor, and autograd may "
            "refuse it. Write the sum as a new value, `x + ...`.",
            _post_in_place,
        ),
    ),
    "residual_branch_pre": (
        Mistake(
            "post-norm where pre-norm is asked for",
            "Here the norm sits on the residual path, so gradients pass through it at every "
            "layer, and deep stacks need a warm-up. In pre-norm only the sub-layer's input is "
            "normalized.",
            post,
        ),
        Mistake(
            "a residual of the normalized x",
            "The path that should carry x untouched through all layers is normalized at each of "
            "them. Did you overwrite `x` with `norm(x)`? The sum needs the old one.",
            lambda x, f, norm: norm(x) + f(norm(x)),
        ),
        Mistake(
            "a branch without its norm",
            "The sub-layer reads numbers that grow from layer to layer, and softmax saturates. "
            "What should x pass through on its way into the sub-layer?",
            lambda x, f, norm: x + f(x),
        ),
        Mistake(
            "a branch without its residual",
            "Only the sub-layer's output goes on: what it does not pass on is lost, and so is the "
            "short way for gradients. What has to be added?",
            lambda x, f, norm: f(norm(x)),
        ),
        Mistake(
            "a norm behind the sub-layer",
            "The sub-layer reads raw x, and its share is normalized afterwards, so it can never "
            "be small. Pre-norm means: before the sub-layer.",
            lambda x, f, norm: x + norm(f(x)),
        ),
        Mistake(
            "adding to x in place",
            "The result is right, but `x += ...` writes into the caller's tensor, and every other "
            "reader of it gets the sum. Return a new value.",
            _pre_in_place,
        ),
    ),
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
}
