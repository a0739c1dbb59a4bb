"""Lesson 14: functions with a published bug, from the speeds of the encoding to reading code.

Long because it is twelve exercises; `lesson_14` has the other twelve.
"""

import math
from itertools import takewhile

import torch
import torch.nn.functional as F
from torch import nn

from transformer_lesson.exercises.bug_hunt import inputs, rules
from transformer_lesson.exercises.choosing import choose
from transformer_lesson.exercises.lesson_14 import BUGS, REPAIRS
from transformer_lesson.exercises.specification import exercise


@exercise(
    reference=REPAIRS + "frequencies",
    start=BUGS + "frequencies",
    make_inputs=inputs.frequency_inputs,
    draws=4,
    returns={"frequencies": "pair"},
    hints=(
        "10000^(-2i / d_model) has 2i in the exponent. Where is it in this code?",
        "exp(a · b) is not a · exp(b). Each entry needs an exponent of its own, and a minus.",
        "`torch.exp(two_i * (-math.log(10000.0) / d_model))`",
    ),
    invariants=(rules.fastest_comes_first,),
)
def frequencies(d_model):
    """Return exp(-2i ln(10000) / d_model), pair by pair."""
    two_i = choose(
        torch.arange(0, d_model, 2),
        every_column=torch.arange(d_model),
        counted_from_1=torch.arange(1, d_model, 2),
        counted_from_2=torch.arange(2, d_model + 1, 2),
    )
    share = choose(
        two_i / d_model,
        i_alone=two_i / 2 / d_model,
        half_of_d_model=2 * two_i / d_model,
        one_column_fewer=two_i / (d_model - 1),
        ends_at_10000=two_i / (d_model - 2),
        not_divided=two_i,
        whole_division=two_i // d_model,
        upside_down=d_model / two_i,
    )
    log = _log()
    sign = choose(-1, no_minus=1)
    speeds = choose(
        torch.exp(sign * share * log),
        one_factor=two_i * math.exp(sign * log / d_model),
        one_factor_below=1 / (two_i * math.exp(-sign * log / d_model)),
        divided_afterwards=torch.exp(sign * two_i * log) / d_model,
        factor_afterwards=torch.exp(two_i) * sign * log / d_model,
        exponent_alone=sign * share * log,
        exponent_of_10=10 ** (sign * share * log),
    )
    return choose(
        speeds,
        turns_not_radians=speeds / (2 * math.pi),
        times_2_pi=speeds * 2 * math.pi,
        slowest_first=speeds.flip(0),
        each_twice=speeds.repeat_interleave(2),
        column=speeds[:, None],
        row=speeds[None],
    )


def _log():
    """Return the natural logarithm of the base."""
    return choose(
        math.log(10000.0),
        to_base_10=math.log10(10000.0),
        to_base_2=math.log2(10000.0),
        a_thousand=math.log(1000.0),
        exponent_of_10=math.log(10000.0),  # with the logarithm to its base it would be right
    )


@exercise(
    reference=REPAIRS + "add_and_norm",
    start=BUGS + "add_and_norm",
    make_inputs=inputs.add_inputs,
    draws=4,
    returns={"output": "batch n d_model"},
    hints=(
        "Dropout makes holes. The next sub-layer should get what the norm promises: for each "
        "token mean 0 and deviation 1. So which of the two comes last?",
        "The residual path carries x past the sub-layer whole. Only what the sub-layer adds "
        "may lose numbers.",
        "Dropout acts on `sublayer(x)` alone: `norm(x + dropout(sublayer(x)))`.",
    ),
    invariants=(rules.ends_with_the_norm, rules.silent_sublayer),
)
def add_and_norm(x, sublayer, dropout, norm):
    """Return norm(x + dropout(sublayer(x)))."""
    read = choose(
        x,
        pre_norm=norm(x),
        norm_before_and_after=norm(x),
        dropout_on_input=dropout(x),
        dropout_before_and_after=dropout(x),
    )
    branch = choose(sublayer(read), no_sublayer=read, norm_on_branch_first=norm(sublayer(read)))
    dropped = choose(
        dropout(branch),
        no_dropout=branch,
        dropout_on_input=branch,
        dropout_on_sum=branch,
        dropout_on_residual=branch,
        dropout_after_norm=branch,
        dropout_twice=dropout(dropout(branch)),
    )
    total = choose(
        x + dropped,
        no_residual=dropped,
        norm_of_branch=x + norm(dropped),
        norm_of_residual=norm(x) + dropped,
        dropout_on_sum=dropout(x + dropped),
        dropout_on_residual=dropout(x) + dropped,
        added_twice=2 * x + dropped,
        subtracted=x - dropped,
    )
    return choose(
        norm(total),
        no_norm=total,
        pre_norm=total,
        norm_of_branch=total,
        norm_of_residual=total,
        dropout_after_norm=dropout(norm(total)),
        dropout_once_more=dropout(norm(total)),
        residual_after_norm=x + norm(total),
        squeezed=norm(total).squeeze(),
    )


