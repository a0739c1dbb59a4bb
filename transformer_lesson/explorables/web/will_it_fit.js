// Will it fit? What a training step holds on a device: weights, gradients, optimizer, activations;
// and below, what one change more would make of it.

import { choosable, join, layer, set, told } from "./draw.js";
import { frame } from "./frame.js";

const IN_A_GIB = 2 ** 30;
const HELD = [["weights", "--key"], ["gradients", "--query"], ["optimizer", "--value"],
  ["activations", "--soft"]];

export function WillItFit(view) {
  const numbers = (values) => values.map((one) => [one, one.toLocaleString("en-US")]);
  return frame(view, {
    name: "Will it fit?",
    traits: ["size", "bits", "batch", "tokens", "table", "twice", "devices", "memory", "models"],
    controls: (make, page) => [
      make.choice("Model", "size", () => page.model.get("models").map(({ name }, i) => [i, name])),
      make.choice("Texts at once", "batch", () => numbers([1, 8, 64])),
      make.choice("Tokens of a text", "tokens", () => numbers([128, 1024, 8192])),
      make.choice("Bits", "bits", () => numbers([32, 16])),
      make.choice("Attention", "table", () => [[true, "with its table"], [false, "in blocks"]]),
      make.choice("Blocks", "twice", () => [[false, "kept"], [true, "computed twice"]]),
      make.choice("Devices", "devices", () => numbers([1, 8, 64, 512])),
      make.choice("Each has, GiB", "memory", () => numbers([8, 24, 80, 141])),
    ],
    draw: drawFit,
  });
}

// As memory_needs.py: numbers that the forward pass keeps for each token.
function keptForBackward(sizes, { tokens, table, twice }) {
  const { n_layers: layers, d_model: d, n_heads: heads, vocab_size: vocabulary } = sizes;
  const block = 16 * d + 4 + (table ? 2 * heads * tokens : heads);
  return (twice ? layers * d + block : layers * block) + 2 * d + 2 + vocabulary;
}

// As memory_needs.py: the bytes on each device.
function memoryToTrain(state) {
  const { bits, batch, tokens, devices, models, size } = state, sizes = models[size];
  const number = bits / 8, share = sizes.parameters / devices;
  return [number * share, number * share, (bits === 32 ? 8 : 12) * share,
    number * keptForBackward(sizes, state) * batch * tokens];
}

function sumOf(numbers) {
  return numbers.reduce((a, b) => a + b, 0);
}

function gibWords(bytes) {
  const gib = bytes / IN_A_GIB;
  if (gib < 1) return `${Number((bytes / 2 ** 20).toPrecision(3))} MiB`;
  const digits = gib >= 100 ? 0 : gib >= 10 ? 1 : 2;
  return `${Number(gib.toFixed(digits)).toLocaleString("en-US")} GiB`;
}

// One change more, each if it is not made yet.
function changesLeft(state) {
  const { table, twice, bits, batch, devices } = state;
  const fewer = { 8: 1, 64: 8 }[batch], more = { 1: 8, 8: 64, 64: 512 }[devices];
  return [
    table && ["attention in blocks", { table: false }],
    !twice && ["blocks computed twice", { twice: true }],
    bits === 32 && ["16 bits", { bits: 16 }],
    fewer && [`${fewer} ${fewer === 1 ? "text" : "texts"} at once`, { batch: fewer }],
    more && [`${more} devices`, { devices: more }],
  ].filter(Boolean).map(([name, values]) => {
    const parts = memoryToTrain({ ...state, ...values });
    return { name, values, parts, total: sumOf(parts) };
  });
}

function drawFit(state, page) {
  const { svg, width } = page, parts = memoryToTrain(state), total = sumOf(parts);
  const now = { name: "now", parts, total }, rows = [now, ...changesLeft(state)];
  const room = state.memory * IN_A_GIB, most = Math.max(room, total) * 1.02;
  const beside = width >= 640, left = beside ? 190 : 0, right = width - (beside ? 96 : 0);
  const place = { beside, left, right, width, high: beside ? 22 : 18,
    top: (i) => 26 + i * (beside ? 40 : 50) + (i ? 10 : 0),
    across: (bytes) => left + (bytes / most) * (right - left) };
  drawHeld(layer(svg, "held"), rows, place);
  drawFitNames(layer(svg, "names"), rows, room, place, page);
  drawRoom(layer(svg, "room"), room, rows.length, place, state);
  set(svg, { width, height: place.top(5) + place.high + 24 });
  return fitFacts(state, parts, total, rows.slice(1), room);
}

