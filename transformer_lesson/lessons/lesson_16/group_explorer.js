// A group of answers to one prompt: their rewards, what each is worth compared with the others, and
// how one step of GRPO changes the probabilities of their tokens.

import { choosable, fitted, fixed, layer, pen, put, signed, textWidth, told,
  wrapped } from "../../explorables/web/draw.js";
import { frame, shownWhile } from "../../explorables/web/frame.js";
import { softmax } from "../../explorables/web/generation.js";

const GROUP_SEEN = 0.005; // a smaller change of a probability is not marked
const GROUP_END = "(end)"; // the token that ends an answer, as the stored groups name it
const GROUP_STAGES = [[1, "draw"], [2, "reward"], [3, "compare"], [4, "push"]];

export function GroupExplorer(view) {
  const { model } = view, groups = model.get("groups");
  return frame(view, {
    name: "Group explorer",
    traits: ["groups", "prompt", "stage", "drawn", "flipped", "divided", "rate", "answer",
      "token", "missing"],
    controls: (make, page) => [
      make.choice("Sentence", "prompt", () =>
        groups.map(({ source }, i) => [i, source.replace(" .", "")])),
      make.choice("Step", "stage", () => GROUP_STAGES),
      shownWhile(page, "stage", 1, make.slider("Drawn", "drawn", [1, 8])),
      shownWhile(page, "stage", 1, make.play("drawn", [1, 8], 1000)),
      shownWhile(page, "stage", [2, 3, 4],
        make.play("stage", [2, 4], 1500)),
      shownWhile(page, "stage", 4,
        make.slider("Size", "rate", [0, 40])),
      shownWhile(page, "stage", [3, 4], make.toggle("÷ deviation", "divided"))],
    draw: drawGroup });
}

// Reward minus the group's mean, divided by the standard deviation if `divided`; 0 if all rewards
// are equal.
function groupAdvantages(rewards, divided) {
  const mean = rewards.reduce((a, b) => a + b) / rewards.length;
  const deviation = Math.sqrt(rewards.reduce((sum, one) => sum + (one - mean) ** 2, 0) /
    rewards.length);
  const scale = divided ? deviation : 1;
  const advantages = rewards.map((one) => (deviation ? (one - mean) / scale : 0));
  return { mean, deviation, advantages };
}

// The probabilities after each prefix of an answer, before and after one step down the gradient of
// the loss, -mean(advantage * mean(log p)), with respect to the logits: A / (G n) (onehot - p).
function groupStep({ answers, contexts }, advantages, rate) {
  const before = contexts.map(({ logits }) => [...softmax(logits)]);
  const moved = contexts.map(({ logits }) => [...logits]);
  answers.forEach(({ at, chosen }, i) => {
    const size = (rate * advantages[i]) / (answers.length * at.length);
    at.forEach((place, n) => before[place].forEach((p, k) => {
      moved[place][k] += size * ((k === chosen[n] ? 1 : 0) - p);
    }));
  });
  return { before, after: moved.map((logits) => [...softmax(logits)]) };
}

// Everything that the picture shows in a state of the controls. While answers are still being
// drawn, the newest one is selected.
function groupNow(state) {
  const group = state.groups[Math.min(state.prompt, state.groups.length - 1)];
  const { answers, contexts } = group, { stage, flipped, prompt } = state;
  const turned = answers.map((_, i) => flipped.includes(prompt * answers.length + i));
  const rewards = answers.map(({ right }, i) => Number(right !== turned[i]));
  const compared = groupAdvantages(rewards, state.divided);
  const { before, after } = groupStep(group, compared.advantages, state.rate);
  const wanted = [...group.right.split(" "), GROUP_END];
  const rows = answers.map(({ at, chosen, right }, i) => {
    const words = at.map((place, n) => contexts[place].words[chosen[n]]);
    const [p, q] = [before, after].map((all) => at.map((place, n) => all[place][chosen[n]]));
    const whole = [p, q].map((row) => row.reduce((a, b) => a * b));
    return { i, at, words, p, q, whole, right, turned: turned[i], reward: rewards[i],
      leaves: words.findIndex((word, n) => word !== wanted[n]),
      advantage: compared.advantages[i], text: words.slice(0, -1).join(" ") };
  });
  const shown = rows.slice(0, stage > 1 ? rows.length : state.drawn);
  const row = shown.length < rows.length ? shown.at(-1) :
    rows[Math.min(state.answer, rows.length - 1)];
  const token = Math.min(state.token, row.words.length - 1);
  return { ...compared, group, wanted, rows, shown, row, token, stage, before, after };
}

