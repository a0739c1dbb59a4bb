// Attention in the trained translator: who looks at whom, in every head, and why.

import { chainOf, drawSum } from "./attention_sum.js";
import { choosable, fitted, layer, put, set, signed, told } from "./draw.js";
import { frame, remembered } from "./frame.js";
import { generate, softmax } from "./generation.js";
import { firstLargest, fromLargest } from "./ranking.js";
import { headRows, mapShades } from "./small_map.js";
import { maskedSoftmax, watched } from "./transformer.js";
import { notesOn, readSentence, sourceIds } from "./typed_sentence.js";
import { modelOf } from "./weights.js";

const LONGEST_READ = 14, LONGEST_WRITTEN = 30, DRAWN_WRITTEN = 15;
const KINDS_OF_ATTENTION = {
  encoder: { name: "encoder self-attention", point: "self_attention", stack: "encoder" },
  decoder: { name: "decoder self-attention", point: "self_attention", stack: "decoder" },
  cross: { name: "cross-attention", point: "cross_attention", stack: "decoder" } };

export const AttentionExplorer = (view) => frame(view, {
  name: "Attention explorer",
  traits: ["sentence", "attention", "layer", "head", "query", "scaled", "temperature", "mask",
    "added"],
  controls: (make, page) => [
    make.text("Sentence", "sentence", { size: 38 }),
    make.choice("Attention", "attention", ["encoder", "decoder", "cross"]),
    make.toggle("÷ √d_head", "scaled"),
    make.slider("Temperature", "temperature", [0.1, 10, 0.1]),
    make.choice("Mask", "mask", ["own", "none", "causal"]),
    make.play("added", () => [0, page.steps ?? 1], 900)],
  load: modelOf, draw: drawAttention });

function drawAttention(state, page, { model, tokenizer }) {
  const vocabulary = new Set(page.model.get("source_words"));
  const reading = readSentence(state.sentence, vocabulary, ".");
  const { length } = reading.tokens;
  if (!length) return "There is no word to attend to: type a sentence.";
  if (length > LONGEST_READ) {
    return `The picture has room for ${LONGEST_READ} words and marks, and this sentence has ` +
      `${length}: shorten it.`;
  }
  const kind = KINDS_OF_ATTENTION[state.attention];
  const knobs = [reading.tokens, kind, state.scaled, state.temperature, state.mask];
  const attended = remembered(page, "attention", knobs, () => {
    const plain = remembered(page, "plain", reading.tokens, () =>
      generate(model, sourceIds(tokenizer, reading), LONGEST_WRITTEN).ids);
    return watchAttention(model, tokenizer, { reading, kind, state, plain });
  });
  const look = lookAt(attended, state, kind, model.config, page.preview);
  page.steps = look.chain.length;
  drawAttentionPanels(page, look);
  return attentionFacts(look, reading, attended);
}

// The heads; below them who looks at whom, with scores and weights; beside that the values' sum.
function drawAttentionPanels(page, look) {
  const { svg, width } = page, wide = width >= 720;
  const left = wide ? Math.round(width * 0.58) : width;
  const top = drawHeads(layer(svg, "heads"), look, page, width);
  const products = wide ? 84 : 90, rows = rowsOf(look, left, top, page.high - products);
  drawLooks(layer(svg, "looks"), look, page, rows);
  drawShares(layer(svg, "shares"), look, rows);
  const sum = wide ? { x: left + 28, y: top, width: width - left - 28,
    height: Math.max(260, rows.end + products - top) } :
    { x: 0, y: rows.end + 6, width, height: 270 };
  const below = wide ? rows.end : sum.y + sum.height + 12;
  drawProducts(layer(svg, "products"), look, { x: 0, y: below, width: left });
  drawSum(layer(svg, "sum"), look, page, sum);
  set(svg, { width, height: Math.max(below + products, sum.y + sum.height) });
}

