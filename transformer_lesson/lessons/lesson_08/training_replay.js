// A training run, snapshot by snapshot: the loss, what the model wrote, and where it looked.

import { curveNumber, curveStep, drawCurves } from "../../explorables/web/curves.js";
import { choosable, fitted, layer, pen, put, set, shade, textLines, textWidth, told,
  wrapped } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";
import { firstLargest } from "../../explorables/web/ranking.js";
import { mapShades } from "../../explorables/web/small_map.js";

const NOTHING_TO_REPLAY = "There is nothing to replay yet: train with on_step=recorder, a " +
  "ReplayRecorder, then show TrainingReplay(recorder.snapshots).";
const MOST_REPLAYED = 40; // words drawn in a row
const REPLAY_HIGH = 430; // pixels of height when words, curves and map are side by side
const NO_WEIGHT = 65535;
const unpackedWeights = new WeakMap();

export function TrainingReplay(view) {
  const steps = () => view.model.get("snapshots").map(({ step }) => step);
  const ends = () => [1, Math.max(1, steps().length)];
  const name = (number) => (steps().length ? `step ${curveStep(replayed(steps(), number))}` : "");
  return frame(view, {
    name: "Training replay",
    traits: ["snapshots", "number", "layer", "head", "each"],
    controls: (make) => [
      make.slider("Snapshot", "number", ends, name),
      make.play("number", ends, 350),
      make.toggle("each head", "each")],
    draw: drawReplay });
}

function replayPlaces(width, each) {
  if (width < 700) {
    return { curves: { x: 0, width }, map: { x: 0, width }, heads: { x: 2, width: width - 4 } };
  }
  const first = Math.round(width * 0.3), last = each ? Math.round(width * 0.25) : 0;
  return { curves: { x: 0, width: first }, heads: { x: width - last, width: last - 2 },
    map: { x: first + 20, width: width - first - last - 40 } };
}

const replayed = (all, number) => all[Math.min(number, all.length) - 1];

function drawReplay(state, page) {
  const { snapshots, number, each = true } = state, { svg, width } = page;
  if (!snapshots.length) return NOTHING_TO_REPLAY;
  const now = replayed(snapshots, number), look = lookAtSnapshot(now, state);
  const wide = width >= 700, places = replayPlaces(width, each);
  for (const name of ["words", "curves", "map", "heads"]) layer(svg, name); // in reading order
  const top = drawReplayedWords(layer(svg, "words"), now, width, wide);
  const numberOf = (step) => 1 + snapshots.findIndex((one) => one.step === step);
  const map = { ...places.map, y: top, high: wide ? REPLAY_HIGH - top : 300 };
  const mapEnds = drawReplayMap(layer(svg, "map"), now, look, map);
  const heads = { ...places.heads, y: wide ? top : mapEnds + 4, high: map.high, page };
  const headsEnd = drawReplayHeads(layer(svg, "heads"), now, look, { ...heads, each });
  const high = wide ? (REPLAY_HIGH - top - 170) / 2 : 70;
  const below = drawCurves(layer(svg, "curves"), replayCurves(snapshots, state, high), {
    ...places.curves, y: wide ? top : headsEnd + 8, chosen: now.step,
    choose: (step) => page.set({ number: numberOf(step) }) });
  set(svg, { width, height: Math.max(below, mapEnds, headsEnd) });
  return replayFacts(snapshots.at(-1).step, now, look);
}

// A snapshot's weights in units of 1/10,000.
function unpacked(snapshot) {
  if (!unpackedWeights.has(snapshot)) {
    const bytes = Uint8Array.from(atob(snapshot.weights), (letter) => letter.charCodeAt(0));
    unpackedWeights.set(snapshot, new Uint16Array(bytes.buffer));
  }
  return unpackedWeights.get(snapshot);
}

// One head's weights, [query][key]; where `head` is null, the mean over the layer's heads.
function replayWeights(snapshot, layer, head) {
  const [, heads, queries, keys] = snapshot.shape, units = unpacked(snapshot);
  const asked = head === null ? [...Array(heads).keys()] : [head];
  const at = (one, query, key) => units[((layer * heads + one) * queries + query) * keys + key];
  return Array.from({ length: queries }, (_, query) => Array.from({ length: keys }, (_, key) => {
    const weights = asked.map((one) => at(one, query, key));
    if (weights.includes(NO_WEIGHT)) return NaN;
    return weights.reduce((a, b) => a + b) / (10000 * asked.length);
  }));
}

