// How a model wrote one answer: what else was likely at each step, and where every head looked.

import { choosable, fitted, layer, put, set, shade, textWidth, told,
  wrapped } from "../../explorables/web/draw.js";
import { frame, remembered } from "../../explorables/web/frame.js";
import { firstLargest, fromLargest } from "../../explorables/web/ranking.js";

const WHOLE_WEIGHT = 65535; // 1, in the two bytes of a record
const MOST_LOOKERS = 5; // heads that are named below the map

export const AnswerExplorer = (view) => frame(view, {
  name: "Answer explorer",
  traits: ["step", "layer", "head", "watched"],
  controls: answerControls, load: recordOf, draw: drawAnswer });

function answerControls(make, { model }) {
  const [layers, heads] = model.get("shape"), steps = model.get("choices").length;
  const from0 = (count) => () => [0, count - 1];
  const step = () => [1, steps];
  return [
    make.slider("Token", "step", step, (value) => `${value} of ${steps}`),
    make.play("step", step, 1500),
    make.slider("Block", "layer", from0(layers)),
    make.slider("Head", "head", from0(heads))];
}

// The record as the page reads it: `weight` at a step from 0.
async function recordOf(model) {
  const [layers, heads] = model.get("shape"), tokens = model.get("tokens");
  const choices = model.get("choices"), prompt = tokens.length - choices.length;
  const bytes = Uint8Array.from(atob(model.get("weights")), (letter) => letter.charCodeAt(0));
  const units = new Uint16Array(bytes.buffer), starts = [0];
  choices.forEach((_, at) => starts.push(starts[at] + layers * heads * (prompt + at)));
  const weight = (at, [l, h], key) =>
    units[starts[at] + (l * heads + h) * (prompt + at) + key] / WHOLE_WEIGHT;
  return { layers, heads, tokens, choices, prompt, weight, lineEnds: model.get("line_ends") };
}

function drawAnswer(state, page, answer) {
  const look = lookOfAnswer(answer, state, page.preview), { svg, width } = page;
  const wide = width >= 700, left = wide ? Math.round(width * 0.33) : width;
  for (const name of ["written", "candidates", "text", "heads"]) layer(svg, name); // to be read so
  const rival = drawSureness(layer(svg, "written"), look, page, left);
  const x = wide ? left + 32 : 0, room = { x, y: wide ? 0 : rival, width: width - x };
  const map = drawLookedAt(layer(svg, "text"), look, page, room);
  const end = drawHeadMap(layer(svg, "heads"), look, page, { ...room, y: map });
  const low = drawCandidates(layer(svg, "candidates"), look, wide ? rival : end + 8, left);
  set(svg, { width, height: Math.max(low, end) });
  const longest = remembered(page, "facts", { ...state, step: null }, () =>
    answer.choices.map((_, i) => answerFacts(lookOfAnswer(answer, { ...state, step: i + 1 }))));
  return { ...longest[look.at], longest };
}

// What the picture shows at a step: the tokens before it, what the head under the pointer or the
// chosen one gave to each, and what every head gave to the watched one.
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
  const all = Array.from({ length: layers * heads }, (_, i) => {
    const head = [Math.floor(i / heads), i % heads];
    return { head, name: head.join("."), given: weight(at, head, watched) };
  });
  const rests = all.reduce((sum, { head }) => sum + weight(at, head, 0), 0) / all.length;
  return { ...answer, at, before, chosen, own, favorite, pinned, watched, shown, all, rests,
    weights: row(shown), word: (i) => `“${answer.tokens[i]}”` };
}

const toldChance = (p) => p < 0.0001 ? "under 0.0001" : p.toFixed(4);
const chanceOf = ({ chosen, probabilities }) => probabilities[chosen];

const boxesInLines = (labels, room, high, ends) =>
  wrapped(labels.map((label) => Math.min(room.width, Math.max(32, textWidth(label) + 10))),
    { ...room, high, ends });

function answerHeading(group, { x, y, width }, title, note) {
  put.text(group, "heading", [title, note], (text, i) =>
    [fitted(text, width, i ? 12 : 14, i ? 400 : 600), x, y + 14 + 17 * i, i ? "small" : "strong"]);
}

// The answer, each token with its probability as number, length and strength of a bar; returns
// where it ends.
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

