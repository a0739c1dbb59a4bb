// Token by token: the model's probabilities, what a strategy does with them, and what is cached.

import { beamFacts, drawBeamTree } from "./beam_tree.js";
import { choosable, fitted, layer, put, set, textWidth, told, wrapped } from "./draw.js";
import { frame, remembered, shownWhile } from "./frame.js";
import { beamSearch, generate, likeliest, softmax } from "./generation.js";
import { chance, choiceByChance, drawNextToken, nextTokenFacts } from "./next_token.js";
import { inOneLine, textToGoOnFrom } from "./typed_sentence.js";
import { modelOf } from "./weights.js";

const MOST_BEGINNING = 12; // tokens of a prompt that are drawn
const OF_SAMPLE = ["temperature", "top_k", "top_p", "seed"];

export const DecodingStepper = (view) => frame(view, {
  name: "Decoding stepper",
  traits: ["text", "strategy", ...OF_SAMPLE, "width", "step"],
  controls: stepperControls, load: modelOf, draw: drawDecoding });

function stepperControls(make, page) {
  const offAt = (off) => (value) => (value === off ? "off" : String(value));
  const steps = () => [1, page.steps ?? 1];
  const only = (strategy, control) => shownWhile(page, "strategy", strategy, control);
  return [
    make.text("Text", "text", { size: 44 }),
    make.choice("Strategy", "strategy", ["greedy", "sample", "beam"]),
    only("sample", make.slider("Temperature", "temperature",
      [0.1, 5, 0.1])),
    only("sample", make.slider("top-k", "top_k",
      () => [0, Math.max(50, page.model.get("top_k"))], offAt(0))),
    only("sample", make.slider("top-p", "top_p",
      [0.05, 1, 0.05], offAt(1))),
    only("sample", make.slider("Seed", "seed", [0, 20])),
    only("beam", make.slider("Beam width", "width", [1, 5])),
    make.slider("Step", "step", steps),
    make.play("step", steps)];
}

function drawDecoding(state, page, { model, tokenizer }) {
  const vocabulary = new Set(page.model.get("source_words"));
  const text = textToGoOnFrom(state.text, vocabulary, model, tokenizer);
  if (typeof text === "string") return text;
  const knobs = { ...state, step: null };
  const decoding = remembered(page, "decoding", knobs, () =>
    decodingOf(model, tokenizer, text, state, page));
  page.steps = decoding.steps;
  const look = { ...decoding, state, at: Math.min(state.step, decoding.steps) - 1, page };
  const drawStep = state.strategy === "beam" ? drawBeamTree : drawNextToken;
  const tokens = layer(page.svg, "tokens"), group = onlyLayer(page, drawStep.name);
  const { width } = page, beside = width >= 700, right = beside ? Math.round(width * 0.32) : width;
  const x = width - right, room = { width: beside ? x - 28 : width, preview: page.preview };
  const { written, height, list, listed } = drawStep(group, look, room);
  const place = { x, y: beside ? 0 : height + 8, width: right };
  const high = drawTokens(tokens, look, written, place);
  if (list) list({ ...place, y: high + 6 });
  const end = { ...look, at: decoding.steps - 1 };
  const last = tokensPlaced(end, decoding.ids, place).bottom + 4;
  set(page.svg, { width, height: Math.max(height, last + (listed?.(right) ?? 0)) });
  const facts = (at) => decodingFacts({ ...look, at }, text.notes, tokenizer);
  const longest = remembered(page, "facts", knobs, () =>
    Array.from({ length: decoding.steps }, (_, at) => facts(at)));
  return { ...longest[look.at], longest };
}

function decodingFacts(look, notes, tokenizer) {
  const { title, said } = look.state.strategy === "beam" ? beamFacts(look) : nextTokenFacts(look);
  const words = [said, cacheWords(look), ...notes].join(" ");
  return { title, said: words + textWords(look, tokenizer) };
}

// The text so far; in a beam search, whose picture shows it, only in the end.
function textWords({ ids, steps, at, state }, tokenizer) {
  const ended = at === steps - 1;
  if (!ended && state.strategy === "beam") return "";
  const text = inOneLine(tokenizer.decode(ended ? ids : ids.slice(0, at + 1)));
  return ` Written ${ended ? "in the end" : "so far"}: “${text}”.`;
}