// For each row the key with the largest weight (-1: none), and whether that is in a frame.
function strongestKeys(weights, { true_cells: cells }) {
  return weights.map((row, query) => {
    const best = firstLargest(row), own = cells.filter(([one]) => one === query);
    return { best, framed: own.length > 0, hit: own.some(([, key]) => key === best) };
  });
}

function lookAtSnapshot(snapshot, { layer, head }) {
  const [layers, heads] = snapshot.shape, row = Math.min(layer, layers - 1);
  const column = head === null ? null : Math.min(head, heads - 1);
  const weights = replayWeights(snapshot, row, column);
  const strongest = strongestKeys(weights, snapshot);
  const name = column === null ? `mean of ${heads} heads` : `head ${column}`;
  const framed = strongest.filter((row) => row.framed);
  const hits = framed.filter(({ hit }) => hit).length;
  return { layer: row, head: column, weights, strongest, hits, rows: framed.length,
    name: `block ${row}, ${name}` };
}

// The loss, and below it the shares of right words and of rows that look into their frame.
function replayCurves(snapshots, state, low) {
  const points = (measure) => snapshots.map((one) => [one.step, measure(one)])
    .filter(([, value]) => value !== null);
  const hitShare = (one) => {
    const { hits, rows } = lookAtSnapshot(one, state);
    return rows ? hits / rows : null;
  };
  const rightShare = ({ right, expected }) =>
    (expected.length ? countRight(right) / expected.length : null);
  const loss = { name: "loss", look: 0, points: points((one) => one.loss) };
  const shares = [
    { name: "words right", look: 1, points: points(rightShare) },
    { name: "rows in frame", look: 2, points: points(hitShare) },
  ].filter((curve) => curve.points.length);
  const high = shares.length ? low : 2 * low;
  const frames = [{ heading: "loss, nats per token", log: false, high, curves: [loss] }];
  if (shares.length) frames.push({ heading: "share", log: false, high: low, curves: shares });
  return frames;
}

const countRight = (right) => right.filter(Boolean).length;

// What was written, each word marked as right or wrong, above what was expected; returns where they
// end.
function drawReplayedWords(group, { written, expected, right, query_tokens: rows }, width, wide) {
  const wrote = written.map((word, i) => ({
    text: `${right[i] ? "✓" : "✗"} ${word}`, right: right[i], key: `wrote ${i}`, links: "",
    words: `written word ${i}, “${word}”: ${right[i] ? "right" : "not right here"}` }));
  const wanted = expected.map((word, i) => ({
    text: word, right: null, key: `expected ${i}`, links: rows[i] === word ? `row${i}` : "",
    words: `expected word ${i}: “${word}”` }));
  const inMap = !wide && String(expected) === String(rows); // the map's rows are these words
  const rowsOfChips = [["wrote", wrote], ["expected", inMap ? [] : wanted]]
    .filter(([, row]) => row.length);
  const chips = [], names = [];
  let y = 1;
  for (const [name, row] of rowsOfChips) {
    names.push({ name, y });
    y = placeChips(row, name, { y, width }, chips);
  }
  put.text(group, "names", names, ({ name, y }) => [name, 60, y + 16, "small end"], "name");
  drawReplayChips(group, chips);
  return chips.length ? y + 6 : 0;
}

// Lays words out in lines, adds them to `chips`, and returns where they end.
function placeChips(row, name, { y, width }, chips) {
  const more = row.length - MOST_REPLAYED;
  const rest = { text: `and ${more} more`, key: `${name} more`, links: "", words: `${more} more` };
  const all = (more > 0 ? [...row.slice(0, MOST_REPLAYED), rest] : row).map((chip) =>
    ({ ...chip, word: fitted(chip.text, Math.min(150, width - 90), 13) }));
  const sizes = all.map(({ word }) => textWidth(word, 13) + 12);
  const { places, bottom } = wrapped(sizes, { x: 70, y, width: width - 70, high: 22 });
  chips.push(...all.map((chip, i) => ({ ...chip, ...places[i] })));
  return bottom + 6;
}

