// Will it fit? What a device holds in a training step (weights, gradients, optimizer, activations)
// or when a model writes (weights, cache); and below, what it would hold after one more change.

import { choosable, countOf, layer, pen, put, set, told } from "../../explorables/web/draw.js";
import { frame, shownWhile } from "../../explorables/web/frame.js";

const IN_A_GIB = 2 ** 30;
const HELD = {
  train: [["weights", "--key"], ["gradients", "--query"], ["optimizer", "--value"],
    ["activations", "--soft"]],
  write: [["weights", "--key"], ["cache", "--value"]] };
const TRAINING_BITS = "Training is counted with 32 or 16 bits a number: choose one of them.";
const KEYS_KEPT = ["all heads", "in groups", "one head", "latent"];

export function WillItFit(view) {
  const numbers = (values) => values.map((one) => [one, one.toLocaleString("en-US")]);
  return frame(view, {
    name: "Will it fit?",
    traits: ["to", "size", "bits", "batch", "tokens", "kept", "table", "twice", "devices",
      "memory", "models"],
    controls: (make, page) => [
      make.choice("To", "to", ["train", "write"]),
      make.choice("Model", "size", () => page.model.get("models").map(({ name }, i) => [i, name])),
      make.choice("Texts at once", "batch", () => numbers([1, 8, 64])),
      make.choice("Tokens of a text", "tokens", () => numbers([128, 1024, 8192])),
      make.choice("Bits", "bits", () =>
        numbers(page.model.get("to") === "train" ? [32, 16] : [32, 16, 8, 4])),
      shownWhile(page, "to", "train", make.choice("Attention", "table", () =>
        [[true, "with its table"], [false, "in blocks"]])),
      shownWhile(page, "to", "train", make.choice("Blocks", "twice", () =>
        [[false, "kept"], [true, "computed twice"]])),
      shownWhile(page, "to", "write", make.choice("Keys and values", "kept", () =>
        KEYS_KEPT.map((one) => [one, one]))),
      make.choice("Devices", "devices", () => numbers([1, 2, 8, 64, 512])),
      make.choice("Each has, GiB", "memory", [[8, "8 laptop"], [24, "24 RTX 4090"],
        [80, "80 H100"], [141, "141 H200"]])],
    draw: (state, page) =>
      (state.to === "train" && state.bits < 16 ? TRAINING_BITS : drawFit(state, page)) });
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

// As memory_needs.py: numbers that a layer's cache keeps per token.
function keptOfAToken({ d_model: d, n_heads: heads, groups }, keys) {
  if (keys === "latent") return (4 * d) / heads;
  return ((2 * d) / heads) * ({ "all heads": heads, "one head": 1 }[keys] ?? groups);
}

// As memory_needs.py: the bytes on each device of a model that writes.
function memoryToWrite({ bits, batch, tokens, kept: keys, devices, models, size }) {
  const sizes = models[size], { n_layers: layers, d_model: d } = sizes, others = Math.max(bits, 16);
  const kept = keptOfAToken(sizes, keys), latent = keys === "latent";
  const matrices = layers * (10 * d ** 2 + (latent ? 3 : 1) * d * kept);
  const rest = sizes.parameters - layers * (12 * d ** 2 + 2 * d - (latent ? 0 : kept));
  const weights = (matrices * (bits === 4 ? 5 : bits) + rest * others) / 8;
  return [weights / devices, ((others / 8) * layers * kept * batch * tokens) / devices];
}

const memoryFor = (state) => state.to === "train" ? memoryToTrain(state) : memoryToWrite(state);
const sumOf = (numbers) => numbers.reduce((a, b) => a + b, 0);

function gibWords(bytes) {
  const gib = bytes / IN_A_GIB;
  if (bytes < 2 ** 20) return `${Number((bytes / 2 ** 10).toPrecision(3))} KiB`;
  if (gib < 1) return `${Number((bytes / 2 ** 20).toPrecision(3))} MiB`;
  const digits = gib >= 100 ? 0 : gib >= 10 ? 1 : 2;
  return `${Number(gib.toFixed(digits)).toLocaleString("en-US")} GiB`;
}

// Each possible next change, with the memory after it.
function changesLeft(state) {
  const { table, twice, bits, batch, devices, kept, to } = state, trains = to === "train";
  const fewer = { 8: 1, 64: 8 }[batch], more = { 1: 2, 2: 8, 8: 64, 64: 512 }[devices];
  const bitsLeft = trains ? { 32: 16 }[bits] : { 32: 16, 16: 8, 8: 4 }[bits];
  return [
    trains && table && ["attention in blocks", { table: false }],
    trains && !twice && ["blocks computed twice", { twice: true }],
    !trains && kept === "all heads" && ["keys in groups", { kept: "in groups" }],
    !trains && kept !== "latent" && ["a latent vector", { kept: "latent" }],
    bitsLeft && [`${bitsLeft} bits`, { bits: bitsLeft }],
    fewer && [`${countOf(fewer, "text")} at once`, { batch: fewer }],
    more && [`${more} devices`, { devices: more }]].filter(Boolean).map(([name, values]) => {
    const parts = memoryFor({ ...state, ...values });
    return { name, values, parts, total: sumOf(parts) };
  });
}

function drawFit(state, page) {
  const { svg, width } = page, parts = memoryFor(state), total = sumOf(parts);
  const now = { name: "now", parts, total }, rows = [now, ...changesLeft(state)];
  const room = state.memory * IN_A_GIB, most = Math.max(room, total) * 1.02;
  const beside = width >= 640, left = beside ? 190 : 0, right = width - (beside ? 96 : 0);
  const place = { beside, left, right, width, high: beside ? 22 : 18,
    top: (i) => 26 + i * (beside ? 40 : 50) + (i ? 10 : 0),
    across: (bytes) => left + (bytes / most) * (right - left) };
  drawHeld(layer(svg, "held"), rows, place, HELD[state.to]);
  const whose = state.to === "train" ? "what a step holds" : "what writing holds";
  drawFitNames(layer(svg, "names"), rows, room, { ...place, whose }, page);
  drawRoom(layer(svg, "room"), room, rows.length, place, state);
  set(svg, { width, height: place.top(5) + place.high + 24 });
  return fitFacts(state, parts, total, rows.slice(1), room);
}

// A bar for what is held now, and one after each change, each divided into its parts.
function drawHeld(group, rows, { beside, across, top, high }, held) {
  const pieces = rows.flatMap(({ name, parts }, i) => parts.map((bytes, k) => ({
    name, i, k, bytes, start: sumOf(parts.slice(0, k)) })));
  put.rect(group, "pieces", pieces, (one) => ({
    x: across(one.start), y: top(one.i), height: high, rx: 2,
    width: Math.max(0.5, across(one.start + one.bytes) - across(one.start) - 1),
    fill: `var(${held[one.k][1]})`, opacity: one.i ? 0.55 : 1,
    ...told(`${one.name}: ${held[one.k][0]} ${gibWords(one.bytes)}`, `held${one.k}`),
  }), ({ name, k }) => `${name} ${k}`);
  const [{ parts }] = rows, words = held.map(([name], k) => {
    const start = across(sumOf(parts.slice(0, k))), end = across(sumOf(parts.slice(0, k + 1)));
    return { name, k, x: (start + end) / 2, wide: end - start };
  }).filter(({ name, wide }) => beside && wide > 6.6 * name.length);
  put.label(group, "words", words, ({ name, x }) => [name, x, top(0) - 6, "small middle"], "k");
}

// Each bar's name, which for a change is a button that makes it, and its total.
function drawFitNames(group, rows, room, place, page) {
  const { beside, left, right, width, top, high, whose } = place;
  const y = (i) => (beside ? top(i) + high / 2 + 5 : top(i) - 5), [, ...changes] = rows;
  const boxes = changes.map((row, i) => ({ ...row, i: i + 1 }));
  put.rect(group, "boxes", boxes, ({ name, i, values, total }) => ({
    x: 0, y: beside ? top(i) - 4 : top(i) - 23, width: beside ? left - 12 : 180,
    height: beside ? high + 8 : 22, rx: 7, class: "box",
    ...choosable(`${name}: ${gibWords(total)}`, false, () => page.set(values), name) }), "name");
  put.label(group, "names", rows, ({ name }, i) =>
    [i ? name : whose, i ? 10 : 0, y(i), i ? "" : "strong"], "name");
  put.label(group, "totals", rows, ({ total }, i) => [
    gibWords(total) + (total <= room ? " ✓" : ""), beside ? right + 8 : width, y(i),
    beside ? "strong" : "strong end"], "name");
}

function drawRoom(group, room, rows, { across, top, high, left, right }, { memory, devices }) {
  const x = across(room), end = top(rows - 1) + high + 8;
  put.path(group, "line", [{ d: `M${x} ${top(0) - 4}V${end}`, ...pen("--ink", 1, "4 3") }]);
  const words = `${memory} GiB${devices > 1 ? " on each" : ""}`, late = x > (left + right) / 2;
  put.text(group, "word", [[words, late ? x - 4 : x + 4, end + 10, late ? "small end" : "small"]]);
}

function fitFacts(state, parts, total, changes, room) {
  const { models, size, devices, memory, to, kept, bits } = state, fits = total <= room;
  const where = devices > 1 ? `on each of ${devices} devices` : "";
  const what = to === "train" ? "To train" : "To write with";
  const holds = [what, models[size].name, "takes", gibWords(total), where].filter(Boolean);
  const title = `${holds.join(" ")}: it ${fits ? "fits" : "does not fit"} into ${memory} GiB`;
  const pieces = HELD[to].map(([name], k) => `${name} ${gibWords(parts[k])}`).join(", ");
  const best = [...changes].sort((a, b) => a.total - b.total)[0];
  const saved = best && `${best.name} saves most: ${gibWords(best.total)}`;
  const next = best ? ` Of the changes left, ${saved}.` : "";
  const token = keptOfAToken(models[size], kept) * models[size].n_layers * Math.max(bits, 16) / 8;
  const grows = to === "write" ? ` Each token adds ${gibWords(token)} to the cache.` : "";
  return { title, said: `It holds ${pieces}.${grows}${next}` };
}