// The text at that step, each token filled as high as the head's weight; returns where it ends.
function drawLookedAt(group, look, page, room) {
  const { tokens, before, shown, weights, watched, pinned, word, lineEnds } = look;
  answerHeading(group, room, `where head ${shown.join(".")} looked`,
    `from ${word(before - 1)} (orange), to write ${word(before)} (dashed)`);
  const all = tokens.slice(0, before + 1).map((token, i) => ({ i, token, weight: weights[i] }));
  const labels = all.map(({ token }) => fitted(token, 130)), high = 32;
  const boxes = (labels) => boxesInLines(labels, { ...room, y: room.y + 38 }, high, lineEnds);
  const { places } = boxes(labels), whole = tokens.map((token) => fitted(token, 130)); // in the end
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

// The line around a token: the one that asks, the one that is written, the watched one, another.
function frameOf(i, { before, watched }) {
  if (i === before) return { stroke: "var(--query)", "stroke-width": 2, "stroke-dasharray": "5 4" };
  const plain = { "stroke-dasharray": null };
  if (i === watched) return { stroke: "var(--key)", "stroke-width": 2.5, ...plain };
  if (i === before - 1) return { stroke: "var(--query)", "stroke-width": 2, ...plain };
  return { stroke: "var(--line)", "stroke-width": 1, ...plain };
}

// Every head as a square, colored by what it gave to the watched token; returns where they end.
function drawHeadMap(group, look, page, { x, y, width }) {
  const { layers, heads, all, chosen, watched, pinned, word } = look;
  const edge = 22, top = y + 54;
  const wide = Math.min(34, (width - edge) / layers);
  const high = Math.max(14, Math.min(34, wide, 126 / heads));
  const place = ([l, h]) =>
    ({ x: x + edge + l * wide, y: top + h * high, width: wide, height: high });
  answerHeading(group, { x, y, width }, `who looked at ${word(watched)}?`,
    pinned === watched ? `token ${watched}, kept until you click it again` :
      `token ${watched}; ${all.length} heads, blocks side by side`);
  put.rect(group, "cells", all, ({ head: [l, h], name, given }) => ({
    ...place([l, h]), class: "cell", fill: shade(given), "data-preview": `head.${name}`,
    ...choosable(`block ${l}, head ${h}: ${given.toFixed(3)} of its attention at ${word(watched)}`,
      l === chosen[0] && h === chosen[1], () => page.set({ layer: l, head: h }), `head${name}`),
  }), "name");
  put.rect(group, "picked", [chosen], (head) =>
    ({ ...place(head), fill: "none", class: "picked", rx: 2 }));
  drawMapNumbers(layer(group, "numbers"), look, { x: x + edge, y: top, wide, high });
  const end = top + heads * high, low = width < 420;
  drawMapScale(layer(group, "scale"), x + width, low ? end + 8 : y + 20);
  return drawLookers(layer(group, "lookers"), look, page, { x, y: end + (low ? 26 : 8), width });
}

function drawMapScale(group, right, y) {
  const shown = [0, 0.1, 0.25, 0.5, 1], x = (i) => right - 96 + 16 * i;
  put.rect(group, "colors", shown, (weight, i) =>
    ({ x: x(i), y, width: 16, height: 12, fill: shade(weight), class: "cell" }), String);
  const ends = [["0", x(0) - 5, "small end"], ["1", x(5) + 5, "small"]];
  put.label(group, "ends", ends, ([text, at, kind]) => [text, at, y + 10, kind], ([text]) => text);
}

function drawMapNumbers(group, { layers, heads }, { x, y, wide, high }) {
  const spaced = (count, size) => {
    const every = [1, 2, 5, 10, 20, 50].find((step) => step * size >= 20) ?? 100;
    return Array.from({ length: Math.ceil(count / every) }, (_, i) => i * every);
  };
  const across = spaced(layers, wide).map((l) => ({
    text: l, x: x + (l + 0.5) * wide, y: y - 6, class: "small middle" }));
  const down = spaced(heads, high * 1.4).map((h) => ({
    text: h, x: x - 6, y: y + (h + 0.5) * high + 4, class: "small end" }));
  put.label(group, "texts", [...across, ...down]);
}

// The heads that gave most to the watched token, by name; returns where they end.
function drawLookers(group, { all, chosen, layers, heads }, page, { x, y, width }) {
  const order = fromLargest(all.map(({ given }) => given), MOST_LOOKERS);
  const most = order.map((i) => all[i]).filter(({ given }) => given >= 0.005);
  const labels = most.map(({ name, given }) => `${name}  ${given.toFixed(2)}`);
  const boxes = (labels) => boxesInLines(labels, { x: x + 42, y, width: width - 42 }, 26);
  const { places } = boxes(labels), widest = `${layers - 1}.${heads - 1}  0.00`;
  put.text(group, "title", most.length ? ["most:"] : [], (text) => [text, x, y + 17, "small"]);
  put.box(group, "boxes", most, ({ head: [l, h], name, given }, i) => ({
    ...places[i], rx: 7, word: labels[i], font: "number", "data-preview": `head.${name}`,
    ...choosable(`block ${l}, head ${h}: ${given.toFixed(3)}`,
      l === chosen[0] && h === chosen[1], () => page.set({ layer: l, head: h }), `head${name}`) }));
  return boxes(Array(MOST_LOOKERS).fill(widest)).bottom + 4;
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
  const title = `Before ${word(before)}, head ${head} looked most at ${word(favorite)} ` +
    `(${own[favorite].toFixed(2)})`;
  return { title, said };
}
