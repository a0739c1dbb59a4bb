// What a map of each model shows: its parts, their order, and the text of a part's button.

import { choosable } from "./draw.js";

const NEXT_TOKEN = "next token probabilities";

// What each model reads and writes, column by column; residual paths run on the left if `side` is
// -1, on the right if it is 1.
export const ARCHITECTURES = {
  "encoder-decoder": {
    word: "encoder-decoder",
    columns: [
      { side: -1, block: "Encoder block", reads: "source token ids" },
      { side: 1, block: "Decoder block", reads: "target token ids so far", writes: NEXT_TOKEN }] },
  "encoder-only": {
    word: "encoder-only (BERT)",
    columns: [{ side: -1, block: "Encoder block", reads: "token ids, some hidden",
      writes: "hidden token probabilities" }] },
  "decoder-only": {
    word: "decoder-only (GPT)",
    columns: [{ side: 1, block: "GPT block", reads: "token ids so far", writes: NEXT_TOKEN }] } };

// The sub-layers of each block, each with the attention inside it.
export const SUBLAYERS = {
  "Encoder block": [["Multi-head attention", "Attention"], ["Feed-forward"]],
  "Decoder block": [["Multi-head attention", "Masked attention"], ["Cross-attention", "Attention"],
    ["Feed-forward"]],
  "GPT block": [["Multi-head attention", "Masked attention"], ["Feed-forward"]] };

const BOX_COLORS = {
  "Token embedding": "--value", "Positional encoding": "--value", "Linear + softmax": "--value",
  "Multi-head attention": "--query", "Cross-attention": "--query", "Attention": "--query",
  "Masked attention": "--query", "Feed-forward": "--key" };

// The parts that this model has, in lesson order; `own` has those with exercises, `built` those
// that the learner has built.
export function viewOf(state, page) {
  const { columns } = ARCHITECTURES[state.kind], { parts } = state;
  const drawn = new Set(["Token embedding", "Positional encoding", "Add & norm",
    "Linear + softmax"]);
  for (const { block } of columns) {
    for (const name of [block, ...SUBLAYERS[block].flat()]) drawn.add(name);
  }
  const names = Object.keys(parts).filter((name) => drawn.has(name))
    .sort((one, other) => parts[one].lesson - parts[other].lesson);
  const own = names.filter((name) => parts[name].exercises.length);
  return { state, page, parts, names, own, built: own.filter((name) => !parts[name].left.length) };
}

// Attributes that make a box a button for its part; built parts have a stronger fill.
export function pressed(name, { page, state, built }, words) {
  const chosen = name === state.part, color = BOX_COLORS[name] ?? "--soft";
  const tint = (percent) => `color-mix(in oklab, var(${color}) ${percent}%, var(--paper))`;
  return {
    ...choosable(words, chosen, () => page.set({ part: name }), partSlug(name)),
    fill: tint(built.includes(name) ? 34 : BOX_COLORS[name] ? 14 : 5),
    stroke: chosen ? "var(--focus)" : tint(45), "stroke-width": chosen ? 3 : 1 };
}

export const partSlug = (name) => name.replace(/\W+/g, "-");

export function boxWords({ part, name }, { parts }) {
  const piece = ["add", "norm", "last norm"].includes(name) ? ` (${name})` : "";
  const { lesson, exercises, left } = parts[part];
  const built = !exercises.length ? "ready made" : left.length ? "not built yet" : "built";
  return `${part}${piece}, lesson ${lesson}: ${built}`;
}

export const lessonOf = (part, { parts, built }) =>
  parts[part].lesson + (built.includes(part) ? " ✓" : "");
