// Replaces one token by another: which outputs move, how far, and which of them come before it. A
// model's verdict is shown once every token has been replaced.

import { choosable, fitted, layer, pen, put, textWidth, told,
  wrapped } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";

const LEAK_COLORS = { leaks: "var(--minus)", moves: "var(--key)", broken: "var(--soft)" };
const LEAK_DASHES = { leaks: "7 5", broken: "1 6" };

export function LeakProbe(view) {
  const tokens = view.model.get("tokens"), last = tokens.length - 1;
  const ends = () => [0, last];
  const named = (i) => `${i} “${fitted(tokens[i], 90)}”`;
  return frame(view, {
    name: "Leak probe",
    traits: ["tokens", "changes", "threshold", "model", "position", "tried"],
    controls: (make) => [
      make.slider("Replaced token", "position", ends, named),
      make.play("position", ends, 900)],
    draw: drawLeaks });
}

// What an output did: it stays, moves, leaks (moves although it comes earlier), or is NaN or
// infinite.
function leakKind(change, output, position) {
  if (change === null) return "broken";
  return change === 0 ? "stays" : output < position ? "leaks" : "moves";
}

// Each model with the kinds of its outputs, [replaced token][output], how many leak, and which
// tokens were replaced so far.
function leakModels({ changes, tried }) {
  const all = new Set(tried?.map(String));
  return Object.entries(changes).map(([name, rows]) => {
    const kinds = rows.map((row, position) => row.map((one, i) => leakKind(one, i, position)));
    const count = (kind) => kinds.flat().filter((one) => one === kind).length;
    const pairs = (rows.length * (rows.length - 1)) / 2;
    const seen = rows.map((_, position) => all.has(String([name, position])));
    return { name, rows, kinds, pairs, leaks: count("leaks"), broken: count("broken"), seen };
  });
}

// The pairs of a model and a position that were tried so far, and these.
function withTried(page, pairs) {
  const tried = page.model.get("tried") ?? [], known = new Set(tried.map(String));
  return [...tried, ...pairs.filter((one) => !known.has(String(one)))];
}

// Notes a change of model or position: both the old and the new pair count as tried. The pair that
// the page opens with does not count until it is left.
function noteTried(now, page) {
  const before = page.probed ?? now;
  page.probed = now;
  if (String(before) === String(now)) return;
  const tried = withTried(page, [before, now]);
  if (tried.length > page.model.get("tried")?.length) page.set({ tried });
}

// Replaces a token, which counts as tried even if it was the replaced one already.
function probe(page, model, position) {
  page.set({ model, position, tried: withTried(page, [[model, position]]) });
}

function drawLeaks(state, page) {
  const models = leakModels(state), { tokens } = state;
  const chosen = models.find(({ name }) => name === state.model);
  if (!chosen) {
    const names = models.map(({ name }) => `“${name}”`).join(", ");
    return `There is no model “${state.model}”: choose ${names}.`;
  }
  const { svg, width } = page, position = Math.min(state.position, tokens.length - 1);
  noteTried([chosen.name, position], page);
  const partsAt = (position) => ({ tokens, models, chosen, position, page,
    outputs: chosen.rows[position].map((change, i) =>
      ({ i, change, token: tokens[i], kind: chosen.kinds[position][i] })) });
  const parts = partsAt(position), facts = (i) => leakFacts(partsAt(i), state.threshold);
  const places = leakPlaces(tokens.length, width);
  drawLeakTokens(layer(svg, "tokens"), parts, places);
  drawLeakGauges(layer(svg, "gauges"), parts, places, leakScale(models, state.threshold, places));
  drawLeakRibbons(layer(svg, "ribbons"), parts, places);
  const bottom = drawLeakSquares(layer(svg, "squares"), parts, places.bottom + 18);
  return { ...facts(position), longest: tokens.map((_, i) => facts(i)), height: bottom };
}

