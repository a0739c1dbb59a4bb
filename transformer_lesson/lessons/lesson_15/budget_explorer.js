// A scaling law as a map: weights across, tokens up, lines of equal loss. A budget is a straight
// line on it, and somewhere on that line the loss is lowest.

import { choosable, fixed, layer, pen, put, textWidth, told } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";

const BUDGET_MAPS = { // ranges of weights, tokens and operations, as powers of ten; losses of the lines
  small: { N: [3, 6], D: [4, 7], C: [9.5, 11.5], unit: "characters",
    levels: [1.4, 1.6, 1.8, 2, 2.2, 2.4, 2.6, 3, 3.5] },
  large: { N: [8, 13], D: [9, 14], C: [20, 26], unit: "tokens",
    levels: [1.85, 1.9, 1.95, 2, 2.1, 2.2, 2.4, 2.6, 3] } };

export function BudgetExplorer(view) {
  const { model } = view, law = () => model.get("laws")[model.get("law")];
  const map = () => (model.get("law") ? BUDGET_MAPS.large : BUDGET_MAPS.small);
  const at = (step, [low, high], steps) => 10 ** (low + ((high - low) * step) / steps);
  return frame(view, {
    name: "Budget explorer",
    traits: ["laws", "law", "spend", "size"],
    controls: (make) => [
      make.choice("Law", "law", () => model.get("laws").map(({ name }, i) => [i, name])),
      make.slider("Operations", "spend", [0, 40],
        (step) => at(step, map().C, 40).toExponential(1).replace("e+", "e")),
      make.slider("Weights", "size", [0, 60],
        (step) => bigNumber(at(step, map().N, 60)))],
    draw: (state, page) => drawBudget({ ...state, own: law(), map: map(), at }, page) });
}

function bigNumber(value) {
  const units = [[1e12, " trillion"], [1e9, " billion"], [1e6, " million"]];
  const [size, word] = units.find(([one]) => value >= 0.995 * one) ?? [1, ""];
  return Number((value / size).toPrecision(2)).toLocaleString("en-US") + word;
}

function lawParts({ E, A, B, alpha, beta }, size, tokens) {
  const [small, little] = [A / size ** alpha, B / tokens ** beta];
  return { loss: E + small + little, small, little };
}

// Hoffmann and others, eq. 4: the size with the lowest loss for 6 N D operations.
function bestSize({ A, B, alpha, beta }, operations) {
  const ratio = (alpha * A) / (beta * B), sum = alpha + beta;
  return ratio ** (1 / sum) * (operations / 6) ** (beta / sum);
}

function drawBudget(state, page) {
  const { own, map, at, spend, size, law } = state, operations = at(spend, map.C, 40);
  const model = (N) => ({ N, D: operations / 6 / N, ...lawParts(own, N, operations / 6 / N) });
  const steps = Array.from({ length: 61 }, (_, i) => model(at(i, map.N, 60)));
  const lowest = steps.reduce((best, one, i) => (one.loss < steps[best].loss ? i : best), 0);
  const all = { own, map, at, law, operations, steps, size, lowest, now: steps[size],
    best: model(bestSize(own, operations)) };
  const { svg, width } = page, beside = width >= 700;
  const wide = beside ? width * 0.54 : width, tall = beside ? 268 : 210;
  const left = { left: 46, right: wide - 14, top: 22, bottom: 22 + tall };
  const right = beside ? { left: wide + 52, right: width - 14, top: 22, bottom: 22 + tall } :
    { left: 46, right: wide - 14, top: tall + 88, bottom: tall + 208 };
  drawLawMap(layer(svg, "map"), all, left, page);
  drawValley(layer(svg, "valley"), all, right, page);
  return { ...budgetFacts(all), height: right.bottom + 36 };
}

const logScale = ([low, high], from, to) =>
  (value) => from + ((Math.log10(value) - low) / (high - low)) * (to - from);

function powersOfTen([low, high]) {
  return Array.from({ length: Math.floor(high) - Math.ceil(low) + 1 },
    (_, i) => 10 ** (Math.ceil(low) + i));
}

function shortPower(value) {
  if (value < 999_999) return `${Math.round(value / 1000)}k`;
  return bigNumber(value).replace(/ (.).*/, (_, letter) => letter.toUpperCase());
}

