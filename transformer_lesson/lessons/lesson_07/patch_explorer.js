// How a picture becomes tokens: it is cut into squares, and each becomes a row of numbers.

import { choosable, fixed, layer, put, set, shade } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";

const PATCH_STAGES = [[0, "picture"], [1, "squares"], [2, "rows"]];

export function PatchExplorer(view) {
  const last = view.model.get("pictures")[0].length - 1;
  return frame(view, {
    name: "Patch explorer",
    traits: ["pictures", "digit", "size", "stage", "row", "column"],
    controls: (make) => [
      make.choice("Squares of", "size", () => [2, 4, 8].map((one) => [one, `${one} × ${one}`])),
      make.choice("On the right", "stage", () => PATCH_STAGES),
      make.play("stage", [0, 2], 1400),
      make.slider("Digit", "digit", [0, 9]),
      make.slider("Row", "row", () => [0, last]),
      make.slider("Column", "column", () => [0, last])],
    draw: drawPatchExplorer });
}

// The index of a pixel's token, and the pixel's index within that token.
function placeOf(row, column, { size, side }) {
  const token = Math.floor(row / size) * (side / size) + Math.floor(column / size);
  return { token, number: (row % size) * size + (column % size) };
}

function drawPatchExplorer(state, page) {
  const { svg, width } = page, picture = state.pictures[state.digit], side = picture.length;
  const cut = { ...state, side, tokens: (side / state.size) ** 2, numbers: state.size ** 2 };
  const pixels = picture.flatMap((line, row) => line.map((ink, column) =>
    ({ row, column, ink, key: `${row}.${column}`, ...placeOf(row, column, cut) })));
  const chosen = pixels[state.row * side + state.column];
  const beside = width >= 620, cell = Math.floor((beside ? 272 : 200) / side);
  const left = { x: 0, y: 22, cell, size: cell * side };
  const right = beside ? { x: left.size + 92, y: 22, high: 320 } :
    { x: 68, y: left.size + 52, high: 250 };
  right.wide = Math.min(width - right.x, 560);
  drawPixels(layer(svg, "picture"), pixels, chosen, cut, left, page);
  drawPatchTokens(layer(svg, "tokens"), pixels, chosen, cut, right);
  set(svg, { width, height: Math.max(left.y + left.size, right.y + right.high) + 6 });
  return cutFacts(chosen, cut);
}

// The original picture: a button for each pixel, and the lines along which it is cut.
function drawPixels(group, pixels, chosen, { size, side }, { x, y, cell, size: whole }, page) {
  put.text(group, "heading", [[`the picture, ${side} × ${side}`, x, y - 8, "strong size-13"]]);
  put.rect(group, "pixels", pixels, (one) => ({
    x: x + one.column * cell, y: y + one.row * cell, width: cell, height: cell,
    fill: shade(one.ink), ...choosable(pixelWords(one), one === chosen,
      () => page.set({ row: one.row, column: one.column }), `pixel${one.key}`) }));
  const lines = Array.from({ length: side / size + 1 }, (_, i) => i * size * cell);
  put.path(group, "lines", lines, (at) => ({
    d: `M${x} ${y + at}h${whole}M${x + at} ${y}v${whole}`, stroke: "var(--query)",
    "stroke-width": 1.2 }));
  const square = { x: x + Math.floor(chosen.column / size) * size * cell,
    y: y + Math.floor(chosen.row / size) * size * cell, wide: size * cell };
  const own = { x: x + chosen.column * cell, y: y + chosen.row * cell, wide: cell };
  drawFrames(layer(group, "frames"), [{ ...square, high: square.wide }, { ...own, high: cell }]);
}

// A frame around the chosen pixel's square, and one around the pixel.
function drawFrames(group, frames) {
  put.rect(group, "rects", frames, ({ x, y, wide, high }, i) => ({
    x, y, width: wide, height: high, fill: "none", stroke: i ? "var(--focus)" : "var(--query)",
    "stroke-width": 3 }));
}

const pixelWords = ({ row, column, ink, token, number }) =>
  `row ${row}, column ${column}, ink ${fixed(ink, 1)}: number ${number} of token ${token}`;

function tokenPlace({ row, column, token, number }, cut, { x, y, wide, high }) {
  const { size, side, stage, tokens, numbers } = cut, squares = side / size;
  if (stage < 2) {
    const gap = stage ? 8 : 0, cell = (Math.min(wide, high) - gap * (squares - 1)) / side;
    const apart = (at) => at * cell + gap * Math.floor(at / size);
    return { x: x + apart(column), y: y + apart(row), wide: cell, high: cell };
  }
  const cell = { wide: Math.min(22, wide / numbers), high: Math.min(22, high / tokens) };
  return { x: x + number * cell.wide, y: y + token * cell.high, ...cell };
}

// The same pixels at the chosen stage: together, in squares, or as a row for each square.
function drawPatchTokens(group, pixels, chosen, cut, place) {
  const { stage, tokens, numbers, size } = cut, rows = stage === 2;
  const heading = [`the same ${pixels.length} pixels`, `${tokens} squares`,
    `${tokens} tokens: a row for each`][stage];
  put.text(group, "heading", [[heading, place.x, place.y - 8, "strong size-13"]]);
  put.rect(group, "pixels", pixels, (one) => {
    const { x, y, wide, high } = tokenPlace(one, cut, place), thin = rows && high > 8 ? 1.5 : 0;
    return { x, y, width: Math.max(1, wide), height: Math.max(1, high - thin),
      fill: shade(one.ink), "data-links": `pixel${one.key}`, "data-of": `pixel${one.key}` };
  });
  const own = tokenPlace(chosen, cut, place), first = pixels.find(({ token, number }) =>
    token === chosen.token && number === 0), corner = tokenPlace(first, cut, place);
  const square = rows ? { ...corner, wide: corner.wide * numbers } :
    { ...corner, wide: corner.wide * size, high: corner.high * size };
  drawFrames(layer(group, "frames"), [square, own]);
  const named = rows ? [...new Set([0, chosen.token, tokens - 1])].filter((token) =>
    token === chosen.token || Math.abs(token - chosen.token) * own.high >= 14) : [];
  put.label(group, "names", named, (token) => [
    `token ${token}`, place.x - 8, place.y + (token + 0.5) * own.high + 4,
    token === chosen.token ? "end number strong" : "end small"], String);
}

function cutFacts(chosen, cut) {
  const { tokens, numbers, size } = cut, { row, column, token, number } = chosen;
  const all = tokens + 1, last = cut.side - 1;
  const right = column === last ? "To its right the picture ends" :
    `The pixel to its right goes to token ${placeOf(row, column + 1, cut).token}`;
  const below = row === last ? "below it the picture ends" :
    `the one below to token ${placeOf(row + 1, column, cut).token}`;
  return {
    title: `Squares of ${size} × ${size} make ${tokens} tokens of ${numbers} numbers each`,
    said: `Row ${row}, column ${column} becomes number ${number} of token ${token}. ${right}, ` +
      `${below}. With a class token each head has ${all} × ${all} = ` +
      `${(all * all).toLocaleString("en-US")} weights to compute.` };
}