// The layer for one of two drawings; the other's is removed.
function onlyLayer(page, name) {
  const { layers } = page.svg;
  for (const [other, group] of layers) {
    if (!["tokens", name].includes(other)) {
      group.remove();
      layers.delete(other);
    }
  }
  return layer(page.svg, name);
}

// Lets the model write, and keeps the logits or the candidates of every step.
function decodingOf(model, tokenizer, { ids, translates }, state, page) {
  const start = translates ? [model.config.bos_id] : ids;
  const room = Math.min(page.model.get("max_new_tokens"), model.config.max_len - start.length);
  const token = (id) => tokenizer.token(id);
  if (page.model.get("end") === "softmax") model.run = softmaxAgain;
  const output = state.strategy === "beam" ? beamSearch(model, ids, room, { width: state.width }) :
    generate(model, ids, room, { choose: choiceOf(state) });
  model.run = (name, value) => value;
  return { ...output, start: start.map(token), source: translates ? ids.length : 0, token,
    steps: (output.tree ?? output.ids).length };
}

// The bug of lesson 14: probabilities under the name of logits.
function softmaxAgain(name, value) {
  if (name !== "logits") return value;
  for (let i = 0; i < value.rows; i++) value.row(i).set(softmax(value.row(i)));
  return value;
}

function choiceOf(state) {
  if (state.strategy === "greedy") return likeliest;
  const uniform = chance(state.seed);
  return (logits) => choiceByChance(logits, state, uniform()).chosen;
}

// How many tokens' keys and values a step computes, and how many it reuses.
function cacheUse({ start, at }) {
  return at === 0 ? { computed: start.length, reused: 0 } :
    { computed: 1, reused: start.length + at - 1 };
}

function cacheWords(look) {
  const { computed, reused } = cacheUse(look), { source, at } = look, all = computed + reused;
  const words = (old, fresh) => `${old} reused, ${fresh} computed`;
  const text = `With a cache: ${words(reused, computed)}; without, ${all} computed.`;
  const read = at === 0 ? words(0, source) : words(source, 0);
  return source ? `${text} Of the source: ${read}; without, ${source}.` : text;
}

// The tokens so far, each marked as cached, just read or chosen; returns where they end.
function drawTokens(group, look, written, { x, y, width }) {
  const { start, at } = look, n = start.length, hidden = hiddenOf(look);
  const { all, sign, labels, places, bottom } = tokensPlaced(look, written, { x, y, width });
  const meaning = { "=": "in the cache", "+": "read now", "▶": "chosen" };
  const legend = "= in the cache · + read now · ▶ chosen", more = `… ${hidden} more tokens · `;
  const link = ({ i }) => (i === n + at ? `token${written[at]}` : "");
  const tell = (one) => {
    const say = `token ${one.i}, “${one.word}”: ${meaning[sign(one.i)]}`;
    const go = () => look.page.set({ step: one.i - n + 1 });
    return one.i < n ? told(say) : choosable(say, one.i === n + at, go, link(one));
  };
  put.text(group, "legend", [legend], () =>
    [fitted(hidden ? more + legend : legend, width, 12), x, y + 12, "small"]);
  put.box(group, "boxes", all, (one, k) =>
    ({ ...places[k], rx: 7, word: labels[k], font: "size-13", ...tell(one) }), "i");
  return bottom + 4;
}

const hiddenOf = ({ start }) => Math.max(0, start.length - MOST_BEGINNING);

function tokensPlaced(look, written, { x, y, width }) {
  const { start, at, token } = look, { computed, reused } = cacheUse(look);
  const words = [...start, ...written.slice(0, at + 1).map(token)];
  const all = words.map((word, i) => ({ word, i })).slice(hiddenOf(look));
  const sign = (i) => (i < reused ? "=" : i < reused + computed ? "+" : "▶");
  const labels = all.map(({ word, i }) => `${sign(i)} ${fitted(word, 110, 13)}`.trim());
  const sizes = labels.map((label) => textWidth(label, 13) + 12);
  return { all, sign, labels, ...wrapped(sizes, { x, y: y + 20, width, high: 24 }) };
}
