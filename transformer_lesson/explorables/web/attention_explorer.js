// Attention in the trained translator: who looks at whom, in every head, and how it comes about.

import { choosable, fitted, join, layer, set, shade, signed, told } from "./draw.js";
import { frame, remembered } from "./frame.js";
import { generate, softmax } from "./generation.js";
import { firstLargest, fromLargest } from "./ranking.js";
import { mapShades } from "./small_map.js";
import { maskedSoftmax, watched } from "./transformer.js";
import { readSentence, sourceIds } from "./typed_sentence.js";
import { modelOf } from "./weights.js";

const LONGEST_READ = 14, LONGEST_WRITTEN = 30;
const KINDS_OF_ATTENTION = {
  encoder: { name: "encoder self-attention", point: "self_attention", stack: "encoder" },
  decoder: { name: "decoder self-attention", point: "self_attention", stack: "decoder" },
  cross: { name: "cross-attention", point: "cross_attention", stack: "decoder" },
};

export function AttentionExplorer(view) {
  return frame(view, {
    name: "Attention explorer",
    traits: ["sentence", "attention", "layer", "head", "query", "scaled", "temperature", "mask"],
    controls: (make) => [
      make.text("Sentence", "sentence", { size: 44 }),
      make.choice("Attention of", "attention", () => [
        ["encoder", "read to read"], ["decoder", "written to written"],
        ["cross", "written to read"],
      ]),
      make.toggle("divide by √d_head", "scaled"),
      make.slider("Temperature", "temperature", () => ({ min: 0.1, max: 10, step: 0.1 })),
      make.choice("Mask", "mask", () => [["own", "own"], ["none", "none"], ["causal", "causal"]]),
    ],
    load: modelOf,
    draw: drawAttention,
  });
}

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
    const plain = remembered(page, "plain", reading.tokens, () => {
      return generate(model, sourceIds(tokenizer, reading), LONGEST_WRITTEN).ids;
    });
    return watchAttention(model, tokenizer, { reading, kind, state, plain });
  });
  const look = lookAt(attended, state, kind, model.config, page.preview);
  drawAttentionPanels(page, look);
  return attentionFacts(look, reading, attended);
}

// Words and heads side by side where there is room, and below them the three steps.
function drawAttentionPanels(page, look) {
  const { svg, width } = page, wide = width >= 820, gap = 30;
  const longest = 54 * Math.max(look.keys.length, look.queries.length); // or the picture scrolls
  const left = wide ? Math.round(width * 0.62) : Math.max(width, longest);
  const heads = wide ? { x: left + gap, y: 0, width: width - left - gap } : { x: 0, y: 300, width };
  const tall = drawHeads(layer(svg, "heads"), look, page, heads);
  drawLooks(layer(svg, "looks"), look, page, left, wide ? tall - 20 : 290);
  const columns = wide ? 3 : width >= 540 ? 2 : 1, panel = (width - gap * (columns - 1)) / columns;
  let [x, y, high] = [0, heads.y + tall, 0];
  for (const [name, drawPanel] of Object.entries({ drawProducts, drawShares, drawSum })) {
    if (x > width - panel + 1) [x, y, high] = [0, y + high, 0];
    high = Math.max(high, drawPanel(layer(svg, name), look, { x, y, width: panel }));
    x += panel + gap;
  }
  set(svg, { width: wide ? width : left, height: y + high });
}

// Translates with the knobs turned, and keeps what passed every hook point on the way.
function watchAttention(model, tokenizer, { reading, kind, state, plain }) {
  const ids = sourceIds(tokenizer, reading), seen = new Map(), turned = isTurned(state);
  const replace = turned ? turnedWeights(seen, kind, model.config, state) : {};
  const begun = (list) => [model.config.bos_id, ...list.filter((id) => id !== tokenizer.eosId)];
  const draft = state.mask === "own" ? begun(plain).slice(1) : []; // or it sees what comes later
  const written = watched(model, { seen, replace }, () => {
    const made = turned ? generate(model, ids, LONGEST_WRITTEN, { draft }) : { ids: plain };
    if (!made.foreseen) model.decode(begun(made.ids), model.encode(ids), ids);
    return made.ids;
  });
  const logits = seen.get("logits"), texts = (list) => list.map((id) => tokenizer.token(id));
  const target = begun(written);
  const next = target.map((_, i) => {
    const shares = softmax(logits.row(i)), best = fromLargest([...shares], 2);
    return best.map((id) => [tokenizer.token(id), shares[id]]);
  });
  return { seen, read: [...reading.tokens, "<eos>"], target: texts(target), next,
    text: tokenizer.decode(written), plain: tokenizer.decode(plain) };
}