@exercise(
    reference=REPAIRS + "close_branch",
    start=BUGS + "close_branch",
    make_inputs=inputs.close_inputs,
    draws=4,
    returns={"output": "batch n d_model"},
    hints=(
        "What `nn.Dropout(0.3)` returns is a new module. It is in training mode, whatever "
        "the model is in.",
        "What `nn.LayerNorm(...)` returns is a new module too, with scale 1 and shift 0. What "
        "the optimizer trained lies in another one.",
        "The block was made once and has both: `block.dropout` and `block.norm`.",
    ),
    invariants=(rules.same_twice, rules.norm_is_trained),
)
def close_branch(x, branch, block):
    """Return block.norm(x + block.dropout(branch))."""
    dropout = choose(
        block.dropout,
        both_new=nn.Dropout(0.3),
        new_dropout=nn.Dropout(0.3),
        new_dropout_of_one_half=nn.Dropout(),
        new_dropout_in_its_mode=nn.Dropout(0.3).train(block.training),
        put_into_training=block.train().dropout,
        no_dropout=nn.Identity(),
    )
    norm = choose(block.norm, both_new=nn.LayerNorm(x.size(-1)), new_norm=nn.LayerNorm(x.size(-1)))
    branch = choose(branch, norm_on_branch_first=norm(branch))
    dropped = choose(
        dropout(branch),
        dropout_on_sum=branch,
        dropout_on_residual=branch,
        dropout_after_norm=branch,
        dropout_twice=dropout(dropout(branch)),
    )
    total = choose(
        x + dropped,
        no_residual=dropped,
        dropout_on_sum=dropout(x + dropped),
        dropout_on_residual=dropout(x) + dropped,
        subtracted=x - dropped,
    )
    return choose(
        norm(total),
        no_norm=total,
        norm_of_branch=x + norm(dropped),
        norm_of_residual=norm(x) + dropped,
        norm_twice=norm(norm(total)),
        dropout_after_norm=dropout(norm(total)),
        dropout_once_more=dropout(norm(total)),
        squeezed=norm(total).squeeze(),
    )


@exercise(
    reference=REPAIRS + "last_logits",
    start=BUGS + "last_logits",
    make_inputs=inputs.last_inputs,
    draws=5,
    returns={"logits": "batch vocab_size"},
    hints=(
        "Logits are any numbers, negative ones too. Do yours look like that?",
        "Whoever gets logits does the softmax: the loss, or the one who samples. Done twice, "
        "it makes all tokens nearly alike.",
        "The projection of the last position is the result: `x[:, -1] @ W + b`.",
    ),
    invariants=(rules.are_no_probabilities,),
)
def last_logits(x, W, b):
    """Return the projection of each text's last position."""
    last = choose(
        x[:, -1],
        first_position=x[:, 0],
        last_but_one=x[:, -2],
        every_position=x,
        axis_kept=x[:, -1:],
        last_sentence=x[-1],
        mean_of_positions=x.mean(1),
        sum_of_positions=x.sum(1),
    )
    logits = choose(
        last @ W + b,
        no_bias=last @ W,
        bias_subtracted=last @ W - b,
        bias_multiplied=last @ W * b,
    )
    return choose(
        logits,
        probabilities=logits.softmax(-1),
        log_probabilities=logits.log_softmax(-1),
        over_batch=logits.softmax(0),
        softmax_twice=logits.softmax(-1).softmax(-1),
        sigmoid=logits.sigmoid(),
        relu=logits.relu(),
        tanh=logits.tanh(),
        scaled=logits / math.sqrt(W.size(0)),
        exponential=logits.exp(),
        largest_is_0=logits - logits.amax(-1, keepdim=True),
        ids=logits.argmax(-1),
        largest=logits.amax(-1),
        squeezed=logits.squeeze(),
    )