function drawReplayChips(group, chips) {
  const strokes = new Map([[true, "var(--value)"], [false, "var(--minus)"]]);
  put.box(group, "chips", chips, ({ x, y, width, height, word, right, words, links }) => ({
    x, y, width, height, rx: 7, word, font: "size-13", class: null, fill: "var(--card)",
    stroke: strokes.get(right) ?? "var(--line)", "stroke-width": 1.5,
    "stroke-dasharray": right === false ? "4 3" : null, ...told(words, links) }));
}

function drawReplayMap(group, now, look, { x, y, width, high }) {
  const { weights } = look, rows = weights.length, columns = weights[0].length;
  const longest = (words) => Math.max(...words.map((word) => textWidth(fitted(word, 80, 12), 12)));
  const notes = ["rows look at columns; dot: the largest of a row",
    ...(look.rows ? [`framed: ${now.framed}; ✓: the dot is in it`] : [])];
  const heading = [look.name, ...notes.flatMap((text) => textLines(text, width, 12))];
  const names = Math.min(longest(now.query_tokens) + 14, width * 0.28), left = x + names;
  const top = y + 8 + 16 * heading.length, low = 18 + 0.71 * longest(now.key_tokens); // slanted
  const wide = Math.min(44, (width - names - 24) / columns);
  const tall = Math.max(12, Math.min(28, (high - (top - y) - low) / rows));
  const bottom = top + tall * rows, at = { left, top, wide, tall, bottom, names };
  put.text(group, "heading", heading, (text, i) =>
    [fitted(text, width, i ? 12 : 14, i ? 400 : 600), x, y + 14 + 16 * i, i ? "small" : "strong"]);
  drawReplayCells(group, now, look, at);
  drawReplayRows(layer(group, "rows"), now, look, at);
  drawReplayColumns(layer(group, "columns"), now, look, at);
  return bottom + low;
}

function drawReplayCells(group, now, { weights, strongest }, { left, top, wide, tall }) {
  const framed = new Set(now.true_cells.map(([query, key]) => `${query}-${key}`));
  const { query_tokens: rows, key_tokens: columns } = now;
  const cells = weights.flatMap((row, query) => row.map((weight, key) => {
    const name = `${query}-${key}`, frame = framed.has(name) ? `, framed: ${now.framed}` : "";
    const words = `“${rows[query]}” looks at “${columns[key]}”: ${weightWords(weight)}${frame}`;
    return { query, key, weight, name, words };
  }));
  put.rect(group, "cells", cells, (cell) => ({
    x: left + wide * cell.key, y: top + tall * cell.query, width: wide, height: tall, class: "cell",
    fill: Number.isNaN(cell.weight) ? "var(--hidden)" : shade(cell.weight),
    ...told(cell.words, `cell${cell.name}`) }), "name");
  put.rect(group, "frames", now.true_cells, ([query, key]) => ({
    x: left + wide * key, y: top + tall * query, width: wide, height: tall, ...pen("--query", 2.5),
  }), String);
  const dots = strongest.map((row, query) => ({ ...row, query })).filter(({ best }) => best >= 0);
  put.circle(group, "dots", dots, ({ best, query }) => ({
    cx: left + wide * (best + 0.5), cy: top + tall * (query + 0.5),
    r: Math.max(1.5, Math.min(4, wide / 4, tall / 4)), fill: "var(--paper)", stroke: "var(--ink)",
  }), "query");
}

const weightWords = (weight) => Number.isNaN(weight) ? "no number" : weight.toFixed(3);

// The words that look, and after a row with a frame whether its largest weight is in it.
function drawReplayRows(group, now, { weights, strongest }, { left, top, wide, tall, names }) {
  const { query_tokens: rows, key_tokens: columns } = now;
  const y = (query) => top + tall * (query + 0.5) + 4, end = left + wide * columns.length;
  const tells = ({ best, framed, hit }, query) => {
    if (best < 0) return `“${rows[query]}” looks nowhere: its weights are no numbers`;
    const most = `“${columns[best]}”, ${weights[query][best].toFixed(3)}`;
    const where = framed ? `, ${hit ? "in" : "outside of"} its frame` : "";
    return `“${rows[query]}” looks most at ${most}${where}`;
  };
  const links = (query) => columns.map((_, key) => `cell${query}-${key}`).join(" ");
  put.text(group, "words", strongest, (row, query) => [
    fitted(rows[query], names - 10, 12), left - 7, y(query), "small end",
    told(tells(row, query), `row${query} ${links(query)}`)], (_, query) => query);
  const signs = strongest.map((row, query) => ({ ...row, query })).filter(({ framed }) => framed);
  put.label(group, "signs", signs, ({ hit, query }) =>
    [hit ? "✓" : "✗", end + 6, y(query), "small"], "query");
}

