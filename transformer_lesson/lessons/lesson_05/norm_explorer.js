// A norm step by step: six tokens' numbers before and after, and one group's mean and deviation.

import { choosable, fixed, inkOn, layer, pen, put, signed,
  told } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";
import { fromLargest } from "../../explorables/web/ranking.js";

const NORM_STEPS = [0, 4];
const NORM_STAGES = ["as they come in", "minus the mean", "divided", "times gamma", "plus beta"];
const NORM_BLOCK = { high: 186, row: 24, numbers: 38 }; // pixels
const NORM_CONTROLS = {
  norm: (make) =>
    make.choice("Norm", "norm", [["layer", "Layer"], ["rms", "RMS"], ["batch", "Batch"]]),
  shift: (make) => make.slider("shift", "shift", [-5, 5, 0.5]),
  scale: (make) => make.slider("scale", "scale", [0, 5, 0.25]),
  gamma: (make) => make.slider("gamma", "gamma", [-2, 2, 0.25]),
  beta: (make) => make.slider("beta", "beta", [-2, 2, 0.25]),
  epsilon: (make) => make.choice("epsilon", "epsilon", [1e-5, 0.01, 0.1, 1, 10]) };
const NORM_NAMES = { layer: "Layer norm", rms: "RMS norm", batch: "Batch norm" };

export const NormExplorer = (view) => frame(view, {
  name: "Norm explorer",
  traits: ["tokens", "block", "offered", "norm", "shift", "scale", "gamma", "beta", "epsilon", "token",
    "dimension", "step"],
  controls: (make, { model }) => [
    ...Object.entries(NORM_CONTROLS).filter(([name]) => model.get("offered").includes(name))
      .map(([, control]) => control(make)),
    make.slider("Step", "step", () => NORM_STEPS, (step) => NORM_STAGES[step]),
    make.play("step", () => NORM_STEPS, 1200)],
  draw: drawNorm });

const normAverage = (numbers) => numbers.reduce((a, b) => a + b) / numbers.length;

// The center and variance of numbers: RMSNorm measures them from 0, the others from their mean.
function normMoments(numbers, norm) {
  const center = norm === "rms" ? 0 : normAverage(numbers);
  return { center, variance: normAverage(numbers.map((one) => (one - center) ** 2)) };
}

// The numbers that are normalized together with one of them.
const normPeers = (block, norm, token, dimension) =>
  norm === "batch" ? block.map((row) => row[dimension]) : block[token];

// The block before the norm and after each of its four steps: [step][token][dimension].
function normSteps(block, { norm, gamma, beta, epsilon }) {
  const steps = [
    (x, { center }) => x - center,
    (x, { variance }) => x / Math.sqrt(variance + epsilon),
    (x) => x * gamma,
    (x) => (norm === "rms" ? x : x + beta)];
  const levels = [block];
  for (const step of steps) {
    levels.push(levels.at(-1).map((row, token) => row.map((x, dimension) =>
      step(x, normMoments(normPeers(block, norm, token, dimension), norm)))));
  }
  return levels;
}

function drawNorm(state, page) {
  const { block, norm, shift, scale, token, dimension, step } = state;
  const change = (x) => x * scale + shift;
  const changed = block.map((row, i) => (i === token ? row.map(change) : row));
  const levels = normSteps(changed, state), unchanged = normSteps(block, state);
  const moved = levels.map((rows, level) => rows.map((row, i) =>
    Math.max(...row.map((x, j) => Math.abs(x - unchanged[level][i][j])))));
  const shared = normMoments(normPeers(changed, norm, token, dimension), norm);
  const { svg, width } = page, wide = width >= 720;
  const cell = Math.min(64, ((wide ? 0.38 * width : width) - 118) / 4);
  const parts = { levels, moved, cell, shared, state, page };
  drawNormBlock(layer(svg, "before"), parts, 0, { left: 0, top: 0, heading: "before" });
  const after = { left: 0, top: NORM_BLOCK.high, heading: `after: ${NORM_STAGES[step]}` };
  drawNormBlock(layer(svg, "after"), parts, step, after);
  const left = wide ? 118 + 4 * cell + 34 : 0, top = wide ? 6 : 2 * NORM_BLOCK.high + 8;
  const place = { left, top, width: width - left, apart: wide ? 61 : 48 };
  const low = drawNormSteps(layer(svg, "steps"), parts, place);
  return { ...normFacts(parts), height: Math.max(low, 2 * NORM_BLOCK.high) };
}