@exercise(
    reference=REPAIRS + "smoothed_targets",
    start=BUGS + "smoothed_targets",
    make_inputs=inputs.target_inputs,
    draws=6,
    returns={"targets": "n n_classes"},
    hints=(
        "In PyTorch's convention the smoothing is mixed in: (1 - smoothing) of the label, "
        "plus smoothing of a distribution that is even over all classes.",
        "Even over all classes means 1 / n_classes for each, the label too. So how much does "
        "the label have in the end?",
        "Fill with `smoothing / n_classes`, then add `1 - smoothing` at the labels (`+=`).",
    ),
    invariants=(rules.rows_sum_to_one, rules.all_spread),
)
def smoothed_targets(labels, n_classes, smoothing):
    """Return (1 - smoothing) of the label and smoothing of all classes evenly."""
    one_hot = F.one_hot(labels, n_classes)
    at_label = choose(
        one_hot,
        every_row=one_hot.amax(0).expand(one_hot.shape),
        other_classes=1 - one_hot,
    )
    share = _share(len(labels), n_classes, smoothing)
    kept = choose(
        1 - smoothing,
        gives_nothing=1.0,
        gives_one_share=1 - smoothing / n_classes,
        no_smoothing=1.0,
        changed_round=smoothing,
        label_forgotten=0.0,
    )
    targets = choose(
        share + kept * at_label,
        others_only=torch.where(at_label.bool(), kept, share),
        written_over=torch.where(at_label.bool(), kept, share),
        label_alone_repaired=torch.where(at_label.bool(), kept + smoothing / n_classes, share),
        share_twice=share + (kept + share) * at_label,
        others_get_nothing=(share + kept) * at_label,
    )
    return choose(
        targets,
        logarithms=targets.log(),
        another_softmax=targets.softmax(-1),
        turned=targets.mT,
        whole_numbers=targets.long(),
    )


def _share(n_labels, n_classes, smoothing):
    """Return what every class gets of the smoothing."""
    return choose(
        smoothing / n_classes,
        others_only=smoothing / (n_classes - 1),
        one_too_few=smoothing / (n_classes - 1),
        label_alone_repaired=smoothing / (n_classes - 1),
        nothing_spread=0.0,
        one_too_many=smoothing / (n_classes + 1),
        not_shared=smoothing,
        shared_among_labels=smoothing / n_labels,
        whole_even_share=1 / n_classes,
        no_smoothing=0.0,
        changed_round=(1 - smoothing) / n_classes,
    )


@exercise(
    reference=REPAIRS + "next_token_loss",
    start=BUGS + "next_token_loss",
    make_inputs=inputs.loss_inputs,
    draws=6,
    returns={"loss": ""},
    hints=(
        "Probabilities lie between 0 and 1. As logits that is a very narrow range: how far "
        "apart can a softmax of them get?",
        "`F.cross_entropy` does log_softmax itself. How many softmaxes are there in total?",
        "Give it what the model gives: `F.cross_entropy(logits.flatten(0, 1), labels.flatten())`.",
    ),
    invariants=(rules.sure_and_right,),
)
def next_token_loss(logits, labels):
    """Return the mean cross-entropy of the logits."""
    logits, labels = choose(
        (logits, labels),
        shifted_again=(logits[:, :-1], labels[:, 1:]),
        shifted_back=(logits[:, 1:], labels[:, :-1]),
        last_token_only=(logits[:, -1:], labels[:, -1:]),
        first_sentence_only=(logits[:1], labels[:1]),
    )
    scores = choose(
        logits,
        softmax_first=logits.softmax(-1),
        sigmoid_first=logits.sigmoid(),
        softmax_over_tokens=logits.softmax(1),
        softmax_over_sentences=logits.softmax(0),
        two_softmaxes_first=logits.softmax(-1).softmax(-1),
        negative_logits=-logits,
    )
    vocab_size = scores.size(-1)
    flat = choose(
        scores.reshape(-1, vocab_size),
        viewed=scores.reshape(len(scores), vocab_size, -1).mT.reshape(-1, vocab_size),
        tokens_first=scores.transpose(0, 1).reshape(-1, vocab_size),
    )
    right = labels.flatten()
    losses = choose(
        F.cross_entropy(flat, right, reduction="none"),
        no_logarithm=F.nll_loss(flat.softmax(-1), right, reduction="none"),
        no_softmax=F.nll_loss(flat, right, reduction="none"),
        one_minus_probability=1 + F.nll_loss(flat.softmax(-1), right, reduction="none"),
        squared_error=(flat.softmax(-1) - F.one_hot(right, vocab_size)).square().mean(-1),
        smoothed=F.cross_entropy(flat, right, label_smoothing=0.1, reduction="none"),
        id_0_left_out=F.cross_entropy(flat, right, ignore_index=0, reduction="none")[right != 0],
    )
    return _of_all(losses, labels, vocab_size)