// The layout: columns of queries, keys, scores and weights, with a row for each word.
function rowsOf({ queries, keys }, width, top, end) {
  const box = Math.min(104, width * 0.18), key = box + Math.min(140, width * 0.2);
  const score = key + box + 12, shares = width - score;
  const n = Math.max(queries.length, keys.length);
  const row = Math.max(13, Math.min(26, (end - top - 32) / n, 240 / n));
  const y = (i) => top + 24 + row * i;
  return { top, row, box, key, y, end: y(n) + 8, score: { x: score, width: shares * 0.5 - 10 },
    weight: { x: score + shares * 0.5 + 4, width: shares * 0.5 - 42 } };
}

// Translates with the knobs applied, and keeps what passes the hook points on the way.
function watchAttention(model, tokenizer, { reading, kind, state, plain }) {
  const ids = sourceIds(tokenizer, reading), seen = new Map();
  const { scaled, temperature, mask } = state;
  const turned = !scaled || temperature !== 1 || mask !== "own";
  const replace = turned ? turnedWeights(seen, kind, model.config, state) : {};
  const begun = (list) => [model.config.bos_id, ...list.filter((id) => id !== tokenizer.eosId)]
    .slice(0, DRAWN_WRITTEN);
  const draft = state.mask === "own" ? begun(plain).slice(1) : []; // else it would see the future
  const written = watched(model, { seen, replace }, () => {
    const output = turned ? generate(model, ids, LONGEST_WRITTEN, { draft }) : { ids: plain };
    if (!output.foreseen || output.ids.length > DRAWN_WRITTEN) {
      model.decode(begun(output.ids), model.encode(ids), ids);
    }
    return output.ids;
  });
  const logits = seen.get("logits"), texts = (list) => list.map((id) => tokenizer.token(id));
  const target = begun(written);
  const next = target.map((_, i) => {
    const shares = softmax(logits.row(i)), best = fromLargest([...shares], 2);
    return best.map((id) => [tokenizer.token(id), shares[id]]);
  });
  return { seen, read: [...reading.tokens, "<eos>"], target: texts(target), next,
    text: shortened(tokenizer.decode(written)), plain: shortened(tokenizer.decode(plain)) };
}

// A text, cut off where the drawing ends.
function shortened(text) {
  const all = text.split(" ");
  return all.length < DRAWN_WRITTEN ? text : `${all.slice(0, DRAWN_WRITTEN - 1).join(" ")} …`;
}

// Replacements of the weights in every layer: softmax of the scores as the knobs change them.
function turnedWeights(seen, kind, config, state) {
  const layers = [...Array(config.n_layers).keys()];
  return Object.fromEntries(layers.map((i) => {
    const point = `${kind.stack}.${i}.${kind.point}`;
    const turn = () => {
      const scores = turnedScores(seen.get(`${point}.scores`), config, state);
      return maskedSoftmax(scores, seesBy(kind, state.mask, scores.shape));
    };
    return [`${point}.weights`, turn];
  }));
}

const turnedScores = (scores, { d_model: d, n_heads: n }, { scaled, temperature }) =>
  scores.map((score) => (score * (scaled ? 1 : Math.sqrt(d / n))) / temperature);

// Which query may use which key; while a text is generated, the queries are its last words.
function seesBy({ stack, point }, mask, [, queries, keys]) {
  const itself = point === "self_attention", before = itself ? keys - queries : 0;
  const causal = mask === "causal" || (mask === "own" && itself && stack === "decoder");
  return (query, key) => !causal || key <= query + before;
}

// Everything that the picture shows about the chosen query and the key under the pointer.
function lookAt({ seen, read, target }, state, kind, config, preview) {
  const queries = kind.stack === "encoder" ? read : target;
  const words = kind.name === "decoder self-attention" ? target : read;
  const query = Math.min(state.query, queries.length - 1);
  const head = Math.min(state.head, config.n_heads - 1);
  const layer = Math.min(state.layer, config.n_layers - 1);
  const at = (part) => seen.get(`${kind.stack}.${layer}.${kind.point}.${part}`);
  const asking = (tensor) => tensor.row(head * queries.length + query);
  const offering = (tensor, j) => tensor.row(head * words.length + j);
  const sees = seesBy(kind, state.mask, at("scores").shape), weights = asking(at("weights"));
  const scores = asking(turnedScores(at("scores"), config, state));
  const keys = words.map((word, j) => ({
    word, j, seen: sees(query, j), score: scores[j], weight: weights[j],
    key: offering(at("keys"), j), value: offering(at("values"), j) }));
  const pointed = preview === null ? firstLargest([...weights]) : Number(preview);
  const output = asking(at("heads")), chain = chainOf(keys, output);
  return { queries, keys, query, head, layer, kind, config, pointed, q: asking(at("queries")),
    output, chain, added: Math.min(state.added, chain.length),
    weights: (i) => seen.get(`${kind.stack}.${i}.${kind.point}.weights`) };
}