function drawGroup(state, page) {
  if (state.missing) return state.missing;
  const { svg, width } = page, now = groupNow(state), beside = width >= 640, { stage } = now;
  const tokens = beside ? width - 330 : width;
  const [asked, more] = [[{ words: now.wanted }], now.rows].map((all) => // pixels of further lines
    Math.max(...all.map((one) => answerPlaces(one, { tokens }).at(-1).down)));
  const place = { width, beside, tokens, asked, more, high: (beside ? 29 : 54) + more,
    top: (beside ? 62 : 78) + asked, left: beside ? width - 318 : 0 };
  drawAsked(layer(svg, "asked"), now, place);
  drawGroupAnswers(layer(svg, "answers"), now, place, page);
  drawWorth(layer(svg, "worth"), now, place, page, state);
  const top = place.top + now.rows.length * place.high + 22;
  const most = Math.max(...state.groups.flatMap(({ contexts }) =>
    contexts.map(({ words }) => words.length)));
  drawNextWords(layer(svg, "next"), now, { ...place, top });
  drawGroupKey(layer(svg, "key"), stage, { ...place, top });
  return { ...groupFacts(now, state), height: top + 8 + 17 * most };
}

// At the top, what the model was given, the right answer, and what the verifier asks.
function drawAsked(group, { group: { source }, wanted }, place) {
  const places = answerPlaces({ words: wanted }, place), { beside, left } = place;
  const asked = beside ? "to translate:" : "given:", after = textWidth(asked, 12) + 7;
  const lines = [[asked, 0, 12], [fitted(source, place.width - after, 13, 600), after, 12],
    ["The verifier asks of each answer:", left, beside ? 12 : 58 + place.asked],
    ["is it the one in dashes, word for word?", left, beside ? 36 : 72 + place.asked]];
  put.text(group, "lines", lines, ([text, x, y], i) =>
    [text, x, y, i === 1 ? "size-13 strong" : "small"]);
  const boxes = wanted.map((word, n) => ({ word, n, ...places[n] }));
  put.box(group, "boxes", boxes, ({ x, down, wide, word, n, small }) => ({
    x, y: 22 + down, width: wide, height: 20, rx: 5, ...pen("--soft", 1, "4 3"),
    "pointer-events": "all", class: null, word, font: small ? "size-12" : "size-13",
    ...told(`the right answer, word ${n + 1}: “${word}”`) }), "n");
}

// Positions of the tokens of an answer: boxes as wide as their words, closer where room is short, and
// where that is not enough, in lines, each as far `down` as the pixels say.
function answerPlaces({ words }, { tokens }) {
  const wide = (size, room) => words.map((word) => Math.max(24, textWidth(word, size) + room));
  const total = (sizes) => sizes.reduce((a, b) => a + b + 3);
  const roomy = wide(13, 12), sizes = total(roomy) <= tokens ? roomy : wide(12, 5);
  const { places } = wrapped(sizes, { x: 0, y: 0, width: tokens, high: 20, gap: 3, between: 10 });
  return places.map(({ x, y, width }) => ({ x, down: y, wide: width, small: sizes !== roomy }));
}

// The answers, token by token; below each token its probability as a bar, and after the step a mark
// where it was before.
function drawGroupAnswers(group, now, place, page) {
  const { rows, shown, row, token, stage } = now, chosenAt = row.at[token];
  const all = shown.flatMap((one) => answerPlaces(one, place).map((box, n) => ({
    ...box, key: `${one.i}.${n}`, i: one.i, n, word: one.words[n], p: one.p[n], q: one.q[n],
    y: place.top + one.i * place.high + box.down, at: one.at[n],
    leaves: stage < 3 && one.leaves === n })));
  drawComing(layer(group, "lanes"), rows.slice(shown.length), place);
  const change = ({ p, q }) => (stage < 4 ? 0 : Math.max(-0.4, Math.min(0.4, 1.6 * (q - p))));
  const links = ({ at }) => `context${at}`;
  put.box(group, "boxes", all, (one) => ({
    x: one.x, y: one.y, width: one.wide, height: 20, rx: 5, word: one.word,
    class: one.at === chosenAt ? "picked" : "box", fill: signed(change(one), 1),
    font: one.small ? "size-12" : "size-13",
    ...choosable(tokenTells(one, now), one.i === row.i && one.n === token,
      () => page.set({ answer: one.i, token: one.n, drawn: rows.length }), links(one)) }));
  const value = (one) => (stage < 4 ? one.p : one.q);
  put.rect(group, "bars", all, (one) => ({
    x: one.x + 2, y: one.y + 22, height: 3.5, width: value(one) * (one.wide - 4),
    fill: stage < 4 ? "var(--key)" : groupColor(one) }));
  const marks = stage < 4 ? [] : all.filter(({ p, q }) => Math.abs(p - q) > GROUP_SEEN);
  put.path(group, "marks", marks, (one) => ({
    d: `M${one.x + 2 + one.p * (one.wide - 4)} ${one.y + 20}v7`, stroke: "var(--ink)",
    "stroke-width": 1.5 }));
}