def _of_all(losses, labels, vocab_size):
    """Return the mean of all tokens' losses."""
    losses = choose(losses, other_sign=-losses)
    return choose(
        losses.mean(),
        sum_of_tokens=losses.sum(),
        sum_per_sentence=losses.sum() / len(labels),
        mean_per_class=losses.mean() / vocab_size,
        each_token=losses.view(labels.shape),
        each_sentence=losses.view(labels.shape).mean(-1),
        largest=losses.max(),
        bits=losses.mean() / math.log(2),
        perplexity=losses.mean().exp(),
    )


@exercise(
    reference=REPAIRS + "continue_text",
    start=BUGS + "continue_text",
    make_inputs=inputs.text_inputs,
    draws=8,
    returns={"ids": "token"},
    hints=(
        "Nothing in a model ends a loop. Who looks at the token that was written?",
        "Look at the token that was appended, not at the prompt: an `<eos>` may stand there. "
        "The `<eos>` that ends the text stays in the list.",
        "After the append: `if ids[-1] == eos_id: break`.",
    ),
    invariants=(rules.stops_at_the_end,),
)
def continue_text(next_logits, prompt, eos_id, max_new_tokens):
    """Append the likeliest token until one is `<eos>`, at most max_new_tokens of them."""
    n = len(prompt)
    most = choose(
        max_new_tokens,
        prompt_counted=max_new_tokens - n,
        one_fewer=max_new_tokens - 1,
        one_more=max_new_tokens + 1,
        at_least_one=max(1, max_new_tokens),
        no_maximum=100,
    )
    ids = list(prompt)
    for _ in range(most):
        if choose(False, asks_first=ids[-1] == eos_id, asks_prompt_first=eos_id in ids):
            break
        read = choose(ids, last_token=ids[-1:], prompt_only=prompt, without_prompt=ids[n:] or ids)
        logits = next_logits(read)
        ids.append(int(choose(logits.argmax(), least_likely=logits.argmin())))
        if choose(
            ids[-1] == eos_id,
            never_looks=False,
            one_after_end=eos_id in ids[n:-1],
            token_before=ids[-2] == eos_id,
            end_in_prompt=eos_id in ids,
            prompt_asked=eos_id in prompt,
            inverted=ids[-1] != eos_id,
            end_is_0=ids[-1] == 0,
            one_token=True,
        ):
            break
    return _handed_over(ids, n, eos_id)


def _handed_over(ids, n, eos_id):
    """Return all tokens, the prompt's n and the new ones."""
    ended = len(ids) > n and ids[-1] == eos_id
    return choose(
        ids,
        end_not_kept=ids[:-1] if ended else ids,
        every_end_removed=[token for token in ids if token != eos_id],
        end_appended=ids if ended else [*ids, eos_id],
        end_doubled=[*ids, eos_id],
        last_always_cut=ids[:-1],
        cut_before_first_end=ids[: ids.index(eos_id)] if eos_id in ids else ids,
        cut_at_first_end=ids[: ids.index(eos_id) + 1] if eos_id in ids else ids,
        new_tokens_only=ids[n:],
        last_one_only=ids[-1],
    )


