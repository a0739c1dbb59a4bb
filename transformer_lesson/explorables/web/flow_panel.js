// A sub-layer opened: its quantities, what a head looks at and brings, one row's numbers, and what
// one number was made of.

import { choosable, fitted, layer, put, signed, textLines, textWidth, told,
  wrapped } from "./draw.js";
import { titleOf } from "./flow_plan.js";
import { fromLargest } from "./ranking.js";
import { headRows, mapShades } from "./small_map.js";
import { digits, isInStream, lastPart, numberAt } from "./trace.js";

const LIKELIEST = 40; // of a vocabulary so many are shown, the largest numbers first
const BROAD = 10, MOST_BROAD = 60; // pixels around a bar that stands out, and so many are tried
const LOOKS = 5; // so many of the words that a head looks at

// Draws the opened sub-layer, and returns where it ends.
export function drawPanel(group, look, page, { x, y, width }) {
  const place = { x: x + 12, width: width - 24 };
  put.text(group, "title", [titleOf(look.open)], (text) =>
    [fitted(text, place.width, 14, 600), place.x, y + 16, "strong"]);
  const chips = drawQuantities(layer(group, "chips"), look, page, { ...place, y: y + 26 });
  const heads = drawHeadChoice(layer(group, "heads"), look, page, { ...place, y: chips + 4 });
  const glance = drawGlance(layer(group, "glance"), look, { ...place, y: heads });
  const row = drawRowNumbers(layer(group, "row"), look, page, { ...place, y: glance + 4 });
  const end = drawMaking(layer(group, "made"), look, { ...place, y: row + 4 });
  put.path(group, "edge", [{ d: `M${x} ${y}V${end}`, class: "panel" }]);
  return end;
}

function drawQuantities(group, { open, flow, at }, page, { x, y, width }) {
  const words = open.steps.map((i) => {
    const { name } = flow.steps[i];
    return isInStream(name) ? "stream" : lastPart(name);
  });
  const sizes = words.map((word) => textWidth(word, 13) + 16);
  const { places, bottom } = wrapped(sizes, { x, y, width, high: 21, gap: 5, between: 4 });
  put.box(group, "boxes", open.steps, (step, i) => ({
    ...places[i], rx: 6, word: words[i], font: "size-13",
    ...choosable(`${step}: ${flow.steps[step].name} (${flow.steps[step].value.shape.join(", ")})`,
      step === at, () => page.set({ step })) }), (step) => flow.steps[step].name);
  return bottom + 4;
}

function drawHeadChoice(group, { weights, head }, page, { x, y, width }) {
  const all = weights ? Array.from({ length: weights.shape[0] }, (_, h) => h) : [];
  const side = Math.min(34, width / all.length - 4), place = (h) => [x + h * (side + 4), y];
  put.rect(group, "boxes", all, (h) => ({
    class: "box", x: place(h)[0], y, width: side, height: side, rx: 6,
    ...choosable(`head ${h}`, h === head, () => page.set({ head: h })) }), String);
  const levels = all.flatMap((h) => mapShades(h, headRows(weights, h), place(h), side));
  put.path(group, "maps", levels);
  return all.length ? y + side + 6 : y;
}

// The two questions of a head: where does it look, and what does it bring?
function drawGlance(group, { glance }, { x, y, width }) {
  const half = width / 2 - 8, rows = glance ? glance.looks : [], second = x + half + 16;
  const name = Math.min(64, half * 0.45), unit = half - name - 38;
  const titles = !glance ? [] : [[`“${fitted(glance.word, half - 56, 12)}” looks at`, x],
    [glance.pushes ? "it brings, as words" : "it brings", second]];
  put.text(group, "titles", titles, ([text, left]) => [text, left, y + 12, "small"]);
  const top = (i) => y + 18 + 15 * i;
  put.rect(group, "bars", rows, ({ word, share }, i) => ({
    x: x + name + 4, y: top(i) + 1, height: 12, width: Math.max(1, share * unit), rx: 2,
    fill: "var(--key)", ...told(`looks at “${word}”: ${share.toFixed(3)}`) }), "j");
  put.label(group, "words", rows, ({ word }, i) =>
    [fitted(word, name - 2, 13), x + name, top(i) + 11, "end size-13"], "j");
  put.label(group, "shares", rows, ({ share }, i) =>
    [share.toFixed(2), x + name + 8 + share * unit, top(i) + 11, "number"], "j");
  drawBrought(layer(group, "brought"), glance, { x: second, y: y + 18, width: half });
  return glance ? y + 18 + 15 * LOOKS + 6 : y;
}