// A placeholder for each answer still to come.
function drawComing(group, coming, { top, high }) {
  put.rect(group, "coming", coming, ({ i }) =>
    ({ x: 0.5, y: top + i * high, width: 60, height: 20, rx: 5, ...pen("--line", 1, "3 4") }), "i");
}

function groupColor({ p, q }) {
  if (Math.abs(q - p) <= GROUP_SEEN) return "var(--soft)";
  return q > p ? "var(--key)" : "var(--minus)";
}

function tokenTells({ i, n, word, p, q, leaves }, { rows, stage }) {
  const start = rows[i].words.slice(0, n).join(" ") || "the start";
  const after = stage < 4 ? "" : `, after the step ${fixed(q, 3)}`;
  const way = leaves ? ", where it leaves the right answer" : "";
  return `answer ${i + 1}, “${word}” after “${start}”: ${fixed(p, 3)}${after}${way}`;
}

// Beside each answer, or below it: its reward, a button that flips it; its advantage; and the
// probability of the whole answer.
function drawWorth(group, { rows, shown, stage }, place, page, { flipped, prompt }) {
  const { beside, left, high, top, width } = place;
  const low = beside ? 0 : 27 + place.more, y = ({ i }) => top + i * high + low;
  const columns = [[["how often drawn", left + 64]], [["reward", left + 14]],
    [["reward", left + 14], ["advantage", left + 108]]];
  const heads = beside ? [...columns[Math.min(stage, 3) - 1], ["probability", left + 252]] : [];
  drawTally(layer(group, "tally"), stage > 1 ? [] : shown, left, y);
  put.label(group, "heads", heads, ([text, x]) =>
    [text, x, top - 8, "small middle"], ([name]) => name);
  const judged = stage > 1 ? rows : [], worth = stage > 2 ? rows : [];
  const turn = (i) => () => {
    const number = prompt * rows.length + i, others = flipped.filter((one) => one !== number);
    page.set({ flipped: others.length < flipped.length ? others : [...flipped, number] });
  };
  put.box(group, "rewards", judged, (one) => ({
    x: left, y: y(one), width: 28, height: 22, rx: 6, word: one.reward ? "✓" : "✗", font: "strong",
    ...choosable(`answer ${one.i + 1}, reward ${one.reward}${one.turned ? ", flipped" : ""}`,
      one.turned, turn(one.i)) }), "i");
  const [middle, scale, number] = beside ? [left + 88, 15, left + 168] : [70, 12, 140];
  put.rect(group, "advantages", worth, (one) => ({
    x: Math.min(middle, middle + scale * one.advantage), y: y(one) + 4, height: 14,
    width: Math.max(1, scale * Math.abs(one.advantage)),
    fill: `var(${one.advantage < 0 ? "--minus" : "--plus"})`,
    ...told(`answer ${one.i + 1}, advantage ${advantageWords(one.advantage)}`) }), "i");
  put.label(group, "numbers", worth, (one) =>
    [advantageWords(one.advantage), number, y(one) + 15, "number end"], "i");
  put.text(group, "whole", shown, (one) => [
    groupWholeWords(one, stage), beside ? left + 252 : width, y(one) + 15,
    `number ${beside ? "middle" : "end"}`,
    told(`answer ${one.i + 1} as a whole: ${groupWholeWords(one, stage)}`)], "i");
}

// How often each answer was drawn so far, and how often its probability lets us expect it.
function drawTally(group, shown, left, y) {
  const tallies = shown.map((one) => ({ ...one, expected: shown.length * one.whole[0],
    times: shown.filter(({ text }) => text === one.text).length }));
  put.text(group, "drawn", tallies, (one) => [
    `${one.times} of ${shown.length}, expected ${fixed(one.expected, 1)}`, left, y(one) + 15,
    "number", told(`answer ${one.i + 1}, drawn ${one.times} of ${shown.length} times, ` +
      `${fixed(one.expected, 2)} to be expected`)], "i");
}

const advantageWords = (advantage) =>
  `${advantage > 0 ? "+" : ""}${fixed(advantage, 2)}`.replace("-", "−");

const groupWholeWords = ({ whole: [p, q] }, stage) =>
  stage < 4 ? fixed(p, 3) : `${fixed(p, 3)} → ${fixed(q, 3)}`;