@exercise(
    reference=REPAIRS + "look_up",
    start=BUGS + "look_up",
    make_inputs=inputs.word_inputs,
    draws=7,
    returns={"ids": "token"},
    hints=(
        "What does a dictionary's `get` return for a word that it does not have?",
        "Every word has to become an id, and an unknown one the id that says so. Leaving it "
        "out would change the sentence without a trace.",
        "`get` takes a second argument, what to return for a missing key: "
        "`vocabulary.get(word, unk_id)`. (`or unk_id` would also replace id 0.)",
    ),
)
def look_up(words, vocabulary, unk_id):
    """Return one id per word, `unk_id` for a word that the vocabulary does not have."""
    words = choose(
        words,
        each_word_once=list(dict.fromkeys(words)),
        letters=list("".join(words)),
        in_another_order=sorted(words),
        stops_at_unknown=list(takewhile(vocabulary.__contains__, words)),
    )
    ids = [
        choose(
            vocabulary.get(word, unk_id),
            becomes_none=vocabulary.get(word),
            raises_an_error=vocabulary[word],
            id_0_missing=vocabulary.get(word) or unk_id,
            id_0_for_unknown=vocabulary.get(word, 0),
            minus_1_for_unknown=vocabulary.get(word, -1),
            last_row=vocabulary.get(word, len(vocabulary) - 1),
            past_the_end=vocabulary.get(word, len(vocabulary)),
            last_id=vocabulary.get(word, max(vocabulary.values())),
            word_for_unknown=vocabulary.get(word, "<unk>"),
            all_unknown=unk_id,
            inverted=unk_id if word in vocabulary else vocabulary.get(word),
        )
        for word in words
        if choose(True, left_out=word in vocabulary, id_0_left_out=vocabulary.get(word))
    ]
    return choose(
        ids,
        tensor=torch.tensor(ids),
        first_only=ids[0] if ids else ids,
        last_only=ids[-1] if ids else ids,
    )


@exercise(
    reference=REPAIRS + "fill_up",
    start=BUGS + "fill_up",
    make_inputs=inputs.fill_inputs,
    draws=6,
    returns={"ids": "batch length"},
    hints=(
        "`len` of a tensor is the size of its first axis. What does that axis count here?",
        "`best` holds one token for each text, shape (batch,). To stand at the end of each "
        "row it needs shape (batch, 1). Which one does `unsqueeze(0)` make?",
        "`length - start.size(1)` rounds, and `best.unsqueeze(1)`.",
    ),
)
def fill_up(next_logits, start, length):
    """Append the likeliest token to every text of a batch until all have `length` tokens."""
    rounds = choose(
        length - start.size(1),
        both_axes=length - len(start),
        texts_counted=length - len(start),
        all_numbers_counted=length - start.numel(),
        new_tokens_only=length,
        round_too_few=length - start.size(1) - 1,
        round_too_many=length - start.size(1) + 1,
    )
    ids = start
    for _ in range(rounds):
        read = choose(ids, last_token=ids[:, -1:], start_only=start)
        logits = next_logits(read)
        best = choose(
            logits.argmax(-1),
            one_for_all=logits.argmax().expand(len(ids)),
            of_first_text=logits[0].argmax().expand(len(ids)),
            of_last_text=logits[-1].argmax().expand(len(ids)),
            over_texts=logits.argmax(0),
            least_likely=logits.argmin(-1),
        )
        column = choose(
            best.unsqueeze(1),
            both_axes=best.unsqueeze(0),
            row=best.unsqueeze(0),
            row_for_every_text=best.expand(len(ids), -1),
        )
        ids = choose(
            torch.cat([ids, column], dim=1),
            in_front=torch.cat([column, ids], dim=1),
            below=torch.cat([ids, column], dim=0),
            window=torch.cat([ids[:, 1:], column], dim=1),
        )
        if choose(False, one_round=True):
            break
    return choose(ids, start_cut_off=ids[:, start.size(1) :], last_column=ids[:, -1:])


