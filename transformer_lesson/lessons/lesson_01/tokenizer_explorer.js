// One text as words, characters and byte pairs, with the byte pairs' merges one by one.

import { fitted, layer, put, textWidth, told } from "../../explorables/web/draw.js";
import { frame, remembered } from "../../explorables/web/frame.js";
import { BytePairTokenizer, tokenizerFromJson, visible } from "../../explorables/web/tokenizers.js";

export function TokenizerExplorer(view) {
  const { model } = view;
  const sizes = () => [model.get("sizes")[0], model.get("sizes")[1], 10];
  return frame(view, {
    name: "Tokenizer explorer",
    traits: ["text", "bpe_size", "step", "most", "sizes", "tokenizers"],
    controls: (make, page) => {
      const ends = () => [0, page.steps ?? 0];
      const words = (step) => `${step} of ${page.steps ?? 0}`;
      return [
        make.text("Text", "text", { size: 46 }),
        make.slider("Byte-pair vocabulary", "bpe_size", sizes),
        make.slider("Merges made", "step", ends, words),
        make.play("step", ends, 600)];
    },
    draw: drawTokenizers });
}

const ROW_COLORS = { "words": "--value", "characters": "--query", "byte pairs": "--key" };

function drawTokenizers(state, page) {
  const typed = state.text.replace(/\p{Surrogate}/gu, "?"), { svg, width } = page;
  if (!typed.trim()) return "There is nothing to split: type a few words.";
  const length = [...typed].length;
  if (length > state.most) {
    return `This text has ${length.toLocaleString("en")} characters and the picture has room ` +
      `for ${state.most}: shorten it.`;
  }
  const tokenizers = tokenizersOf(page, state), bytePairs = tokenizers["byte pairs"];
  const steps = mergeSteps(bytePairs, typed);
  page.steps = steps.length - 1;
  const now = Math.min(state.step, page.steps);
  const known = ["words", "characters"].map((name) => knownTokens(name, tokenizers[name], typed));
  const pairs = remembered(page, "merged", [typed, state.bpe_size], () =>
    steps.map((step) => pairTokens(bytePairs, typed, step)));
  const rows = [...known, { ...pairs[now], played: pairs }];
  const longest = pairs.map((one, step) => tokenFacts([...known, one], steps, step, bytePairs));
  const most = rows.map(({ tokens, tokenizer }) => [tokens.length, tokenizer.vocabSize]);
  const largest = [0, 1].map((i) => Math.max(...most.map((pair) => pair[i])));
  let top = 0;
  for (const { name } of rows) layer(svg, name);
  const order = width < 620 ? [2, 0, 1] : [0, 1, 2]; // on a phone what the sliders change is first
  for (const i of order) top = drawTokenRow(layer(svg, rows[i].name), rows[i], top, width, largest);
  return { ...longest[now], longest, height: top };
}

// The three tokenizers; that of the byte pairs has as many merges as fit into its vocabulary.
function tokenizersOf(page, { tokenizers, bpe_size: size, sizes }) {
  page.tokenizers ??= Object.fromEntries(Object.entries(tokenizers).map(([name, json]) =>
    [name, tokenizerFromJson(json)]));
  const merges = [...page.tokenizers["byte pairs"].ranks.keys()].slice(0, size - sizes[0]);
  const pairs = remembered(page, "pairs", size, () => new BytePairTokenizer(merges));
  return { ...page.tokenizers, "byte pairs": pairs };
}

// The tokens of a text for a tokenizer that only splits text; unknown ones as they were typed.
function knownTokens(name, tokenizer, text) {
  const ids = tokenizer.encode(text);
  let end = 0;
  const tokens = tokenizer.split(text).map((piece, i) => {
    const from = text.indexOf(piece, end);
    end = from + piece.length;
    return { key: i, text: visible(piece), id: ids[i], from, to: end,
      unknown: ids[i] === tokenizer.unkId };
  });
  const back = tokenizer.decode(ids);
  return { name, tokenizer, tokens, back, kept: back === text };
}