// The tokens that a model of each size needs to reach a loss, as far as they are on the map.
function lineOfLoss({ own, map, at }, level) {
  const [low, high] = map.D.map((power) => 10 ** power), points = [];
  for (let i = 0; i <= 240; i++) {
    const N = at(i, map.N, 240), left = level - own.E - own.A / N ** own.alpha;
    const D = left > 0 ? (own.B / left) ** (1 / own.beta) : Infinity;
    if (D >= low && D <= high) points.push([N, D]);
  }
  return points;
}

function drawLawMap(group, all, place, page) {
  const { own, map, operations, now, best } = all, { left, right, top, bottom } = place;
  const x = logScale(map.N, left, right), y = logScale(map.D, bottom, top);
  drawBudgetAxes(group, all, place, `${map.unit} read`, powersOfTen(map.D), y, shortPower);
  const lines = map.levels.map((level) => ({ level, points: lineOfLoss(all, level) }))
    .filter(({ points }) => points.length > 1);
  put.path(group, "lines", lines, ({ points }) => ({
    d: `M${points.map(([N, D]) => `${x(N)} ${y(D)}`).join("L")}`, ...pen("--soft", 1.2),
    class: "still" }), "level");
  const [lowD, highD, lowN, highN] = [...map.D, ...map.N].map((power) => 10 ** power);
  const within = [Math.max(lowN, operations / 6 / highD), Math.min(highN, operations / 6 / lowD)];
  put.path(group, "budget", [0], () => ({
    d: `M${within.map((N) => `${x(N)} ${y(operations / 6 / N)}`).join("L")}`, ...pen("--key", 2.5),
  }));
  const inside = ({ N, D }) => D >= lowD && D <= highD && N >= lowN && N <= highN;
  const marks = [["best", best, 9], ["now", now, 6]].filter(([, one]) => inside(one));
  put.circle(group, "marks", marks, ([name, one, r]) => ({
    cx: x(one.N), cy: y(one.D), r, fill: name === "now" ? "var(--key)" : "none",
    stroke: name === "now" ? "var(--paper)" : "var(--query)", "stroke-width": 2.5,
    ...told(`${name === "now" ? "your model" : "the law’s best"}: ${modelWords(one, all)}`, name),
  }), ([name]) => name);
  drawLawPoints(layer(group, "points"), all, x, y, page);
  const ends = lines.map(({ level, points }) => ({ level, end: points.at(-1) }))
    .filter(({ end: [, D] }, i, others) =>
      !others.slice(0, i).some(({ end }) => Math.abs(y(end[1]) - y(D)) < 12));
  put.label(group, "levels", ends, ({ level, end: [N, D] }) =>
    [String(level), x(N) - 3, y(D) - 3, "small end halo"], "level");
}

const modelWords = ({ N, D, loss }, { map }) =>
  `${bigNumber(N)} weights, ${bigNumber(D)} ${map.unit}, ${fixed(loss, 3)} nats`;

// Runs that were measured, or models that others trained; a click sets their size and budget.
function drawLawPoints(group, { own, map, law }, x, y, page) {
  const step = (value, [low, high], steps) => Math.max(0, Math.min(steps,
    Math.round(((Math.log10(value) - low) / (high - low)) * steps)));
  const words = ([name, N, D, measured]) => {
    const size = law ? `${bigNumber(N)} weights` : `${N.toLocaleString("en-US")} weights`;
    const read = law ? bigNumber(D) : D.toLocaleString("en-US");
    const says = `the law says ${fixed(lawParts(own, N, D).loss, 2)}`;
    const head = law ? `${name}: ${size}` : size;
    return `${head}, ${read} ${map.unit}: ` +
      (measured ? `reached ${fixed(measured, 2)}, ${says} (${name})` : says);
  };
  put.circle(group, "dots", own.points, (point) => ({
    cx: x(point[1]), cy: y(point[2]), r: 5, stroke: "var(--value)", "stroke-width": 2,
    fill: point[0] === "not fitted" ? "var(--value)" : "var(--paper)",
    ...choosable(words(point), false, () => page.set({ size: step(point[1], map.N, 60),
      spend: step(6 * point[1] * point[2], map.C, 40) })) }), (_, i) => `${own.name}${i}`);
  const crowded = ([, N, D]) => own.points.some(([, other, read]) =>
    read === D && other > N && x(other) - x(N) < 70); // then the name goes to the left
  const names = [];
  for (const point of law ? own.points : []) {
    const [key, N, D] = point, half = textWidth(key, 12) / 2;
    const middle = Math.max(x(N), x(10 ** map.N[0]) + half);
    const [left, right] = [x(N) - 9 - half, x(N) + 7 + half];
    const places = crowded(point) ? [[left, 4]] : [[middle, 19], [middle, -9], [right, 4]];
    const all = places.map(([middle, low]) => ({ key, half, middle, low: y(D) + low }));
    names.push(all.find((one) => !names.some((other) => Math.abs(other.low - one.low) < 12 &&
      Math.abs(other.middle - one.middle) < other.half + half)) ?? all[0]);
  }
  put.label(group, "names", names, ({ key, middle, low }) =>
    [key, middle, low, "size-12 halo middle"]);
}

