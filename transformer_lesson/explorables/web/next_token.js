// One choice of a token: the model's probabilities, what the knobs do to them, and the draw.

import { fitted, layer, put, told } from "./draw.js";
import { draw, likeliest, sampleProbabilities, softmax } from "./generation.js";
import { fromLargest } from "./ranking.js";

const MOST_BARS = 10;

// A seeded generator of pseudorandom numbers in [0, 1): mulberry32.
export function chance(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

// The distribution after the knobs, and the token that `uniform` draws from it.
export function choiceByChance(logits, { temperature, top_k: k, top_p: p }, uniform) {
  const topK = k || null, topP = p === 1 ? null : p;
  const final = sampleProbabilities(logits, { temperature, topK, topP });
  return { final, topK, chosen: draw(final, uniform) };
}

// The same, with the distributions on the way: the model's own, heated, and cut by top-k alone.
function stagesOf(logits, state, uniform) {
  const { temperature } = state, last = choiceByChance(logits, state, uniform);
  return { ...last, uniform, model: softmax(logits),
    heated: sampleProbabilities(logits, { temperature }),
    filtered: sampleProbabilities(logits, { temperature, topK: last.topK }) };
}

function lookOfChoice({ logits, state, at, token }) {
  const greedy = state.strategy === "greedy", uniform = chance(state.seed);
  const draws = Array.from({ length: at + 1 }, uniform);
  const stages = greedy ? { model: softmax(logits[at]), chosen: likeliest(logits[at]) } :
    stagesOf(logits[at], state, draws[at]);
  const shown = fromLargest([...stages.model], MOST_BARS);
  if (!shown.includes(stages.chosen)) shown[shown.length - 1] = stages.chosen;
  const { model, heated, filtered, final } = stages;
  const cutBy = (id) => (final[id] || !heated[id] ? "" : filtered[id] ? "top-p" : "top-k");
  const rows = shown.map((id) => ({ id, word: token(id), cut: greedy ? "" : cutBy(id) }));
  const ofModel = { name: "the model", short: "model", values: model, fill: "var(--key)" };
  const columns = greedy ? [ofModel] : [
    ofModel,
    { name: `temperature ${state.temperature}`, short: `÷ ${state.temperature}`, values: heated, fill: "var(--query)" },
    { name: "drawn from", short: "drawn", values: final, fill: "var(--value)" }];
  return { ...stages, greedy, rows, columns, cutBy, state };
}

// Draws one step; returns the written ids and the drawing's height.
export function drawNextToken(group, decoding, { width }) {
  const look = lookOfChoice(decoding), end = drawStages(group, look, width);
  return { written: decoding.ids, height: drawTheDraw(layer(group, "draw"), look, width, end) };
}

export function nextTokenFacts(decoding) {
  const look = lookOfChoice(decoding), { token, at, steps } = decoding;
  const word = `“${token(look.chosen)}”`, own = chanceWords(look.model[look.chosen]);
  const share = (id) => look.model[id].toFixed(3);
  const best = look.rows.slice(0, 3).map((row) => `“${row.word}” ${share(row.id)}`).join(", ");
  const title = look.greedy ? `${word} is the likeliest next token (${own})` :
    `${word} was drawn with probability ${chanceWords(look.final[look.chosen])}`;
  const begin = look.greedy ? `Likeliest for the model: ${best}. ` : "";
  return { title: `Step ${at + 1} of ${steps}: ${title}`,
    said: begin + choiceWords(look, word, own) };
}

// The text of a probability that is not 0.
const chanceWords = (share) => share < 0.0005 ? "less than 0.001" : share.toFixed(3);

function choiceWords({ greedy, final, cutBy, uniform, state }, word, own) {
  if (greedy) return `Greedy takes the likeliest, ${word}.`;
  const all = [...final.keys()], count = (by) => all.filter((id) => cutBy(id) === by).length;
  const kept = all.filter((id) => final[id] > 0).length;
  return `At temperature ${state.temperature}, ${count("top-k")} tokens are cut by top-k, ` +
    `${count("top-p")} by top-p, ${kept} kept. The draw ${uniform.toFixed(4)} fell on ${word}, ` +
    `to which the model gave ${own}.`;
}

// A row for each token, one for all others, and a column for each stage; all bars have one scale.
function drawStages(group, { rows, columns, chosen, model }, width) {
  const others = { id: "rest", word: `${model.length - rows.length} others`, cut: "" };
  const name = width >= 540 ? 120 : 90, wide = (width - name) / columns.length, low = wide < 110;
  const high = low ? 28 : 21, top = (i) => 22 + high * i, all = [...rows, others];
  const shares = ({ values }) => [restOf(values, rows), ...rows.map(({ id }) => values[id])];
  const largest = Math.max(...columns.flatMap(shares));
  const at = rows.findIndex(({ id }) => id === chosen);
  put.rect(group, "chosen", [at], () =>
    ({ x: 0, y: top(at) - 1, width, height: high - 1, rx: 6, class: "box" }));
  put.text(group, "titles", columns, (column, c) => [
    low ? column.short : column.name, name + c * wide, 12, "small",
  ], (_, c) => c);
  put.text(group, "words", all, ({ id, word }, i) => [
    (id === chosen ? "▶ " : "") + fitted(word, name - (id === chosen ? 28 : 10)), name - 8,
    top(i) + 15, "end", told(`“${word}”${id === chosen ? ", chosen" : ""}`, `token${id}`)], "id");
  const cells = columns.flatMap((column, c) => all.map((row, i) => cellOf(column, row, rows, {
    c, x: name + c * wide, y: top(i), unit: (low ? wide - 8 : wide - 62) / largest, low })));
  drawStageCells(group, cells);
  return top(all.length) + 4;
}

const restOf = (values, rows) => Math.max(0, 1 - rows.reduce((sum, { id }) => sum + values[id], 0));

function cellOf({ name, values, fill }, { id, word, cut }, rows, place) {
  const share = id === "rest" ? restOf(values, rows) : values[id], gone = place.c === 2 && cut;
  return { ...place, id, fill, long: share * place.unit,
    text: gone ? `✗ ${cut}` : share.toFixed(3),
    words: `“${word}”, ${name}: ${gone ? `cut by ${cut}` : share.toFixed(3)}` };
}

function drawStageCells(group, cells) {
  const key = ({ c, id }) => `${c}.${id}`;
  put.rect(group, "bars", cells, ({ x, y, fill, long, low, words, id }) => ({
    x, y: y + 3, height: low ? 10 : 14, width: Math.max(1, long), fill, rx: 2,
    ...told(words, `token${id}`) }), key);
  put.label(group, "numbers", cells, ({ x, y, long, low, text }) =>
    [text, low ? x : x + 5 + long, y + (low ? 24 : 15), "small"], key);
}

// The tokens side by side, each as wide as it is likely, and the number that picks one of them.
function drawTheDraw(group, { greedy, final, chosen, uniform, rows, columns }, width, y) {
  let before = 0;
  const places = greedy ? [] : [...final].map((share) => [before, (before += share)]);
  const shown = (greedy ? [] : rows.filter(({ id }) => final[id] > 0)).sort((a, b) => a.id - b.id);
  const strip = greedy ? [] : [uniform];
  put.text(group, "name", strip, () => [
    fitted(`the draw ${uniform.toFixed(4)}: each token as wide as it is likely`, width, 12), 0,
    y + 12, "small"]);
  put.rect(group, "all", strip, () => ({ x: 0, y: y + 28, width, height: 20, class: "box" }));
  put.rect(group, "places", shown, ({ id, word }) => ({
    x: places[id][0] * width, y: y + 28, width: Math.max(1, final[id] * width), height: 20,
    fill: id === chosen ? columns[2].fill : "var(--hidden)", class: "cell",
    ...told(`“${word}” lies from ${places[id].map((end) => end.toFixed(3)).join(" to ")}`,
      `token${id}`) }), "id");
  put.path(group, "needle", strip, () => ({
    d: `M${uniform * width} ${y + 52}v-24l-6 -10h12l-6 10z`, fill: "var(--ink)",
    stroke: "var(--ink)", "stroke-width": 2,
    ...told(`the draw ${uniform.toFixed(4)} falls on this token`, `token${chosen}`) }));
  return greedy ? y : y + 56;
}
