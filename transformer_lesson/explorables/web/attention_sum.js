// A head's result as a sum: each word's value, times its weight, added head to tail.

import { choosable, fitted, layer, pen, put, textWidth, told } from "./draw.js";
import { firstLargest, fromLargest } from "./ranking.js";

const LEAST_ADDED = 0.005; // smaller weights are added together, as the last step

// The steps from 0 to the result, the largest weight first; a step goes from the point `from` in
// the plane to the point `to`.
export function chainOf(keys, output) {
  const plane = planeOf(output, keys), weights = keys.map(({ weight }) => weight);
  const order = fromLargest(weights, keys.length).filter((j) => keys[j].seen);
  const large = order.filter((j) => weights[j] >= LEAST_ADDED).map((j) => [j]);
  const small = order.filter((j) => weights[j] < LEAST_ADDED);
  let at = [0, 0];
  return [...large, ...(small.length ? [small] : [])].map((together) => {
    const step = weightedSum(together.map((j) => keys[j]), output.length), from = at;
    const length = vectorLength(step).toFixed(2), [j] = together, [dx, dy] = plane(step);
    const share = together.reduce((sum, one) => sum + weights[one], 0).toFixed(2);
    at = [at[0] + dx, at[1] + dy];
    const rest = together === small, word = rest ? `${small.length} more` : keys[j].word;
    const words = rest ? `${share} in all × ${word} values: length ${length}` :
      `${share} × value of “${word}”: length ${length}`;
    return { name: rest ? "rest" : j, word, share, from, to: at, words, rest, plane };
  });
}

function weightedSum(keys, width) {
  return Array.from({ length: width }, (_, i) =>
    keys.reduce((sum, { weight, value }) => sum + weight * value[i], 0));
}

const vectorLength = (vector) => Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
const along = (vector, unit) => vector.reduce((sum, value, i) => sum + value * unit[i], 0);

// A plane to draw vectors in: its x axis lies along the result, its y axis along the part of a
// weighted value that is farthest from that line.
function planeOf(output, keys) {
  const size = vectorLength(output) || 1, right = [...output].map((value) => value / size);
  const rests = keys.map(({ value }) =>
    [...value].map((number, i) => number - along(value, right) * right[i]));
  const rest = rests[firstLargest(rests.map((one, j) => keys[j].weight * vectorLength(one)))];
  const left = vectorLength(rest) || 1, up = rest.map((number) => number / left);
  return (vector) => [along(vector, right), along(vector, up)];
}

// Maps points of a plane into a rectangle of the page, as large as possible.
function fitInto(points, { x, y, width, height }) {
  const ends = [0, 1].map((k) => points.map((point) => point[k]));
  const [left, bottom] = ends.map((values) => Math.min(...values));
  const [right, top] = ends.map((values) => Math.max(...values));
  const scale = Math.min(width / (right - left || 1), height / (top - bottom || 1));
  return ([a, b]) => [x + width / 2 + (a - (left + right) / 2) * scale,
    y + height / 2 - (b - (top + bottom) / 2) * scale];
}

// Every word's value as a thin line from 0, and the steps so far as arrows.
export function drawSum(group, look, page, { x, y, width, height }) {
  const { chain, added, keys, queries, query } = look, seen = keys.filter((key) => key.seen);
  const tips = seen.map(({ value }) => chain[0].plane(value));
  const spot = fitInto([[0, 0], ...tips, ...chain.map(({ to }) => to)],
    { x: x + 34, y: y + 84, width: width - 68, height: height - 104 });
  drawSumSteps(group, look, page, { x, y, width });
  const values = seen.map((key, i) => ({ ...key, tip: spot(tips[i]) }));
  drawValues(group, values, spot([0, 0]));
  drawAdded(layer(group, "added"), chain, look, spot);
  const length = added === chain.length ? vectorLength(look.output) :
    vectorLength(weightedSum(keysUpTo(look), look.output.length));
  const name = added === chain.length ? "result" : "so far";
  const end = spot(added ? chain[added - 1].to : [0, 0]);
  put.circle(group, "end", [end], ([cx, cy]) =>
    ({ cx, cy, r: 7, fill: "var(--query)", ...told(`${name}: length ${length.toFixed(2)}`) }));
  const word = fitted(queries[query], 80, 13, 600);
  drawSumWords(layer(group, "words"), look, { values, spot, end, start: spot([0, 0]),
    text: `${name} for “${word}”`, x, width });
}

const keysUpTo = ({ chain, added, keys }) => chain.slice(0, added).map(({ name }) => keys[name]);

function drawSumSteps(group, { chain, added }, page, { x, y, width }) {
  const lines = [["3 · the values, added head to tail", "strong size-13"],
    ["each word’s value × its weight, from 0 to the result", "small"]];
  put.text(group, "titles", lines, ([text, kind], i) =>
    [fitted(text, width, i ? 12 : 13), x, y + 14 + 17 * i, kind]);
  const steps = [{ word: "nothing yet" }, ...chain];
  const wide = Math.min(30, (width - 52) / steps.length);
  const say = ({ word, rest }, i) => (i && !rest ? `“${word}”` : word);
  put.text(group, "step name", [["added", x, y + 54, "small"]]);
  put.box(group, "steps", steps, (step, i) => ({
    x: x + 48 + i * wide, y: y + 40, width: wide - 3, height: 20, rx: 6, word: i, font: "number",
    ...choosable(`step ${i} of ${chain.length}: ${say(step, i)}`, i === added,
      () => page.set({ added: i })) }));
}

