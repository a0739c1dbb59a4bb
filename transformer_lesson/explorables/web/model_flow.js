// The whole forward pass on one screen: words flow through the blocks, and each number opens.

import { fitted, layer } from "./draw.js";
import { drawLanes } from "./flow_lanes.js";
import { drawPanel } from "./flow_panel.js";
import { planOf } from "./flow_plan.js";
import { flowFor } from "./flow_pass.js";
import { frame } from "./frame.js";
import { axesOf, whatOf } from "./quantities.js";
import { firstLargest, fromLargest } from "./ranking.js";
import { digits, explain, lastPart, numberAt } from "./trace.js";
import { modelOf } from "./weights.js";

const GLANCE = { looks: 5, pushed: 3 }; // the most that are shown

export const ModelFlow = (view) => frame(view, {
  name: "Model flow",
  traits: ["text", "written", "step", "head", "row", "number"],
  controls: flowControls, load: modelOf, draw: drawFlow });

function flowControls(make, page) {
  const steps = () => [0, (page.flow?.steps.length ?? 1) - 1];
  const most = () => [0, page.flow?.most ?? 0];
  page.controls.classList.add("close");
  return [
    make.text("Text", "text", { size: 25 }),
    make.slider("Written", "written", most),
    make.play("written", most, 1200),
    make.slider("Step", "step", steps),
    make.number("Number", "number", () => [0, (page.look?.step.value.width ?? 1) - 1],
      () => page.look?.column ?? 0)];
}

function drawFlow(state, page, loaded) {
  const flow = flowFor(state, page, loaded), { width, svg } = page;
  if (typeof flow === "string") return flow;
  page.flow = flow;
  followWriting(page, flow, state);
  const look = page.look = lookInto(flow, state), plan = planOf(flow, width);
  drawLanes(layer(svg, "lanes"), plan, look, page);
  const end = drawPanel(layer(svg, "panel"), look, page, plan.panel);
  return { ...flowFacts(look), height: Math.max(plan.height, end) };
}

// Goes to the newest word whenever the model has written on, if a written word was looked at, and
// where its numbers belong to words, to the largest of them.
function followWriting(page, flow, { text, step: at, head, row }) {
  const last = flow.written.length - 1, before = page.wrote;
  page.wrote = { text, last };
  if (before?.text !== text || before.last === last || row === last) return;
  const open = flow.sublayers.find(({ steps }) => steps.includes(at)), step = flow.steps[at];
  if (open?.lane !== "written") return;
  const { shape, rows, width } = step.value, heads = shape.length === 3 ? shape[0] : 1;
  const after = (Math.min(head, heads - 1) + 1) * (rows / heads), own = step.value.row(after - 1);
  page.set({ row: last, ...(columnWords(flow, step) ? { number: firstLargest([...own]) } : {}) });
}

function lookInto(flow, state) {
  const at = Math.min(state.step, flow.steps.length - 1), step = flow.steps[at];
  const open = flow.sublayers.find(({ steps }) => steps.includes(at));
  const weights = open.kind.includes("attention") ? flow.steps[open.main].value : null;
  const { shape, width } = step.value, heads = shape.length === 3 ? shape[0] : 1;
  const [rows, columns] = [rowWords(flow, step), columnWords(flow, step)];
  const within = (value, n) => Math.max(0, Math.min(value, n - 1));
  const head = within(state.head, weights?.shape[0] ?? 1); // groups of heads may share keys
  const place = { head: Math.floor((head * heads) / (weights?.shape[0] ?? 1)),
    row: within(state.row, rows.length), column: within(state.number, width) };
  const made = explain(flow, step, place), value = digits(numberAt(step.value, place));
  const number = columns ? `“${columns[place.column]}”` : `Number ${place.column}`;
  const words = `${number} of “${rows[place.row]}” is ${value}: ${made.how}`;
  const look = { flow, at, step, open, rows, columns, place, ...place, head, weights, made, words };
  look.lane = isOfMemory(step) ? "read" : open.lane;
  look.laneRow = rows.length === 1 ? flow[look.lane].length - 1 : place.row;
  return { ...look, glance: weights && glanceOf(look) };
}