// The layout: time runs to the right if there is room for the words, else downward.
function leakPlaces(n, width) {
  const across = width >= 54 + 46 * n, start = across ? 54 : 40;
  const step = across ? (width - start) / n : 22, end = start + n * step;
  const token = Math.min(130, 0.3 * width), gauge = token + Math.min(150, 0.22 * width);
  const depths = across
    ? { token: [2, 34], gauge: [96, 164], words: 186, bottom: 204 }
    : { token: [0, token], gauge: [gauge, width - 84], words: width - 78, bottom: end };
  const middle = (i) => start + (i + 0.5) * step;
  const box = (i, [from, to], wide = step - 6) => (across
    ? { x: middle(i) - wide / 2, y: from, width: wide, height: to - from }
    : { x: from, y: middle(i) - wide / 2, width: to - from, height: wide });
  const point = (i, depth) => (across ? `${middle(i)} ${depth}` : `${depth} ${middle(i)}`);
  const gaugeBox = (i, span) => box(i, span, across ? Math.min(48, 0.6 * step) : step - 10);
  return { across, start, end, step, middle, box, gaugeBox, point, ...depths };
}

// How large a part of the gauge a change fills, on a log scale that begins at the threshold.
function leakScale(models, threshold, { across, gauge: [from, to] }) {
  const largest = Math.max(1, ...models.flatMap(({ rows }) => rows.flat()));
  const decades = Math.ceil(Math.log10(largest / threshold) - 1e-9);
  const room = Math.max(1, Math.floor((to - from) / (across ? 20 : 44))), ticks = [];
  const every = Math.ceil(decades / room);
  for (let i = every; i <= decades; i += every) {
    ticks.push({ part: i / decades, text: leakNumber(threshold * 10 ** i) });
  }
  return { ticks, part: (change) => Math.log10(change / threshold) / decades };
}

function leakNumber(change) {
  const rounded = Number(change.toPrecision(2));
  return rounded < 1e-3 || rounded >= 1e5 ? rounded.toExponential() : String(rounded);
}

function drawLeakTokens(group, { tokens, chosen, position, page }, places) {
  const { across, start, box, token, step } = places;
  put.text(group, "title", [["token", 0, across ? 23 : start - 24, "small"]]);
  put.box(group, "boxes", tokens, (word, i) => ({
    ...box(i, token), rx: 8, font: i === position ? "struck" : "",
    word: fitted(word, (across ? step : token[1] - token[0]) - 8),
    ...choosable(`replace token ${i}, “${word}”`, i === position,
      () => probe(page, chosen.name, i), `token${i}`) }));
}

// Ribbons from the replaced token to every output that moves, dashed if they go back in time.
function drawLeakRibbons(group, { position, outputs }, { across, point, token, gauge }) {
  const from = token[1] + 2, to = gauge[0] - 7, middle = (from + to) / 2;
  const fan = (i) => position + (0.7 * (i + 0.5)) / outputs.length - 0.35; // not all from one spot
  const moved = outputs.filter(({ kind }) => kind !== "stays");
  put.path(group, "ribbons", moved, ({ i, kind }) => ({
    d: `M${point(fan(i), from)}C${point(fan(i), middle)} ${point(i, middle)} ${point(i, to)}`,
    fill: "none", stroke: LEAK_COLORS[kind], "stroke-width": 2,
    "stroke-dasharray": LEAK_DASHES[kind], "data-links": `output${i}` }), "i");
  const head = across ? "l-5 -9h10z" : "l-9 -5v10z";
  put.path(group, "heads", moved, ({ i, kind }) =>
    ({ d: `M${point(i, gauge[0] - 1)}${head}`, fill: LEAK_COLORS[kind] }), "i");
}

// A gauge for each output, filled by how far it moved.
function drawLeakGauges(group, parts, places, scale) {
  const { across, start, gaugeBox, gauge, words } = places, { outputs } = parts;
  put.text(group, "titles", ["output", "moves by"], (text, i) => [
    text, across ? 0 : [gauge[0], words][i], across ? [gauge[0] - 8, words][i] : start - 24,
    "small"]);
  put.rect(group, "boxes", outputs, (output) => ({
    ...gaugeBox(output.i, gauge), class: "box", rx: 3,
    ...told(`output ${output.i}, at “${output.token}”, ${outputDid(output, parts)}`,
      `output${output.i}`) }), "i");
  const moved = outputs.filter(({ change }) => change);
  put.rect(group, "fills", moved, ({ i, change, kind }) => {
    const long = Math.max(2, scale.part(change) * (gauge[1] - gauge[0]));
    return { ...gaugeBox(i, [gauge[0], gauge[0] + long]), rx: 3, fill: LEAK_COLORS[kind],
      "data-links": `output${i}`, "pointer-events": "none" };
  }, "i");
  drawLeakTicks(group, places, scale);
  drawLeakNumbers(group, outputs, places);
}

