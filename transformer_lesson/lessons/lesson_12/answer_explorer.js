// How a model wrote one answer: what else was likely at each step, where every head looked, and
// what is lost without a head or a block.

import { choosable, fitted, layer, pen, put, set, shade, textWidth, told,
  wrapped } from "../../explorables/web/draw.js";
import { frame, remembered } from "../../explorables/web/frame.js";
import { firstLargest, fromLargest } from "../../explorables/web/ranking.js";

const WHOLE_WEIGHT = 65535; // a weight of 1, in the two bytes of a record
const MOST_NAMED = [3, 5]; // heads named in one line below the map, on a phone and elsewhere

export const AnswerExplorer = (view) => frame(view, {
  name: "Answer explorer",
  traits: ["step", "layer", "head", "watched", "measure", "whole_block"],
  controls: answerControls, load: recordOf, draw: drawAnswer });

function answerControls(make, { model }) {
  const [layers, heads] = model.get("shape"), steps = model.get("choices").length;
  const from0 = (count) => () => [0, count - 1];
  const step = () => [1, steps];
  return [
    make.slider("Token", "step", step, (value) => `${value} of ${steps}`),
    make.play("step", step, 1500),
    make.slider("Block", "layer", from0(layers)),
    make.slider("Head", "head", from0(heads)),
    ...(model.get("measures").length ? [make.toggle("whole block", "whole_block")] : [])];
}

// The record, decoded: `weight(at, [block, head], key)` counts steps from 0.
async function recordOf(model) {
  const [layers, heads] = model.get("shape"), tokens = model.get("tokens");
  const choices = model.get("choices"), prompt = tokens.length - choices.length;
  const bytes = Uint8Array.from(atob(model.get("weights")), (letter) => letter.charCodeAt(0));
  const units = new Uint16Array(bytes.buffer), starts = [0];
  choices.forEach((_, at) => starts.push(starts[at] + layers * heads * (prompt + at)));
  const weight = (at, [l, h], key) =>
    units[starts[at] + (l * heads + h) * (prompt + at) + key] / WHOLE_WEIGHT;
  return { layers, heads, tokens, choices, prompt, weight, lineEnds: model.get("line_ends"),
    measures: model.get("measures").map(measureOf) };
}

// A measure: its value `without` a part; which share of it is `lost` at a value, from 0 to 1; the
// `place` of a value between the best and the worst, from 0 to 1; and the `harm`, how much worse a
// value is.
function measureOf({ name, whole, worst, heads, blocks }) {
  const low = Math.min(worst, whole, ...heads), high = Math.max(worst, whole, ...heads);
  const best = worst < whole ? high : low, span = (high - low) * Math.sign(worst - whole);
  const within = (share) => Math.min(1, Math.max(0, share));
  const row = heads.length / blocks.length;
  const without = ([l, h]) => h === null ? blocks[l] : heads[l * row + h];
  return { name, whole, without, all: { heads, blocks },
    lost: (value) => within((whole - value) / (whole - worst)),
    place: (value) => within((value - best) / span),
    write: (value) => value.toFixed(whole <= 1 ? 3 : 2),
    harm: (value) => (whole - value) * Math.sign(whole - worst) };
}

function drawAnswer(state, page, answer) {
  const look = lookOfAnswer(answer, state, page.preview), { svg, width } = page;
  const wide = width >= 700, left = wide ? Math.round(width * 0.33) : width;
  const parts = ["written", "candidates", "measures", "text", "heads"];
  for (const name of parts) layer(svg, name); // in reading order
  const rival = drawSureness(layer(svg, "written"), look, page, left);
  const x = wide ? left + 32 : 0, room = { x, y: wide ? 0 : rival, width: width - x };
  const map = drawLookedAt(layer(svg, "text"), look, page, room);
  const end = drawHeadMap(layer(svg, "heads"), look, page, { ...room, y: map });
  const under = drawCandidates(layer(svg, "candidates"), look, wide ? rival : end + 8, left);
  const low = drawMeasures(layer(svg, "measures"), look, page, under, left);
  set(svg, { width, height: Math.max(low, end) });
  const longest = remembered(page, "facts", { ...state, step: null }, () =>
    answer.choices.map((_, i) => answerFacts(lookOfAnswer(answer, { ...state, step: i + 1 }))));
  return { ...longest[look.at], longest };
}