@exercise(
    reference=REPAIRS + "width_message",
    start=BUGS + "width_message",
    make_inputs=inputs.message_inputs,
    draws=4,
    returns={"message": ""},
    hints=(
        "Print `table[1]` and `table.shape`. Which of them holds two numbers?",
        "The table has shape (n_positions, d_model). You want the second of these sizes.",
        "`table.shape[1]` instead of `table[1]`.",
    ),
    invariants=(rules.names_two_widths,),
)
def width_message(x, table):
    """Return the sentence with the two widths in it."""
    expected = choose(
        table.shape[1],
        row_of_table=table[1],
        column_of_table=table[:, 1],
        first_row=table[0],
        last_row=table[-1],
        shape_of_row=table[1].shape,
        number_of_positions=table.shape[0],
        whole_shape=table.shape,
        one_number=table[1, 1],
        all_numbers=table.numel(),
        axes_of_table=table.dim(),
        changed_round=x.shape[-1],
    )
    got = choose(
        x.shape[-1],
        changed_round=table.shape[1],
        number_of_tokens=x.shape[1],
        number_of_sentences=x.shape[0],
        shape_of_x=x.shape,
        axes_of_x=x.dim(),
        all_numbers_of_x=x.numel(),
        last_vector=x[-1],
    )
    message = f"Expected vectors of {expected} numbers, but got {got}."
    return choose(
        message,
        no_comma=f"Expected vectors of {expected} numbers but got {got}.",
        no_period=message[:-1],
        space_at_the_end=f"{message} ",
        no_braces="Expected vectors of {table.shape[1]} numbers, but got {x.shape[-1]}.",
        two_numbers=(expected, got),
    )


@exercise(
    reference=REPAIRS + "run_listing",
    start=BUGS + "run_listing",
    make_inputs=inputs.listing_inputs,
    draws=4,
    returns={"logits": "batch n vocab_size"},
    hints=(
        "Run it on any model with these parts and read the error: which name is missing, and "
        "which ones are there? Then run it again.",
        "A function that ends without `return` returns `None`, whatever it has computed.",
        "`model.embedding(ids)` in the first line, `return model.out(x)` in the last.",
    ),
)
def run_listing(model, ids):
    """Return what embedding, layers and projection make of the ids."""
    x = choose(
        model.embedding(ids),
        other_name=model.embed(ids),
        nothing_repaired=model.embed(ids),
    )
    layers = choose(
        model.layers,
        return_in_loop=model.layers[:1],
        last_one_missing=model.layers[:-1],
        first_one_missing=model.layers[1:],
        reads_embedding=model.layers[-1:],
        only_two=model.layers[:2],
        thrown_away=model.layers[:0],
        other_order=model.layers[::-1],
        twice=model.layers * 2,
    )
    for layer in layers:
        x = choose(layer(x), residual=x + layer(x))
    logits = model.out(x)
    return choose(
        logits,
        nothing_returned=None,
        nothing_repaired=None,
        before_projection=x,
        probabilities=logits.softmax(-1),
        log_probabilities=logits.log_softmax(-1),
        last_position=logits[:, -1],
        ids=logits.argmax(-1),
        squeezed=logits.squeeze(),
    )


@exercise(
    reference=REPAIRS + "gpt2_d_model",
    start=BUGS + "gpt2_d_model",
    make_inputs=inputs.gpt2_inputs,
    draws=4,
    returns={"d_model": ""},
    hints=(
        "All four sizes of GPT-2 have heads of the same width. GPT-2 small: 12 heads and a "
        "d_model of 768.",
        "Try a width for medium, count the parameters, and compare with the 354,823,168 of "
        "the published model.",
        "1024 numbers in 16 heads, 768 in 12: `d_head = 64`.",
    ),
    invariants=(rules.weighs_what_was_published,),
)
def gpt2_d_model(n_heads):
    """Return 64 numbers for each head."""
    d_head = choose(
        64,
        heads_of_80=1280 // 16,
        heads_of_gpt3=128,
        heads_of_48=768 // 16,
        heads_of_85=1024 // 12,
        heads_of_32=32,
        heads_of_100=1600 // 16,
    )
    d_model = choose(
        n_heads * d_head,
        always_small=768,
        always_medium=1024,
        always_large=1280,
        always_xl=1600,
        head_alone=d_head,
        power_of_two=2 ** math.ceil(math.log2(n_heads * d_head)),
        head_added=n_heads + d_head,
        all_three=3 * n_heads * d_head,
        feed_forward=4 * n_heads * d_head,
        square_of_heads=4 * n_heads**2,
    )
    return choose(d_model, fraction=float(d_model), text=str(d_model))
