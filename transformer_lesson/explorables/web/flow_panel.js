// A quantity opened: its rows, one row's numbers, and what one number was made of.

import { choosable, fitted, textLines, join, layer, set, signed, told } from "./draw.js";
import { headHref } from "./heat_map.js";
import { axesOf } from "./quantities.js";
import { fromLargest } from "./ranking.js";
import { digits, numberAt } from "./trace.js";

const LIKELIEST = 40; // of a vocabulary so many are shown, the largest numbers first
const ROW = 20; // pixels

// Draws the opened quantity, and returns how high it is.
export function drawNumbers(group, look, page) {
  const { width } = page, gap = 30, wide = width >= 700;
  const left = { x: 12, width: wide ? width * 0.44 : width - 24 };
  const beside = { x: left.x + left.width + gap, width: width - left.width - gap - 24 };
  const right = wide ? beside : left;
  join(layer(group, "paper"), "rect", [0], () => 0, () => ({
    x: 0, y: 4, width, height: group.high ?? 0, rx: 10, class: "panel",
  }));
  const head = drawHeading(layer(group, "heading"), look, page, width);
  const heads = drawHeadChoice(layer(group, "heads"), look, page, { ...left, y: head });
  const rows = drawRows(layer(group, "rows"), look, page, { ...left, y: heads });
  const bars = drawRow(layer(group, "row"), look, page, { ...right, y: wide ? head : rows + 10 });
  const made = drawMaking(layer(group, "made"), look, { ...right, y: bars + 16 });
  group.high = Math.max(rows, made) + 8;
  set(group.querySelector(".panel"), { height: group.high - 4 });
  return group.high + 12;
}

// Name and shape, and the way to the neighbors.
function drawHeading(group, { step, at, flow }, page, width) {
  const { shape } = step.value, axes = axesOf(step).join(", ");
  const words = [[step.name, "strong"], [`(${shape.join(", ")}) = (${axes})`, "small"]];
  join(layer(group, "words"), "text", words, (_, i) => i, ([text, kind], i) => ({
    text: fitted(text, width - 110), class: kind, x: 12, y: 28 + 18 * i,
  }));
  const ways = [["◀", "the step before", at - 1], ["▶", "the step after", at + 1]];
  const open = ways.filter(([, , step]) => step >= 0 && step < flow.steps.length);
  const x = ([sign]) => width - (sign === "▶" ? 44 : 84);
  join(layer(group, "ways"), "rect", open, ([sign]) => sign, (way) => ({
    class: "box", x: x(way), y: 14, width: 34, height: 28, rx: 6,
    ...choosable(`${way[1]}: ${flow.steps[way[2]].name}`, false, () => page.set({ step: way[2] })),
    "aria-pressed": null,
  }));
  join(layer(group, "signs"), "text", open, ([sign]) => sign, (way) => ({
    text: way[0], class: "middle", x: x(way) + 17, y: 33, "pointer-events": "none",
    "aria-hidden": "true",
  }));
  return 62;
}

function drawHeadChoice(group, { heads, head }, page, { x, y, width }) {
  const all = Array.from({ length: heads }, (_, h) => h), side = Math.min(34, width / heads - 4);
  join(layer(group, "boxes"), "rect", all, String, (h) => ({
    class: "box", x: x + h * (side + 4), y, width: side, height: 24, rx: 6,
    ...choosable(`head ${h}`, h === head, () => page.set({ head: h })),
  }));
  join(layer(group, "names"), "text", all, String, (h) => ({
    text: h, class: "middle number", x: x + h * (side + 4) + side / 2, y: y + 17,
    "pointer-events": "none", "aria-hidden": "true",
  }));
  return heads ? y + 36 : y;
}

