// The whole forward pass as one drawing: each quantity to scale, and every number opens to its sum.

import { choosable, fitted, join, layer, set, textLines } from "./draw.js";
import { drawNumbers } from "./flow_panel.js";
import { frame, remembered } from "./frame.js";
import { generate } from "./generation.js";
import { mapsHref, tensorHref } from "./heat_map.js";
import { axesOf, whatOf } from "./quantities.js";
import { fromLargest } from "./ranking.js";
import { digits, explain, isInStream, lastPart, numberAt, trace } from "./trace.js";
import { inOneLine, textToGoOnFrom } from "./typed_sentence.js";
import { modelOf } from "./weights.js";

const LEGEND = "One row a token, one dot a number: blue above zero, orange below. Underlined: " +
  "the stream, to which every block adds.";
const FLOW = { read: 16, written: 12, next: 6 }; // the most tokens that are shown

export function ModelFlow(view) {
  return frame(view, {
    name: "Model flow",
    goal: "Open any quantity, choose a row and a number, and see what it was made of. Find where " +
      "a word written first gets to know the words that were read.",
    traits: ["text", "written", "step", "head", "row", "number", "find"],
    controls: flowControls,
    load: modelOf,
    draw: drawFlow,
  });
}

function flowControls(make, page) {
  const steps = () => ({ min: 0, max: (page.flow?.steps.length ?? 1) - 1, step: 1 });
  const most = () => page.flow?.most ?? 0, shown = (n) => String(Math.min(n, most()));
  const onkeydown = ({ key }) => {
    if (key === "Enter") goToNext(page);
  };
  return [
    make.text("Text", "text", { size: 44 }),
    make.slider("Tokens written", "written", () => ({ min: 0, max: most(), step: 1 }), shown),
    make.slider("Step", "step", steps),
    make.play("step", steps),
    make.text("Find (Enter: the next)", "find", { size: 16, onkeydown }),
  ];
}

function isFound(name, find) {
  return find.trim() !== "" && name.toLowerCase().includes(find.trim().toLowerCase());
}

// Goes to the next quantity whose name has what was typed, from the end to the beginning again.
function goToNext(page) {
  const { steps } = page.flow, now = page.model.get("step"), find = page.model.get("find");
  const order = steps.map((_, i) => (now + 1 + i) % steps.length);
  const next = order.find((i) => isFound(steps[i].name, find));
  if (next !== undefined) page.set({ step: next });
}

function drawFlow(state, page, { model, tokenizer }) {
  const vocabulary = new Set(page.model.get("source_words"));
  const text = textToGoOnFrom(state.text, vocabulary, model, tokenizer);
  if (typeof text === "string") return text;
  if (text.ids.length > FLOW.read) {
    return `The drawing has room for ${FLOW.read} tokens, and this text has ` +
      `${text.ids.length}: shorten it.`;
  }
  const { written } = state, { width, svg } = page;
  const flow = remembered(page, "flow", [state.text, written], () => {
    const start = remembered(page, "start", state.text, () => startOf(model, text));
    return flowOf(model, tokenizer, start, written);
  });
  page.flow = flow;
  const look = lookInto(flow, state), plan = planOf(flow, look, width);
  drawBands(layer(svg, "bands"), plan, width);
  drawLinks(layer(svg, "links"), plan, look);
  drawQuantities(layer(svg, "quantities"), plan, look, page);
  drawNextTokens(layer(svg, "next"), plan, flow);
  const panel = drawNumbers(layer(svg, "panel"), look, page);
  set(layer(svg, "panel"), { transform: `translate(0 ${plan.cut})` });
  moveBelow(svg, panel);
  follow(page, look.at);
  set(svg, { width, height: plan.height + panel });
  return flowFacts(look);
}