function drawReplayColumns(group, now, { weights }, { left, wide, bottom }) {
  const { key_tokens: columns } = now, apart = Math.ceil(13 / wide);
  const shown = columns.map((word, key) => ({ word, key })).filter(({ key }) => key % apart === 0);
  const links = (key) => weights.map((_, query) => `cell${query}-${key}`).join(" ");
  put.text(group, "words", shown, ({ word, key }) => {
    const x = left + wide * (key + 0.5) + 4, y = bottom + 14;
    const total = weights.reduce((sum, row) => sum + row[key], 0);
    return {
      text: fitted(word, 80, 12), class: "small end", x, y, transform: `rotate(-45 ${x} ${y})`,
      ...told(`“${word}” gets ${weightWords(total / weights.length)} of a row, on average`,
        links(key)) };
  });
}

// A small map of every head and of each layer's mean, as buttons, if `each` is on; returns where
// they end.
function drawReplayHeads(group, now, look, { x, y, width, high, each, page }) {
  const [layers, heads] = now.shape, gap = 5, names = [null, ...Array(heads).keys()];
  const least = heads > 3 ? 31 : 44, most = Math.floor((width + gap) / (least + gap));
  const lines = Math.ceil((heads + 1) / most), columns = Math.ceil((heads + 1) / lines);
  const room = (high - 20) / (layers * lines) - (look.rows ? 36 : 22);
  const side = Math.max(28, Math.min(72, room, (width - gap * (columns - 1)) / columns));
  const line = side + (look.rows ? 36 : 22);
  const shown = each ? [...Array(layers).keys()] : [];
  const all = shown.flatMap((row) => names.map((head, i) => ({
    ...lookAtSnapshot(now, { layer: row, head }), x: x + (i % columns) * (side + gap),
    label: head === null ? (side > 44 ? `${row}.mean` : "mean") : `${row}.${head}`,
    y: y + 20 + (row * lines + Math.floor(i / columns)) * line })));
  put.text(group, "title", each ? [["all heads", x, y + 14, "strong"]] : []);
  put.rect(group, "boxes", all, (one) => ({
    class: "box", x: one.x, y: one.y, width: side, height: side, rx: 6,
    ...choosable(headTells(one), one.layer === look.layer && one.head === look.head,
      () => page.set({ layer: one.layer, head: one.head })) }), "name");
  const shades = all.flatMap(({ name, weights, x, y }) =>
    mapShades(name, weights, [x, y], side));
  put.path(group, "maps", shades);
  const lined = all.flatMap((one) => [
    { ...one, key: `${one.name} name`, text: one.label },
    { ...one, key: `${one.name} hits`, text: `${one.hits}/${one.rows}`, low: 13 },
  ]).filter(({ low, rows }) => !low || rows);
  put.label(group, "names", lined, ({ text, x, y, low = 0 }) =>
    [text, x + side / 2, y + side + 12 + low, "small middle"]);
  return each ? y + 20 + layers * lines * line : y;
}

const headTells = ({ name, hits, rows }) =>
  rows ? `${name}: ${hits} of ${rows} rows in frame` : name;

function replayFacts(last, now, look) {
  const { step, loss, expected, right, framed } = now;
  const words = expected.length ? `, ${countRight(right)} of ${expected.length} words right` : "";
  const hits = look.rows ? `, ${look.hits} of ${look.rows} rows look most into their frame` : "";
  const order = expected.length ? " (✓: expected, in this order)" : "";
  const where = look.rows ? `: in ${look.hits} of ${look.rows} rows with a frame (${framed}) ` +
    "the largest weight is inside it" : "";
  const said = `Step ${curveStep(step)} of ${curveStep(last)}, ` +
    `loss ${curveNumber(loss)}${words}${order}. Block ${look.layer}, ` +
    `${look.name.replace(/^block \d+, /, "")}${where}.`;
  return { title: `Step ${curveStep(step)}: loss ${curveNumber(loss)}${words || hits}`,
    said };
}
