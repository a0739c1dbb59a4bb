"""Repeat lesson 16's experiments with three seeds: cures of a habit, controls, additions.

python -m transformer_lesson.lessons.lesson_16.measure_after_pretraining
    all parts, 50 minutes on one core
python -m transformer_lesson.lessons.lesson_16.measure_after_pretraining lora taste
        one part or several

Long because it is a list of experiments, each a function of its own.
"""

import copy
import json
import sys
from collections import Counter

import torch

from transformer_lesson import generation
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.lessons.lesson_16 import additions, manners, orders
from transformer_lesson.lessons.lesson_16.manners import share_right
from transformer_lesson.model.lora import add_lora
from transformer_lesson.text.grammar import habits, lexicon
from transformer_lesson.text.pairs import Pair

SEEDS = (0, 1, 2)
MORE = range(10)  # of a run that may end either way
SHIPPED, TOKENIZER, *_ = trained_translator()
RANKS = ((1, 5e-3), (4, 2e-3), (4, 5e-3), (16, 1e-3), (16, 5e-3))
NEVER_TUNED = 555  # seed of the sentences of other kinds


def measured(model, test, others, ks=(1, 8), n=200) -> dict:
    """Measure a model's translations of short sentences, sampled and greedy, and of other kinds."""
    meanings, pairs = test[:n], [pair for _, pair in test[:n]]
    sources = [pair.source for pair in pairs]
    samples = manners.attempts(model, TOKENIZER, sources, max(ks), seed=7)
    greedy = generation.translate(model, TOKENIZER, sources, max_new_tokens=24, batch_size=128)
    spoiled = [habits.english_order(meaning) for meaning, _ in meanings]
    first = [texts[:8] for texts in samples.texts]
    results = {f"pass@{k}": p for k, p in manners.passes(samples, pairs, ks).items()}
    results["greedy"] = generation.exact_match(greedy, [pair.target for pair in pairs])
    results["english order"] = generation.exact_match(greedy, spoiled)
    results["different of 8"] = sum(len(set(texts)) for texts in first) / len(first)
    results["words"] = sum(len(text.split()) for text in greedy) / len(greedy)
    rewards = [manners.words_found(a, b.target) for a, b in zip(greedy, pairs, strict=True)]
    results["words found"] = sum(rewards) / len(rewards)
    results["others"] = {name: share_right(model, TOKENIZER, part) for name, part in others.items()}
    return results


def spoiled(corpus, seed, share=0.6):
    """Return a translator after 100 steps on sentences, a share of them in English order."""
    model = copy.deepcopy(SHIPPED)
    manners.tune(model, TOKENIZER, manners.with_habit(corpus.tuning, share, seed), seed=seed)
    return model


def sentences(seed):
    """Return a seed's short sentences, and others that are in no tuning."""
    corpus = manners.short_sentences(seed=seed)
    excluded = [*corpus.tuning, *corpus.practice]
    return corpus, manners.other_sentences(100, NEVER_TUNED + seed, excluded)


def overlap(seed) -> dict:
    """Return how many test sentences are in the tuning, the practice and the pretraining."""
    corpus = manners.short_sentences(seed=seed)
    test = {pair.source for _, pair in corpus.test}
    before = {pair.source for pair in manners.draw.splits(48_000, 0, seed=0).train}
    return {
        "tuning": len(test & {pair.source for _, pair in corpus.tuning}),
        "practice": len(test & {pair.source for _, pair in corpus.practice}),
        "pretraining": len(test & before),
    }


def cures(seed) -> dict:
    """Four ways to cure one habit, from the same start."""
    corpus, others = sentences(seed)
    practice = [pair for _, pair in corpus.practice]
    start = spoiled(corpus, seed)
    results = {"shipped": measured(SHIPPED, corpus.test, others)}
    results["spoiled"] = measured(start, corpus.test, others)

    examples = copy.deepcopy(start)
    manners.tune(examples, TOKENIZER, practice, 60, seed=seed)
    results["examples"] = measured(examples, corpus.test, others)

    adapter = copy.deepcopy(start)
    torch.manual_seed(seed)
    add_lora(adapter, rank=4, alpha=8.0)
    manners.tune(adapter, TOKENIZER, practice, 60, 5e-3, seed=seed)
    results["adapter"] = measured(adapter, corpus.test, others)

    pairs = [
        manners.Preference(pair.source, pair.target, habits.english_order(meaning))
        for meaning, pair in corpus.practice
    ]
    compared = copy.deepcopy(start)
    manners.prefer(compared, start, TOKENIZER, pairs, seed=seed)
    results["comparisons"] = measured(compared, corpus.test, others)

    rewarded = copy.deepcopy(start)
    curve = manners.reinforce(rewarded, TOKENIZER, practice, seed=seed)
    results["rewards"] = measured(rewarded, corpus.test, others) | {"curve": curve}
    return results