function drawLooks(group, look, page, { top, row, box, key, y }) {
  const { queries, keys, query, head } = look, all = look.weights(look.layer);
  const ribbons = queries.flatMap((_, i) => keys.map(({ j }) => ({
    i, j, weight: all.row(head * queries.length + i)[j] })));
  const shown = ribbons.filter(({ weight }) => weight >= 0.02), middle = (box + key) / 2;
  put.path(group, "ribbons", shown, ({ i, j, weight }) => ({
    class: "ribbon", opacity: i === query ? 0.8 : 0.07, "stroke-width": 1 + row * 0.5 * weight,
    d: `M${box} ${y(i + 0.5)}C${middle} ${y(i + 0.5)} ${middle} ${y(j + 0.5)} ${key} ${y(j + 0.5)}`,
    "data-links": i === query ? `key${j}` : "" }), ({ i, j }) => `${i}.${j}`);
  const names = box < 70 ? ["from", "looks at"] : ["who looks", "looked at"];
  put.text(group, "names", names, (text, i) => [text, i ? key : 0, top + 14, "small"]);
  drawWordColumn(layer(group, "queries"), queries, { x: 0, y, row, box }, (word, i) =>
    choosable(`query ${i}, “${word}”`, i === query, () => page.set({ query: i })));
  drawWordColumn(layer(group, "keys"), keys.map(({ word }) => word), { x: key, y, row, box },
    (word, j) => ({
      ...told(`“${word}” gets ${keys[j].seen ? keys[j].weight.toFixed(3) : "nothing: masked"}`,
        `key${j}`), "data-preview": j }));
}

function drawWordColumn(group, words, { x, y, row, box }, describe) {
  put.rect(group, "boxes", words, (word, i) =>
    ({ class: "box", x, y: y(i) + 1, width: box, height: row - 2, rx: 6, ...describe(word, i) }));
  put.label(group, "words", words, (word, i) =>
    [fitted(word, box - 6), x + box / 2, y(i + 0.5) + 5, row < 17 ? "middle size-12" : "middle"]);
}

// A small map of every head, as a button; returns where they end.
function drawHeads(group, look, page, width) {
  const { n_layers: layers, n_heads: heads } = look.config;
  const across = width >= 540 ? heads * layers : heads, step = Math.min(56, width / across);
  const side = step - 7, all = Array.from({ length: layers * heads }, (_, i) => i);
  const place = (i) => [(i % across) * step + 1, 20 + Math.floor(i / across) * (side + 20)];
  const number = (i) => [Math.floor(i / heads), i % heads];
  const title = `${look.kind.name}, block.head: who looks ↓ at whom →`;
  put.text(group, "title", [[fitted(title, width, 12), 0, 12, "small"]]);
  put.rect(group, "boxes", all, (i) => {
    const [l, h] = number(i), chosen = l === look.layer && h === look.head;
    return { class: "box", x: place(i)[0], y: place(i)[1], width: side, height: side, rx: 6,
      ...choosable(`block ${l}, head ${h}`, chosen, () => page.set({ layer: l, head: h })) };
  }, String);
  const levels = all.flatMap((i) =>
    mapShades(i, headRows(look.weights(number(i)[0]), number(i).at(-1)), place(i), side));
  put.path(group, "maps", levels);
  put.label(group, "names", all, (i) =>
    [number(i).join("."), place(i)[0] + side / 2, place(i)[1] + side + 13, "small middle"], String);
  return place(all.at(-1))[1] + side + 24;
}

