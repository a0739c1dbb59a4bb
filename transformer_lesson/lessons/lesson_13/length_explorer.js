// A model reads beyond the length it was trained on: its loss at each position, and for each pair
// of numbers that rotary positions turn, the angles met in training and those that are new.

import { arc, fixed, grid, layer, put, told } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";
import { logSoftmax } from "../../explorables/web/generation.js";
import { inPieces } from "../../explorables/web/in_pieces.js";
import { Cache, rotaryFrequencies, rotate } from "../../explorables/web/transformer.js";
import { modelOf } from "../../explorables/web/weights.js";

// Tokens in a window, from one window to the next, and in each point of a curve.
const READ_LENGTH = 256, READ_STRIDE = 64, READ_STEP = 16;
const FRESH = 0.005 * 2 * Math.PI; // a smaller angle does not count as new
const TURNS_KEPT = 4, TURNS_STRETCHED = 1; // whole turns in training, as in `stretched_frequencies`

export function LengthExplorer(view) {
  const { model } = view, last = [8, READ_LENGTH, 8];
  return frame(view, {
    name: "Length explorer",
    traits: ["log10_base", "factor", "by_parts", "window", "ids", "trained_length"],
    controls: (make) => [
      make.slider("Base", "log10_base", [2, 6, 0.1], baseWords),
      make.slider("Positions divided by", "factor", [1, 8, 0.5]),
      make.toggle("slow pairs only", "by_parts"),
      make.slider("Window", "window", () => last,
        (window) => (window < READ_LENGTH ? `${window} tokens` : "all"))],
    load: () => modelOf(model),
    draw: drawLength });
}

function baseWords(log10) {
  const base = 10 ** log10, round = 10 ** (Math.floor(log10) - 2);
  return (Math.round(base / round) * round).toLocaleString("en-US", { maximumFractionDigits: 0 });
}

// How fast each pair turns, in radians per token: as trained, and as the controls change it.
function pairSpeeds(config, { log10_base: log10, factor, by_parts: byParts, trained_length: n }) {
  const dHead = config.d_model / config.n_heads, own = Math.log10(config.rotary_base);
  const trained = rotaryFrequencies(dHead, config.rotary_base);
  const chosen = Math.abs(log10 - own) < 0.01 ? trained : rotaryFrequencies(dHead, 10 ** log10);
  const now = chosen.map((speed) => {
    const turns = (n * speed) / (2 * Math.PI);
    const share = (turns - TURNS_STRETCHED) / (TURNS_KEPT - TURNS_STRETCHED);
    const keep = byParts ? Math.min(1, Math.max(0, share)) : 0;
    return keep * speed + ((1 - keep) * speed) / factor;
  });
  return { trained, now };
}

// The model with other speeds and an attention window; the weights are shared.
function readerOf(model, speeds, window) {
  const config = { ...model.config, attention_window: window };
  const turned = (name, x, { start }) => rotate(x, start, speeds);
  return Object.assign(Object.create(model), { config, turned });
}

// What was read so far with these speeds and this window: sums of the loss at each position.
function readingOf(page, model, ids, speeds, window) {
  page.readings ??= new Map();
  const key = [...speeds.map((speed) => speed.toPrecision(8)), window].join();
  if (!page.readings.has(key)) {
    const reader = readerOf(model, speeds, window);
    page.readings.set(key, { reader, ids, sums: new Float64Array(READ_LENGTH), windows: 0 });
  }
  return page.readings.get(key);
}

// Reads the windows that are still unread, in turns, so that the curves grow side by side.
function* readWindows(readings) {
  const open = () => readings.filter(({ ids, windows }) =>
    windows * READ_STRIDE + READ_LENGTH < ids.length);
  for (let left = open(); left.length; left = open()) {
    for (const reading of left) yield* readWindow(reading);
  }
}

function* readWindow(reading) {
  const { reader, ids, sums } = reading, from = reading.windows * READ_STRIDE;
  const read = ids.slice(from, from + READ_LENGTH), { config } = reader;
  const window = config.attention_window, start = 0;
  const sees = (query, key) => key <= query && key > query - window;
  const pass = { config, sees, cache: new Cache(), start };
  let x = reader.embed("embedding", read, start, config);
  for (let i = 0; i < config.n_layers; i++) {
    x = reader.layer(`decoder.${i}`, x, pass);
    yield;
  }
  const logits = reader.project("projection", reader.lastNorm("decoder_norm", x, config));
  for (let i = 0; i < READ_LENGTH; i++) sums[i] -= logSoftmax(logits.row(i))[ids[from + i + 1]];
  reading.windows += 1;
  yield;
}

