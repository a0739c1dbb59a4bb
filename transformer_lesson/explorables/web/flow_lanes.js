// The words of a forward pass as rows, what is done to them as columns, and attention as ribbons.

import { choosable, fitted, layer, pen, put, textWidth, told } from "./draw.js";
import { headingOf, NEXT_ROW, rowAt, titleOf } from "./flow_plan.js";
import { tensorHref } from "./heat_map.js";

const SHOWN = 0.04; // thinner ribbons are left out
const LEVELS = [0.15, 0.4, 0.7, 1]; // of ribbons that are not in the chosen row

export function drawLanes(group, plan, look, page) {
  put.path(group, "wires", plan.lanes, (lane) => ({
    d: lane.words.map((_, i) => `M${lane.left} ${rowAt(lane, i)}H${lane.end}`).join(""),
    class: "axis", fill: "none", "stroke-width": 2 }), "name");
  const rows = plan.lanes.flatMap((lane) => lane.words.map((word, i) => ({ lane, word, i })));
  drawLaneColumns(layer(group, "columns"), plan, look, page);
  drawLaneRibbons(layer(group, "ribbons"), plan, look);
  drawLaneWords(layer(group, "words"), rows, look, page);
  drawLaneNames(layer(group, "names"), plan, look);
  drawNext(layer(group, "next"), plan, look, page);
}

function drawLaneWords(group, rows, look, page) {
  const key = ({ lane, i }) => `${lane.name} ${i}`;
  const chosen = ({ lane, i }) => lane.name === look.lane && i === look.laneRow;
  put.rect(group, "boxes", rows, (one) => ({
    class: "box", x: 0, y: one.lane.y + one.lane.row * one.i + 1, width: one.lane.left - 4,
    height: one.lane.row - 2, rx: Math.min(6, one.lane.row / 3),
    ...choosable(`row ${one.i}, “${one.word}”${stateOf(one, look)}`, chosen(one),
      () => chooseRow(page, look, one.lane.name, one.i)) }), key);
  const size = ({ lane }) => (lane.row < 13 ? 10 : lane.row < 17 ? 12 : 14);
  const faint = (one) => (stateOf(one, look) === ", kept" ? " kept" : ""); // in the cache
  put.label(group, "words", rows, (one) => [
    fitted(one.word, one.lane.left - 10, size(one)), (one.lane.left - 4) / 2,
    rowAt(one.lane, one.i) + size(one) * 0.36,
    `middle size-${size(one)}${chosen(one) ? " strong" : ""}${faint(one)}`], key);
}

// In the text that is written: what the last step computed, and what it found in the cache.
function stateOf({ lane, i }, { flow }) {
  if (lane.name !== "written" || !flow.writes || lane.words.length < 2) return "";
  return i === lane.words.length - 1 ? ", new" : ", kept";
}

// Chooses a row; where the open quantity has none of that text, in the first one that has.
function chooseRow(page, look, name, row) {
  const first = look.flow.sublayers.find(({ lane }) => lane === name);
  const has = name === look.lane && look.rows.length > 1;
  page.set(has ? { row } : { row, step: first.main });
}

function drawLaneColumns(group, plan, look, page) {
  const all = plan.lanes.flatMap((lane) => lane.columns.map((column) => ({ lane, column })));
  const key = ({ column }) => column.key, steps = look.flow.steps;
  const pictures = all.flatMap(({ lane, column }) => picturesOf(column).map((one) => ({
    ...one, lane, key: `${column.key} ${one.step}` })));
  put.image(group, "pictures", pictures, (one) => pictureOf(one, steps), (one) => one.key);
  put.rect(group, "frames", all, ({ lane, column }) => ({
    class: "open-box column", x: column.x - 2, y: lane.y - 3, rx: 5,
    width: column.width + column.strip.width + 4, height: lane.row * lane.words.length + 6,
    ...choosable(titleOf(column), column.key === look.open.key,
      (event) => openColumn(event, page, look, { lane, column })) }), key);
}

function pictureOf({ step, x, width, lane }, steps) {
  return {
    x, y: lane.y, width, height: lane.row * lane.words.length, preserveAspectRatio: "none",
    "image-rendering": "pixelated", href: tensorHref(steps[step].value), class: "still",
    "pointer-events": "none" };
}