// What the picture shows at a step: the tokens before it, the weights that the head under the
// pointer or the chosen one gave them, and what every head gave to the watched token.
function lookOfAnswer(answer, state, preview) {
  const { choices, prompt, layers, heads, weight } = answer;
  const at = Math.min(state.step, choices.length) - 1, before = prompt + at;
  const chosen = [Math.min(state.layer, layers - 1), Math.min(state.head, heads - 1)];
  const row = (head) => Array.from({ length: before }, (_, key) => weight(at, head, key));
  const own = row(chosen), favorite = firstLargest(own);
  const [kind, ...numbers] = (preview ?? "").split(".");
  const pointed = kind === "token" && Number(numbers[0]) < before ? Number(numbers[0]) : null;
  const pinned = state.watched !== null && state.watched < before ? state.watched : null;
  const watched = pointed ?? pinned ?? favorite;
  const shown = kind === "head" ? numbers.map(Number) : chosen;
  const block = kind === "block" ? Number(numbers[0]) : chosen[0];
  const whole = kind === "block" || (state.whole_block && kind !== "head");
  const removed = whole ? [block, null] : shown;
  const measure = state.measure === null ? null : answer.measures[
    Math.min(state.measure, answer.measures.length - 1)] ?? null;
  const all = Array.from({ length: layers * heads }, (_, i) => {
    const head = [Math.floor(i / heads), i % heads];
    return { head, name: head.join("."), given: weight(at, head, watched) };
  });
  const rests = all.reduce((sum, { head }) => sum + weight(at, head, 0), 0) / all.length;
  const kept = state.whole_block ? [chosen[0], null] : chosen;
  return { ...answer, at, before, chosen, own, favorite, pinned, watched, shown, all, rests,
    kept, removed, measure,
    weights: row(shown), word: (i) => `“${answer.tokens[i]}”` };
}

const partName = ([l, h]) => h === null ? `block ${l}` : `head ${l}.${h}`;
const toldChance = (p) => p < 0.0001 ? "under 0.0001" : p.toFixed(4);
const chanceOf = ({ chosen, probabilities }) => probabilities[chosen];

const boxesInLines = (labels, room, high, ends) =>
  wrapped(labels.map((label) => Math.min(room.width, Math.max(32, textWidth(label) + 10))),
    { ...room, high, ends });

function answerHeading(group, { x, y, width }, title, note) {
  put.text(group, "heading", [title, note], (text, i) =>
    [fitted(text, width, i ? 12 : 14, i ? 400 : 600), x, y + 14 + 17 * i, i ? "small" : "strong"]);
}

// The answer, each token with its probability as a number and as a bar; returns where it ends.
function drawSureness(group, { tokens, choices, prompt, at, word }, page, width) {
  answerHeading(group, { x: 0, y: 0, width }, "the answer, token by token",
    "green: how likely each one was");
  const all = choices.map((choice, i) => ({ i, chance: chanceOf(choice) }));
  const labels = all.map(({ i }) => fitted(tokens[prompt + i], 130));
  const { places, bottom } = boxesInLines(labels, { x: 0, y: 38, width }, 42);
  const middle = (i) => places[i].x + places[i].width / 2;
  put.rect(group, "boxes", all, ({ i, chance }) => ({
    ...places[i], rx: 7, class: "box",
    ...choosable(`token ${i + 1} of the answer, ${word(prompt + i)}: probability ` +
      toldChance(chance), i === at, () => page.set({ step: i + 1 })) }), "i");
  put.rect(group, "bars", all, ({ i, chance }) => ({
    x: places[i].x + 4, y: places[i].y + 34, width: (places[i].width - 8) * chance, height: 5,
    rx: 2, fill: "var(--value)" }), "i");
  drawTokenWords(group, all.map(({ i, chance }) => ({
    i, x: middle(i), y: places[i].y, label: labels[i], number: chance.toFixed(2) })));
  return bottom + 14;
}

