// A sub-layer opened: its quantities, what a head looks at and brings, one row's numbers, and what
// one number was made of.

import { choosable, join, layer, shade, signed, told } from "./draw.js";
import { fitted, textLines, textWidth } from "./draw.js";
import { titleOf } from "./flow_plan.js";
import { fromLargest } from "./ranking.js";
import { mapShades } from "./small_map.js";
import { digits, isInStream, lastPart, numberAt } from "./trace.js";

const LIKELIEST = 40; // of a vocabulary so many are shown, the largest numbers first
const BROAD = 10, MOST_BROAD = 60; // pixels around a bar that stands out, and so many are tried
const LOOKS = 5; // so many of the words that a head looks at

// Draws the opened sub-layer, and returns where it ends.
export function drawPanel(group, look, page, { x, y, width }) {
  const place = { x: x + 12, width: width - 24 };
  join(layer(group, "title"), "text", [titleOf(look.open)], () => 0, (text) => ({
    text: fitted(text, place.width, 14, 600), class: "strong", x: place.x, y: y + 16,
  }));
  const chips = drawQuantities(layer(group, "chips"), look, page, { ...place, y: y + 26 });
  const heads = drawHeadChoice(layer(group, "heads"), look, page, { ...place, y: chips + 4 });
  const glance = drawGlance(layer(group, "glance"), look, { ...place, y: heads });
  const row = drawRowNumbers(layer(group, "row"), look, page, { ...place, y: glance + 4 });
  const end = drawMaking(layer(group, "made"), look, { ...place, y: row + 4 });
  join(layer(group, "edge"), "line", [0], () => 0, () => ({
    class: "panel", x1: x, x2: x, y1: y, y2: end,
  }));
  return end;
}

// The sub-layer's quantities in the order of computation, each a button.
function drawQuantities(group, { open, flow, at }, page, { x, y, width }) {
  let left = x, top = y;
  const chips = open.steps.map((i) => {
    const { name, value } = flow.steps[i], word = isInStream(name) ? "stream" : lastPart(name);
    const wide = textWidth(word, 13) + 16;
    if (left + wide > x + width) [left, top] = [x, top + 25];
    left += wide + 5;
    return { i, name, value, word, x: left - wide - 5, y: top, width: wide };
  });
  join(layer(group, "boxes"), "rect", chips, ({ name }) => name, (chip) => ({
    class: "box", x: chip.x, y: chip.y, width: chip.width, height: 21, rx: 6,
    ...choosable(`${chip.i}: ${chip.name} (${chip.value.shape.join(", ")})`, chip.i === at,
      () => page.set({ step: chip.i })),
  }));
  join(layer(group, "words"), "text", chips, ({ name }) => name, (chip) => ({
    text: chip.word, class: "middle size-13", x: chip.x + chip.width / 2, y: chip.y + 15,
    "aria-hidden": "true", "pointer-events": "none",
  }));
  return top + 25;
}

// A small map of each head, as a button; none where nothing is looked at.
function drawHeadChoice(group, { weights, head }, page, { x, y, width }) {
  const all = weights ? Array.from({ length: weights.shape[0] }, (_, h) => h) : [];
  const side = Math.min(34, width / all.length - 4), place = (h) => [x + h * (side + 4), y];
  join(layer(group, "boxes"), "rect", all, String, (h) => ({
    class: "box", x: place(h)[0], y, width: side, height: side, rx: 6,
    ...choosable(`head ${h}`, h === head, () => page.set({ head: h })),
  }));
  const levels = all.flatMap((h) => mapShades([h], weights, place(h), side));
  join(layer(group, "maps"), "path", levels, ({ name }) => name, ({ d, level }) => ({
    d, fill: shade(level), "pointer-events": "none",
  }));
  return all.length ? y + side + 6 : y;
}