// The quantities that a column shows as pictures: what it makes, and the stream behind it.
function picturesOf({ kind, main, after, x, width, strip }) {
  const made = { step: main, x, width };
  return [...(kind.includes("attention") ? [] : [made]),
    ...(strip.width ? [{ step: after, ...strip }] : [])];
}

// A click opens the column and chooses the row that it hits; Enter leaves the row as it is.
function openColumn(event, page, look, { lane, column }) {
  const { top, height } = event.currentTarget.getBoundingClientRect();
  const part = event.detail ? (event.clientY - top - 3) / (height - 6) : null;
  const hit = Math.max(0, Math.min(lane.words.length - 1, Math.floor(part * lane.words.length)));
  page.set({ step: column.main, ...(part === null ? {} : { row: hit }) });
}

function drawLaneNames(group, plan, look) {
  const { flow } = look, last = flow.written.length - 1;
  const kept = flow.writes && last > 0 ? ` · kept ${last}, new 1` : "";
  const words = { read: "read", written: `written so far${kept}` };
  if (plan.lanes.length === 1) words.written = `read and written${kept}`;
  put.text(group, "lanes", plan.lanes, ({ name, y }) =>
    [words[name], 0, y - 22, "strong size-13 halo"], "name");
  const all = plan.lanes.flatMap((lane) => lane.columns.map((column) => ({ lane, column })));
  const wide = ({ column }) => column.width + column.strip.width + 2;
  let end = 0, before = null;
  const named = all.flatMap((one) => {
    const words = headingOf(one.column), short = words.split(" ")[0];
    if (one.lane !== before) [before, end] = [one.lane, 0];
    const middle = one.column.x + wide(one) / 2, half = (word) => textWidth(word, 12) / 2;
    const text = [words, short].find((word) =>
      2 * half(word) <= wide(one) + 6 && middle - half(word) >= end + 4);
    if (!text) return [];
    end = middle + half(text);
    return [{ ...one, text }];
  });
  put.label(group, "headings", named, (one) => [
    one.text, one.column.x + wide(one) / 2, one.lane.y - 7, "small middle halo",
  ], ({ column }) => column.key);
  const blocks = all.filter(({ column }) => /self_attention/.test(column.kind));
  put.text(group, "blocks", blocks, ({ lane, column }) => [
    plan.wide ? `block ${column.block}` : String(column.block), column.x,
    lane.y + lane.row * lane.words.length + (plan.wide ? 15 : 13), "small halo",
  ], ({ column }) => column.key);
  const memory = plan.lanes.filter(({ name }) => name === "read" && flow.writes);
  put.rect(group, "memory", memory, (lane) => ({
    x: lane.end - lane.columns.at(-1).strip.width - 2, y: lane.y - 3, rx: 4, ...pen("--value", 2),
    width: lane.columns.at(-1).strip.width + 4, height: lane.row * lane.words.length + 6 }));
  put.text(group, "memory name", memory, (lane) => ["memory", lane.end + 8, lane.y + 12, "small"]);
}

// Attention from where it is paid (right) to where it looks (left; cross-attention: the memory).
function drawLaneRibbons(group, plan, look) {
  const columns = plan.lanes.flatMap((lane) => lane.columns
    .filter(({ kind }) => kind.includes("attention")).map((column) => ({ lane, column })));
  const all = columns.map((one) => ribbonsOf(one, plan, look));
  put.path(group, "others", all.flatMap(({ others }) => others), ({ d, thick, kind }) =>
    ({ class: classOf(kind), d, "stroke-width": thick, opacity: 0.17 }));
  put.path(group, "own", all.flatMap(({ own }) => own), ({ d, thick, kind, words, opacity }) => ({
    class: classOf(kind), d, "stroke-width": thick, opacity,
    ...(words ? told(words) : { "pointer-events": "none", "aria-hidden": "true" }) }));
}

const classOf = (kind) => `ribbon flat ${kind === "cross_attention" ? "crossing" : ""}`;