function drawTokenWords(group, words) {
  const quiet = { "aria-hidden": "true", "pointer-events": "none" };
  put.text(group, "words", words, ({ x, y, label, number }) =>
    ({ text: label, class: "middle", x, y: y + (number ? 16 : 21), ...quiet }), "i");
  const numbers = words.filter(({ number }) => number);
  put.text(group, "numbers", numbers, ({ x, y, number }) =>
    ({ text: number, class: "number middle", x, y: y + 29, ...quiet }), "i");
}

// The likeliest tokens at this step as bars, and all others together; returns where they end.
function drawCandidates(group, { choices, at }, y, width) {
  const { chosen, tokens, probabilities, others } = choices[at];
  const rest = Math.max(0, 1 - probabilities.reduce((sum, p) => sum + p, 0));
  const rows = tokens.map((token, i) => ({ i, name: `“${token}”`, token, p: probabilities[i] }));
  const all = [...rows, { i: -1, name: `${others.toLocaleString("en")} others`, p: rest }];
  const named = Math.min(120, width * 0.36), unit = width - named - 56, high = 20;
  const top = (n) => y + 38 + high * n, is = ({ i }) => i === chosen;
  answerHeading(group, { x: 0, y, width }, "what could have come",
    "the likeliest tokens at this place");
  put.rect(group, "chosen", [chosen], () =>
    ({ x: 0, y: top(chosen), width, height: high - 2, rx: 6, class: "box" }));
  put.rect(group, "bars", all, (one, n) => ({
    x: named, y: top(n) + 2, height: 14, width: Math.max(1.5, one.p * unit), rx: 2,
    fill: is(one) ? "var(--value)" : one.i < 0 ? "var(--soft)" : "var(--key)",
    ...told(`${one.name}: probability ${toldChance(one.p)}${is(one) ? ", written" : ""}`) }), "i");
  put.label(group, "words", all, (one, n) => [
    one.i < 0 ? fitted(one.name, named - 8, 12) :
      (is(one) ? "▶ " : "") + fitted(one.token, named - (is(one) ? 28 : 8)), named - 8, top(n) + 14,
    one.i < 0 ? "small end" : "end"], "i");
  put.label(group, "numbers", all, ({ p }, n) =>
    [p < 0.0005 ? "<0.001" : p.toFixed(3), named + 6 + p * unit, top(n) + 14, "small"], "i");
  return top(all.length) + 4;
}