function meanLosses({ sums, windows }, step) {
  return Array.from({ length: READ_LENGTH / step }, (_, i) => {
    const part = sums.subarray(i * step, (i + 1) * step);
    return part.reduce((a, b) => a + b) / (step * windows);
  });
}

function drawLength(state, page, { model }) {
  const speeds = pairSpeeds(model.config, state), { window, ids } = state;
  const first = readingOf(page, model, ids, speeds.trained, READ_LENGTH);
  const now = readingOf(page, model, ids, speeds.now, window), both = [...new Set([now, first])];
  if (page.reading !== now) inPieces(page, readWindows(both));
  page.reading = now;
  const ready = both.every(({ windows }) => windows > 0);
  if (!ready) return "The model reads the text.";
  const { svg, width } = page, curves = lengthCurves(now, first);
  const bottom = drawLengthCurves(layer(svg, "curves"), curves, state, width);
  const high = drawPairDials(layer(svg, "pairs"), pairAngles(speeds, state), width, bottom);
  return { ...lengthFacts(curves, speeds, state), height: high };
}

function lengthCurves(now, first) {
  const parts = (reading) => ({ points: meanLosses(reading, READ_STEP),
    quarters: meanLosses(reading, READ_LENGTH / 4) });
  return { now: parts(now), first: parts(first), changed: now !== first };
}

// Both curves over the positions; what lies within the trained length is tinted.
function drawLengthCurves(group, { now, first, changed }, { trained_length: trained }, width) {
  const place = { left: 44, right: width - 14, top: 20, bottom: 236 };
  const all = [...now.points, ...first.points];
  const low = Math.floor(2 * Math.min(1.8, ...all)) / 2, high = Math.max(3.5, ...all) + 0.1;
  const across = (position) =>
    place.left + (position / READ_LENGTH) * (place.right - place.left);
  const up = (loss) => place.bottom - ((loss - low) / (high - low)) * (place.bottom - place.top);
  drawLengthAxes(group, { low, high, across, up, place, trained });
  const middle = (i) => across((i + 0.5) * READ_STEP);
  const lines = [
    { name: "as trained", points: first.points, color: "var(--soft)", dash: "6 4" },
    { name: "now", points: now.points, color: "var(--key)", dash: null }].slice(0, changed ? 2 : 1);
  put.path(group, "lines", lines, ({ points, color, dash }) => ({
    d: `M${points.map((loss, i) => `${middle(i)} ${up(loss)}`).join("L")}`, fill: "none",
    stroke: color, "stroke-width": 2.5, "stroke-dasharray": dash }), "name");
  const dots = lines.flatMap(({ name, points, color }) => points.map((loss, i) =>
    ({ name, loss, i, color })));
  put.circle(group, "dots", dots, (dot) => ({
    cx: middle(dot.i), cy: up(dot.loss), r: 4, fill: dot.color,
    ...told(`positions ${dot.i * READ_STEP} to ${(dot.i + 1) * READ_STEP - 1}, ${dot.name}: ` +
      `${fixed(dot.loss, 2)} nats`, `at${dot.i}`) }), ({ name, i }) => `${name}${i}`);
  drawLengthNames(layer(group, "names"), lines, up, place);
  return place.bottom + 40;
}

// Each curve's name at its end: the higher one's above its last points, the lower one's below.
function drawLengthNames(group, lines, up, { right }) {
  const ends = lines.map(({ points }) => points.slice(-4).map(up));
  const below = (i) => i === ends.findIndex((one) => one.at(-1) ===
    Math.max(...ends.map((other) => other.at(-1)))) && lines.length > 1;
  put.label(group, "texts", lines, ({ name }, i) => [
    name, right, below(i) ? Math.max(...ends[i]) + 20 : Math.min(...ends[i]) - 10,
    "strong size-13 end halo"], "name");
}

function drawLengthAxes(group, { low, high, across, up, place, trained }) {
  const { left, right, top, bottom } = place;
  put.rect(group, "known", [trained], () => ({
    x: left, y: top, width: across(trained) - left, height: bottom - top, class: "still",
    fill: "var(--none)", stroke: "none" }));
  const losses = Array.from({ length: Math.floor(2 * (high - low)) + 1 }, (_, i) => low + i / 2);
  grid(group, place, up, losses, (loss) => fixed(loss, 1));
  const places = [0, 64, 128, 192, READ_LENGTH];
  put.label(group, "places", places, (position) =>
    [String(position), across(position), bottom + 16, "small middle"], String);
  const words = [
    { text: "nats a character", x: 0, y: 12, class: "small" },
    { text: "position", x: right, y: bottom + 32, class: "small end" },
    { text: `trained up to ${trained}`, x: left + 6, y: bottom - 8, class: "small" }];
  put.text(group, "words", words);
}