function drawValues(group, values, [x, y]) {
  put.path(group, "rays", values, ({ tip }) =>
    ({ d: `M${x} ${y}L${tip.join(" ")}`, class: "axis", "stroke-width": 1.5 }), "j");
  put.circle(group, "values", values, ({ j, word, value, tip }) => ({
    cx: tip[0], cy: tip[1], r: 4, fill: "var(--paper)", stroke: "var(--soft)", "data-preview": j,
    "stroke-width": 1.5,
    ...told(`value of “${word}”: length ${vectorLength(value).toFixed(2)}`, `key${j}`) }), "j");
  put.circle(group, "zero", [{ cx: x, cy: y, r: 3.5, fill: "var(--ink)" }]);
}

const NOT_YET = { "aria-label": null, role: null, tabindex: null, "data-links": null,
  "data-preview": null, "pointer-events": "none", opacity: 0 };

// An arrow for each step; one still to come waits at its start, invisible and without length.
function drawAdded(group, chain, { added, pointed }, spot) {
  put.path(group, "paths", chain, ({ name, from, to, words, rest }, i) => ({
    d: arrow(spot(from), spot(i < added ? to : from)), ...pen("--value", name === pointed ? 5 : 3),
    "stroke-linecap": "round",
    ...(i < added ? { opacity: 1, "pointer-events": null, "data-preview": rest ? null : name,
      ...told(words, rest ? "" : `key${name}`) } : NOT_YET) }), "name");
}

function arrow([x, y], [u, v]) {
  const length = Math.hypot(u - x, v - y), head = Math.min(9, length / 2);
  const angle = Math.atan2(v - y, u - x);
  const wing = (turn) =>
    `${u - head * Math.cos(angle + turn)} ${v - head * Math.sin(angle + turn)}`;
  return `M${x} ${y}L${u} ${v}M${wing(0.5)}L${u} ${v}L${wing(-0.5)}`;
}

// Labels of the moving end, the arrows, the values and 0, placed so that they do not overlap. One
// that finds no place is left out, except at the end.
function drawSumWords(group, { chain, added }, { values, spot, end, start, text, x, width }) {
  const middle = ({ from, to }) => spot([0, 1].map((k) => (from[k] + to[k]) / 2));
  const arrows = chain.slice(0, added).filter(({ rest }) => !rest).map((step) => ({
    key: `arrow${step.name}`, text: step.word, at: middle(step), class: "strong size-13",
    long: Math.hypot(...spot(step.to).map((to, k) => to - spot(step.from)[k])),
  })).filter(({ long }) => long > 12);
  const tips = values.map(({ j, word, tip }) => ({ key: `value${j}`, text: word, at: tip,
    class: "small" }));
  const all = [{ key: "end", text, at: end, class: "strong size-13" }, ...arrows,
    { key: "zero", text: "0", at: start, class: "small" }, ...tips];
  const onArrows = chain.slice(0, added).flatMap(({ from, to }) =>
    [0.2, 0.4, 0.6, 0.8].map((part) =>
      spot([0, 1].map((k) => from[k] + part * (to[k] - from[k])))));
  const marks = [end, start, ...values.map(({ tip }) => tip), ...onArrows].map(([u, v]) =>
    ({ left: u - 5, right: u + 5, top: v - 5, bottom: v + 5 }));
  put.label(group, "texts", labelsApart(all, marks, x, x + width), (one) =>
    [one.text, one.x, one.y, `${one.class} middle`]);
}

// The labels that find a free place beside their point; earlier ones choose first.
function labelsApart(labels, marks, left, right) {
  const taken = [...marks];
  return labels.flatMap((label) => {
    const half = textWidth(label.text, 13, 600) / 2 + 1, [u, v] = label.at;
    const places = [[0, -15], [0, 17], [half + 9, 0], [-half - 9, 0], [half, -17], [-half, -17],
      [half, 19], [-half, 19], [0, -28], [0, 30], [half + 9, 14], [-half - 9, 14],
      [half + 9, -14], [-half - 9, -14]];
    const boxes = places.map(([dx, dy]) => ({ x: u + dx, y: v + dy + 4, left: u + dx - half,
      right: u + dx + half, top: v + dy - 7, bottom: v + dy + 7 }));
    const inside = ({ x, y, ...box }) => {
      const shift = Math.max(0, left - box.left) - Math.max(0, box.right - right);
      return { ...box, x: x + shift, y, left: box.left + shift, right: box.right + shift };
    };
    const free = boxes.find((box) => box.left >= left && box.right <= right &&
      taken.every((other) => box.right < other.left || other.right < box.left ||
        box.bottom < other.top || other.bottom < box.top));
    const box = free ?? (label.key === "end" ? inside(boxes[0]) : null);
    if (box) taken.push(box);
    return box ? [{ ...label, x: box.x, y: box.y }] : [];
  });
}