// What is lost without the part under the pointer or the chosen one: for each measure a row with a
// dot for every head, or every block, and a mark for this one; returns where the rows end.
function drawMeasures(group, { measures, measure, removed, layers, heads }, page, y, width) {
  if (!measures.length) return y;
  const whole = removed[1] === null, high = 31, right = width - 8;
  const count = whole ? `${layers} blocks` : `${layers * heads} heads`;
  answerHeading(group, { x: 0, y: y + 4, width }, `without ${partName(removed)}`,
    `dots: each of ${count}; line: with all`);
  const rows = measures.map((one, i) => ({ ...one, i, value: one.without(removed),
    top: y + 42 + high * i, others: whole ? one.all.blocks : one.all.heads }));
  const x = (row, value) => 4 + (right - 4) * row.place(value);
  const words = (row) => `${row.name}: ${row.write(row.whole)} with all, ${row.write(row.value)} ` +
    `without ${partName(removed)}; ${costlier(row)} of ${row.others.length - 1} others cost more`;
  put.rect(group, "rows", rows, (row) => ({ x: 0, y: row.top, width, height: high - 3, rx: 6,
    class: "box", ...choosable(words(row), row.name === measure?.name,
      () => page.set({ measure: row.name === measure?.name ? null : row.i })) }), "i");
  const quiet = { "pointer-events": "none" };
  put.path(group, "dots", rows, (row) => ({ ...pen("--soft", 5), "stroke-linecap": "round",
    opacity: 0.45, ...quiet, d: row.others.map((value) =>
      `M${x(row, value).toFixed(1)} ${row.top + 22}h0.01`).join("") }), "i");
  put.path(group, "whole", rows, (row) => ({ ...pen("--ink", 1.5), ...quiet,
    d: `M${x(row, row.whole)} ${row.top + 17}v10` }), "i");
  put.circle(group, "this", rows, (row) => ({ cx: x(row, row.value), cy: row.top + 22, r: 4.5,
    fill: "var(--query)", ...quiet }), "i");
  put.label(group, "names", rows, (row) => [
    fitted(row.name, width - 120, 12), 6, row.top + 13, "number"], "i");
  put.label(group, "numbers", rows, (row) => [`${row.write(row.whole)} → ${row.write(row.value)}`,
    right, row.top + 13, "number end"], "i");
  const end = y + 42 + high * rows.length;
  put.label(group, "ends", [["← better", 6, "small"], ["worse →", right, "small end"]],
    ([text, at, kind]) => [text, at, end + 10, kind], ([text]) => text);
  return end + 16;
}

const costlier = ({ others, harm, value }) =>
  others.filter((other) => harm(other) > harm(value)).length;

// The text at this step, each token filled as high as its weight; returns where it will end.
function drawLookedAt(group, look, page, room) {
  const { tokens, before, shown, weights, watched, pinned, word, lineEnds } = look;
  answerHeading(group, room, `where head ${shown.join(".")} looked`,
    `from ${word(before - 1)} (orange), to write ${word(before)} (dashed)`);
  const all = tokens.slice(0, before + 1).map((token, i) => ({ i, token, weight: weights[i] }));
  const labels = all.map(({ token }) => fitted(token, 130)), high = 32;
  const boxes = (labels) => boxesInLines(labels, { ...room, y: room.y + 38 }, high, lineEnds);
  const { places } = boxes(labels), whole = tokens.map((token) => fitted(token, 130)); // all of it
  const seen = all.slice(0, -1);
  const box = (i) => ({ ...places[i], rx: 7 });
  put.rect(group, "levels", seen, ({ i, weight }) => ({
    x: places[i].x + 2, y: places[i].y + 2 + (high - 4) * (1 - weight), rx: 4,
    width: places[i].width - 4, height: (high - 4) * weight,
    fill: "color-mix(in oklab, var(--key) 38%, var(--paper))" }), "i");
  put.rect(group, "boxes", seen, ({ i, weight }) => ({
    ...box(i), fill: "transparent", "data-preview": `token.${i}`,
    ...choosable(`token ${i}, ${word(i)}: weight ${weight.toFixed(3)}`, i === pinned,
      () => page.set({ watched: i === pinned ? null : i })) }), "i");
  put.rect(group, "frames", all, ({ i }) =>
    ({ ...box(i), fill: "none", ...frameOf(i, look) }), "i");
  drawTokenWords(group, all.map(({ i, weight }) => ({ i, x: places[i].x + places[i].width / 2,
    y: places[i].y, label: labels[i], number: weight >= 0.005 ? weight.toFixed(2) : "" })));
  return boxes(whole).bottom + 10;
}

// A token's border: the one being written, the watched one, the one that looks, or another.
function frameOf(i, { before, watched }) {
  if (i === before) return { stroke: "var(--query)", "stroke-width": 2, "stroke-dasharray": "5 4" };
  const plain = { "stroke-dasharray": null };
  if (i === watched) return { stroke: "var(--key)", "stroke-width": 2.5, ...plain };
  if (i === before - 1) return { stroke: "var(--query)", "stroke-width": 2, ...plain };
  return { stroke: "var(--line)", "stroke-width": 1, ...plain };
}