// What stays the same however much is written: what is read and how, {ids, translates, encoded},
// and what the model goes on to write, {start, made}, without the token that ends it.
function startOf(model, { ids, translates }) {
  const start = translates ? [model.config.bos_id] : ids;
  const encodes = translates || !writes(model);
  const encoded = encodes ? trace(model, () => model.encode(ids)) : undefined;
  if (!writes(model)) return { ids, translates, encoded, start, made: [] };
  const room = Math.min(FLOW.written, model.config.max_len - start.length);
  const { ids: made, finished } = generate(model, ids, room);
  return { ids, translates, encoded, start, made: finished ? made.slice(0, -1) : made };
}

function writes(model) {
  return model.kind !== "EncoderOnlyTransformer";
}

// Follows the pass that gives the token after those that are written.
function flowOf(model, tokenizer, { ids, translates, encoded, start, made }, written) {
  const most = made.length, target = [...start, ...made.slice(0, Math.min(written, most))];
  const pass = () => model.decode(target, translates && encoded.returned, ids);
  const words = (list) => list.map((id) => inOneLine(tokenizer.token(id)));
  return { ...(writes(model) ? trace(model, pass, encoded) : encoded), most, writes: writes(model),
    read: words(translates ? ids : target), written: words(target),
    token: (id) => inOneLine(tokenizer.token(id)) };
}

// The chosen step, and in it the chosen head, row and number.
function lookInto(flow, state) {
  const at = Math.min(state.step, flow.steps.length - 1), step = flow.steps[at];
  const { shape, width } = step.value, heads = shape.length === 3 ? shape[0] : 0;
  const [rows, columns] = [rowWords(flow, step), columnWords(flow, step)];
  const within = (value, n) => Math.max(0, Math.min(value, n - 1));
  const place = { head: within(state.head, heads), row: within(state.row, rows.length),
    column: within(state.number, width) };
  const made = explain(flow, step, place), value = digits(numberAt(step.value, place));
  const number = columns ? `“${columns[place.column]}”` : `Number ${place.column}`;
  const words = `${number} of “${rows[place.row]}” is ${value}: ${made.how}`;
  return { flow, at, step, heads, rows, columns, ...place, made, words, find: state.find };
}

function rowWords({ read, written }, { name }) {
  const last = lastPart(name), ofRead = /^(source|encoder)/.test(name) ||
    (name.includes("cross_attention") && ["keys", "values"].includes(last));
  return last === "probabilities" ? written.slice(-1) : ofRead ? read : written;
}

// What the numbers of a row are called.
function columnWords({ read, written, token }, { name, value }) {
  const kind = axesOf({ name }).at(-1);
  if (kind === "vocab_size") return Array.from({ length: value.width }, (_, id) => token(id));
  if (kind === "key") return /^encoder|cross_attention/.test(name) ? read : written;
  return null;
}

// The block to which a quantity belongs, as a heading; the encoder's norm belongs to its last one.
function bandOf(name) {
  if (name === "encoder_norm") return null;
  if (/^(decoder_norm|logits|probabilities)/.test(name)) return "the next token";
  const [stack, number] = name.split(".");
  const words = stack.replace("_", " ");
  return /^\d/.test(number) ? `${words}, layer ${number}` : words;
}

// Where everything stands: quantities in lines as in a text, in a band for each block, all of one
// scale. `cut` is the end of the line below which the chosen quantity opens.
function planOf(flow, look, width) {
  const { d_model: d, d_ff: wide } = flow.model.config, tokens = Math.max(flow.read.length, 3);
  const unit = width >= 620 ? (width - 110) / (6 * d + wide) : (width - 30) / Math.max(wide, d);
  const scale = { unit: Math.min(3, unit), token: Math.max(3, Math.min(9, 42 / tokens)) };
  const cells = [], bands = [], legend = textLines(LEGEND, width, 12);
  let x = 0, y = 8 + 16 * legend.length, high = 0;
  for (const [i, step] of flow.steps.entries()) {
    const size = sizeOf(step, scale, width - 20), name = bandOf(step.name) ?? bands.at(-1).name;
    if (bands.at(-1)?.name !== name) {
      y = bands.length ? y + high + 14 : y;
      bands.push({ name, y });
      [x, y, high] = [10, y + 24, 0];
    } else if (x + size.cell > width - 8) {
      [x, y, high] = [10, y + high + 4, 0];
    }
    cells.push({ step, i, x, y: y + 19, line: y, ...size });
    high = Math.max(high, size.height + 28);
    x += size.cell + 10;
  }
  return { cells, bands, legend, cut: endOfLine(cells, look.at), height: y + high + 10 };
}

