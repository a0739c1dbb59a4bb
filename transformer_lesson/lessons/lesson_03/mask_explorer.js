// The masks of a typed batch, each with its shape, and how they broadcast into one.

import { choosable, fitted, inkOn, layer, pen, put, told } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";
import { words } from "../../explorables/web/tokenizers.js";

const MOST_MASKED = { sentences: 5, tokens: 10 };
const PAD_WORD = "<pad>";
const MASK_NAMES = 84; // pixels for the column of names to the left of a grid

export const MaskExplorer = (view) => frame(view, {
  name: "Mask explorer",
  traits: ["batch", "sentence", "padding", "causal", "side"],
  controls: (make) => [
    make.text("Batch, one sentence per line", "batch", { rows: 3 }),
    make.toggle("padding mask", "padding"),
    make.toggle("causal mask", "causal"),
    make.choice("Padding side", "side", ["right", "left"])],
  draw: drawMasks });

// The padded rows of tokens, which of them are real, and `hides(query, key)`: the reasons why the
// chosen sentence's query may not use a key.
function masksOf({ batch, sentence, padding, causal, side }) {
  const read = batch.split(/\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/).map(words);
  const sentences = read.filter((tokens) => tokens.length);
  const n = Math.max(0, ...sentences.map((tokens) => tokens.length));
  const rows = sentences.map((tokens) => {
    const pads = Array(n - tokens.length).fill(PAD_WORD);
    return side === "left" ? [...pads, ...tokens] : [...tokens, ...pads];
  });
  const chosen = Math.min(sentence, rows.length - 1);
  const real = rows.map((row, i) => {
    const first = side === "left" ? n - sentences[i].length : 0;
    return row.map((_, key) => key >= first && key < first + sentences[i].length);
  });
  const hides = (query, key) => [
    ...(padding && !real[chosen][key] ? ["padding"] : []),
    ...(causal && key > query ? ["later"] : [])];
  return { rows, real, n, chosen, hides };
}

function drawMasks(state, page) {
  const { rows, real, n, chosen, hides } = masksOf(state);
  if (!n) return "The batch is empty: type one sentence per line.";
  if (rows.length > MOST_MASKED.sentences || n > MOST_MASKED.tokens) {
    const room = `${MOST_MASKED.sentences} sentences of ${MOST_MASKED.tokens} tokens`;
    return `The picture has room for ${room}, and this batch has ${rows.length} of up to ${n}: ` +
      "shorten it.";
  }
  const { svg, width } = page, wide = width >= 720, left = MASK_NAMES;
  const high = Math.max(18, Math.min(27, 260 / (rows.length + n))), tall = n * high + 52;
  const cell = Math.min(72, ((wide ? width / 2 : width) - left - 12) / n);
  const below = 24 + rows.length * high + 52, right = wide ? width / 2 + left : left;
  const first = wide ? below : below + tall; // on a phone the combined mask comes first
  const parts = { rows, real, n, chosen, hides, cell, high, state, page };
  const shapes = { padding: `(${rows.length}, 1, 1, ${n})`, causal: `(1, 1, ${n}, ${n})` };
  drawMaskedBatch(svg, parts, left, 24, maskHeading("padding mask", state.padding, shapes.padding));
  drawMaskGrid(layer(svg, "causal"), parts, left, first, {
    heading: maskHeading("causal mask", state.causal, shapes.causal),
    hides: (query, key) => (state.causal && key > query ? ["later"] : []),
    names: rows[chosen].map((_, i) => String(i)) });
  drawMaskGrid(layer(svg, "both"), parts, right, below, {
    heading: masksTogether(state, rows.length, n, chosen),
    hides,
    names: rows[chosen] });
  return { ...maskFacts(parts), height: first + n * high + 8 };
}

const maskHeading = (name, on, shape) => on ? `${name} ${shape}` : `${name}: off`;

function masksTogether({ padding, causal }, batch, n, chosen) {
  const shape = `(${padding ? batch : 1}, 1, ${causal ? n : 1}, ${padding || causal ? n : 1})`;
  const names = [...(padding ? ["padding"] : []), ...(causal ? ["causal"] : [])];
  return `sentence ${chosen}, ${names.length ? `${names.join(" & ")}: ${shape}` : "no mask"}`;
}