// The two questions of a head: where does it look, and what does it bring?
function drawGlance(group, { glance }, { x, y, width }) {
  const half = width / 2 - 8, rows = glance ? glance.looks : [], second = x + half + 16;
  const name = Math.min(64, half * 0.45), unit = half - name - 38;
  const titles = !glance ? [] : [[`“${fitted(glance.word, half - 56, 12)}” looks at`, x],
    [glance.pushes ? "it brings, as words" : "it brings", second]];
  join(layer(group, "titles"), "text", titles, (_, i) => i, ([text, left]) => ({
    text, class: "small", x: left, y: y + 12,
  }));
  const top = (i) => y + 18 + 15 * i;
  join(layer(group, "bars"), "rect", rows, ({ j }) => j, ({ word, share }, i) => ({
    x: x + name + 4, y: top(i) + 1, height: 12, width: Math.max(1, share * unit), rx: 2,
    fill: "var(--key)", ...told(`looks at “${word}”: ${share.toFixed(3)}`),
  }));
  join(layer(group, "words"), "text", rows, ({ j }) => j, ({ word }, i) => ({
    text: fitted(word, name - 2, 13), class: "end size-13", x: x + name, y: top(i) + 11,
    "aria-hidden": "true", "pointer-events": "none",
  }));
  join(layer(group, "shares"), "text", rows, ({ j }) => j, ({ share }, i) => ({
    text: share.toFixed(2), class: "number", x: x + name + 8 + share * unit, y: top(i) + 11,
    "aria-hidden": "true", "pointer-events": "none",
  }));
  drawBrought(layer(group, "brought"), glance, { x: second, y: y + 18, width: half });
  return glance ? y + 18 + 15 * LOOKS + 6 : y;
}

// The weighted sum as a strip of numbers, and the words that it makes likelier and less likely.
function drawBrought(group, glance, { x, y, width }) {
  const numbers = glance ? [...glance.brought] : [], step = width / numbers.length;
  const largest = Math.max(...numbers.map(Math.abs));
  join(layer(group, "numbers"), "rect", numbers, (_, i) => i, (value, i) => ({
    x: x + i * step, y, width: Math.max(1, step - 0.5), height: 18,
    fill: signed(value, largest), ...told(`brings number ${i}: ${digits(value)}`),
  }));
  const ways = glance?.pushes ? [["up", "↑", glance.pushes.up], ["down", "↓", glance.pushes.down]] :
    [];
  const lines = ways.flatMap(([way, sign, list]) =>
    textLines(`${sign} ${list.join(", ")}`, width, 12).slice(0, 2).map((text, i) => ({
      key: `${way} ${i}`, text,
      tell: i ? { "aria-hidden": "true", "pointer-events": "none" } :
        told(`read out as words, it pushes ${way}: ${list.join(", ")}`) })));
  join(layer(group, "pushes"), "text", lines, ({ key }) => key, ({ text, tell }, i) => ({
    text: fitted(text, width, 12), x, y: y + 31 + 14 * i, class: "number", ...tell,
  }));
}

// The numbers of the chosen row as bars.
function drawRowNumbers(group, look, page, { x, y, width }) {
  const { step, rows, row, column, columns } = look, { width: n } = step.value;
  const numberOf = (_, k) => numberAt(step.value, { ...look.place, column: k });
  const numbers = Array.from({ length: n }, numberOf);
  const all = n > 600 || step.name === "probabilities" || step.name === "logits" ?
    fromLargest(numbers, LIKELIEST) : [...numbers.keys()];
  const label = (k) => (columns ? `“${columns[k]}”` : `number ${k}`);
  const note = all.length < n ? `, the ${all.length} largest of ${n}` : "";
  join(layer(group, "title"), "text", [0], () => 0, () => ({
    text: fitted(`${lastPart(step.name)} of “${rows[row]}”${note}: choose a number`, width, 12),
    class: "small", x, y: y + 10,
  }));
  drawBars(layer(group, "bars"), { x, y: y + 16, width, height: 46 }, all.map((k) => ({
    key: k, value: numbers[k],
    choose: () => page.set({ number: k }), link: `number${k}`,
    tell: choosable(`${label(k)}: ${digits(numbers[k])}`, k === column,
      () => page.set({ number: k }), `number${k}`),
  })), column);
  const named = columns && all.length <= 8 ? all : [];
  join(layer(group, "names"), "text", named, String, (k, i) => ({
    text: fitted(columns[k], barWidth(width, all) - 2, 12), class: "small middle",
    x: x + barWidth(width, all) * (i + 0.5), y: y + 76, "aria-hidden": "true",
  }));
  return y + (named.length ? 80 : 66);
}