// All tokens' numbers at one step, with a frame around those that are normalized together.
function drawNormBlock(group, { levels, moved, cell, state, page }, level, { left, top, heading }) {
  const { tokens, norm, token } = state, high = NORM_BLOCK.row;
  const first = { x: left + 64, y: top + NORM_BLOCK.numbers };
  const y = (row) => first.y + row * high + 15;
  put.text(group, "heading", [[heading, left, top + 14, "strong"]]);
  const columns = ["dim 0", "1", "2", "3"];
  put.label(group, "columns", columns, (text, i) =>
    [text, first.x + (i + 0.5) * cell, first.y - 8, "small middle"]);
  put.text(group, "names", tokens, (text, i) => [
    text, first.x - 12, y(i), i === token ? "small end strong" : "small end",
    choosable(`change “${text}”`, i === token, () => page.set({ token: i }))]);
  drawNormNumbers(group, levels[level], { cell, high, first, heading, state, page });
  const framed = norm === "batch"
    ? { x: first.x + state.dimension * cell, y: first.y, width: cell, height: tokens.length * high }
    : { x: first.x, y: first.y + token * high, width: 4 * cell, height: high };
  put.rect(group, "frame", [framed], (place) => ({ ...place, ...pen("--query", 2.5) }));
  const right = first.x + 4 * cell + 50;
  put.text(group, "moved", ["moved by", ...moved[level]], (one, i) => ({
    text: i ? fixed(one, 2) : one, x: right, y: i ? y(i - 1) : first.y - 8,
    class: one >= 0.005 ? "small end strong" : "small end",
    ...(i ? told(`“${tokens[i - 1]}”, ${heading}: moved by ${fixed(one, 2)}`) : {}) }));
}

function drawNormNumbers(group, rows, { cell, high, first, heading, state, page }) {
  const numbers = rows.flatMap((row, token) =>
    row.map((x, dimension) => ({ x, token, dimension })));
  const name = ({ token, dimension }) => `${token}-${dimension}`;
  put.rect(group, "cells", numbers, ({ x, token, dimension }) => ({
    x: first.x + dimension * cell, y: first.y + token * high, width: cell, height: high,
    class: "cell", fill: signed(x, 12),
    ...choosable(`“${state.tokens[token]}”, dimension ${dimension}, ${heading}: ${fixed(x, 2)}`,
      token === state.token && dimension === state.dimension,
      () => page.set({ token, dimension }), `number${token}-${dimension}`) }), name);
  put.label(group, "numbers", numbers, ({ x, token, dimension }) => [
    fixed(x, 2), first.x + (dimension + 0.5) * cell, first.y + token * high + 15, "middle number",
    { fill: inkOn(signed(x, 12)) }], name);
}

function normStepWords({ shared, state }) {
  const { norm, gamma, beta, epsilon } = state, rms = norm === "rms";
  const variance = `${rms ? "mean square" : "variance"} ${fixed(shared.variance, 2)}`;
  const root = fixed(Math.sqrt(shared.variance + epsilon), 2);
  return [
    NORM_STAGES[0],
    rms ? "no mean is subtracted" : `− mean ${fixed(shared.center, 2)}`,
    `÷ √(${variance} + ${epsilon}) = ${root}`,
    `× gamma ${gamma}`,
    rms ? "no beta is added" : `+ beta ${beta}`];
}

// The numbers that are normalized together, on one axis for each step so far.
function drawNormSteps(group, parts, { left, top, width, apart: between }) {
  const { levels, state } = parts, { norm, token, dimension } = state;
  const chosen = levels.map((rows) => normPeers(rows, norm, token, dimension));
  const marks = chosen.map((numbers) => normMoments(numbers, norm));
  const drawn = marks.flatMap(({ center, variance }) =>
    [center - Math.sqrt(variance), center + Math.sqrt(variance)]).concat(...chosen);
  const low = Math.min(-1, ...drawn), high = Math.max(1, ...drawn);
  const x = (number) => left + 14 + ((number - low) / (high - low)) * (width - 28);
  const y = (level) => top + 50 + level * between;
  const whose = norm === "batch"
    ? `dimension ${dimension}: a dot is a token`
    : `“${state.tokens[token]}”: a dot is a dimension`;
  put.text(group, "heading", [[whose, left, top + 8, "strong"]]);
  put.path(group, "zero", [0], () =>
    ({ d: `M${x(0)} ${y(0) - 16}V${y(4) + 16}`, class: "axis", "stroke-dasharray": "3 4" }));
  put.label(group, "zero name", [["0", x(0), y(4) + 29, "small middle"]]);
  const axes = normStepWords(parts).slice(0, state.step + 1);
  put.path(group, "axes", axes, (_, i) =>
    ({ d: `M${left} ${y(i)}H${left + width}`, class: "axis" }));
  drawNormMarks(group, marks, { x, y, state });
  drawNormDots(group, chosen, { x, y, state, apart: between });
  put.text(group, "words", axes, (text, i) => [
    text, i ? left + width : left, y(i) - 17, i ? "small end halo" : "small halo"]);
  return y(4) + 36;
}

