// Twelve numbers on their way from tokens to heads; a number is written as token.dimension.

import { choosable, layer, pen, put } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";

const TOKEN_TINTS = ["var(--key)", "var(--query)", "var(--value)", "var(--focus)", "var(--soft)",
  "color-mix(in oklab, var(--query), var(--focus))"];

export const HeadSplitExplorer = (view) => frame(view, {
  name: "Head split explorer",
  traits: ["all_sizes", "sizes", "transposed", "number", "step"],
  controls: splitControls, draw: drawSplit });

function splitControls(make, { model, controls }) {
  controls.classList.add("dense");
  return [
    make.choice("Tokens × d_model", "sizes", () => splitSizes(model)),
    make.choice("Split", "transposed", () =>
      [[false, "view alone"], [true, "view, then transpose"]]),
    make.choice("Step", "step", () =>
      splitSteps(model.get("sizes"), model.get("transposed")).map(({ name, shape }, step) =>
        [step, `${step} ${name} ${shapeInWords(shape)}`])),
    make.play("step", [0, 3], 1500)];
}

// Two lists of equal numbers are two values to a page: the chosen one represents its equal.
function splitSizes(model) {
  const now = model.get("sizes");
  return model.get("all_sizes").map((sizes) => {
    const [n, dModel, heads] = sizes, same = sizes.join() === now.join();
    return [same ? now : sizes, `${n} × ${dModel}, ${heads} heads`];
  });
}