function sizeOf({ name, value }, { unit, token }, most) {
  const { shape } = value, [rows, columns] = shape.slice(-2);
  const label = Math.min(most, 20 + 6.4 * lastPart(name).length), across = acrossOf(shape);
  const maps = axesOf({ name }).at(-1) === "key";
  const width = maps ? across * (columns + 1) * token - token :
    Math.min(most, columns * unit * (shape.length === 3 ? shape[0] : 1));
  const down = maps ? Math.ceil(shape[0] / across) * (rows + 1) * token - token : rows * token;
  const height = name === "probabilities" ? 20 * FLOW.next : Math.max(down, 6);
  const wide = name === "probabilities" ? Math.min(most, 260) : width;
  return { width: wide, height, cell: Math.max(wide, label), maps };
}

// How many maps of heads stand side by side.
function acrossOf([heads]) {
  return heads > 4 ? Math.ceil(heads / 2) : heads;
}

// Where the line ends below which the chosen quantity opens.
function endOfLine(cells, at) {
  const line = cells.filter((cell) => cell.line === cells[at].line);
  return Math.max(...line.map((cell) => cell.y + cell.height)) + 8;
}

// Moves down what stands below the opened quantity.
function moveBelow(svg, panel) {
  for (const node of svg.querySelectorAll("[data-below]")) {
    set(node, { transform: `translate(0 ${panel})` });
  }
}

// Brings what was opened into view, wherever on the page it lies.
function follow(page, at) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (page.opened !== undefined && page.opened !== at) {
    const behavior = calm ? "auto" : "smooth", panel = layer(page.svg, "panel");
    queueMicrotask(() => panel.scrollIntoView({ block: "nearest", behavior })); // once all is set
  }
  page.opened = at;
}

// Whether something moves down with what stands below.
const below = (plan, y) => ({ "data-below": y > plan.cut ? "" : null, transform: null });

function drawBands(group, plan, width) {
  join(layer(group, "legend"), "text", plan.legend, (_, i) => i, (text, i) => ({
    text, class: "small", x: 0, y: 12 + 16 * i,
  }));
  join(layer(group, "names"), "text", plan.bands, ({ name }) => name, ({ name, y }) => ({
    text: name, class: "strong", x: 0, y: y + 15, ...below(plan, y),
  }));
  join(layer(group, "lines"), "line", plan.bands, ({ name }) => name, ({ y }) => ({
    class: "axis", x1: 0, x2: width, y1: y - 5, y2: y - 5, ...below(plan, y),
  }));
}

// What the chosen quantity was made of, by curves that end at it.
function drawLinks(group, plan, { step, at }) {
  const cellOf = (name) => plan.cells.find((cell) => cell.step.name === name);
  const middle = ({ x, width }) => x + width / 2, to = plan.cells[at];
  const from = step.from.map((name) => cellOf(name)).filter((cell) => cell);
  join(layer(group, "curves"), "path", from, ({ step: { name } }) => name, (cell) => {
    const [x, y, u, v] = [middle(cell), cell.y + cell.height, middle(to), to.y];
    const bend = cell.line === to.line ? -30 : 30, start = cell.line === to.line ? cell.y : y;
    return {
      d: `M${x} ${start}C${x} ${start + bend} ${u} ${v - 30} ${u} ${v}`, fill: "none",
      stroke: "var(--query)", "stroke-width": 2, opacity: 0.7, "pointer-events": "none",
    };
  });
}