// A bar of four parts for what is held now, and one for each change.
function drawHeld(group, rows, { beside, across, top, high }) {
  const pieces = rows.flatMap(({ name, parts }, i) => parts.map((bytes, k) => ({
    name, i, k, bytes, start: sumOf(parts.slice(0, k)),
  })));
  join(layer(group, "pieces"), "rect", pieces, ({ name, k }) => `${name} ${k}`, (one) => ({
    x: across(one.start), y: top(one.i), height: high, rx: 2,
    width: Math.max(0.5, across(one.start + one.bytes) - across(one.start) - 1),
    fill: `var(${HELD[one.k][1]})`, opacity: one.i ? 0.55 : 1,
    ...told(`${one.name}: ${HELD[one.k][0]} ${gibWords(one.bytes)}`, `held${one.k}`),
  }));
  const [{ parts }] = rows, words = HELD.map(([name], k) => {
    const start = across(sumOf(parts.slice(0, k))), end = across(sumOf(parts.slice(0, k + 1)));
    return { name, k, x: (start + end) / 2, wide: end - start };
  }).filter(({ name, wide }) => beside && wide > 6.6 * name.length);
  join(layer(group, "words"), "text", words, ({ k }) => k, ({ name, x }) => ({
    text: name, class: "small middle", x, y: top(0) - 6, "aria-hidden": "true",
  }));
}

// What each bar is of, a button that makes the change, and how much it comes to.
function drawFitNames(group, rows, room, { beside, left, right, width, top, high }, page) {
  const y = (i) => (beside ? top(i) + high / 2 + 5 : top(i) - 5), [, ...changes] = rows;
  const boxes = changes.map((row, i) => ({ ...row, i: i + 1 }));
  join(layer(group, "boxes"), "rect", boxes, ({ name }) => name, ({ name, i, values, total }) => ({
    x: 0, y: beside ? top(i) - 4 : top(i) - 23, width: beside ? left - 12 : 180,
    height: beside ? high + 8 : 22, rx: 7, class: "box",
    ...choosable(`${name}: ${gibWords(total)}`, false, () => page.set(values), name),
  }));
  join(layer(group, "names"), "text", rows, ({ name }) => name, ({ name }, i) => ({
    text: i ? name : "what a step holds", class: i ? "" : "strong", x: i ? 10 : 0, y: y(i),
    "pointer-events": "none", "aria-hidden": "true",
  }));
  join(layer(group, "totals"), "text", rows, ({ name }) => name, ({ total }, i) => ({
    text: gibWords(total) + (total <= room ? " ✓" : ""), class: beside ? "strong" : "strong end",
    x: beside ? right + 8 : width, y: y(i), "aria-hidden": "true",
  }));
}

// The line up to which a device has room.
function drawRoom(group, room, rows, { across, top, high, left, right }, { memory, devices }) {
  const x = across(room), end = top(rows - 1) + high + 8;
  join(layer(group, "line"), "path", [0], String, () => ({
    d: `M${x} ${top(0) - 4}V${end}`, stroke: "var(--ink)", "stroke-dasharray": "4 3", fill: "none",
  }));
  const words = `${memory} GiB${devices > 1 ? " on each" : ""}`, late = x > (left + right) / 2;
  join(layer(group, "word"), "text", [0], String, () => ({
    text: words, class: late ? "small end" : "small", x: late ? x - 4 : x + 4, y: end + 10,
  }));
}

function fitFacts(state, parts, total, changes, room) {
  const { models, size, devices, memory } = state, fits = total <= room;
  const where = devices > 1 ? `on each of ${devices} devices` : "";
  const holds = ["To train", models[size].name, "takes", gibWords(total), where].filter(Boolean);
  const title = `${holds.join(" ")}: it ${fits ? "fits" : "does not fit"} into ${memory} GiB`;
  const pieces = HELD.map(([name], k) => `${name} ${gibWords(parts[k])}`).join(", ");
  const best = [...changes].sort((a, b) => a.total - b.total)[0];
  const saved = best && `${best.name} saves most: ${gibWords(best.total)}`;
  const next = best ? ` Of the changes left, ${saved}.` : "";
  return { title, said: `It holds ${pieces}.${next}` };
}
