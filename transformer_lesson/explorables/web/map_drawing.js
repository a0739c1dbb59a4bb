// Draws the map: the paper's figure 1, or one of its halves, from the bottom to the top.

import { fitted, layer, pen, put, set, textWidth, told } from "./draw.js";
import { ARCHITECTURES, boxWords, lessonOf, partSlug, pressed, SUBLAYERS } from "./map_plan.js";

export const ROOM_BESIDE = 700; // pixels of width from which the card is beside the map
const CARD_ROOM = 274;

// Returns how often the chosen part occurs in the map.
export function drawWhole(svg, view) {
  const { state, page } = view, { columns } = ARCHITECTURES[state.kind];
  const wanted = columns.length === 2 ? 640 : 340, beside = page.width >= ROOM_BESIDE;
  const width = Math.min(wanted, beside ? page.width - CARD_ROOM : page.width);
  const sizes = mapSizes(width / columns.length), whole = { ...view, sizes };
  const stacks = columns.map((column) => stackOf(column, state.norm_position, sizes));
  const height = Math.max(...stacks.map((stack) => stack.tall));
  const placed = stacks.map((stack) => placedStack(stack, stacks.length, width, height, sizes));
  drawBlocks(layer(svg, "blocks"), placed, whole);
  drawPaths(layer(svg, "paths"), placed);
  drawBoxes(layer(svg, "boxes"), placed.flatMap(({ boxes }) => boxes), whole);
  drawEnds(layer(svg, "ends"), placed, sizes);
  set(svg, { width, height });
  return placed.reduce((sum, { block, boxes }) => sum + (block === state.part) +
    boxes.filter((box) => box.part === state.part && !box.round).length +
    boxes.filter((box) => box.inside === state.part).length, 0);
}

function mapSizes(room) {
  const narrow = room < 240, [outer, inner] = narrow ? [28, 12] : [44, 18];
  const wide = Math.min(250, room - outer - inner);
  return { narrow, outer, inner, wide, tall: narrow ? 34 : 24, double: narrow ? 72 : 38 };
}

// The boxes of one column from the bottom to the top, each with the gap below it.
function stackOf(column, position, { tall, double }) {
  const box = (key, part, gap, more) =>
    ({ key: `${column.side}.${key}`, part, gap, tall, ...more });
  const boxes = [
    box("embedding", "Token embedding", 28),
    box("positions", "Positional encoding", 9, { name: "+ Positional encoding" })];
  SUBLAYERS[column.block].forEach(([name, inside], i) => {
    const sublayer = box(name, name, 8, inside && { inside, tall: double });
    const add = box(`${name} add`, "Add & norm", 8, { name: "add", tall: 18, round: true });
    const norm = box(`${name} norm`, "Add & norm", 8, { name: "norm", tall: 24 });
    const group = position === "post" ? [sublayer, add, norm] : [norm, sublayer, add];
    group[0] = { ...group[0], gap: i ? 19 : 28, starts: true };
    boxes.push(...group.map((one) => ({ ...one, block: true })));
  });
  const pre = position === "pre";
  if (pre) boxes.push(box("last", "Add & norm", 16, { name: "last norm", tall: 24 }));
  if (column.writes) boxes.push(box("softmax", "Linear + softmax", pre ? 9 : 17));
  const all = boxes.reduce((sum, one) => sum + one.gap + one.tall, 0);
  return { ...column, boxes, tall: all + 27 };
}

function placedStack(stack, n, width, height, { wide, outer, inner }) {
  const left = stack.side < 0 ? outer : inner, across = outer + wide + inner;
  const margin = (width - n * across) / 2;
  const x = left + (stack.side < 0 ? margin : width - margin - across);
  let y = height;
  const boxes = stack.boxes.map((box) => {
    y -= box.gap + box.tall;
    return { ...box, side: stack.side, x, y, wide };
  });
  const block = boxes.filter((box) => box.block);
  const top = block.at(-1).y - 8, bottom = block[0].y + block[0].tall + 20;
  return { ...stack, boxes, x, top, bottom, middle: x + wide / 2, floor: height };
}

// The frames around the repeated blocks; their names are vertical, beside the residual paths.
function drawBlocks(group, placed, view) {
  const { sizes } = view;
  put.rect(group, "frames", placed, ({ side, block, x, top, bottom }) => ({
    x: x - (side < 0 ? sizes.outer : 8), y: top, width: sizes.wide + sizes.outer + 8,
    height: bottom - top, rx: 14, ...pressed(block, view, boxWords({ part: block }, view)),
  }), "side");
  put.label(group, "names", placed, ({ side, block, x, top, bottom }) => {
    const at = side < 0 ? x - sizes.outer + 14 : x + sizes.wide + sizes.outer - 5;
    const middle = (top + bottom) / 2, text = `N × ${block} · ${lessonOf(block, view)}`;
    return { text, x: at, y: middle, transform: `rotate(-90 ${at} ${middle})`,
      class: "small middle" };
  }, "side");
}

// The lines up each column, around the sub-layers, and from the memory to the decoder.
function drawPaths(group, placed) {
  const paths = [], heads = [];
  for (const { side, boxes, middle, floor, writes, x } of placed) {
    const end = boxes.at(-1).y - (writes ? 11 : 0);
    paths.push({ key: `${side}`, points: [[middle, floor - 20], [middle, end]] });
    for (const box of boxes) {
      if (!box.round) heads.push({ key: box.key, x: middle, y: box.y + box.tall });
      if (box.starts) paths.push(around(boxes, box, middle, side));
    }
    if (writes) heads.push({ key: `${side}.out`, x: middle, y: end });
  }
  if (placed.length === 2) paths.push(memoryPath(placed));
  put.path(group, "lines", paths, ({ points }) => ({ d: rounded(points), ...pen("--soft", 1.5) }));
  put.path(group, "heads", heads, ({ x, y }) =>
    ({ d: `M${x - 4} ${y + 6} L${x} ${y} L${x + 4} ${y + 6} Z`, fill: "var(--soft)" }));
}