// What could follow at the chosen place: each token's probability as a bar; in the last stage, as
// two bars, before and after the step.
function drawNextWords(group, { group: { contexts }, row, token, stage, before, after }, place) {
  const { top, width } = place, at = row.at[token], { words } = contexts[at];
  const start = row.words.slice(0, token).join(" ") || "the start";
  const heading = fitted(`what may follow “${start}”`, width, 14, 600);
  put.text(group, "heading", [[heading, 0, top - 4, "strong"]]);
  const left = 84, room = place.beside ? place.left : width;
  const wide = Math.max(80, Math.min(430, room - left - 110));
  const y = (k) => top + 6 + 17 * k;
  const options = words.map((word, k) => ({ word, k, p: before[at][k], q: after[at][k] }));
  const sets = stage < 4 ? [["p", 11, 0]] : [["p", 5, 0], ["q", 6, 5]];
  for (const [name] of [["p"], ["q"]]) {
    const [, high = 0, low = 0] = sets.find(([one]) => one === name) ?? [];
    put.rect(group, name, high ? options : [], (one) => ({
      x: left, y: y(one.k) + low, height: high, width: Math.max(0.5, one[name] * wide),
      fill: name === "p" ? stage < 4 ? "var(--key)" : "var(--soft)" : groupColor(one) }), "k");
  }
  const numbers = ({ p, q }) => (stage < 4 ? fixed(p, 3) : `${fixed(p, 3)} → ${fixed(q, 3)}`);
  put.text(group, "words", options, (one) => [
    fitted(one.word, left - 10, 13), left - 7, y(one.k) + 10,
    one.word === row.words[token] ? "end size-13 strong" : "end size-13",
    told(`“${one.word}” after “${start}”: ${numbers(one)}`)], "k");
  put.label(group, "numbers", options, (one) => [
    numbers(one), left + Math.max(one.p, stage < 4 ? 0 : one.q) * wide + 6, y(one.k) + 10, "number",
  ], "k");
}

// What the marks at the answers mean, where there is room beside the next words.
function drawGroupKey(group, stage, { beside, left, top }) {
  const bars = stage < 4 ? [["--key", "below a token: its probability"]] :
    [["--key", "likelier after the step (tick: before)"], ["--minus", "less likely"]];
  const rings = [["--query", 2, "after the same words: press any token"]];
  const rows = beside ? [...bars, ...rings] : [], y = (i) => top + 14 + 20 * i;
  put.rect(group, "bars", rows.slice(0, bars.length), ([color], i) =>
    ({ x: left, y: y(i) - 6, width: 20, height: 3.5, fill: `var(${color})` }));
  put.rect(group, "rings", rows.slice(bars.length), ([color, thick], i) => ({
    x: left, y: y(i + bars.length) - 11, width: 20, height: 13, rx: 5, ...pen(color, thick) }));
  put.label(group, "words", rows, (one, i) => [one.at(-1), left + 28, y(i), "small"]);
}

function groupFacts(now, { divided }) {
  const { group, rows, shown, row, token, stage, mean, deviation, advantages } = now;
  const right = rows.filter(({ reward }) => reward).length, n = rows.length;
  const different = new Set(shown.map(({ text }) => text)).size;
  const equal = deviation === 0, first = rows.find(({ reward }) => reward) ?? rows[0];
  const nothing = `All ${n} rewards are ${rows[0].reward}: this group teaches nothing`;
  const values = `${fixed(Math.max(...advantages), 2)} and a wrong one ` +
    fixed(Math.min(...advantages), 2).replace("-", "−");
  const title = [
    shown.length < n ? `${shown.length} of ${n} answers drawn, ${different} different` :
      `${n} answers were drawn, ${different} of them different`,
    `${right} of ${n} answers get a reward`,
    equal ? nothing : `A rewarded answer is worth ${values}`,
    equal ? nothing : "A step takes the first rewarded answer from " +
      `${fixed(first.whole[0], 3)} to ${fixed(first.whole[1], 3)}`][stage - 1];
  const [word, start] = [row.words[token], row.words.slice(0, token).join(" ") || "the start"];
  const moved = stage < 4 ? fixed(row.p[token], 3) :
    `${fixed(row.p[token], 3)} before the step, ${fixed(row.q[token], 3)} after it`;
  const asked = stage > 1 ? "" : `The right answer is “${group.right.replace(" .", "")}”. `;
  const spread = `Rewards: mean ${fixed(mean, 3)}, deviation ${fixed(deviation, 3)}` +
    `${divided ? "" : ", not divided by"}. `;
  return { title, said: `${asked}${stage < 3 ? "" : spread}“${word}” after “${start}”: ${moved}.` };
}
