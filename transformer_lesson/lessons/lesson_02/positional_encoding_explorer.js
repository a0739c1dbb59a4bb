// Sinusoidal positions as clocks: two dimensions are a hand, and the hands of two positions
// differ by angles that depend only on their distance.

import { arc, choosable, fitted, fixed, grid, layer, pen, put, set, signed,
  told } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";
import { inPieces } from "../../explorables/web/in_pieces.js";
import { firstLargest } from "../../explorables/web/ranking.js";

const SINUSOID_BASES = [10, 100, 1000, 10000, 100000];
const PLACES = { least: 140, most: 202 }; // height of the table of all positions, in pixels

export const PositionalEncodingExplorer = (view) => frame(view, {
  name: "Positional encoding explorer",
  traits: ["d_model", "length", "base", "dimension", "position", "distance"],
  controls: (make, { model, controls }) => {
    controls.classList.add("dense");
    const last = (trait) => [0, model.get(trait) - 1];
    const positions = () => [0, twoPlaces(model).last];
    return [
      make.slider("d_model", "d_model", [2, 64, 2]),
      make.slider("length", "length", [2, 64]),
      make.choice("base", "base", () => SINUSOID_BASES.map((base) => [base, withCommas(base)])),
      make.slider("dimension", "dimension", () => last("d_model")),
      make.slider("distance", "distance", () => last("length")),
      make.slider("position", "position", positions),
      make.play("position", positions, 400)];
  },
  draw: drawPositions });

const withCommas = (number) => number.toLocaleString("en-US", { maximumFractionDigits: 0 });

// The chosen positions and dimension, clamped to what is drawn.
function twoPlaces(model) {
  const length = model.get("length"), distance = Math.min(model.get("distance"), length - 1);
  const last = length - 1 - distance, position = Math.min(model.get("position"), last);
  const dimension = Math.min(model.get("dimension"), model.get("d_model") - 1);
  return { distance, last, position, dimension, other: position + distance };
}

// The encoding, its hands' speeds in radians per token, and one position's dot products.
function sinusoids({ d_model: dModel, length, base }, { position }) {
  const speeds = [...Array(dModel / 2).keys()].map((i) =>
    Math.exp((2 * i * -Math.log(base)) / dModel));
  const encoding = [...Array(length).keys()].map((p) =>
    speeds.flatMap((speed) => [Math.sin(p * speed), Math.cos(p * speed)]));
  const products = encoding.map((row) =>
    row.reduce((sum, x, i) => sum + x * encoding[position][i], 0));
  return { speeds, encoding, products };
}

function drawPositions(state, page) {
  const { svg, width } = page, chosen = twoPlaces(page.model), wide = width >= 620;
  const parts = { ...sinusoids(state, chosen), chosen, state, page };
  const most = wide ? page.high - PLACES.least - 50 : Infinity; // for the clocks
  const top = drawClocks(layer(svg, "clocks"), parts, most) + 8, room = wide ? width * 0.4 : width;
  const right = wide ? { left: room + 56, width: width - room - 74, top }
    : { left: 36, width: width - 54, top };
  const tall = wide ? Math.max(PLACES.least, Math.min(PLACES.most, page.high - top - 42)) :
    PLACES.most;
  const field = { left: 34, top: wide ? top + 26 : top + 282, width: room - 38, height: tall };
  const cells = layer(svg, "cells", { class: "still" }); // animating thousands at once is slow
  drawCells(cells, parts, field);
  drawStripes(layer(svg, "matrix"), parts, field);
  const height = tall / 2 - 25, upper = { ...right, top: right.top + 26, height };
  const lower = { ...right, top: right.top + 72 + height, height };
  drawByPosition(layer(svg, "wave"), parts, upper, waveOf(parts));
  drawByPosition(layer(svg, "products"), parts, lower, likePositions(parts));
  return { ...positionFacts(parts), height: field.top + field.height + 16 };
}

// The layout of the clocks: as few rows as leave 48 pixels for each, with words beside or below it.
function clockPlan(n, width, most) {
  let rows = 1;
  while (rows < n && width / Math.ceil(n / rows) < 48) rows++;
  const columns = Math.ceil(n / rows), room = Math.min(240, width / columns);
  const radius = Math.min(42, room / 2 - 7, (most - 24) / rows / 2 - 13), beside = room >= 216;
  const high = 2 * radius + (beside ? 12 : 26);
  return { radius, beside, room, end: 24 + rows * high,
    x: (i) => (i % columns) * room + (beside ? radius + 4 : room / 2),
    y: (i) => Math.floor(i / columns) * high + radius + 26 };
}