function drawLeakTicks(group, { across, start, end, gauge }, { ticks }) {
  const depth = ({ part }) => gauge[0] + part * (gauge[1] - gauge[0]);
  put.path(group, "ticks", ticks, (tick) => ({
    d: across ? `M${start} ${depth(tick)}H${end}` : `M${depth(tick)} ${start}V${end}`,
    class: "axis", "stroke-dasharray": "2 4" }), "text");
  put.label(group, "scale", ticks, (tick) => [
    tick.text, across ? start - 6 : depth(tick), across ? depth(tick) + 4 : start - 4,
    across ? "small end" : "small middle"], "text");
}

function drawLeakNumbers(group, outputs, { across, middle, words }) {
  const number = ({ change, kind }) =>
    kind === "broken" ? "NaN/∞" : kind === "stays" ? "–" : leakNumber(change);
  put.label(group, "numbers", outputs, (output) => [
    number(output), across ? middle(output.i) : words, across ? words : middle(output.i) + 4,
    across ? "number middle" : "number"], "i");
  const leaks = outputs.filter(({ kind }) => kind === "leaks");
  put.label(group, "leaks", leaks, ({ i }) => [
    "leak", across ? middle(i) : words + 76, across ? words + 15 : middle(i) + 4,
    across ? "number strong middle" : "number strong end"], "i");
}

function outputDid({ change, kind }, { tokens, position }) {
  if (kind === "stays") return "does not move";
  if (kind === "broken") return "is NaN or infinite, which cannot be compared";
  const leak = kind === "leaks" ? `: a leak, “${tokens[position]}” comes later` : "";
  return `moves by ${leakNumber(change)}${leak}`;
}

// A square for each model, as buttons: a row is a replaced token, a column an output. Returns
// where they end.
function drawLeakSquares(group, parts, top) {
  const { models, tokens, chosen, page } = parts, most = Math.floor(page.width / 104);
  const columns = Math.min(models.length, most), wide = Math.min(190, page.width / columns);
  const cell = Math.max(3, Math.floor(Math.min(112, wide - 20) / tokens.length));
  const side = cell * tokens.length, free = page.width - columns * wide;
  const names = models.map(({ name }) => inTwoLines(name, wide - 22));
  const head = names.some(([, second]) => second) ? 40 : 25, tall = head + side + 26;
  const above = { left: 0, top, high: 16, room: page.width };
  const beside = { left: columns * wide + 12, top: top + 40, high: 24, room: 0 };
  const end = drawLeakLegend(group, free > 280 ? beside : above);
  const first = free > 280 ? top - 8 : end + 10;
  const cards = models.map((model, i) => {
    const x = Math.round((i % columns) * wide), y = first + Math.floor(i / columns) * (tall + 8);
    return { ...model, key: i, x, y, wide: wide - 10, left: x + Math.round((wide - 10 - side) / 2),
      top: y + head, cell, lines: names[i] };
  });
  put.rect(group, "cards", cards, (card) => ({
    x: card.x + 1, y: card.y, width: card.wide, height: tall, rx: 8, class: "box",
    ...choosable(`${card.name}: ${leakVerdict(card)}`, card.name === chosen.name,
      () => page.set({ model: card.name })) }));
  drawLeakCells(group, cards);
  drawLeakRows(group, cards, parts);
  drawLeakNames(group, cards, tall);
  return first + Math.ceil(models.length / columns) * (tall + 8);
}

// How many tokens were tried; once all were, the verdict on the model.
function leakVerdict({ leaks, pairs, broken, seen }) {
  const tries = seen.filter(Boolean).length;
  if (tries < seen.length) return `? ${tries} of ${seen.length} tried`;
  if (!leaks && broken) return `? ${broken} NaN or ∞`;
  return `${leaks ? "✗" : "✓"} ${leaks} of ${pairs} leak`;
}

function drawLeakNames(group, cards, tall) {
  const texts = cards.flatMap(({ key, x, y, wide, lines, ...card }) => [
    ...lines.map((text, i) => ({ text, y: y + 17 + 15 * i })),
    { text: leakVerdict(card), y: y + tall - 8, strong: true },
  ].map((text, i) => ({ ...text, key: `${key}.${i}`, x: x + wide / 2 })));
  put.label(group, "names", texts, ({ text, x, y, strong }) =>
    [text, x, y, strong ? "small middle strong" : "small middle", { fill: "var(--ink)" }]);
}