function drawQuantities(group, plan, { step: chosen, at, find }, page) {
  const key = ({ step }) => step.name, source = (name) => chosen.from.includes(name);
  join(layer(group, "names"), "text", plan.cells, key, ({ step, x, y, cell, i }) => ({
    text: fitted((i === at ? "▾ " : source(step.name) ? "● " : "") + lastPart(step.name), cell, 12),
    class: i === at ? "number strong" : "small", x, y: y - 7, "aria-hidden": "true",
    ...below(plan, y),
  }));
  join(layer(group, "frames"), "rect", plan.cells, key, ({ step, x, y, width, height, i }) => ({
    class: "box", x: x - 2, y: y - 2, width: width + 4, height: height + 4, rx: 3,
    "stroke-dasharray": isFound(step.name, find) ? "4 2" : null,
    ...choosable(`${i}: ${step.name} (${step.value.shape.join(", ")})`, i === at,
      () => page.set({ step: i }), source(step.name) || i === at ? "made" : ""),
    ...below(plan, y),
  }));
  const stream = plan.cells.filter((cell) => isInStream(cell.step.name));
  join(layer(group, "stream"), "rect", stream, key, ({ x, y, width, height }) => ({
    x: x - 2, y: y + height + 3, width: width + 4, height: 3, fill: "var(--value)",
    "pointer-events": "none", ...below(plan, y),
  }));
  const pictures = plan.cells.filter(({ step }) => step.name !== "probabilities");
  join(layer(group, "pictures"), "image", pictures, key, ({ step, x, y, width, height, maps }) => ({
    x, y, width, height, preserveAspectRatio: "none", "image-rendering": "pixelated",
    href: maps ? mapsHref(step.value, acrossOf(step.value.shape)) : tensorHref(step.value),
    "pointer-events": "none", ...below(plan, y),
  }));
}

// The likeliest next tokens, as bars in the last quantity's place.
function drawNextTokens(group, plan, flow) {
  const { x, y, width } = plan.cells.at(-1), shown = nextTokens(flow);
  const place = (i, down) => ({ y: y + 20 * i + down, ...below(plan, y) }), id = ([token]) => token;
  join(layer(group, "bars"), "rect", shown, id, ([, share], i) => ({
    x: x + 92, width: Math.max(1, share * (width - 140)), height: 14, fill: "var(--value)",
    "pointer-events": "none", ...place(i, 3),
  }));
  join(layer(group, "words"), "text", shown, id, ([token], i) => ({
    text: fitted(flow.token(token), 82), class: "end", x: x + 86, ...place(i, 15),
    "pointer-events": "none", "aria-hidden": "true",
  }));
  join(layer(group, "numbers"), "text", shown, id, ([, share], i) => ({
    text: share.toFixed(3), class: "number", x: x + 98 + share * (width - 140),
    ...place(i, 14), "pointer-events": "none", "aria-hidden": "true",
  }));
}

function nextTokens({ steps, writes }) {
  if (!writes) return [];
  const shares = steps.at(-1).value.row(0);
  return fromLargest([...shares], FLOW.next).map((id) => [id, shares[id]]);
}

function flowFacts({ flow, at, step, words, find }) {
  const { steps, read, written, writes, token, model } = flow, d = model.config.d_model;
  const likely = nextTokens(flow).map(([id, share]) => `“${token(id)}” (${share.toFixed(3)})`);
  const found = steps.filter(({ name }) => isFound(name, find)).length;
  const axes = axesOf(step).join(", "), shape = step.value.shape.join(", ");
  return {
    title: writes ? `After “${fitted(written.slice(-6).join(" "), 360)}” comes ${likely[0]}` :
      `${read.length} tokens become ${read.length} vectors of ${d} numbers`,
    said: `Step ${at} of ${steps.length - 1}, ${step.name}: shape (${shape}) = (${axes}). ` +
      `${whatOf(step)} ${words}.` + (writes ? ` Next: ${likely.slice(0, 3).join(", ")}.` : "") +
      (find.trim() ? ` “${fitted(find.trim(), 260)}” is in ${found} names.` : ""),
  };
}