def right_draws(model, pairs, n=64) -> list[int]:
    """Return how many of n draws are right, for each of the pairs."""
    tried = manners.attempts(model, TOKENIZER, [pair.source for pair in pairs], n, seed=7)
    return [texts.count(pair.target) for texts, pair in zip(tried.texts, pairs, strict=True)]


def in_either_order(model, corpus) -> float:
    """Return the share of single draws that are right in German or in English order."""
    pairs = [pair for _, pair in corpus.test]
    english = [habits.english_order(meaning) for meaning, _ in corpus.test]
    tried = manners.attempts(model, TOKENIZER, [pair.source for pair in pairs], 8, seed=7)
    rows = zip(tried.texts, pairs, english, strict=True)
    hits = [text in (pair.target, other) for texts, pair, other in rows for text in texts]
    return sum(hits) / len(hits)


def sharpened(seed) -> dict:
    """How many of 64 draws are right, sentence by sentence, before and after rewards."""
    corpus, _ = sentences(seed)
    pairs, model = [pair for _, pair in corpus.test[:60]], spoiled(corpus, seed)
    before, practice = right_draws(model, pairs), [pair for _, pair in corpus.practice]
    manners.reinforce(model, TOKENIZER, practice, seed=seed)
    return {"n": 64, "before": before, "after": right_draws(model, pairs)}


def hacked(seed) -> dict:
    """A reward that counts words, and beside it the exact one: the same start, rate and steps."""
    corpus, others = sentences(seed)
    practice, start = [pair for _, pair in corpus.practice], spoiled(corpus, seed)
    results = {"before": measured(start, corpus.test, others)}
    for reward in (manners.words_found, manners.exactly):
        model, snapshots = copy.deepcopy(start), {}

        def look(step, model=model, snapshots=snapshots):
            if step % 20 == 0:
                snapshots[step] = measured(model, corpus.test, others if step == 60 else {})

        curve = manners.reinforce(
            model, TOKENIZER, practice, 60, reward, 3e-4, seed=seed, on_step=look
        )
        results[reward.__name__] = {"curve": curve, "steps": snapshots}
    return results


def praise(seed) -> dict:
    """What a reward that counts words praises in its first steps, by the word after the adverb."""
    corpus, _ = sentences(seed)
    practice, model = [pair for _, pair in corpus.practice], spoiled(corpus, seed)
    meanings, steps = orders.with_adverb(corpus.test), {}

    def look(step):
        """Count what is praised now, at a few steps."""
        if step in (0, 2, 4, 6, 10, 20):
            tried = manners.attempts(
                model, TOKENIZER, [pair.source for _, pair in meanings], 8, seed=7
            )
            praises = orders.praised(tried, meanings, manners.words_found)
            steps[step] = {kind: list(numbers) for kind, numbers in praises.items()}

    look(0)
    manners.reinforce(
        model, TOKENIZER, practice, 20, manners.words_found, 3e-4, seed=seed, on_step=look
    )
    return steps


def never(seed) -> dict:
    """Reinforcement from a translator that never writes German order.

    Seed 1 had just taken off at step 120, where the others end, so it runs longer. The lesson
    compares the three up to there.
    """
    corpus, others = sentences(seed)
    model = spoiled(corpus, seed, share=1.0)
    before, practice = measured(model, corpus.test, others), [pair for _, pair in corpus.practice]
    steps = 200 if seed == 1 else 120
    curve = manners.reinforce(model, TOKENIZER, practice, steps, seed=seed)
    return {"before": before, "curve": curve}