function drawMaskedBatch(svg, { rows, real, cell, high, chosen, page, state }, left, top, title) {
  const group = layer(svg, "batch"), cells = [];
  rows.forEach((row, i) => row.forEach((token, key) => cells.push({ i, key, token })));
  put.text(group, "title", [[title, left - MASK_NAMES, top - 9]]);
  put.text(group, "names", rows, (_, i) => [
    `sentence ${i}`, left - 8, top + i * high + high / 2 + 4,
    i === chosen ? "small end strong" : "small end",
    choosable(`choose sentence ${i}`, i === chosen, () => page.set({ sentence: i }))]);
  const name = ({ i, key }) => `${i}.${key}`, size = { width: cell, height: high };
  const place = ({ i, key }) => ({ x: left + key * cell, y: top + i * high, ...size });
  const links = ({ i, key }) => (i === chosen ? `key${key}` : "");
  const isHidden = ({ i, key }) => state.padding && !real[i][key];
  const fill = (one) => (isHidden(one) ? "var(--hidden)" : "var(--card)");
  put.rect(group, "cells", cells, (one) => ({
    ...place(one), class: "cell", fill: fill(one),
    ...told(maskedTokenWords(one, real, state.padding), links(one)) }), name);
  put.label(group, "words", cells, (one) => [
    fitted(one.token, cell - 1, 12), left + (one.key + 0.5) * cell,
    top + one.i * high + high / 2 + 4, "small middle", { fill: inkOn(fill(one)) }], name);
  put.rect(group, "chosen", [chosen], () => ({
    x: left - 1, y: top + chosen * high - 1, width: rows[0].length * cell + 2, height: high + 2,
    ...pen("--query", 2) }));
}

function maskedTokenWords({ i, key, token }, real, hidden) {
  if (real[i][key]) return `sentence ${i}, key ${key}: “${token}”`;
  return `sentence ${i}, key ${key}: padding, ${hidden ? "hidden" : "not hidden"}`;
}

// One square mask, queries downward and keys to the right.
function drawMaskGrid(group, { rows, n, chosen, cell, high, page }, left, top, mask) {
  const { heading, hides, names } = mask, cells = [];
  for (let query = 0; query < n; query++) {
    for (let key = 0; key < n; key++) cells.push({ query, key, why: hides(query, key) });
  }
  const tokens = rows[chosen];
  put.text(group, "title", [[fitted(heading, page.width - 4), left - MASK_NAMES, top - 25]]);
  put.label(group, "axis", [["query ↓   key →", left - MASK_NAMES, top - 7, "small"]]);
  put.label(group, "names", names, (name, i) =>
    [fitted(name, 76, 12), left - 8, top + i * high + high / 2 + 4, "small end"]);
  const name = ({ query, key }) => `${query}.${key}`;
  put.rect(group, "cells", cells, ({ query, key, why }) => ({
    x: left + key * cell, y: top + query * high, width: cell, height: high, class: "cell",
    fill: why.length ? "var(--hidden)" : "var(--key)",
    ...told(maskedPairWords(tokens, query, key, why), `pair${query}-${key} key${key}`) }), name);
  const hidden = cells.filter(({ why }) => why.length);
  put.label(group, "marks", hidden, ({ query, key }) => [
    "×", left + (key + 0.5) * cell, top + (query + 0.5) * high + 4, "small middle",
    { fill: inkOn("var(--hidden)") }], name);
}

function maskedPairWords(tokens, query, key, why) {
  const pair = `query ${query} “${tokens[query]}”, key ${key} “${tokens[key]}”`;
  const reasons = { padding: "the key is padding", later: "the key comes later" };
  const hidden = why.map((one) => reasons[one]).join(" and ");
  return `${pair}: ${hidden ? `hidden, ${hidden}` : "may attend"}`;
}

function maskFacts({ rows, n, chosen, hides, state }) {
  const all = [...Array(n).keys()];
  const count = all.map((query) => all.filter((key) => !hides(query, key).length).length);
  const sum = count.reduce((a, b) => a + b), empty = count.filter((one) => !one).length;
  const title = `Sentence ${chosen} may use ${sum} of its ${n * n} query-key pairs`;
  const pads = rows[chosen].filter((token) => token === PAD_WORD).length;
  const masks = masksTogether(state, rows.length, n, chosen);
  let said = `${masks.replace("s", "S")}. Padding: ${pads} of its ${n} tokens.`;
  if (empty) said += ` Queries without any key: ${empty}; attention gives zeros for them.`;
  return { title, said };
}
