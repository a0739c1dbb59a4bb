// Curves over the steps of a training run: frames below each other, and an area for each step,
// whose label gives every curve's value there.

import { choosable, fitted, grid, layer, pen, put, textWidth, told } from "./draw.js";

const CURVE_COLORS = ["--key", "--query", "--value", "--focus"];
const CURVE_DASHES = [null, "8 4", "2 4"];
const CURVE_SIDES = { numbers: 50, names: 190, none: 20 };
const FEW_POINTS = 40; // up to this many are drawn as dots, too

// A value with four significant digits; NaN and infinities are strings already.
export const curveNumber = (value) =>
  typeof value === "string" ? value : String(Number(value.toPrecision(4)));

export const curveStep = (step) => step.toLocaleString("en-US");

// Draws frames as wide as `width` and returns where they end.
//
//   frames  each {heading, log, high, curves, levels}; a curve is {name, look, points}, where
//           `look` is the index of its color and dashes, and `points` are [step, value] pairs;
//           a level, if there are any, is a pair of a name and a value: a dashed line
//   chosen  the marked step; `choose`, if given, is called with a step that is clicked
export function drawCurves(group, frames, { x, y, width, chosen, choose }) {
  const beside = width >= 560, left = x + CURVE_SIDES.numbers;
  const right = x + width - (beside ? CURVE_SIDES.names : CURVE_SIDES.none);
  const steps = frames.flatMap(({ curves }) => curves.flatMap(({ points }) => points))
    .map(([step]) => step);
  const [first, last] = curveRange(steps);
  const across = (step) => left + ((step - first) / (last - first)) * (right - left);
  put.g(group, "frames", frames, () => ({}));
  const stretches = [], places = new Map();
  let [top, bottom] = [y, y];
  frames.forEach((frame, i) => {
    const named = beside ? 0 : 18 * frame.curves.length;
    const room = { x, left, right, top: top + 26 + named, beside, across, named, chosen };
    const node = layer(group, "frames").children[i];
    bottom = room.top + frame.high;
    stretches.push([room.top, bottom]);
    top = Math.max(bottom + 22, drawCurveFrame(node, frame, room, places));
  });
  drawStepNumbers(layer(group, "numbers"), [first, last], { left, right, bottom, across });
  const span = { left, right, stretches, across };
  drawCurveSteps(layer(group, "steps"), places, span, { chosen, choose });
  return Math.max(top, bottom + 44);
}

// The lowest and the highest value, but always two different numbers.
function curveRange(values) {
  if (!values.length) return [1, 2];
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b));
  return high > low ? [low, high] : [low, low + (Math.abs(low) || 1)];
}

// Whether a value has a height in a frame: not NaN or infinite, and on a log axis above 0.
const hasHeight = (value, log) =>
  typeof value === "number" && Math.abs(value) < 1e30 && (!log || value > 0);

// A function from values to heights, 0 (bottom) to 1 (top), and round numbers for the axis, which
// begins at 0 or lower, or on a log scale at the lowest value.
function heightsOf(curves, log) {
  const values = curves.flatMap(({ points }) => points.map(([, value]) => value))
    .filter((value) => hasHeight(value, log));
  const scaled = log ? Math.log10 : (value) => value;
  const [low, highest] = curveRange(log ? values : [0, ...values]).map(scaled);
  const high = highest + 0.04 * (highest - low);
  const height = (value) => {
    if (hasHeight(value, log)) return (scaled(value) - low) / (high - low);
    return typeof value === "number" && value <= 0 || value === "-inf" ? 0 : 1;
  };
  return { height, ticks: log ? logTicks(10 ** low, 10 ** high) : evenTicks(low, high) };
}

// Two to six numbers, spaced by 1, 2 or 5 times a power of ten.
function evenTicks(low, high) {
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= 0.999 * rough) * power;
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

// Round numbers for a log axis: 1, 2, 5, 10, 20, … or, if those are too many, powers of ten.
function logTicks(low, high) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const powers = Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
  const inside = (tick) => low <= tick && tick <= high;
  const ticks = powers.flatMap((power) => [power, 2 * power, 5 * power]).filter(inside);
  if (ticks.length < 2) return evenTicks(low, high);
  const apart = 1 + Math.floor(powers.length / 7);
  return ticks.length <= 6 ? ticks : powers.filter((_, i) => i % apart === 0).filter(inside);
}

// Adds each step's words and the heights of its points to `places`; returns where the names of the
// curves end.
function drawCurveFrame(group, { heading, log, high, curves, levels = [] }, room, places) {
  const { x, left, right, top, named } = room, { height, ticks } = heightsOf(curves, log);
  const up = (value) => top + high * (1 - height(value));
  put.text(group, "heading", [[heading, x, top - named - 14, "small"]]);
  grid(group, { left, right }, up, ticks, curveNumber);
  drawCurveLines(group, curves, { ...room, up, log });
  drawLevels(layer(group, "levels"), levels, { left, right, up, bottom: top + high });
  notePlaces(places, curves, up);
  return drawCurveNames(layer(group, "names"), curves, up, room);
}