// Every head as a square, colored by what it gave to the watched token or by how much of a measure
// is lost without it, and below them whole blocks; returns where they end.
function drawHeadMap(group, look, page, { x, y, width }) {
  const { layers, heads, all, kept, watched, pinned, word, measure, measures } = look;
  const edge = 46, top = y + 54, rows = heads + (measures.length ? 1 : 0);
  const wide = Math.min(34, (width - edge) / layers);
  const high = Math.max(14, Math.min(34, wide, 126 / heads));
  const place = ([l, h]) =>
    ({ x: x + edge + l * wide, y: top + (h ?? heads + 0.3) * high, width: wide, height: high });
  const [title, note] = measure
    ? [`${measure.name}, without each head`, "dark: much is lost; the last row: whole blocks"]
    : [`who looked at ${word(watched)}?`, pinned === watched
      ? `token ${watched}, kept until you click it again`
      : `token ${watched}; ${all.length} heads, blocks side by side`];
  answerHeading(group, { x, y, width }, title, note);
  const value = (part) => measure.write(measure.without(part));
  const fill = (part, given) => shade(measure ? measure.lost(measure.without(part)) : given);
  const is = ([l, h]) => l === kept[0] && h === kept[1];
  put.rect(group, "cells", all, ({ head: [l, h], name, given }) => ({
    ...place([l, h]), class: "cell", fill: fill([l, h], given), "data-preview": `head.${name}`,
    ...choosable(`block ${l}, head ${h}: ` + (measure ? `${measure.name} ${value([l, h])}`
      : `${given.toFixed(3)} of its attention at ${word(watched)}`), is([l, h]),
    () => page.set({ layer: l, head: h, whole_block: false }), `head${name}`) }), "name");
  put.rect(group, "blocks", measures.length ? Array.from({ length: layers }, (_, l) => l) : [],
    (l) => ({ ...place([l, null]), class: "cell", "data-preview": `block.${l}`,
      fill: fill([l, null], 0), ...choosable(`block ${l} as a whole` +
        (measure ? `: ${measure.name} ${value([l, null])}` : ""), is([l, null]),
      () => page.set({ layer: l, whole_block: true }), `block${l}`) }), String);
  put.rect(group, "picked", [kept], (part) =>
    ({ ...place(part), fill: "none", class: "picked", rx: 2 }));
  drawMapNumbers(layer(group, "numbers"), look, { x: x + edge, y: top, wide, high });
  const end = top + (rows + (rows > heads ? 0.3 : 0)) * high, low = width < 420;
  drawMapScale(layer(group, "scale"), x + width, low ? end + 8 : y + 20, Boolean(measure));
  return drawNamed(layer(group, "lookers"), look, page, { x, y: end + (low ? 26 : 8), width });
}

function drawMapScale(group, right, y, losses) {
  const shown = [0, 0.1, 0.25, 0.5, 1];
  const x = (i) => right - (losses ? 102 : 96) + 16 * i;
  put.rect(group, "colors", shown, (weight, i) =>
    ({ x: x(i), y, width: 16, height: 12, fill: shade(weight), class: "cell" }), String);
  const [none, full] = losses ? ["none", "all"] : ["0", "1"];
  const ends = [[none, x(0) - 5, "small end"], [full, x(5) + 5, "small"]];
  put.label(group, "ends", ends, ([text, at, kind]) => [text, at, y + 10, kind], ([text]) => text);
}

function drawMapNumbers(group, { layers, heads, measures }, { x, y, wide, high }) {
  const spaced = (count, size) => {
    const every = [1, 2, 5, 10, 20, 50].find((step) => step * size >= 20) ?? 100;
    return Array.from({ length: Math.ceil(count / every) }, (_, i) => i * every);
  };
  const across = spaced(layers, wide).map((l) => ({
    text: l, x: x + (l + 0.5) * wide, y: y - 6, class: "small middle" }));
  const down = spaced(heads, high * 1.4).map((h) => ({
    text: h ? h : "head 0", x: x - 6, y: y + (h + 0.5) * high + 4, class: "small end" }));
  const axis = { text: "block", x: x - 6, y: y - 6, class: "small end" };
  const blocks = { text: "all", x: x - 6, y: y + (heads + 0.8) * high + 4, class: "small end" };
  put.label(group, "texts", [axis, ...across, ...down, ...(measures.length ? [blocks] : [])]);
}