def both_orders(corpus, seed, steps=150):
    """Return the translator after some steps with both orders, half and half, and other kinds."""
    half = [
        pair._replace(target=better) if i % 2 else pair
        for i, (meaning, pair) in enumerate(corpus.tuning)
        for better in [habits.subject_first(meaning)]
    ]
    rest = manners.other_sentences(len(half) // 4, 900 + seed, corpus.test)
    model = copy.deepcopy(SHIPPED)
    manners.tune(model, TOKENIZER, half + sum(rest.values(), []), steps, seed=seed)
    return model, [pair for part in rest.values() for pair in part]


PREFERRING = {
    "dpo": (0.0, 2e-5),
    "dpo, half the rate": (0.0, 1e-5),
    "dpo, twice the rate": (0.0, 4e-5),
    "dpo and likelier": (1.0, 2e-5),
}
"""By name: the share of "make the chosen answer likelier, too" in the loss, and the rate."""


def of_pairs(model, test, kinds) -> dict:
    """Return how often the chosen answer is likelier, and what the model writes."""
    sources = [pair.source for pair in test] * 2
    answers = [pair.chosen for pair in test] + [pair.rejected for pair in test]
    with torch.no_grad():
        both = manners.answer_log_probs(model, TOKENIZER, sources, answers)
    chosen, rejected = both.chunk(2)
    accuracy = {}
    for name in ("chosen", "rejected"):
        pairs = [Pair(pair.source, getattr(pair, name)) for pair in test]
        accuracy[name] = share_right(model, TOKENIZER, pairs)
    return {
        "wins": (chosen > rejected).float().mean().item(),
        "log P": [chosen.mean().item(), rejected.mean().item()],
        "writes": accuracy,
        "others": {name: share_right(model, TOKENIZER, part) for name, part in kinds.items()},
    }


def taste(seed) -> dict:
    """Two right orders, one of them preferred: what a win rate says, and what it does not."""
    corpus = manners.two_orders(seed=seed)
    start, trained_on = both_orders(corpus, seed)
    excluded = [(None, pair) for pair in trained_on]
    others = manners.other_sentences(100, NEVER_TUNED + seed, excluded)
    train, test = manners.preferences(corpus.tuning), manners.preferences(corpus.test)

    first, results = of_pairs(start, test, others), {}
    for name, (share, rate) in PREFERRING.items():
        model, steps = copy.deepcopy(start), {0: first}

        def watch(step, model=model, steps=steps, name=name):
            if step % 10 == 0 and (step == 60 or "rate" not in name):
                steps[step] = of_pairs(model, test, others)

        options = {"learning_rate": rate, "seed": seed, "also_likelier": share}
        manners.prefer(model, start, TOKENIZER, train, on_step=watch, **options)
        results[name] = steps
    imitating = copy.deepcopy(start)
    manners.tune(imitating, TOKENIZER, [Pair(p.source, p.chosen) for p in train], 60, seed=seed)
    return results | {"examples": of_pairs(imitating, test, others)}


def no_wish(log_probs, reference, mask, beta):
    """Return a loss that compares nothing: what `prefer` adds to it is imitation."""
    return 0.0 * log_probs.sum()


def kinds_of(texts, test) -> dict:
    """Return the shares of texts that are chosen, rejected, or a third sentence, and of which kind.

    Beside these, the share that begins with an adverb.

    Args:
        texts: one or more translations of each sentence.
    """
    adverbs, counts = set(lexicon.ADVERBS.values()), Counter()

    def without(text) -> list[str]:
        return [word for word in text.split() if word not in adverbs]

    for translations, pair in zip(texts, test, strict=True):
        for text in translations:
            counts["adverb first"] += text.split()[:1] != without(text)[:1]
            both = pair.chosen, pair.rejected
            if text in both:
                counts["chosen" if text == pair.chosen else "rejected"] += 1
            elif without(text) in [without(answer) for answer in both]:
                counts["another adverb"] += 1
            else:
                counts["other words"] += 1
    total = sum(len(translations) for translations in texts)
    return {name: n / total for name, n in counts.items()}


def kinds_of_wenn(texts, pairs) -> dict:
    """Return which shares of translated sentences with *wenn* begin with it, or with a subject.

    Beside these, the share that has an adverb, which none should, and three sentences.
    """
    adverbs, n = set(lexicon.ADVERBS.values()), len(pairs)
    rows = [(text.split(), pair.target.split()) for text, pair in zip(texts, pairs, strict=True)]
    return {
        "wenn": sum(text[:1] == right[:1] for text, right in rows) / n,
        "its subject": sum(text[:1] == right[1:2] for text, right in rows) / n,
        "an adverb": sum(bool(adverbs & {*text}) for text, _ in rows) / n,
        "said": [[pair.target, text] for text, pair in list(zip(texts, pairs, strict=True))[:3]],
    }


def race(seed) -> dict:
    """Comparing and imitating at each other's rates; what is written before and after, and *wenn*.

    Imitation runs in the loop of `prefer`: the same pairs, 16 a step, and the same optimizer.
    """
    corpus = manners.two_orders(seed=seed)
    start, trained_on = both_orders(corpus, seed)
    excluded = [(None, pair) for pair in trained_on]
    others = manners.other_sentences(100, NEVER_TUNED + seed, excluded)
    train, test = manners.preferences(corpus.tuning), manners.preferences(corpus.test)

    def writes(model) -> dict:
        """Return what a model writes: likeliest and drawn answers, and sentences with *wenn*."""
        sources, wenn = [pair.source for pair in test], others["wenn"]
        greedy = generation.translate(model, TOKENIZER, sources)
        draws = manners.attempts(model, TOKENIZER, sources, 8, seed=7, room=32).texts
        translations = generation.translate(model, TOKENIZER, [pair.source for pair in wenn])
        return {
            "greedy": kinds_of([[text] for text in greedy], test),
            "drawn": kinds_of(draws, test),
            "wenn begins with": kinds_of_wenn(translations, wenn),
        }

    results = {"reference": of_pairs(start, test, others) | writes(start)}
    for name, imitates, rate in RACES:
        model = copy.deepcopy(start)
        options = {"learning_rate": rate, "seed": seed, "also_likelier": float(imitates)}
        if imitates:
            options["loss_function"] = no_wish
        manners.prefer(model, start, TOKENIZER, train, **options)
        results[name] = of_pairs(model, test, others) | writes(model)
    return results


def better(seed) -> dict:
    """Comparing and imitating from a reference of 600 steps, which gets both orders right."""
    corpus = manners.two_orders(seed=seed)
    reference, trained_on = both_orders(corpus, seed, steps=600)
    others = manners.other_sentences(100, NEVER_TUNED + seed, [(None, p) for p in trained_on])
    train, test = manners.preferences(corpus.tuning), manners.preferences(corpus.test)

    def writes(model) -> dict:
        """Return what a model gets right, and the kinds of what it writes."""
        greedy = generation.translate(model, TOKENIZER, [pair.source for pair in test])
        return of_pairs(model, test, others) | {
            "greedy": kinds_of([[text] for text in greedy], test)
        }

    results = {"reference": writes(reference)}
    for name, imitates, rate in RACES:
        model = copy.deepcopy(reference)
        options = {"learning_rate": rate, "seed": seed, "also_likelier": float(imitates)}
        if imitates:
            options["loss_function"] = no_wish
        manners.prefer(model, reference, TOKENIZER, train, **options)
        results[name] = writes(model)
    return results


def right_orders(model, test) -> dict:
    """Return how often single draws are right in either order, and how often two of them differ.

    Eight draws for each sentence. Only pairs of right draws of one sentence are compared, so the
    second number says nothing about how many are right.
    """
    tried = manners.attempts(model, TOKENIZER, [pair.source for pair in test], 8, seed=7, room=32)
    rows = zip(tried.texts, test, strict=True)
    counts = [(texts.count(pair.chosen), texts.count(pair.rejected)) for texts, pair in rows]
    right = [sum(both) for both in counts]
    pairs = sum(n * (n - 1) // 2 for n in right)
    return {
        "right": sum(right) / 8 / len(test),
        "pairs": pairs,
        "differ": sum(a * b for a, b in counts) / pairs,
        "subject first": sum(a for a, _ in counts) / sum(right),
    }


def variety(seed) -> dict:
    """Rewards for either of two right orders, and as control examples of both, half and half."""
    corpus = manners.two_orders(seed=seed)
    start, _ = both_orders(corpus, seed, steps=600)
    train, test = manners.preferences(corpus.tuning), manners.preferences(corpus.test)
    other = {pair.rejected: pair.chosen for pair in train}
    rewarded, steps = copy.deepcopy(start), {0: right_orders(start, test)}

    def either(text, reference) -> float:
        return float(text in (reference, other[reference]))

    def look(step):
        if step in (5, 10, 20):
            steps[step] = right_orders(rewarded, test)

    prompts = [Pair(pair.source, pair.rejected) for pair in train]
    manners.reinforce(rewarded, TOKENIZER, prompts, 20, either, seed=seed, room=32, on_step=look)
    half = [Pair(p.source, p.chosen if i % 2 else p.rejected) for i, p in enumerate(train)]
    results = {"rewards": steps, "examples": {0: steps[0]}}
    for n in (60, 120):
        model = copy.deepcopy(start)
        manners.tune(model, TOKENIZER, half, n, seed=seed)
        results["examples"][n] = right_orders(model, test)
    return results


RACES = (
    ("dpo", False, 2e-5),
    ("dpo, imitation's rate", False, 3e-4),
    ("imitation, dpo's rate", True, 2e-5),
    ("imitation", True, 3e-4),
)
"""Name, whether it imitates the chosen sentence (or compares), rate."""


def smoothing(seed) -> dict:
    """How much surer a translator gets by plain cross-entropy alone: nothing spoiled, or cured.

    The loop is that of the row "examples" of `cures`: 60 steps, rate 3e-4, 32 sentences a step.
    """
    corpus, others = sentences(seed)
    practice = [pair for _, pair in corpus.practice]
    patient = spoiled(corpus, seed)
    results = {"shipped": SHIPPED, "spoiled": patient}
    for name, start, share in (
        ("plain", SHIPPED, 0.0),
        ("smoothed", SHIPPED, 0.1),
        ("cured, smoothed", patient, 0.1),
    ):
        model = copy.deepcopy(start)
        manners.tune(model, TOKENIZER, practice, 60, seed=seed, label_smoothing=share)
        results[name] = model
    for name, model in results.items():
        extra = {"either order": in_either_order(model, corpus)}
        results[name] = measured(model, corpus.test, others) | extra
    return results


def lora(seed) -> dict:
    """Learning and forgetting, depending on how many weights learn and how fast."""
    telegrams = manners.short_sentences(seed=seed)
    train = [pair._replace(target=habits.verbs_last(m)) for m, pair in telegrams.tuning]
    test = [pair._replace(target=habits.verbs_last(m)) for m, pair in telegrams.test]
    old = manners.other_sentences(50, NEVER_TUNED + seed)
    ways = {f"full {rate:g}": (0, rate) for rate in (1e-4, 3e-4, 1e-3)}
    ways |= {f"rank {rank} {rate:g}": (rank, rate) for rank, rate in RANKS}
    results = {}
    for name, (rank, rate) in ways.items():
        model = copy.deepcopy(SHIPPED)
        torch.manual_seed(seed)
        learns = sum(weight.numel() for weight in model.parameters())
        if rank:
            learns = add_lora(model, rank, alpha=2.0 * rank)
        manners.tune(model, TOKENIZER, train, 100, rate, seed=seed)
        kept = {kind: share_right(model, TOKENIZER, part) for kind, part in old.items()}
        results[name] = {"weights": learns, "new": share_right(model, TOKENIZER, test), "old": kept}
    return results


def sums(seed) -> dict:
    """Additions, directly and with the work written out, with and without masking the prompt."""
    results = {}
    ways = {"direct": True, "scratchpad": True, "scratchpad, not masked": False, "calculator": True}
    for name, masked in ways.items():
        way = name.split(",")[0]
        model = additions.adder(seed)
        steps = 400 if way == "calculator" else 700
        additions.learn(model, additions.Additions(way, seed=seed, masked=masked), steps)
        results[name] = {}
        for n_digits in (1, 2, 3, 4):
            problems = additions.problems(100, n_digits, way, seed=900 + seed)
            if way == "calculator":
                answers = [
                    additions.with_calculator(model, problem.prompt).split("=")[-1]
                    for problem in problems
                ]
            else:
                answers = additions.results(model, problems)
            results[name][str(n_digits)] = additions.share_right(answers, problems)
        three = additions.problems(100, 3, way, seed=900 + seed)
        if way != "calculator":
            results[name]["of 8"] = additions.voted(model, three)
        if way == "direct":
            additions.learn(model, additions.Additions(way, seed=seed, fixed=three), 150, 2e-3)
            fresh = additions.problems(100, 3, way, seed=800 + seed)
            results["known test"] = {
                "test": additions.share_right(additions.results(model, three), three),
                "fresh": additions.share_right(additions.results(model, fresh), fresh),
            }
    return results


def copies(seed) -> dict:
    """Which digits of the two numbers a scratchpad copies rightly, by the number of digits."""
    model = additions.adder(seed)
    additions.learn(model, additions.Additions("scratchpad", seed=seed))
    return {n: [list(both) for both in additions.copied(model, n)] for n in (1, 2, 3, 4)}


PARTS = {
    part.__name__: part
    for part in (
        overlap,
        cures,
        smoothing,
        sharpened,
        hacked,
        praise,
        never,
        taste,
        race,
        better,
        variety,
        lora,
        sums,
        copies,
    )
}


def rounded(value):
    """Round all numbers in nested lists and dictionaries to three places."""
    if isinstance(value, dict):
        return {str(key): rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 3) if isinstance(value, float) else value


def main() -> None:
    """Measure the parts that were asked for, or all, and store them."""
    torch.set_num_threads(1)
    runs = manners.stored() if manners.STORED.exists() else {}
    for name in sys.argv[1:] or PARTS:
        runs[name] = []
        for seed in MORE if name == "praise" else SEEDS:
            runs[name].append(rounded(PARTS[name](seed)))
            print(name, seed, json.dumps(runs[name][-1]), flush=True)
    parts = (
        f" {json.dumps(name)}: [\n" + ",\n".join(f"  {json.dumps(run)}" for run in runs[name]) + "]"
        for name in PARTS
        if name in runs
    )
    manners.STORED.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