const LEAK_LEGEND = ["row: replaced token, column: output", "gray: not tried yet",
  "orange, left of the stairs: leaks", "blue: its own and later outputs"];

// Returns where the legend ends.
function drawLeakLegend(group, { left, top, high, room }) {
  const sizes = LEAK_LEGEND.map((text) => textWidth(text, 12));
  const lines = { x: left, y: top, width: room, high, gap: 22, between: 0 };
  const { places, bottom } = wrapped(sizes, lines);
  put.text(group, "legend", LEAK_LEGEND, (text, i) => [text, places[i].x, places[i].y, "small"]);
  return bottom - high;
}

// The tried cells of each square, with one path per kind.
function drawLeakCells(group, cards) {
  const shapes = cards.flatMap(({ key, kinds, seen, left, top, cell }) => {
    const square = (kind) => kinds.flatMap((row, t) => row.map((one, i) =>
      (seen[t] && one === kind ? `M${left + i * cell} ${top + t * cell}h${cell}v${cell}h${-cell}z` :
        "")));
    return Object.entries(LEAK_COLORS).map(([kind, fill]) =>
      ({ key: `${key} ${kind}`, d: square(kind).join(""), fill }));
  });
  put.path(group, "cells", shapes, ({ d, fill }) => ({ d, fill }));
}

// Each row of each square is a button for this model and token, gray until it is tried. The stairs
// show where the past ends.
function drawLeakRows(group, cards, { tokens, chosen, position, page }) {
  const rows = cards.flatMap((card) => tokens.map((token, t) => ({ ...card, token, t })));
  put.rect(group, "rows", rows, (row) => {
    const { t, kinds, name, seen } = row, now = name === chosen.name && t === position;
    const leaks = kinds[t].filter((kind) => kind === "leaks").length;
    const moved = `replaced: ${leaks} of ${t} earlier outputs move`;
    return { x: row.left, y: row.top + t * row.cell, width: row.cell * tokens.length,
      height: row.cell, fill: seen[t] ? "transparent" : "var(--hidden)", "stroke-width": 2.5,
      stroke: now ? "var(--ink)" : "none", ...choosable(
        `${name}, token ${t} “${row.token}” ${seen[t] ? moved : "has not been replaced yet"}`, now,
        () => probe(page, name, t), `token${t}`) };
  }, ({ key, t }) => `${key}.${t}`);
  put.path(group, "stairs", cards, ({ kinds, left, top, cell }) => ({
    d: `M${left} ${top}${`v${cell}h${cell}`.repeat(kinds.length)}`, ...pen("--ink", 1.5) }));
}

function inTwoLines(name, room) {
  let [first, ...rest] = name.split(" ");
  while (rest.length && textWidth(`${first} ${rest[0]}`, 12) <= room) first += ` ${rest.shift()}`;
  return [first, rest.join(" ")].map((line) => fitted(line, room, 12));
}

function leakFacts({ tokens, chosen, position, outputs }, threshold) {
  const earlier = outputs.slice(0, position);
  const later = outputs.slice(position + 1).filter(({ kind }) => kind === "moves").length;
  const leaks = earlier.filter(({ kind }) => kind === "leaks");
  const largest = Math.max(...leaks.map(({ change }) => change));
  const where = leaks.find(({ change }) => change === largest);
  const far = where ? `, by up to ${leakNumber(largest)} (output ${where.i})` : "";
  const title = leakClaim(earlier, leaks.length, tokens[position]);
  const broken = outputs.filter(({ kind }) => kind === "broken").length;
  const said = `${chosen.name}: ${title}${far}. ` +
    `Its own output ${outputDid(outputs[position], { tokens, position })}; ` +
    `${later} of ${outputs.length - position - 1} later outputs move.` +
    (broken ? ` NaN or infinite: ${broken} of ${outputs.length} outputs.` : "") +
    ` Changes up to ${leakNumber(threshold)} are rounding.`;
  return { title, said };
}

function leakClaim(earlier, leaks, word) {
  if (!earlier.length) return `No output comes before “${word}”, so replacing it shows no leak`;
  const broken = earlier.filter(({ kind }) => kind === "broken").length;
  const moved = `replacing “${word}” moves ${leaks} of ${earlier.length} earlier outputs`;
  if (leaks) return `The future leaks: ${moved}`;
  if (broken) return `${broken} of ${earlier.length} outputs before “${word}” are NaN or infinite`;
  return `No leak here: ${moved}`;
}