// Where the chosen head looks from the chosen row, and what it brings from there.
function glanceOf({ flow, open, lane, row, head, weights }) {
  const queries = weights.shape[1], query = lane === open.lane ? row : queries - 1;
  const [asking, offering] = [flow[open.lane], open.kind === "self_attention" ? flow[open.lane] :
    flow.read];
  const shares = weights.row(head * queries + query), best = fromLargest([...shares], GLANCE.looks);
  const brought = flow.byName.get(`${open.key}.heads`).value.row(head * queries + query);
  const looks = best.map((j) => ({ j, word: offering[j], share: shares[j] }));
  return { query, word: asking[query], looks, brought,
    pushes: open.lane === "written" ? pushesOf(flow, `${open.key}.W_O`, head, brought) : null };
}

// The words that what a head brings makes likelier and less likely, where its share of W_O's result
// is read by the output projection as if nothing came between.
function pushesOf({ model, token }, map, head, brought) {
  const joins = model.part(map).weight, reads = model.part("projection").weight;
  const start = head * brought.length, inStream = Array.from({ length: joins.shape[0] }, (_, i) =>
    brought.reduce((sum, value, k) => sum + value * joins.row(i)[start + k], 0));
  const logits = Array.from({ length: reads.shape[0] }, (_, id) =>
    reads.row(id).reduce((sum, value, i) => sum + value * inStream[i], 0));
  const first = (numbers) => fromLargest(numbers, GLANCE.pushed).map(token);
  return { up: first(logits), down: first(logits.map((value) => -value)) };
}

// Keys and values of cross-attention are made of what was read.
const isOfMemory = ({ name }) =>
  name.includes("cross_attention") && ["keys", "values"].includes(lastPart(name));

function rowWords({ read, written }, step) {
  const ofRead = /^(source|encoder)/.test(step.name) || isOfMemory(step);
  return step.name === "probabilities" ? written.slice(-1) : ofRead ? read : written;
}

function columnWords({ read, written, token }, { name, value }) {
  const kind = axesOf({ name }).at(-1);
  if (kind === "vocab_size") return Array.from({ length: value.width }, (_, id) => token(id));
  if (kind === "key") return /^encoder|cross_attention/.test(name) ? read : written;
  return null;
}

const looksTitle = (word, head, other, share) =>
  `From “${word}”, head ${head} looks mostly at “${other}” (${share})`;
const comesTitle = (words, next) =>
  `After “${fitted(words.slice(-6).join(" "), 360)}” comes ${next}`;

// The titles that come while the model writes on; a head may look from any word at any other.
function titlesPlayed({ flow, open, glance, head }) {
  const { whole, full, most, read } = flow, asking = open.lane === "read" ? read : whole;
  const offering = open.kind === "self_attention" ? asking : read;
  if (!glance) return whole.flatMap((word, i) =>
    i < full - most ? [] : comesTitle(whole.slice(0, i), `“${word}” (0.000)`));
  return asking.flatMap((word) =>
    offering.map((other) => looksTitle(word, head, other, "0.00")));
}

function flowFacts(look) {
  const { flow, at, step, words, glance, head } = look;
  const { steps, read, written, writes, token, model } = flow, d = model.config.d_model;
  const likely = flow.next.map(([id, share]) => `“${token(id)}” (${share.toFixed(3)})`);
  const axes = axesOf(step).join(", "), shape = step.value.shape.join(", ");
  const [most] = glance?.looks ?? [];
  const title = most ? looksTitle(glance.word, head, most.word, most.share.toFixed(2)) :
    writes ? comesTitle(written, likely[0]) :
    `${read.length} tokens become ${read.length} vectors of ${d} numbers`;
  const said = [`Step ${at} of ${steps.length - 1}, ${step.name} (${axes}) = (${shape}): ` +
    `${whatOf(step)} ${words}.` + (writes ? ` Next: ${likely.slice(0, 3).join(", ")}.` : ""),
  ...flow.notes].join(" ");
  const longest = writes ? titlesPlayed(look).map((one) => ({ title: one, said })) : [];
  return { title, said, longest };
}