// The loss that the budget reaches with each size: a valley, and your place in it.
function drawValley(group, all, place, page) {
  const { map, steps, now, best, size } = all, { left, right, top, bottom } = place;
  const floor = best.loss, low = floor - 0.04, high = floor + 0.46;
  const x = logScale(map.N, left, right);
  const y = (loss) => bottom - ((Math.min(loss, high) - low) / (high - low)) * (bottom - top);
  const marks = [0, 0.1, 0.2, 0.3, 0.4].map((more) => floor + more);
  drawBudgetAxes(group, all, place, "loss in nats", marks, y, (loss) => fixed(loss, 2));
  const near = steps.map((one, i) => ({ ...one, i })).filter(({ loss }) => loss <= high);
  put.path(group, "line", [0], () =>
    ({ d: `M${near.map(({ N, loss }) => `${x(N)} ${y(loss)}`).join("L")}`, ...pen("--key", 2.5) }));
  const dots = near.filter(({ i }) => i % 3 === 0 && i !== size);
  put.circle(group, "dots", dots, (one) => ({
    cx: x(one.N), cy: y(one.loss), r: 4, fill: "var(--paper)", stroke: "var(--key)",
    "stroke-width": 1.5, ...choosable(modelWords(one, all), false, () => page.set({ size: one.i })),
  }), "i");
  put.circle(group, "now", [now], (one) => ({
    cx: x(one.N), cy: y(one.loss), r: 6, fill: "var(--key)", stroke: "var(--paper)",
    "stroke-width": 2.5, ...told(`on the budget’s line: ${modelWords(one, all)}`, "now") }));
}

function drawBudgetAxes(group, { map }, place, heading, marks, y, words) {
  const { left, right, top, bottom } = place, x = logScale(map.N, left, right);
  put.path(group, "grid", marks, (mark) => ({ d: `M${left} ${y(mark)}H${right}`, class: "axis" }));
  put.label(group, "ups", marks, (mark) => [words(mark), left - 6, y(mark) + 4, "small end"]);
  put.label(group, "acrosses", powersOfTen(map.N), (mark) =>
    [shortPower(mark), x(mark), bottom + 15, "small middle"], String);
  const texts = [[heading, 0, top - 8, "small"], ["weights", right, bottom + 31, "small end"]];
  put.text(group, "words", texts, ([text, at, high, style]) =>
    [text, at || (heading.startsWith("loss") ? left - 40 : 0), high, style], ([text]) => text);
}

function budgetFacts(all) {
  const { own, now, best, size, lowest, map, law } = all, each = best.D / best.N;
  const what = `${bigNumber(now.N)} weights and ${bigNumber(now.D)} ${map.unit}`;
  const title = size === lowest ? `${what}: ${fixed(now.loss, 3)} nats, the lowest here` :
    `${what}: ${fixed(now.loss, 3)} nats, ${fixed(now.loss - best.loss, 3)} above the lowest`;
  const smallest = Math.min(...own.points.map(([, N]) => N));
  const far = !law && best.N < smallest ? " No run was that small, or read that much." : "";
  const said = `Of its loss ${fixed(now.small, 3)} comes from being small, ` +
    `${fixed(now.little, 3)} from having read little. The law’s best for this budget is ` +
    `${bigNumber(best.N)} weights, ${bigNumber(each)} ${map.unit} for each.${far}`;
  return { title, said };
}