// A cross marks a point whose value has no height.
function drawCurveLines(group, curves, { across, up, log }) {
  put.path(group, "curves", curves, ({ look, points }) => ({
    d: curveLine(points, across, up, log), fill: "none", "stroke-width": 2,
    "stroke-linejoin": "round", ...curveLook(look) }), "look");
  const all = curves.flatMap(({ look, points }) => points.map(([step, value]) => ({
    look, step, value, few: points.length <= FEW_POINTS })));
  const dots = all.filter(({ value, few }) => few && hasHeight(value, log));
  put.circle(group, "dots", dots, ({ look, step, value }) =>
    ({ cx: across(step), cy: up(value), r: 2.5, fill: curveLook(look).stroke, class: "still" }));
  const lost = all.filter(({ value }) => !hasHeight(value, log));
  put.label(group, "lost", lost, ({ step, value }) =>
    ["×", across(step), up(value) + 4, "small middle"]);
}

// Dashed lines, named at their left end; one below the axis lies on it.
function drawLevels(group, levels, { left, right, up, bottom }) {
  const lines = levels.map(([name, value]) =>
    ({ key: name, value, y: Math.min(up(value), bottom) }));
  put.path(group, "lines", lines, ({ key, y }) =>
    ({ key, d: `M${left} ${y}H${right}`, ...pen("--ink", 1, "2 4") }));
  put.label(group, "names", lines, ({ key, value, y }) =>
    [`${fitted(key, 160, 12)} ${curveNumber(value)}`, left + 6, y - 4, "small"]);
}

function curveLook(look) {
  const color = CURVE_COLORS[look % CURVE_COLORS.length];
  const dash = CURVE_DASHES[Math.floor(look / CURVE_COLORS.length) % CURVE_DASHES.length];
  return { stroke: `var(${color})`, "stroke-dasharray": dash };
}

// A line through the points, with a gap at each value that has no height.
function curveLine(points, across, up, log) {
  let next = "M";
  return points.map(([step, value]) => {
    const drawn = hasHeight(value, log), from = next;
    next = drawn ? "L" : "M";
    return drawn ? `${from}${across(step).toFixed(1)} ${up(value).toFixed(1)}` : "";
  }).join("");
}

function notePlaces(places, curves, up) {
  for (const { name, points } of curves) {
    for (const [step, value] of points) {
      if (!places.has(step)) places.set(step, { step, words: [], heights: [] });
      places.get(step).words.push(`${name} ${curveNumber(value)}`);
      places.get(step).heights.push(up(value));
    }
  }
}

// Each curve's name and its value at the chosen or else the last step: beside the curve's end if
// there is room, or else above the frame.
function drawCurveNames(group, curves, up, { x, right, top, beside, named, chosen }) {
  const ends = curves.map(({ name, look, points }) => {
    const last = points.at(-1), now = points.find(([step]) => step === chosen) ?? last;
    const number = curveNumber(now[1]);
    return { look, text: `${fitted(name, 150 - textWidth(number))} ${number}`, y: up(last[1]) };
  });
  let lowest = beside ? top - 18 : top - named - 18;
  for (const end of beside ? [...ends].sort((a, b) => a.y - b.y) : ends) {
    lowest = end.y = beside ? Math.max(end.y, lowest + 18) : lowest + 18;
  }
  const at = beside ? right + 18 : x; // clear of the last step's number
  put.path(group, "samples", ends, ({ look, y }) =>
    ({ d: `M${at} ${y}h18`, "stroke-width": 3, ...curveLook(look) }), "look");
  put.text(group, "words", ends, ({ text, y }) => [text, at + 24, y + 4, "number"], "look");
  return lowest + 16;
}

function drawStepNumbers(group, [first, last], { left, right, bottom, across }) {
  const ticks = evenTicks(first, last).filter(Number.isInteger);
  put.path(group, "line", [{ class: "axis", d: `M${left} ${bottom}H${right}` }]);
  put.label(group, "steps", ticks, (step) =>
    [curveStep(step), across(step), bottom + 18, "small middle"], String);
  put.text(group, "name", [["step", right, bottom + 36, "small end"]]);
}

// An area for each step, reaching halfway to its neighbors; highlighted, it shows a line and a ring
// around each of its points.
function drawCurveSteps(group, places, { left, right, stretches, across }, { chosen, choose }) {
  const top = stretches[0][0], bottom = stretches.at(-1)[1];
  const all = [...places.values()].sort((a, b) => a.step - b.step);
  const middle = (i) => (across(all[i].step) + across(all[i + 1].step)) / 2;
  put.g(group, "places", all, ({ step, words }) => {
    const tells = `step ${curveStep(step)}: ${words.join(", ")}`;
    if (!choose) return told(tells, `step${step}`);
    return choosable(tells, step === chosen, () => choose(step), `step${step}`);
  }, "step");
  const nodes = layer(group, "places").children;
  all.forEach((place, i) => {
    const from = i ? middle(i - 1) : left - 6, to = i < all.length - 1 ? middle(i) : right + 6;
    put.rect(nodes[i], "area", [place], () => ({
      x: from, y: top, width: to - from, height: bottom - top, class: "still", fill: "transparent",
      stroke: "none" }));
    put.path(nodes[i], "mark", [place], () =>
      ({ d: stepMark(place, across(place.step), stretches), class: "still", fill: "none" }));
  });
  const now = all.filter(({ step }) => step === chosen);
  put.path(group, "chosen", now, (place) =>
    ({ d: stepMark(place, across(place.step), stretches), ...pen("--ink", 2) }));
}

// A line through each frame, and a ring around each of the step's points.
function stepMark({ heights }, x, stretches) {
  const lines = stretches.map(([top, bottom]) => `M${x} ${top}V${bottom}`);
  const rings = heights.map((y) => `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0`);
  return [...lines, ...rings].join("");
}