function drawShares(group, { keys }, { top, row, y, score: left, weight: right }) {
  const seen = keys.filter((key) => key.seen), room = left.width - 38;
  const low = Math.min(0, ...seen.map(({ score }) => score));
  const high = Math.max(1e-9, ...seen.map(({ score }) => score));
  const unit = room / (high - low), zero = left.x - low * unit, high15 = Math.min(15, row - 5);
  const bar = (j) => ({ y: y(j + 0.5) - high15 / 2, height: high15 });
  const [first, second] = left.width < 70 ? ["score", "weight"] : ["1 · score", "2 · weight"];
  const titles = [[first, left.x], [second, right.x]];
  put.text(group, "titles", titles, ([text, x]) => [text, x, top + 14, "strong size-13"]);
  put.rect(group, "scores", seen, ({ word, score, j }) => ({
    x: zero + Math.min(0, score * unit), ...bar(j), fill: signed(score, high - low),
    width: Math.max(1, Math.abs(score * unit)),
    ...told(`score of “${word}”: ${score.toFixed(2)}`, `key${j}`), "data-preview": j }), "j");
  put.rect(group, "weights", seen, ({ word, weight, j }) => ({
    x: right.x, ...bar(j), fill: "var(--key)", width: Math.max(1, weight * right.width),
    ...told(`weight of “${word}”: ${weight.toFixed(3)}`, `key${j}`), "data-preview": j }), "j");
  put.label(group, "numbers", seen, ({ score, j }) =>
    [score.toFixed(2), left.x + left.width, y(j + 0.5) + 4, "small end"], "j");
  put.label(group, "shares", keys, ({ weight, seen: may, j }) => [
    may ? weight.toFixed(2) : right.width < 60 ? "×" : "× masked",
    right.x + 5 + (may ? weight * right.width : 0), y(j + 0.5) + 4, may ? "number" : "small"], "j");
}

function drawProducts(group, look, { x, y, width }) {
  const { word, key, score } = look.keys[look.pointed], { q } = look;
  const products = [...q].map((value, i) => value * key[i]), step = width / q.length;
  const high = Math.max(0, ...products), low = Math.min(0, ...products);
  const unit = 56 / (high - low || 1), middle = y + 24 + high * unit, largest = high - low;
  const sum = products.reduce((a, b) => a + b, 0).toFixed(2), from = look.queries[look.query];
  const pair = `“${fitted(from, 90)}” · “${fitted(word, 90)}” = ${sum}`;
  const how = width < 400 ? "" : ", number by number";
  const title = `${pair}${how}; as score ${score.toFixed(2)}`;
  put.text(group, "title", [[fitted(title, width, 12), x, y + 14, "small"]]);
  put.rect(group, "bars", products, (product, i) => ({
    x: x + i * step + 1, width: step - 2, y: middle - Math.max(0, product * unit),
    height: Math.max(1, Math.abs(product * unit)), fill: signed(product, largest),
    ...told(`number ${i}: ${q[i].toFixed(2)} × ${key[i].toFixed(2)} = ${product.toFixed(2)}`) }));
  put.path(group, "axis", [{ d: `M${x} ${middle}h${width}`, class: "axis" }]);
}

function attentionFacts(look, reading, { text, plain, next }) {
  const { keys, queries, query, kind } = look, from = queries[query];
  const best = fromLargest(keys.map(({ weight }) => weight), 3).filter((j) => keys[j].seen);
  const gives = best.map((j) => `${keys[j].weight.toFixed(2)} to “${keys[j].word}”`).join(", ");
  const most = `“${keys[best[0]].word}” (${keys[best[0]].weight.toFixed(2)})`;
  const where = `Head ${look.head} of block ${look.layer}, ${kind.name}, d_head ${look.q.length}`;
  const writes = kind.stack === "decoder";
  const likely = next[query]?.map(([word, p]) => `“${word}” (${p.toFixed(2)})`);
  const then = writes ? ` After “${from}” comes ${likely[0]}, or else ${likely[1]}.` : "";
  const whole = text === plain ? `The model writes “${text}”.` :
    `With these knobs the model writes “${text}” instead of “${plain}”.`;
  return {
    title: `From “${from}”, this head looks mostly at ${most}`,
    said: [`${where}: “${from}” gives ${gives}.${then} ${whole}`, ...notesOn(reading)].join(" ") };
}