function isTurned({ scaled, temperature, mask }) {
  return !scaled || temperature !== 1 || mask !== "own";
}

// What replaces the weights in every layer: softmax of the scores as the knobs want them.
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

function turnedScores(scores, { d_model: d, n_heads: n }, { scaled, temperature }) {
  return scores.map((score) => (score * (scaled ? 1 : Math.sqrt(d / n))) / temperature);
}

// Which query may use which key: where a text is written, the queries are its last words.
function seesBy({ stack, point }, mask, [, queries, keys]) {
  const itself = point === "self_attention", before = itself ? keys - queries : 0;
  const causal = mask === "causal" || (mask === "own" && itself && stack === "decoder");
  return (query, key) => !causal || key <= query + before;
}

// All that the picture shows of the chosen query, and of the key under the pointer.
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
    key: offering(at("keys"), j), value: offering(at("values"), j),
  }));
  const pointed = preview === null ? firstLargest([...weights]) : Number(preview);
  return { queries, keys, query, head, layer, kind, config, pointed, q: asking(at("queries")),
    output: asking(at("heads")),
    weights: (i) => seen.get(`${kind.stack}.${i}.${kind.point}.weights`) };
}

// Two rows of words and the ribbons between them.
function drawLooks(group, look, page, width, height) {
  const { queries, keys, query, head } = look, all = look.weights(look.layer), low = height - 68;
  const x = (n) => (i) => (width / n) * (i + 0.5);
  const above = x(keys.length), below = x(queries.length);
  const ribbons = queries.flatMap((_, i) => keys.map(({ j }) => ({
    i, j, weight: all.row(head * queries.length + i)[j],
  })));
  const shown = ribbons.filter(({ weight }) => weight >= 0.02);
  join(layer(group, "ribbons"), "path", shown, ({ i, j }) => `${i}.${j}`, ({ i, j, weight }) => ({
    class: "ribbon", opacity: i === query ? 0.8 : 0.07, "stroke-width": 1 + 15 * weight,
    d: `M${below(i)} ${low}C${below(i)} ${low / 2 + 40} ${above(j)} ${low / 2 + 20} ${above(j)} 68`,
    "data-links": i === query ? `key${j}` : "",
  }));
  const names = [["looked at (keys)", 12], ["who looks (queries)", low + 52]];
  join(layer(group, "names"), "text", names, ([text]) => text, ([text, y]) => ({
    text, class: "small", x: 0, y,
  }));
  drawWords(layer(group, "keys"), keys.map(({ word }) => word), 34, above, width, (word, j) => ({
    ...told(`“${word}” gets ${keys[j].seen ? keys[j].weight.toFixed(3) : "nothing: masked"}`,
      `key${j}`), "data-preview": j,
  }));
  drawWords(layer(group, "queries"), queries, low, below, width, (word, i) =>
    choosable(`query ${i}, “${word}”`, i === query, () => page.set({ query: i })));
  const large = keys.filter(({ weight }) => weight >= 0.02);
  join(layer(group, "numbers"), "text", large, ({ j }) => j, ({ j, weight }) => ({
    text: weight.toFixed(2), class: "small middle", x: above(j), y: 28, "aria-hidden": "true",
  }));
}

function drawWords(group, words, y, x, width, describe) {
  const wide = Math.min(110, width / words.length - 6);
  join(layer(group, "boxes"), "rect", words, (_, i) => i, (word, i) => ({
    class: "box", x: x(i) - wide / 2, y, width: wide, height: 34, rx: 8, ...describe(word, i),
  }));
  join(layer(group, "words"), "text", words, (_, i) => i, (word, i) => ({
    text: fitted(word, wide - 6), x: x(i), y: y + 22, class: "middle", "aria-hidden": "true",
    "pointer-events": "none",
  }));
}

// A small map of every head, as a button; returns how high they are together.
function drawHeads(group, look, page, { x, y, width }) {
  const { n_layers: layers, n_heads: heads } = look.config, gap = 8;
  const columns = Math.min(heads, width >= 540 ? 8 : 4);
  const side = Math.min(96, (width - gap * (columns - 1)) / columns);
  const all = Array.from({ length: layers * heads }, (_, i) => [Math.floor(i / heads), i % heads]);
  const place = ([l, h]) => {
    const row = l * Math.ceil(heads / columns) + Math.floor(h / columns);
    return [x + (h % columns) * (side + gap), y + 20 + row * (side + gap + 14) + l * 8];
  };
  const chosen = ([l, h]) => l === look.layer && h === look.head;
  join(layer(group, "title"), "text", [look.kind.name], () => 0, (text) => ({ text, x, y: y + 12,
    class: "small" }));
  join(layer(group, "boxes"), "rect", all, String, ([l, h]) => ({
    class: "box", x: place([l, h])[0], y: place([l, h])[1], width: side, height: side, rx: 6,
    ...choosable(`layer ${l}, head ${h}`, chosen([l, h]), () => page.set({ layer: l, head: h })),
  }));
  const levels = all.flatMap((one) => mapShades(one, look.weights(one[0]), place(one), side));
  join(layer(group, "maps"), "path", levels, ({ name }) => name, ({ d, level }) => ({
    d, fill: shade(level), "pointer-events": "none",
  }));
  join(layer(group, "names"), "text", all, String, ([l, h]) => ({
    text: `${l}.${h}`, class: "small middle", x: place([l, h])[0] + side / 2,
    y: place([l, h])[1] + side + 12, "aria-hidden": "true",
  }));
  return place(all.at(-1))[1] - y + side + 40;
}