// The heads that gave most to the watched token, or that a measure needs most, by name; returns
// where they end.
function drawNamed(group, { all, kept, layers, heads, measure }, page, { x, y, width }) {
  const size = ({ head, given }) => measure ? measure.harm(measure.without(head)) : given;
  const number = ({ head, given }) =>
    measure ? measure.write(measure.without(head)) : given.toFixed(2);
  const count = MOST_NAMED[width < 420 ? 0 : 1], order = fromLargest(all.map(size), count);
  const most = order.map((i) => all[i]).filter((one) => size(one) >= 0.005);
  const labels = most.map((one) => `${one.name}  ${number(one)}`);
  const boxes = (labels) => boxesInLines(labels, { x: x + 42, y, width: width - 42 }, 26);
  const { places } = boxes(labels), widest = `${layers - 1}.${heads - 1}  0.000`;
  put.text(group, "title", most.length ? ["most:"] : [], (text) => [text, x, y + 17, "small"]);
  put.box(group, "boxes", most, ({ head: [l, h], name, given }, i) => ({
    ...places[i], rx: 7, word: labels[i], font: "number", "data-preview": `head.${name}`,
    ...choosable(`block ${l}, head ${h}: ${measure ? number(most[i]) : given.toFixed(3)}`,
      l === kept[0] && h === kept[1],
      () => page.set({ layer: l, head: h, whole_block: false }), `head${name}`) }));
  return boxes(Array(count).fill(widest)).bottom + 4;
}

function answerFacts(look) {
  const { choices, at, before, chosen, own, favorite, word, all, rests } = look;
  const head = chosen.join("."), shareOf = (i) => `${word(i)} (token ${i}) ${own[i].toFixed(2)}`;
  const looked = fromLargest(own, 3).map(shareOf).join(", ");
  const watched = look.pinned ?? favorite;
  const given = all.map(({ head: one }) => look.weight(at, one, watched));
  const lookers = fromLargest(given, 3).map((i) => `head ${all[i].name} ${given[i].toFixed(2)}`);
  const said = `Token ${at + 1} of ${choices.length}, ${word(before)}, had the probability ` +
    `${chanceOf(choices[at]).toFixed(3)}. From ${word(before - 1)}, head ${head} looked at ` +
    `${looked}. Token ${watched} got most from ${lookers.join(", ")}. ` +
    `From all ${all.length} heads together, token 0 got ${rests.toFixed(2)} of the attention.`;
  if (look.measure) return lossFacts(look);
  const title = `Before ${word(before)}, head ${head} looked most at ${word(favorite)} ` +
    `(${own[favorite].toFixed(2)})`;
  return { title, said };
}

function lossFacts({ measures, measure, kept, layers, heads }) {
  const value = measure.without(kept), from = measure.write(measure.whole), name = partName(kept);
  const to = measure.write(value), verb = value < measure.whole ? "falls" : "rises";
  const all = measures.map((one) => `${one.name} ${one.write(one.without(kept))} ` +
    `(with all ${one.write(one.whole)})`);
  const others = kept[1] === null ? measure.all.blocks : measure.all.heads;
  const more = costlier({ ...measure, others, value });
  return {
    title: `Without ${name}, ${measure.name} ` +
      (from === to ? `stays at ${to}` : `${verb} from ${from} to ${to}`),
    said: `Without ${name}: ${all.join(", ")}. Of the ${others.length - 1} other ` +
      `${kept[1] === null ? "blocks" : "heads"}, ${more} cost ${measure.name} more.` };
}