// The weighted sum as a strip of numbers, and the words that it makes likelier and less likely.
function drawBrought(group, glance, { x, y, width }) {
  const numbers = glance ? [...glance.brought] : [], step = width / numbers.length;
  const largest = Math.max(...numbers.map(Math.abs));
  put.rect(group, "numbers", numbers, (value, i) => ({
    x: x + i * step, y, width: Math.max(1, step - 0.5), height: 18, fill: signed(value, largest),
    ...told(`brings number ${i}: ${digits(value)}`) }));
  const ways = glance?.pushes ? [["up", "↑", glance.pushes.up], ["down", "↓", glance.pushes.down]] :
    [];
  const lines = ways.flatMap(([way, sign, list]) =>
    textLines(`${sign} ${list.join(", ")}`, width, 12).slice(0, 2).map((text, i) => ({
      key: `${way} ${i}`, text,
      tell: i ? { "aria-hidden": "true", "pointer-events": "none" } :
        told(`read out as words, it pushes ${way}: ${list.join(", ")}`) })));
  put.text(group, "pushes", lines, ({ text, tell }, i) =>
    ({ text: fitted(text, width, 12), x, y: y + 31 + 14 * i, class: "number", ...tell }));
}

function drawRowNumbers(group, look, page, { x, y, width }) {
  const { step, rows, row, column, columns } = look, { width: n } = step.value;
  const numberOf = (_, k) => numberAt(step.value, { ...look.place, column: k });
  const numbers = Array.from({ length: n }, numberOf);
  const all = n > 600 || step.name === "probabilities" || step.name === "logits" ?
    fromLargest(numbers, LIKELIEST) : [...numbers.keys()];
  const label = (k) => (columns ? `“${columns[k]}”` : `number ${k}`);
  const note = all.length < n ? `, the ${all.length} largest of ${n}` : "";
  put.text(group, "title", [0], () => [
    fitted(`${lastPart(step.name)} of “${rows[row]}”${note}: choose a number`, width, 12), x,
    y + 10, "small"]);
  drawBars(layer(group, "bars"), { x, y: y + 16, width, height: 46 }, all.map((k) => ({
    key: k, value: numbers[k],
    choose: () => page.set({ number: k }), link: `number${k}`,
    tell: choosable(`${label(k)}: ${digits(numbers[k])}`, k === column,
      () => page.set({ number: k }), `number${k}`) })), column);
  const named = columns && all.length <= 8 ? all : [];
  put.label(group, "names", named, (k, i) => [
    fitted(columns[k], barWidth(width, all) - 2, 12), x + barWidth(width, all) * (i + 0.5), y + 76,
    "small middle"], String);
  return y + (named.length ? 80 : 66);
}

const barWidth = (width, { length }) => Math.min(70, width / length);

// Bars from a common line, up for what is above zero and down for what is below. The place above
// and below a bar belongs to it, so that the smallest is hit as easily.
function drawBars(group, { x, y, width, height }, bars, chosen) {
  const values = bars.map(({ value }) => value), wide = barWidth(width, bars);
  const high = Math.max(0, ...values), low = Math.min(0, ...values);
  const unit = height / (high - low || 1), zero = y + high * unit, largest = Math.max(high, -low);
  put.rect(group, "bars", bars, ({ key, value }, i) => ({
    x: x + i * wide, width: Math.max(1, wide - Math.min(2, wide * 0.2)),
    y: Math.min(zero, zero - value * unit) - 1, height: Math.abs(value * unit) + 2,
    fill: signed(value, largest), class: key === chosen ? "picked" : null }));
  put.rect(group, "places", bars, ({ tell }, i) =>
    ({ x: x + i * wide, y, width: wide, height, class: "bar-place", ...tell }));
  const broad = wide < BROAD ? highestApart(bars, wide) : []; // a finger hits what stands out
  put.rect(group, "broad", broad, ({ i, link, choose }) => ({
    x: x + (i + 0.5) * wide - BROAD / 2, y, width: BROAD, height, class: "bar-place",
    "data-of": link, onclick: choose }));
  const at = bars.findIndex(({ key }) => key === chosen), tip = x + (at + 0.5) * wide;
  put.path(group, "pointers", at < 0 ? [] : [0], () =>
    ({ d: `M${tip} ${y + height + 1}l4 6h-8z`, fill: "var(--query)" }), String);
  put.path(group, "axis", [{ d: `M${x} ${zero}h${width}`, class: "axis" }]);
}

// The bars that are higher than all others so near that a finger cannot tell them apart.
function highestApart(bars, wide) {
  const order = fromLargest(bars.map(({ value }) => Math.abs(value)), MOST_BROAD);
  const apart = order.filter((i, n) =>
    order.slice(0, n).every((other) => Math.abs(other - i) * wide >= BROAD));
  return apart.map((i) => ({ ...bars[i], i })).filter(({ link }) => link);
}

function drawMaking(group, look, { x, y, width }) {
  const { formula, terms } = look.made;
  const lines = [...textLines(formula, width, 13).map((text) => [text, "strong"]),
    ...textLines(look.words, width, 12).map((text) => [text, ""])];
  put.text(group, "lines", lines, ([text, kind], i) =>
    [text, x, y + 12 + 15 * i, `number ${kind}`]);
  const top = y + 15 * lines.length + 6;
  drawBars(layer(group, "terms"), { x, y: top, width, height: 34 }, terms.map((one, i) => ({
    key: i, value: one.value, tell: told(one.words) })), -1);
  return top + 40;
}