function panelTitle(group, { x, y }, title, note) {
  join(layer(group, "title"), "text", [title, note], (_, i) => i, (text, i) => ({
    text, x, y: y + 14 + 18 * i, class: i ? "small" : "strong",
  }));
}

// The dot product of the query and one key, number by number. Returns its height, as its like do.
function drawProducts(group, look, { x, y, width }) {
  const { word, key, score } = look.keys[look.pointed], { q } = look;
  const products = [...q].map((value, i) => value * key[i]), step = width / q.length;
  const largest = Math.max(...products.map(Math.abs)), middle = y + 142;
  const sum = products.reduce((a, b) => a + b, 0).toFixed(2), from = look.queries[look.query];
  const pair = `“${fitted(from, 90)}” · “${fitted(word, 90)}”`;
  panelTitle(group, { x, y }, "1 · query · key, number by number",
    `${pair} = ${sum}, as score ${score.toFixed(2)}`);
  join(layer(group, "bars"), "rect", products, (_, i) => i, (product, i) => ({
    x: x + i * step + 1, width: step - 2, y: middle - Math.max(0, (product / largest) * 90),
    height: Math.max(1, Math.abs(product / largest) * 90), fill: signed(product, largest),
    ...told(`number ${i}: ${q[i].toFixed(2)} × ${key[i].toFixed(2)} = ${product.toFixed(2)}`),
  }));
  join(layer(group, "axis"), "line", [0], () => 0, () => ({
    class: "axis", x1: x, x2: x + width, y1: middle, y2: middle,
  }));
  return 250;
}

// Scores and, beside them, the weights that softmax makes of them.
function drawShares(group, { keys }, { x, y, width }) {
  const name = Math.min(84, width * 0.25), half = (width - name) / 2;
  const seen = keys.filter((key) => key.seen);
  const low = Math.min(0, ...seen.map(({ score }) => score));
  const high = Math.max(1e-9, ...seen.map(({ score }) => score));
  const unit = (half - 16) / (high - low), zero = x + name - low * unit, second = x + name + half;
  const top = (j) => y + 44 + 24 * j, id = ({ j }) => j;
  panelTitle(group, { x, y }, "2 · scores → weights", "softmax: the weights share out 1");
  join(layer(group, "words"), "text", keys, id, ({ word, j, seen }) => ({
    text: fitted(word, name - 20), class: "end", x: x + name - 8, y: top(j) + 14,
    ...told(seen ? `“${word}”` : `“${word}” is masked`, `key${j}`), "data-preview": j,
  }));
  join(layer(group, "scores"), "rect", seen, id, ({ word, score, j }) => ({
    x: zero + Math.min(0, score * unit), y: top(j) + 2, height: 15, fill: signed(score, high - low),
    width: Math.max(1, Math.abs(score * unit)),
    ...told(`score of “${word}”: ${score.toFixed(2)}`, `key${j}`), "data-preview": j,
  }));
  join(layer(group, "weights"), "rect", seen, id, ({ word, weight, j }) => ({
    x: second, y: top(j) + 2, height: 15, fill: "var(--key)",
    width: Math.max(1, weight * (half - 40)),
    ...told(`weight of “${word}”: ${weight.toFixed(3)}`, `key${j}`), "data-preview": j,
  }));
  join(layer(group, "numbers"), "text", keys, id, ({ weight, seen, j }) => ({
    text: seen ? weight.toFixed(2) : "× masked", class: "small", "aria-hidden": "true",
    x: second + 5 + (seen ? weight * (half - 40) : 0), y: top(j) + 14,
  }));
  return 24 * keys.length + 60;
}