// For each pair: how far it turns, at most, in training and in reading, how much of the circle is
// new, and by what factor its turn from one token to the next has changed.
function pairAngles({ trained, now }, { trained_length: length, window }) {
  const whole = 2 * Math.PI, furthest = Math.min(window, READ_LENGTH) - 1;
  return trained.map((speed, j) => {
    const met = Math.min(whole, (length - 1) * speed), reached = furthest * now[j];
    return { j, met, reached, fresh: Math.max(0, Math.min(whole, reached) - met),
      step: now[j] / speed, turns: ((length - 1) * speed) / whole, turnsNow: reached / whole };
  });
}

// A dial for each pair: blue angles were met in training, orange ones only in reading.
function drawPairDials(group, pairs, width, top) {
  const columns = width >= 620 ? pairs.length : Math.ceil(pairs.length / 2);
  const room = width / columns, radius = Math.min(27, room / 2 - 6), high = 2 * radius + 40;
  const x = ({ j }) => room * ((j % columns) + 0.5);
  const y = ({ j }) => top + 22 + radius + high * Math.floor(j / columns);
  const heading = width < 300 ? "angles: met in training, new" :
    width < 620 ? "angles between two tokens: met in training, new" :
    "angles between two tokens, pair by pair: blue ones were met in training, orange ones are new";
  put.text(group, "heading", [[heading, 0, top + 8, "small"]]);
  put.circle(group, "dials", pairs, (pair) => ({
    cx: x(pair), cy: y(pair), r: radius, class: "box", ...told(pairWords(pair), `pair${pair.j}`),
  }), "j");
  const arcs = [["met", "var(--key)"], ["fresh", "var(--minus)"]];
  const dialArc = (name, pair) => {
    const from = name === "met" ? 0 : pair.met, whole = 2 * Math.PI - 1e-3; // an arc needs two ends
    return arc(x(pair), y(pair), radius * 0.7, from, from + Math.min(pair[name], whole));
  };
  for (const [name, color] of arcs) {
    put.path(group, name, pairs, (pair) => ({
      d: dialArc(name, pair),
      fill: "none", stroke: color, "stroke-width": name === "met" ? 7 : 9, class: "still" }), "j");
  }
  const share = ({ fresh }) => (fresh < FRESH ? "none new" :
    `${Math.round((100 * fresh) / (2 * Math.PI))} % new`);
  const lines = [[share, 15], [({ step }) => (Math.abs(step - 1) < 0.005 ? "" :
    `step × ${fixed(step, 2)}`), 29]];
  lines.forEach(([text, down], i) => {
    put.label(group, `words${i}`, pairs, (pair) =>
      [text(pair), x(pair), y(pair) + radius + down, i ? "small middle" : "number middle"], "j");
  });
  return top + 22 + high * Math.ceil(pairs.length / columns);
}

function pairWords({ j, turns, turnsNow, fresh, step }) {
  const part = fresh < FRESH ? "no angle is new" :
    `${Math.round((100 * fresh) / (2 * Math.PI))} % of the circle is new`;
  return `pair ${j}: up to ${fixed(turns, 2)} turns in training and ${fixed(turnsNow, 2)} now, ` +
    `${part}; from one token to the next ${fixed(step, 2)} times the trained angle`;
}

function lengthFacts({ now, first, changed }, speeds, state) {
  const [last, before] = [now, first].map(({ quarters }) => quarters.at(-1));
  const fresh = pairAngles(speeds, state).filter((pair) => pair.fresh >= FRESH).length;
  const numbers = now.quarters.map((loss) => fixed(loss, 2)).join(", ");
  const title = changed
    ? `The last quarter costs ${fixed(last, 2)} nats a character, as trained ${fixed(before, 2)}`
    : `As trained, the last quarter costs ${fixed(last, 2)} nats a character`;
  const pairs = speeds.now.length;
  const angles = fresh ? `${fresh} of ${pairs} pairs meet angles that training never showed.` :
    "No pair meets an angle that training never showed.";
  const idle = state.by_parts && state.factor === 1;
  const hint = idle ? " Divided by 1, no pair is slowed yet: choose what to divide by." : "";
  return { title, said: `Loss by quarter: ${numbers} nats a character. ${angles}${hint}` };
}