// The states of a text's byte pairs: single bytes, then the pieces after each merge.
function mergeSteps(tokenizer, text) {
  let byte = 0;
  let pieces = tokenizer.split(text).map((parts) => parts.map((part) => ({ part, from: byte++ })));
  const steps = [{ pieces }];
  for (;;) {
    const pairs = pieces.flatMap((parts) =>
      parts.slice(1).map(({ part }, i) => [parts[i].part, part]));
    const rank = (pair) => tokenizer.ranks.get(pair.join(" ")) ?? Infinity;
    const pair = pairs.reduce((best, one) => (rank(one) < rank(best) ? one : best), ["", ""]);
    if (rank(pair) === Infinity) return steps;
    pieces = pieces.map((parts) => joinedAt(parts, pair));
    steps.push({ pieces, pair, merge: rank(pair) });
  }
}

// A piece's parts with each occurrence of this pair merged, from the left.
function joinedAt(parts, [left, right]) {
  const result = [];
  for (let i = 0; i < parts.length; i++) {
    const isPair = parts[i].part === left && parts[i + 1]?.part === right;
    result.push(isPair ? { ...parts[i], part: left + right } : parts[i]);
    if (isPair) i++;
  }
  return result;
}

function pairTokens(tokenizer, text, { pieces, pair }) {
  const encoder = new TextEncoder();
  // For each byte, where its character begins.
  const starts = [...text.matchAll(/./gsu)].flatMap(({ 0: letter, index }) =>
    Array(encoder.encode(letter).length).fill(index));
  const parts = pieces.flat(), ids = parts.map(({ part }) => tokenizer.ids.get(part));
  const tokens = parts.map(({ part, from: byte }, i) => {
    const from = starts[byte], to = starts[byte + part.length - 1] + 1;
    return { key: byte, text: tokenizer.token(ids[i]), id: ids[i], bytes: part.length, from, to,
      letters: text.slice(from, to).match(/[a-z]/gi) ?? [], fresh: part === pair?.join("") };
  });
  const back = tokenizer.decode(ids);
  return { name: "byte pairs", tokenizer, tokens, back, kept: back === text };
}

// One tokenizer's heading, costs, tokens and round trip. Returns where the next one begins, with
// room for the most lines that Play passes.
function drawTokenRow(group, row, top, width, [mostTokens, mostWords]) {
  const { name, tokens, tokenizer, back, kept, played = [row] } = row;
  const color = `var(${ROW_COLORS[name]})`;
  const costs = [
    { text: `${tokens.length} tokens`, part: tokens.length / mostTokens },
    { text: `vocabulary ${tokenizer.vocabSize}`, part: tokenizer.vocabSize / mostWords }];
  const wide = width >= 620, start = wide ? 100 : 0, half = (width - start) / 2;
  const y = wide ? top + 14 : top + 32, label = (i) => (wide ? [72, 114][i] : 0);
  put.text(group, "name", [[name, 0, top + 14, "strong"]]);
  put.rect(group, "bars", costs, ({ text, part }, i) => ({
    x: start + i * half + label(i), y: wide ? y - 9 : y + 5, height: wide ? 9 : 6, rx: 3,
    width: Math.max(2, part * (half - 16 - label(i))), fill: color, ...told(`${name}: ${text}`) }));
  put.label(group, "costs", costs, ({ text }, i) => [text, start + i * half, y, "small"]);
  const place = (tokens) => inLines(tokens, y + (wide ? 10 : 18), width);
  const placed = place(tokens), bottom = placed.at(-1).y + 48;
  const lowest = Math.max(...played.map(({ tokens }) => place(tokens).at(-1).y)) + 48;
  drawTokenBoxes(group, row, placed, color);
  const mark = kept ? "✓ the same text" : "✗ not the same text";
  put.text(group, "back", [back], () => [
    fitted(`decoded, ${mark}: ${visible(back).replaceAll("␣", " ")}`, width, 12), 0, bottom + 11,
    "small"]);
  return lowest + 32;
}