// The ribbons of one column: those of the chosen row one by one, the others by their thickness.
function ribbonsOf({ lane, column }, plan, look) {
  const weights = look.flow.steps[column.main].value, [, queries, keys] = weights.shape;
  const open = column.key === look.open.key, crossing = column.kind === "cross_attention";
  const from = crossing ? plan.lanes[0] : lane, thickest = Math.min(10, lane.row * 0.7);
  const paths = new Map(), own = [], row = look.lane === column.lane ? look.laneRow : -1;
  for (let i = 0; i < queries; i++) {
    for (let j = 0; j < keys; j++) {
      const share = shareOf(weights, open ? look.head : null, i, j);
      if (share < SHOWN) continue;
      const d = ribbon(column, plan.lanes[0], rowAt(from, j), rowAt(lane, i), crossing);
      if (i === row) {
        own.push({ key: `${column.key} ${j}`, d, kind: column.kind, opacity: open ? 0.9 : 0.45,
          thick: 1 + share * thickest,
          words: open && `“${from.words[j]}” gets ${share.toFixed(3)}` });
      } else if (!crossing || open) {
        const level = LEVELS.findIndex((most) => share <= most + 1e-6);
        paths.set(level, (paths.get(level) ?? "") + d);
      }
    }
  }
  const others = [...paths].map(([level, d]) => ({ key: `${column.key} ${level}`, d,
    kind: column.kind, thick: 1 + LEVELS.at(level) * thickest }));
  return { own, others };
}

function shareOf({ shape: [heads, queries], data, width }, head, i, j) {
  if (head !== null) return data[(head * queries + i) * width + j];
  let sum = 0;
  for (let h = 0; h < heads; h++) sum += data[(h * queries + i) * width + j];
  return sum / heads;
}

function ribbon({ x, width }, memory, from, to, crossing) {
  const left = x, right = x + width;
  if (!crossing) {
    const middle = left + width / 2;
    return `M${left} ${from}C${middle} ${from} ${middle} ${to} ${right} ${to}`;
  }
  const strip = memory.columns.at(-1).strip, before = right < strip.x;
  const start = before ? strip.x : strip.x + strip.width, away = before ? -1 : 1;
  const out = start + away * Math.max(16, Math.abs(left + width / 2 - start) * 0.4);
  return `M${start} ${from}C${out} ${from} ${left + width * 0.2} ${to} ${right} ${to}`;
}

// The likeliest next tokens as bars, beside the last row of what is written.
function drawNext(group, plan, look, page) {
  const lane = plan.lanes.at(-1), { flow } = look, shown = flow.writes ? flow.next : [];
  const unit = flow.sublayers.find(({ kind }) => kind === "next");
  const { x, width } = lane.next, word = Math.min(78, width * 0.56);
  const high = plan.wide ? NEXT_ROW.wide : NEXT_ROW.narrow;
  const bottom = lane.y + lane.row * lane.words.length;
  const top = Math.max(lane.y - 8, bottom - high * shown.length - 4);
  const place = (i) => top + high * i, id = ([token]) => token, room = width - word - 44;
  put.rect(group, "frame", unit ? [unit] : [], () => ({
    class: "open-box column", x: x + 2, y: top - 4, width: width - 2, rx: 5,
    height: high * shown.length + 6,
    ...choosable(titleOf(unit), look.open.key === "next", () => page.set({ step: unit.main })) }));
  put.path(group, "wire", unit ? [unit] : [], () => ({
    d: `M${lane.end} ${rowAt(lane, lane.words.length - 1)}H${x + 2}`, class: "axis", fill: "none",
    "stroke-width": 2 }));
  put.rect(group, "bars", shown, ([, share], i) => ({
    x: x + word + 6, y: place(i) + 2, height: high - 4, width: Math.max(1, share * room),
    fill: i ? "var(--hidden)" : "var(--value)" }), id);
  put.label(group, "words", shown, ([token], i) => [
    fitted(flow.token(token), word - 4, 13), x + word, place(i) + high - 5,
    `end size-13${i ? "" : " strong"}`], id);
  put.label(group, "numbers", shown, ([, share], i) =>
    [share.toFixed(3), x + word + 10 + share * room, place(i) + high - 5, "number"], id);
}