// The rows of the chosen head, each a strip that is a button.
function drawRows(group, look, page, { x, y, width }) {
  const { rows, row, head, heads, step } = look, name = Math.min(90, width * 0.3);
  const strip = { x: x + name, width: width - name };
  join(layer(group, "picture"), "image", [step.name], String, () => ({
    ...strip, y, height: ROW * rows.length, preserveAspectRatio: "none",
    "image-rendering": "pixelated", href: headHref(step.value, heads ? head : 0),
    "pointer-events": "none", class: "still",
  }));
  join(layer(group, "names"), "text", rows, (_, i) => i, (word, i) => ({
    text: fitted((i === row ? "▸ " : "") + word, name - 8, 13), class: "end", x: x + name - 6,
    y: y + ROW * i + 15, "aria-hidden": "true",
  }));
  join(layer(group, "boxes"), "rect", rows, (_, i) => i, (word, i) => ({
    ...strip, y: y + ROW * i, height: ROW, class: "open-box",
    ...choosable(`row ${i}, “${word}”`, i === row, () => page.set({ row: i })),
  }));
  return y + ROW * rows.length;
}

// The numbers of the chosen row as bars.
function drawRow(group, look, page, { x, y, width }) {
  const { step, rows, row, column, columns } = look, { width: n } = step.value;
  const numbers = Array.from({ length: n }, (_, k) => numberAt(step.value, { ...look, column: k }));
  const words = axesOf(step).at(-1) === "vocab_size";
  const all = words ? fromLargest(numbers, LIKELIEST) : [...numbers.keys()];
  const label = (k) => (columns ? `“${columns[k]}”` : `number ${k}`);
  const note = all.length < n ? `, the ${all.length} largest of ${n}` : "";
  join(layer(group, "title"), "text", [0], () => 0, () => ({
    text: fitted(`the numbers of “${rows[row]}”${note}`, width, 12), class: "small", x, y: y + 10,
  }));
  drawBars(layer(group, "bars"), { x, y: y + 18, width, height: 92 }, all.map((k) => ({
    key: k, value: numbers[k],
    tell: choosable(`${label(k)}: ${digits(numbers[k])}`, k === column,
      () => page.set({ number: k }), "made"),
  })), column);
  const named = columns && all.length <= 16 ? all : [];
  join(layer(group, "names"), "text", named, String, (k) => ({
    text: fitted(columns[k], barWidth(width, all) - 2, 12), class: "small middle",
    x: x + barWidth(width, all) * (k + 0.5), y: y + 126, "aria-hidden": "true",
  }));
  return y + (named.length ? 132 : 114);
}

function barWidth(width, { length }) {
  return Math.min(70, width / length);
}

// Bars from a common line, up for what is above zero and down for what is below.
function drawBars(group, { x, y, width, height }, bars, chosen) {
  const values = bars.map(({ value }) => value), wide = barWidth(width, bars);
  const high = Math.max(0, ...values), low = Math.min(0, ...values);
  const unit = height / (high - low || 1), zero = y + high * unit, largest = Math.max(high, -low);
  join(layer(group, "bars"), "rect", bars, ({ key }) => key, ({ key, value, tell }, i) => ({
    x: x + i * wide, width: Math.max(1, wide - Math.min(2, wide * 0.2)),
    y: Math.min(zero, zero - value * unit) - 1, height: Math.abs(value * unit) + 2,
    fill: signed(value, largest),
    class: key === chosen ? "picked" : null, ...tell,
  }));
  join(layer(group, "axis"), "line", [0], () => 0, () => ({
    class: "axis", x1: x, x2: x + width, y1: zero, y2: zero,
  }));
}

// The formula of the chosen number, with its numbers, and what was added up.
function drawMaking(group, look, { x, y, width }) {
  const { formula, terms } = look.made;
  const lines = [...textLines(formula, width).map((text) => [text, "strong"]),
    ...textLines(look.words, width, 13).map((text) => [text, "number"])];
  join(layer(group, "lines"), "text", lines, (_, i) => i, ([text, kind], i) => ({
    text, class: kind, x, y: y + 14 + 18 * i,
  }));
  const top = y + 18 * lines.length + 10;
  drawBars(layer(group, "terms"), { x, y: top, width, height: 70 }, terms.map((one, i) => ({
    key: i, value: one.value, tell: told(one.words),
  })), -1);
  return top + 84;
}