const UNTOLD = { "aria-label": null, role: null, tabindex: null, "data-links": null };
const captionOf = ({ id, unknown }) => (unknown ? `? unknown ${id}` : String(id));

// Lays tokens out in lines, like words on a page.
function inLines(tokens, top, width) {
  let x = 0, y = top;
  return tokens.map((token) => {
    const words = Math.max(textWidth(token.text, 14), textWidth(captionOf(token), 12));
    const wide = Math.min(width, Math.ceil(words) + 10);
    if (x + wide > width) [x, y] = [0, y + 48];
    const place = { ...token, x, y, wide };
    x += wide + 2;
    return place;
  });
}

// A box that was merged away stays, invisible, where it was merged, so that pieces move together.
function drawTokenBoxes(group, { name }, placed, color) {
  const taken = placed.flatMap((token) => Array.from({ length: (token.bytes ?? 1) - 1 }, (_, i) =>
    ({ ...token, key: token.key + i + 1, taken: true })));
  const boxes = [...taken, ...placed].sort((a, b) => a.key - b.key); // read aloud in this order
  put.rect(group, "boxes", boxes, (token) => ({
    x: token.x, y: token.y, width: token.wide, height: 44, rx: 6, opacity: token.taken ? 0 : 1,
    fill: `color-mix(in oklab, ${color} ${token.unknown ? 0 : 16}%, var(--paper))`,
    stroke: token.fresh ? "var(--focus)" : color, "stroke-width": token.fresh ? 3 : 1,
    "stroke-dasharray": token.unknown ? "4 3" : null, "pointer-events": token.taken ? "none" : null,
    ...(token.taken ? UNTOLD : told(tokenWords(name, token), charLinks(token))) }));
  const texts = placed.flatMap(({ key, x, y, wide, text, ...token }) => [
    { key: `${key}`, text: fitted(text, wide - 6), x: x + wide / 2, y: y + 20, class: "middle" },
    { key: `${key} id`, text: captionOf(token), x: x + wide / 2, y: y + 37, class: "small middle" },
  ]);
  put.label(group, "texts", texts);
}

const tokenWords = (name, { text, id, unknown, fresh }) =>
  `${name}: “${text}”, ${unknown ? "unknown, " : ""}id ${id}${fresh ? ", just joined" : ""}`;

// Tokens of any kind that hold the same character light up together.
const charLinks = ({ from, to }) =>
  Array.from({ length: to - from }, (_, i) => `char${from + i}`).join(" ");

function tokenFacts(rows, steps, now, pairs) {
  const counts = rows.map(({ name, tokens }) => `${tokens.length} as ${name}`);
  const title = `Tokens: ${counts.join(", ")}`;
  const lost = rows.map(({ name, tokens, kept }) =>
    `${name}: ${tokens.filter(({ unknown }) => unknown).length} unknown, ` +
    `decoded as ${kept ? "the same" : "another"} text`);
  const alone = now < steps.length - 1 ? "" : loneLetters(rows.at(-1).tokens);
  return { title, said: `${mergeWords(steps, now, pairs)} ${lost.join("; ")}.${alone}` };
}

// A sentence on the letters at the end of a text that share no piece with another letter, if any.
function loneLetters(pieces) {
  const first = pieces.findLastIndex(({ letters }) => letters.length > 1) + 1;
  const lone = pieces.slice(first).flatMap(({ letters }) => letters).join("").toLowerCase();
  return lone ? ` Letters at the end that have a piece to themselves: “${lone}”.` : "";
}

function mergeWords(steps, now, pairs) {
  if (!now) return `No merge yet: every byte is a token; ${steps.length - 1} merges follow.`;
  const { pair, merge } = steps[now], id = (part) => pairs.ids.get(part);
  const [left, right, both] = [...pair, pair.join("")].map((part) => `“${pairs.token(id(part))}”`);
  return `Step ${now} of ${steps.length - 1}: ${left} and ${right} become ${both}, ` +
    `merge ${merge + 1} of ${pairs.ranks.size}, id ${id(pair.join(""))}.`;
}