function barWidth(width, { length }) {
  return Math.min(70, width / length);
}

// Bars from a common line, up for what is above zero and down for what is below. The place above
// and below a bar belongs to it, so that the smallest is hit as easily.
function drawBars(group, { x, y, width, height }, bars, chosen) {
  const values = bars.map(({ value }) => value), wide = barWidth(width, bars);
  const high = Math.max(0, ...values), low = Math.min(0, ...values);
  const unit = height / (high - low || 1), zero = y + high * unit, largest = Math.max(high, -low);
  join(layer(group, "bars"), "rect", bars, ({ key }) => key, ({ key, value }, i) => ({
    x: x + i * wide, width: Math.max(1, wide - Math.min(2, wide * 0.2)),
    y: Math.min(zero, zero - value * unit) - 1, height: Math.abs(value * unit) + 2,
    fill: signed(value, largest), class: key === chosen ? "picked" : null,
  }));
  join(layer(group, "places"), "rect", bars, ({ key }) => key, ({ tell }, i) => ({
    x: x + i * wide, y, width: wide, height, class: "bar-place", ...tell,
  }));
  const broad = wide < BROAD ? highestApart(bars, wide) : []; // a finger hits what stands out
  join(layer(group, "broad"), "rect", broad, ({ key }) => key, ({ i, link, choose }) => ({
    x: x + (i + 0.5) * wide - BROAD / 2, y, width: BROAD, height, class: "bar-place",
    "data-of": link, onclick: choose,
  }));
  const at = bars.findIndex(({ key }) => key === chosen), tip = x + (at + 0.5) * wide;
  join(layer(group, "pointers"), "path", at < 0 ? [] : [0], String, () => ({
    d: `M${tip} ${y + height + 1}l4 6h-8z`, fill: "var(--query)", "pointer-events": "none",
  }));
  join(layer(group, "axis"), "line", [0], () => 0, () => ({
    class: "axis", x1: x, x2: x + width, y1: zero, y2: zero,
  }));
}

// The bars that are higher than all others so near that a finger cannot tell them apart.
function highestApart(bars, wide) {
  const order = fromLargest(bars.map(({ value }) => Math.abs(value)), MOST_BROAD);
  const apart = order.filter((i, n) =>
    order.slice(0, n).every((other) => Math.abs(other - i) * wide >= BROAD));
  return apart.map((i) => ({ ...bars[i], i })).filter(({ link }) => link);
}

// The formula of the chosen number, with its numbers, and what was added up.
function drawMaking(group, look, { x, y, width }) {
  const { formula, terms } = look.made;
  const lines = [...textLines(formula, width, 13).map((text) => [text, "strong"]),
    ...textLines(look.words, width, 12).map((text) => [text, ""])];
  join(layer(group, "lines"), "text", lines, (_, i) => i, ([text, kind], i) => ({
    text, class: `number ${kind}`, x, y: y + 12 + 15 * i,
  }));
  const top = y + 15 * lines.length + 6;
  drawBars(layer(group, "terms"), { x, y: top, width, height: 34 }, terms.map((one, i) => ({
    key: i, value: one.value, tell: told(one.words),
  })), -1);
  return top + 40;
}