// One clock for two dimensions: the sine points right, the cosine up.
function drawClocks(group, { speeds, encoding, chosen, page }, most) {
  const plan = clockPlan(speeds.length, page.width, most), { x, y, radius } = plan;
  drawDials(group, { speeds, chosen, page, ...plan });
  const places = [["other", chosen.other], ["position", chosen.position]];
  const hands = speeds.flatMap((_, i) => places.map(([name, p]) => {
    const [sine, cosine] = encoding[p].slice(2 * i, 2 * i + 2);
    return { name, p, i, sine, cosine, x: x(i) + radius * sine, y: y(i) - radius * cosine };
  }));
  const key = ({ name, i }) => `${name}${i}`;
  const color = ({ name }) => (name === "position" ? "var(--query)" : "var(--key)");
  put.path(group, "hands", hands, (hand) => ({
    d: `M${x(hand.i)} ${y(hand.i)}L${hand.x} ${hand.y}`, stroke: color(hand), "stroke-width": 3,
    "stroke-dasharray": hand.name === "other" ? "4 3" : null }), key);
  put.circle(group, "tips", hands, (hand) => ({
    cx: hand.x, cy: hand.y, r: Math.min(hand.name === "position" ? 5 : 7, radius / 4),
    fill: hand.name === "position" ? color(hand) : "var(--paper)", stroke: color(hand),
    "stroke-width": 2.5,
    ...told(`position ${hand.p}: dimension ${2 * hand.i} is ${fixed(hand.sine, 2)}, ` +
      `dimension ${2 * hand.i + 1} is ${fixed(hand.cosine, 2)}`,
    `at${hand.p}-${2 * hand.i} at${hand.p}-${2 * hand.i + 1}`) }), key);
  return plan.end;
}

function drawDials(group, { speeds, chosen, page, x, y, radius, beside, room }) {
  const { position, other, distance, dimension } = chosen;
  const heading = page.width < 540 ? `position ${position} (solid hand) and ${other} (dashed)` :
    `Clocks: position ${position} is the solid hand, ${other} the dashed one, the arc is the ` +
    "turn between them";
  put.text(group, "heading", [[heading, 0, 13, "small"]]);
  const turns = (speed) => turnsOf(speed, distance);
  put.circle(group, "dials", speeds, (speed, i) => ({
    cx: x(i), cy: y(i), r: radius, class: "box",
    ...choosable(`dimensions ${2 * i} and ${2 * i + 1}: once around in ${period(speed)} tokens, ` +
      `${turns(speed)} turns in ${distance}`, i === Math.floor(dimension / 2),
    () => page.set({ dimension: 2 * i })) }));
  put.path(group, "arcs", speeds, (speed, i) => ({
    d: arc(x(i), y(i), radius * 0.5, position * speed, // without full turns
      position * speed + ((distance * speed) % (2 * Math.PI))),
    ...pen("--focus", 3) }));
  put.label(group, "turns", speeds, (speed, i) => ({
    text: room < 70 ? turns(speed) : `${turns(speed)} turns`,
    ...(beside ? { x: x(i) + radius + 10, y: y(i) + 22, class: "number strong" } :
      { x: x(i), y: y(i) + radius + 17, class: "number middle" }) }));
  const words = beside ? speeds.flatMap((speed, i) => [
    [`dimensions ${2 * i}, ${2 * i + 1}`, i, -14], [`around in ${period(speed)}`, i, 4]]) : [];
  put.label(group, "words", words, ([text, i, dy]) =>
    [text, x(i) + radius + 10, y(i) + dy, "small"]);
}

// How many turns a hand makes over a distance.
const turnsOf = (speed, distance) => fixed((distance * speed) / (2 * Math.PI), 2);

// How many tokens a hand needs for one turn.
function period(speed) {
  return ((2 * Math.PI) / speed).toLocaleString("en-US",
    { minimumFractionDigits: 1, maximumFractionDigits: 1 });
}

function drawCells(group, { encoding, state, page }, { left, top, width, height }) {
  const { length, d_model: dModel, base } = state;
  const known = [length, dModel, base, top, width, height].join();
  if (group.shows === known) return; // moving a hand changes no cell
  group.shows = known;
  const across = width / dModel, down = height / length;
  inPieces(page, drawEncoding(group, encoding, { left, top, across, down, page }));
}

function drawStripes(group, { chosen, state }, { left, top, width, height }) {
  const { length, d_model: dModel } = state, { position, other, dimension } = chosen;
  const across = width / dModel, down = height / length;
  put.text(group, "heading", [["position ↓   dimension →", left, top - 13, "small"]]);
  const far = (one) => [position, other].every((mark) => Math.abs(one - mark) * down > 13);
  const names = [...new Set([position, other]), ...[0, length - 1].filter(far)];
  const y = (name) => top + (name + 0.5) * down + 4;
  put.label(group, "names", names, (name) => [
    String(name), left - 6,
    name === other ? Math.max(y(other), y(position) + 12 * (other > position)) : y(name),
    far(name) ? "small end" : "small end strong"]);
  const rows = [{ row: other, color: "var(--key)" }, { row: position, color: "var(--query)" }];
  const marks = rows.map(({ row, color }) =>
    ({ x: left - 2, y: top + row * down - 1, width: width + 4, height: down + 2, color }));
  marks.push({ x: left + dimension * across - 1, y: top - 2, width: across + 2,
    height: height + 4, color: "var(--ink)" });
  put.rect(group, "marks", marks, ({ color, ...place }) =>
    ({ ...place, fill: "none", stroke: color, "stroke-width": 2 }));
}