const shapeInWords = (shape) => `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;

// The steps of a split: the shape after each, and what its axes count, the last one apart.
function splitSteps([n, dModel, heads], transposed) {
  const dHead = dModel / heads;
  const start = [
    { name: "x", shape: [n, dModel], axes: ["token"] },
    { name: "in memory", shape: [n * dModel], axes: [] }];
  if (!transposed) {
    return [...start, { name: "cut for heads", shape: [heads, n * dHead], axes: ["head"] },
      { name: "view", shape: [heads, n, dHead], axes: ["head", "row"] }];
  }
  return [...start, { name: "view", shape: [n, heads, dHead], axes: ["token", "head"] },
    { name: "transpose", shape: [heads, n, dHead], axes: ["head", "row"], swaps: true }];
}

// A number's place at a step, as [block, row, column]: view moves nothing in memory.
function splitPlace(number, { shape, swaps }) {
  const [columns, rows] = [shape.at(-1), shape.at(-2) ?? 1];
  const column = number % columns, line = Math.floor(number / columns);
  if (!swaps) return [Math.floor(line / rows), line % rows, column];
  const blocks = shape[0];
  return [line % blocks, Math.floor(line / blocks), column];
}

function drawSplit(state, page) {
  const { sizes, transposed, step } = state, [n, dModel, heads] = sizes;
  const steps = splitSteps(sizes, transposed), { svg, width } = page, wide = width >= 720;
  const numbers = [...Array(n * dModel).keys()].map((number) => {
    const [block, row, column] = splitPlace(number, steps[step]);
    const token = Math.floor(number / dModel), dimension = number % dModel;
    const stray = steps[step].axes[1] === "row" && row !== token;
    return { number, block, row, column, token, dimension, stray, label: `${token}.${dimension}` };
  });
  const parts = { numbers, state, page }, room = wide ? width * 0.38 : width;
  drawSplitBlock(layer(svg, "before"), parts, steps[0], { left: 0, top: 0, room }, "before");
  const after = wide ? { left: room + 40, top: 0 } : { left: 0, top: 90 + n * 40 };
  const place = { ...after, room: width - after.left };
  drawSplitBlock(layer(svg, "after"), parts, steps[step], place, "now");
  return { ...splitFacts(numbers, steps, state), height: after.top + 76 + 40 * Math.max(n, heads) };
}

// Twelve cells: blocks side by side, with names of blocks above and of rows on the left.
function drawSplitBlock(group, parts, step, { left, top, room }, when) {
  const { shape, axes } = step, blocks = shape.length === 3 ? shape[0] : 1, columns = shape.at(-1);
  const start = left + (axes.length ? 56 : 0), gap = 18, high = 40;
  const cell = Math.min(64, (left + room - start - gap * (blocks - 1) - 4) / (blocks * columns));
  const x = (block, column) => start + block * (columns * cell + gap) + column * cell;
  const y = (row) => top + 60 + row * high;
  const spots = parts.numbers.map((one) => {
    if (when === "now") return one;
    const [block, row, column] = splitPlace(one.number, step);
    return { ...one, block, row, column, stray: false };
  });
  const heading = `${when}: ${step.name} ${shapeInWords(shape)}`;
  put.text(group, "heading", [[heading, left, top + 16, "strong"]]);
  drawSplitAxes(group, { blocks, rows: shape.at(-2) ?? 1, axes, left, x, y, cell, columns });
  const place = ({ block, row, column }) =>
    ({ x: x(block, column), y: y(row), width: cell, height: high });
  drawSplitCells(group, parts, { spots, place, cell, tell: (one) => cellInWords(one, axes, when) });
}

function drawSplitCells(group, { state, page }, { spots, place, cell, tell }) {
  put.rect(group, "cells", spots, (one) => ({
    ...place(one), class: "cell",
    fill: `color-mix(in oklab, ${TOKEN_TINTS[one.token]} 34%, var(--paper))`,
    ...choosable(tell(one), one.number === state.number,
      () => page.set({ number: one.number }), `number${one.number}`) }), "number");
  put.label(group, "labels", spots, (one) => [
    one.label, place(one).x + cell / 2, place(one).y + 28, cell < 40 ? "number middle" : "middle",
  ], "number");
  put.label(group, "crosses", spots.filter(({ stray }) => stray), (one) =>
    ["×", place(one).x + cell - 8, place(one).y + 12, "middle strong"], "number");
  put.rect(group, "chosen", [spots[state.number]], (one) =>
    ({ ...place(one), ...pen("--ink", 3) }));
}

function drawSplitAxes(group, { blocks, rows, axes, left, x, y, cell, columns }) {
  const [across, down] = axes.length === 2 ? axes : ["", axes[0]];
  const above = across ? [across, ...Array(blocks).keys()] : [];
  put.label(group, "blocks", above, (text, i) =>
    [text, i ? x(i - 1, 0) + (columns * cell) / 2 : left, y(0) - 8, i ? "number middle" : "small"]);
  const beside = down ? [...Array(rows).keys()] : [];
  put.label(group, "rows", beside, (row) => [`${down} ${row}`, left, y(row) + 25, "small"], String);
}

function cellInWords({ number, block, row, column, token, dimension, label, stray }, axes, when) {
  const place = {
    0: `place ${number} in memory`,
    1: `${axes[0]} ${row}, column ${column}`,
    2: `${axes[0]} ${block}, ${axes[1]} ${row}, column ${column}` };
  const what = `${label}, of token ${token}, dimension ${dimension}`;
  const where = `${when} at ${place[axes.length]}`;
  return `${what}: ${where}${stray ? ", the row of another token" : ""}`;
}

function splitFacts(numbers, steps, { sizes, transposed, number, step }) {
  const [n, dModel, heads] = sizes, { shape, axes } = steps[step];
  const title = [
    `${n} tokens of ${dModel} numbers: a row is a token`,
    "In memory the numbers stand in one line, token after token",
    transposed
      ? `Each token’s ${dModel} numbers are cut into ${heads} parts, one for each head`
      : `The line is cut into ${heads}: ${tokensOfHeads(numbers, sizes, ({ row }) => row)}`,
    splitClaim(numbers, sizes)][step];
  const last = transposed
    ? `x.view${shapeInWords(steps[2].shape)}.transpose(0, 1)`
    : `x.view${shapeInWords(steps[3].shape)}`;
  const strays = numbers.filter(({ stray }) => stray).length;
  const code = step < 3
    ? `The shape is ${shapeInWords(shape)}`
    : `${last}: ${strays} of the 12 numbers stand in the row of another token`;
  return { title, said: `${code}. ${cellInWords(numbers[number], axes, "now")}.` };
}

// Which tokens' numbers each head holds.
function tokensOfHeads(numbers, [n, , heads], headOf) {
  return [...Array(heads).keys()].map((head) => {
    const own = numbers.filter((one) => headOf(one) === head);
    const tokens = [...new Set(own.map(({ token }) => token))];
    const count = tokens.length === n ? "all tokens" : `only token${tokens.length > 1 ? "s" : ""}`;
    return `head ${head} ${count} ${tokens.join(", ")}`;
  }).join("; ");
}

function splitClaim(numbers, sizes) {
  if (!numbers.some(({ stray }) => stray)) {
    return `Every head gets all ${sizes[0]} tokens, each token in its own row`;
  }
  const seen = tokensOfHeads(numbers, sizes, ({ block }) => block);
  return `${seen.includes("all") ? "Not every" : "No"} head gets every token: ${seen}`;
}