function drawNormMarks(group, marks, { x, y, state }) {
  const shown = marks.slice(0, state.step + 1);
  const tell = ({ center, variance }, i) => {
    const deviation = fixed(Math.sqrt(variance), 2);
    const words = `mean ${fixed(center, 2)}, deviation ${deviation}`;
    return `${NORM_STAGES[i]}: ${state.norm === "rms" ? `root mean square ${deviation}` : words}`;
  };
  put.rect(group, "deviations", shown, (mark, i) => ({
    x: x(mark.center - Math.sqrt(mark.variance)), y: y(i) - 12, height: 24, rx: 4,
    width: x(mark.center + Math.sqrt(mark.variance)) - x(mark.center - Math.sqrt(mark.variance)),
    fill: "var(--hidden)", ...told(tell(mark, i)) }));
  put.rect(group, "means", shown, ({ center }, i) =>
    ({ x: x(center) - 1.5, y: y(i) - 15, width: 3, height: 30, fill: "var(--ink)" }));
}

// How far below its axis each dot is drawn: dots that would hide each other are stacked.
function normSinks(places, room) {
  const order = fromLargest(places, places.length), lines = [], chosen = [];
  for (const i of order) {
    const free = lines.findIndex((last) => last - places[i] >= 17);
    chosen[i] = free < 0 ? lines.length : free;
    lines[chosen[i]] = places[i];
  }
  return chosen.map((line) => line * Math.min(11, room / Math.max(1, lines.length - 1)));
}

// A number's dot slides to its next place and leaves a dot and a line behind.
function drawNormDots(group, chosen, { x, y: axis, state, apart }) {
  const { norm, step, tokens } = state;
  const dots = chosen.slice(0, step + 1).flatMap((numbers, level) =>
    numbers.map((number, i) => ({ number, level, i })));
  const sinks = chosen.map((numbers) => normSinks(numbers.map(x), apart - (apart > 50 ? 50 : 40)));
  const y = (level, i) => axis(level) + sinks[level][i];
  const place = (i) => (norm === "batch" ? [i, state.dimension] : [state.token, i]);
  const name = ({ level, i }) => `${norm === "batch"}.${i}.${level === step ? "now" : level}`;
  const color = (i) => (place(i)[0] === state.token ? "var(--query)" : "var(--key)");
  const link = (i) => `number${place(i).join("-")}`;
  put.path(group, "paths", dots.filter(({ level }) => level), ({ level, i }) => ({
    d: `M${x(chosen[level - 1][i])} ${y(level - 1, i)}L${x(chosen[level][i])} ${y(level, i)}`,
    stroke: color(i), opacity: 0.5, "data-links": link(i) }), name);
  put.circle(group, "dots", dots, ({ number, level, i }) => ({
    cx: x(number), cy: y(level, i), r: 9, fill: color(i),
    ...told(`“${tokens[place(i)[0]]}”, dimension ${place(i)[1]}, ${NORM_STAGES[level]}: ` +
      fixed(number, 2), link(i)) }), name);
  const covers = (one, other) => other.level === one.level && other.i > one.i &&
    Math.abs(x(other.number) - x(one.number)) < 12 &&
    Math.abs(y(other.level, other.i) - y(one.level, one.i)) < 11;
  const named = dots.filter((one) => !dots.some((other) => covers(one, other)));
  put.label(group, "names", named, ({ number, level, i }) =>
    [String(i), x(number), y(level, i) + 4, "number middle", { fill: inkOn(color(i)) }], name);
}

function normFacts({ levels, moved, state }) {
  const { norm, shift, scale, gamma, beta, epsilon, tokens, token, dimension, step } = state;
  const claim = normClaim(moved[4], state), at = (level) => {
    const peers = normPeers(levels[level], norm, token, dimension);
    const { center, variance } = normMoments(peers, norm);
    const deviation = fixed(Math.sqrt(variance), 2);
    return norm === "rms" ? deviation : `${fixed(center, 2)} and ${deviation}`;
  };
  const title = step === 4 ? claim : `${NORM_NAMES[norm]}, step ${step} of 4: ${NORM_STAGES[step]}`;
  const what = norm === "rms" ? "Root mean square" : "Mean and deviation";
  const whose = norm === "batch" ? `dimension ${dimension}` : `“${tokens[token]}”`;
  const said = `“${tokens[token]}” is its old numbers × ${scale} + ${shift}, and its ` +
    `output moves by ${fixed(moved[4][token], 2)}. ${what} of ${whose}: ${at(0)} before, ` +
    `${at(4)} after. ` +
    `Gamma ${gamma}${norm === "rms" ? "" : `, beta ${beta}`}, epsilon ${epsilon}.`;
  return { title, said };
}

function normClaim(moved, { norm, shift, scale, tokens, token }) {
  const name = NORM_NAMES[norm], farthest = Math.max(...moved.filter((_, i) => i !== token));
  if (shift === 0 && scale === 1) {
    const whose = norm === "batch" ? "all tokens’" : "its own";
    const measure = norm === "rms" ? "root mean square" : "mean and deviation";
    return `${name}: each token is measured against ${whose} ${measure}`;
  }
  const change = `${name}: changing “${tokens[token]}” moves`;
  if (farthest >= 0.005) return `${change} other outputs by up to ${fixed(farthest, 2)}`;
  return `${change} no output${moved[token] < 0.005 ? ", not even its own" : " but its own"}`;
}