// A residual path, from below a sub-layer's boxes to its sum.
function around(boxes, first, middle, side) {
  const sum = boxes.find((box, i) => box.round && i > boxes.indexOf(first));
  const from = first.y + first.tall + 11, to = sum.y + sum.tall / 2;
  const out = middle + side * (first.wide / 2 + (first.wide < 160 ? 8 : 13));
  const points = [[middle, from], [out, from], [out, to], [middle + side * 10, to]];
  return { key: sum.key, points };
}

function memoryPath([encoder, decoder]) {
  const reader = decoder.boxes.find(({ part }) => part === "Cross-attention");
  const up = encoder.boxes.at(-1).y;
  const x = (encoder.x + reader.wide + decoder.x) / 2, to = reader.y + reader.tall / 2;
  return { key: "memory", points: [[encoder.middle, up], [encoder.middle, up - 18], [x, up - 18],
    [x, to], [reader.x, to]] };
}

function rounded(points) {
  const toward = ([x, y], [u, v]) => {
    const far = Math.hypot(u - x, v - y), step = Math.min(7, far / 2) / (far || 1);
    return `${x + (u - x) * step} ${y + (v - y) * step}`;
  };
  const corners = points.slice(1, -1).map((corner, i) =>
    `L${toward(corner, points[i])} Q${corner.join(" ")} ${toward(corner, points[i + 2])}`);
  return `M${points[0].join(" ")} ${corners.join(" ")} L${points.at(-1).join(" ")}`;
}

function drawBoxes(group, boxes, view) {
  const inside = boxes.filter((box) => box.inside).map((box) => insideOf(box, view.sizes));
  const all = [...boxes.filter(({ round }) => !round), ...inside];
  put.rect(group, "boxes", all, (box) => ({
    x: box.x, y: box.y, width: box.wide, height: box.tall, rx: 8,
    ...pressed(box.part, view, boxWords(box, view)) }));
  const sums = boxes.filter(({ round }) => round);
  put.circle(group, "sums", sums, (box) => ({
    cx: box.x + box.wide / 2, cy: box.y + box.tall / 2, r: box.tall / 2,
    ...pressed(box.part, view, boxWords(box, view)) }));
  const written = [...all.flatMap((box) => boxTexts(box, view)), ...sums.map((box) => ({
    key: box.key, text: "+", x: box.x + box.wide / 2, y: box.y + 14, class: "middle strong" }))];
  put.label(group, "texts", written);
}

// The attention inside a box: on the right, or at the bottom if columns are narrow.
function insideOf({ key, inside, x, y, wide, tall }, { narrow }) {
  const own = { key: `${key} inside`, part: inside };
  if (narrow) return { ...own, x: x + 5, y: y + tall / 2 + 1, wide: wide - 10, tall: tall / 2 - 5 };
  return { ...own, x: x + wide / 2 + 2, y: y + 3, wide: wide / 2 - 5, tall: tall - 6 };
}

function boxTexts({ key, part, name, inside, x, y, wide, tall }, view) {
  const { narrow } = view.sizes, size = narrow || name === "norm" || name === "last norm" ? 12 : 13;
  const room = inside && !narrow ? wide / 2 : wide, free = inside && narrow ? tall / 2 : tall;
  const short = name?.includes("norm") ? name[0].toUpperCase() + name.slice(1) : name ?? part;
  const lesson = ` · ${lessonOf(part, view)}`, step = size + 1;
  const [top, foot] = textWidth(short + lesson, size) > room - 6 ? nameLines(short) : [short];
  const texts = foot ? [top, foot + lesson] : [top + lesson];
  const first = y + (free - step * (texts.length - 1)) / 2 + 4.5;
  return texts.map((text, i) => ({ key: `${key} ${i}`, text: fitted(text, room - 4, size),
    x: x + room / 2, y: first + step * i, class: `size-${size} middle` }));
}

// The inputs at the bottom, the outputs at the top, and the encoder's memory.
function drawEnds(group, placed, { wide, inner, narrow }) {
  const room = wide + 2 * inner + (narrow ? 4 : 0);
  const ends = placed.flatMap(({ side, reads, writes, middle, floor, boxes }) => [
    { key: `${side} in`, text: reads, x: middle, y: floor - 6 },
    ...(writes ? [{ key: `${side} out`, text: writes, x: middle, y: boxes.at(-1).y - 16 }] : [])]);
  put.text(group, "ends", ends, ({ text, x, y }) => [fitted(text, room, 12), x, y, "small middle"]);
  const memory = placed.length === 2 ? placed.slice(0, 1) : [];
  put.text(group, "memory", memory, ({ middle, boxes }) => [
    "memory", middle - (narrow ? 6 : 10), boxes.at(-1).y - 22, "strong",
    told("memory (batch, source, d_model): every decoder block reads it",
      `${partSlug("Encoder block")} ${partSlug("Cross-attention")}`)]);
}

// A name in two lines: cut at its last space, or after its hyphen.
const nameLines = (name) => name.split(name.includes(" ") ? / (?=[^ ]+$)/ : /(?<=-)/);