// The values, each as long as its weight makes it, one after the other: their sum is the output.
function drawSum(group, look, { x, y, width }) {
  const steps = chainOf(look), ends = [[0, 0], ...steps.map(({ to }) => to)];
  const put = fitInto(ends, { x: x + 10, y: y + 56, width: width - 20, height: 170 });
  const line = (from, to) => `M${put(from).join(" ")}L${put(to).join(" ")}`;
  const total = vectorLength(look.output).toFixed(2);
  panelTitle(group, { x, y }, "3 · values, weighted and added", `the sum, dashed: length ${total}`);
  const arrows = steps.filter(({ weight }) => weight >= 0.005);
  join(layer(group, "arrows"), "path", arrows, ({ j }) => j, ({ j, from, to, words }) => ({
    d: line(from, to), stroke: "var(--value)", "stroke-width": j === look.pointed ? 6 : 3,
    "stroke-linecap": "round", fill: "none", "data-preview": j, ...told(words, `key${j}`),
  }));
  join(layer(group, "sum"), "path", [ends.at(-1)], () => 0, (end) => ({
    d: line([0, 0], end), stroke: "var(--query)", "stroke-width": 2, "stroke-dasharray": "5 4",
    fill: "none", "pointer-events": "none",
  }));
  join(layer(group, "joints"), "circle", ends.slice(1, -1), (_, i) => i, (end) => ({
    cx: put(end)[0], cy: put(end)[1], r: 2.5, fill: "var(--value)", "pointer-events": "none",
  }));
  join(layer(group, "end"), "circle", [ends.at(-1)], () => 0, (end) => ({
    cx: put(end)[0], cy: put(end)[1], r: 6, fill: "var(--query)",
    ...told(`the sum: length ${total}`),
  }));
  return 245;
}

// The weighted values as steps in a plane, the largest weight first.
function chainOf({ keys, output }) {
  const plane = planeOf(output, keys);
  let at = [0, 0];
  return fromLargest(keys.map(({ weight }) => weight), keys.length).map((j) => {
    const { word, weight, value } = keys[j], [dx, dy] = plane(value), from = at;
    const length = (weight * vectorLength(value)).toFixed(2);
    at = [at[0] + weight * dx, at[1] + weight * dy];
    const words = `${weight.toFixed(2)} × value of “${word}”: length ${length}`;
    return { j, weight, from, to: at, words };
  });
}

// Maps points of a plane into a rectangle of the page, as large as they fit.
function fitInto(points, { x, y, width, height }) {
  const ends = [0, 1].map((k) => points.map((point) => point[k]));
  const [left, bottom] = ends.map((values) => Math.min(...values));
  const [right, top] = ends.map((values) => Math.max(...values));
  const scale = Math.min(width / (right - left || 1), height / (top - bottom || 1));
  return ([a, b]) => [x + (a - left) * scale, y + height / 2 - (b - (top + bottom) / 2) * scale];
}

function vectorLength(vector) {
  return Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
}

function along(vector, unit) {
  return vector.reduce((sum, value, i) => sum + value * unit[i], 0);
}

// A plane to draw vectors in: to the right along the output, upward along what is left of the
// value with the largest weight.
function planeOf(output, keys) {
  const size = vectorLength(output) || 1, right = [...output].map((value) => value / size);
  const { value } = keys[firstLargest(keys.map(({ weight }) => weight))];
  const rest = [...value].map((number, i) => number - along(value, right) * right[i]);
  const left = vectorLength(rest) || 1, up = rest.map((number) => number / left);
  return (vector) => [along(vector, right), along(vector, up)];
}

function attentionFacts(look, { changes, offers, known }, { text, plain, next }) {
  const { keys, queries, query, kind } = look, from = queries[query];
  const best = fromLargest(keys.map(({ weight }) => weight), 3).filter((j) => keys[j].seen);
  const gives = best.map((j) => `${keys[j].weight.toFixed(2)} to “${keys[j].word}”`).join(", ");
  const most = `“${keys[best[0]].word}” (${keys[best[0]].weight.toFixed(2)})`;
  const where = `Head ${look.head} of layer ${look.layer}, ${kind.name}, d_head ${look.q.length}`;
  const writes = kind.stack === "decoder";
  const likely = next[query]?.map(([word, p]) => `“${word}” (${p.toFixed(2)})`);
  const then = writes ? ` After “${from}” comes ${likely[0]}, or else ${likely[1]}.` : "";
  const whole = text === plain ? `The model writes “${text}”.` :
    `With these knobs the model writes “${text}” instead of “${plain}”.`;
  const guess = known.every(Boolean) ? [] : ["For a word that it does not know it reads <unk>."];
  const notes = [...changes, ...offers, ...guess];
  return {
    title: `${writes ? "Having written" : "At"} “${from}”, this head looks most at ${most}`,
    said: [`${where}: “${from}” gives ${gives}.${then} ${whole}`, ...notes].join(" "),
  };
}