// Draws row by row; rows of the previous encoding stay hidden until they are redrawn.
function* drawEncoding(group, encoding, { left, top, across, down, page }) {
  const rows = encoding.map((_, p) => layer(group, `row${p}`, { display: "none" }));
  for (const [name, row] of group.layers) {
    if (!rows.includes(row)) row.remove();
    if (!rows.includes(row)) group.layers.delete(name);
  }
  for (const [p, row] of rows.entries()) {
    put.rect(row, "rects", encoding[p], (x, i) => ({
      x: left + i * across, y: top + p * down, width: across, height: down, fill: signed(x, 1),
      ...told(`position ${p}, dimension ${i}: ${fixed(x, 2)}`, `at${p}-${i}`),
      onclick: () => page.set({ ...movedTo(page.model, p), dimension: i }) }));
    set(row, { display: null });
    yield;
  }
}

// The first position moves to `p`; the second follows at its distance where there is room.
function movedTo(model, p) {
  const distance = Math.min(twoPlaces(model).distance, model.get("length") - 1 - p);
  return { position: p, distance };
}

// The two curves: their numbers, the words for a point, and what a click on it does.
function waveOf({ encoding, chosen: { dimension }, page }) {
  return {
    heading: `dimension ${dimension} at each position`,
    numbers: encoding.map((row) => row[dimension]), ends: [-1, 1],
    tell: (number, p) => `dimension ${dimension} at position ${p}: ${fixed(number, 2)}`,
    link: (p) => `at${p}-${dimension} like${p}`,
    choose: (p) => page.set(movedTo(page.model, p)) };
}

function likePositions({ products, chosen: { position }, page }) {
  return {
    heading: `dot product of position ${position} with each position`,
    numbers: products, ends: [Math.min(0, ...products), Math.max(...products)],
    tell: (number, p) => `position ${position} · position ${p}: dot product ${fixed(number, 2)}`,
    link: (p) => `like${p}`,
    choose: (p) => page.set({ position: Math.min(p, position), distance: Math.abs(p - position) }),
  };
}

function drawByPosition(group, { chosen, state }, { left, top, width, height }, curve) {
  const { position, other } = chosen, { numbers, ends: [low, high] } = curve;
  const x = (p) => left + (p / (state.length - 1)) * width;
  const y = (number) => top + ((high - number) / (high - low)) * height;
  put.text(group, "heading", [curve.heading], (text) =>
    [fitted(text, width, 13, 600), left, top - 13, "strong size-13"]);
  const apart = (tick) => tick === 0 || Math.abs(y(tick) - y(0)) > 12;
  const ticks = [...new Set([low, 0, high])].filter(apart);
  grid(group, { left, right: left + width }, y, ticks, (tick) => fixed(tick, 1));
  put.path(group, "curve", [numbers], () =>
    ({ d: `M${numbers.map((one, p) => `${x(p)} ${y(one)}`).join("L")}`, ...pen("--soft", 1.5) }));
  const color = { [other]: "var(--key)", [position]: "var(--query)" };
  put.circle(group, "points", numbers, (number, p) => ({
    cx: x(p), cy: y(number), r: color[p] ? 6 : 3, fill: color[p] ?? "var(--soft)",
    ...choosable(curve.tell(number, p), p === position || p === other, () => curve.choose(p),
      curve.link(p)) }), (_, p) => p);
  const close = Math.abs(x(other) - x(position)) < 24, sides = ["end", ""];
  put.label(group, "names", [...new Set([position, other])], (p, i) => [
    String(p), x(p) + (close ? 4 * i - 2 : 0), top + height + 16,
    `number strong ${close ? sides[i] : "middle"}`]);
  const free = [left + width, left, left + width / 2] // away from the chosen positions' numbers
    .find((at) => [position, other].every((p) => Math.abs(x(p) - at) > 90));
  put.text(group, "axis", free === undefined ? [] : ["position →"], (text) =>
    [text, free, top + height + 16, free === left ? "small" : "small end"]);
}

function positionFacts({ speeds, encoding, products, chosen }) {
  const { position, other, distance, dimension } = chosen;
  const least = firstLargest(products.map((one) => -one)), two = (p) => fixed(products[p], 2);
  const [fastest, slowest] = [speeds[0], speeds.at(-1)].map((one) => turnsOf(one, distance));
  const slow = speeds.length > 1 ? `, the slowest ${slowest}` : "";
  const title = distance
    ? `From position ${position} to ${other} the fastest hand makes ${fastest} turns${slow}`
    : `Position ${position} is most like itself; which other comes close?`;
  const wave = dimension % 2 ? "cosine" : "sine";
  const said = `Dimension ${dimension} is a ${wave} that repeats every ` +
    `${period(speeds[Math.floor(dimension / 2)])} tokens; at position ${position} it is ` +
    `${fixed(encoding[position][dimension], 2)}. The dot product of position ${position} is ` +
    `${two(position)} with itself, ${distance ? `${two(other)} with position ${other}, ` : ""}` +
    `and ${two(least)} with position ${least} (the least).`;
  return { title, said };
}
