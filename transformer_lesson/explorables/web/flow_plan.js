// The layout of a forward pass on one screen: a lane for each text, a row for each word, a column
// for each sub-layer, and behind it a strip of what the stream holds then.

import { lastPart } from "./trace.js";

const SUBLAYER = /^(\w+)\.(\d+)\.(self_attention|cross_attention|feed_forward)\./;
const MAIN = { embedding: "output", self_attention: "weights", cross_attention: "weights",
  feed_forward: "hidden", next: "probabilities" };

// The sub-layers in the order of computation: {key, kind, block, lane, steps, main, after}. `steps`
// are the numbers of their quantities, `main` is the one that a click opens, `after` the one that
// the stream holds behind the sub-layer.
export function sublayersOf(steps, writes) {
  const found = [];
  let waiting = []; // norms that come before their sub-layer
  steps.forEach(({ name }, i) => {
    if (/\.norm_\d$/.test(name)) return waiting.push(i);
    const key = keyOf(name) ?? found.at(-1).key;
    if (found.at(-1)?.key !== key) found.push({ ...named(key, writes), steps: [] });
    found.at(-1).steps.push(...waiting, i);
    waiting = [];
  });
  return found.map((one) => ({ ...one, after: one.steps.at(-1),
    main: one.steps.find((i) => lastPart(steps[i].name) === MAIN[one.kind]) ?? one.steps.at(-1) }));
}

// The sub-layer to which a quantity belongs; none where it belongs to what came before.
function keyOf(name) {
  if (name.includes("embedding.")) return name.split(".")[0];
  if (/^(decoder_norm|logits|probabilities)/.test(name)) return "next";
  return SUBLAYER.exec(name)?.[0].slice(0, -1) ?? null;
}

function named(key, writes) {
  const [, stack, number, kind] = SUBLAYER.exec(`${key}.`) ?? [];
  const reads = /^(source|encoder)/.test(key) || (key === "embedding" && !writes);
  return { key, kind: kind ?? (key === "next" ? "next" : "embedding"), stack,
    block: number === undefined ? null : Number(number), lane: reads ? "read" : "written" };
}

const WORDS = { embedding: "embedding", feed_forward: "thinks", cross_attention: "reads",
  next: "next word" };

export const headingOf = ({ kind, lane }) =>
  WORDS[kind] ?? (lane === "read" ? "looks" : "looks back");

// A column's name where there is room for it.
export function titleOf({ kind, stack, block }) {
  if (kind === "embedding") return "embedding and position";
  if (kind === "next") return "the next word";
  return `${stack} block ${block}, ${kind.replace("_", "-")}`;
}

const ROOMY = { word: 76, embedding: 26, feed: 26, strip: 12, next: 138, rows: 26, high: 404,
  head: 36, foot: 20, most: 96, panel: 330 };
const MEDIUM = { ...ROOMY, word: 70, embedding: 22, feed: 20, strip: 9, next: 118, panel: 292 };
const TIGHT = { word: 58, embedding: 14, feed: 12, strip: 6, next: 108, rows: 20, high: 316,
  head: 38, foot: 16, most: 60, panel: 0 };

export const NEXT_ROW = { wide: 18, narrow: 15 }; // pixels for one of the likeliest words

// {lanes, panel, height}: a lane is {name, words, x, y, row, columns, end, next}, a column a
// sub-layer with {x, width, strip}.
export function planOf(flow, width) {
  const wide = width >= 700, sizes = width >= 960 ? ROOMY : wide ? MEDIUM : TIGHT;
  const across = wide ? width - sizes.panel - 20 : width;
  const texts = { read: flow.read, written: flow.written };
  const has = (name) => flow.sublayers.some(({ lane }) => lane === name);
  const names = ["read", "written"].filter(has);
  const counts = { read: flow.read.length, written: flow.full }; // when all is written
  const rows = names.reduce((sum, name) => sum + counts[name], 0);
  const free = sizes.high - names.length * (sizes.head + sizes.foot);
  const row = Math.max(8, Math.min(sizes.rows, free / rows));
  const next = flow.next.length * (wide ? NEXT_ROW.wide : NEXT_ROW.narrow); // and the last lane's
  let y = 0;
  const lanes = names.map((name) => {
    const words = texts[name], lane = { name, words, row, y: y + sizes.head };
    const high = Math.max(row * counts[name], name === names.at(-1) ? next : 0);
    y += sizes.head + high + sizes.foot;
    return { ...lane, ...columnsOf(flow, name, across, sizes), word: sizes.word };
  });
  const panel = wide ? { x: across + 20, y: 0, width: sizes.panel } : { x: 0, y: y + 8, width };
  return { lanes, panel, wide, across, height: y };
}

// All columns of one kind are equally wide; attention gets what the others leave.
function columnsOf({ sublayers }, name, across, sizes) {
  const own = sublayers.filter(({ lane, kind }) => lane === name && kind !== "next");
  const widths = { embedding: sizes.embedding, feed_forward: sizes.feed };
  const looking = own.filter(({ kind }) => !(kind in widths)).length;
  const strips = own.filter(({ kind }) => kind !== "embedding").length * sizes.strip;
  const fixed = own.reduce((sum, { kind }) => sum + (widths[kind] ?? 0) + 4, strips);
  const end = across - sizes.next, left = sizes.word + 8, rest = end - left - fixed;
  const attention = Math.max(10, Math.min(sizes.most, rest / looking));
  let x = left;
  const columns = own.map((one) => {
    const width = widths[one.kind] ?? attention, strip = one.kind === "embedding" ? 0 : sizes.strip;
    const column = { ...one, x, width, strip: { x: x + width, width: strip } };
    x += width + strip + 4;
    return column;
  });
  return { columns, left: sizes.word, end: x - 4, next: { x: end, width: sizes.next } };
}

export const rowAt = ({ y, row }, i) => y + row * (i + 0.5);
