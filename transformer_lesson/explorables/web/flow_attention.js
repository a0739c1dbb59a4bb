// Inside one attention: queries, keys and values as three colored streams that meet in a matrix.

import { choosable, fitted, layer, pen, put, textWidth, told } from "./draw.js";
import { drawOwnLines, short } from "./flow_lines.js";
import { tensorHref } from "./heat_map.js";
import { firstLargest } from "./ranking.js";
import { headRows, mapShades } from "./small_map.js";
import { Tensor } from "./transformer.js";

const KINDS = { 3: ["read", "self_attention"], 4: ["written", "self_attention"],
  5: ["written", "cross_attention"] };

// The attention that a stop shows. What is not chosen is chosen here: the last block; among written
// words the newest one's row, or with a mask the one before, whose × are seen; and the head (and
// in the encoder the row) that gives the largest weight to another word.
export function attentionAt(look, state) {
  const [lane, kind] = KINDS[look.stop], part = (name) => look.byName.get(name).value;
  const own = look.sublayers.filter((one) => one.lane === lane && one.kind === kind);
  const [block = own.length - 1] = chosen(state.block, own.length), { key } = own[block];
  const [weights, scores] = ["weights", "scores"].map((name) => part(`${key}.${name}`));
  const queries = look[lane], keys = kind === "cross_attention" ? look.read : queries;
  const n = queries.length, heads = weights.shape[0], masked = look.stop === 4;
  const newest = lane === "written" ? [n - (masked && n > 3 ? 2 : 1)] : [];
  const rows = [...chosen(state.row, n), ...newest].slice(0, 1), all = (one, count) =>
    one.length ? one : Array.from({ length: count }, (_, i) => i);
  const places = all(chosen(state.head, heads), heads).flatMap((head) =>
    all(rows, n).map((row) => ({ head, row, shares: [...weights.row(head * n + row)] })));
  const isOther = ({ row }) => (_, j) => kind === "cross_attention" || (j !== row &&
    (lane === "written" ? j > 0 : j < n - 1 || !look.writes));
  const place = places[firstLargest(places.map((one) =>
    Math.max(0, ...one.shares.filter(isOther(one)))))];
  const most = firstLargest(place.shares);
  const V = look.byName.get(`${key}.values`)?.value, group = V ? heads / V.shape[0] : 1;
  const values = keys.map((_, j) => V && new Tensor([1, V.width],
    V.row(Math.floor(place.head / group) * keys.length + j)));
  const [column = most] = chosen(state.column, keys.length);
  return { ...place, column, values, key, lane, queries, keys, weights, scores, block, masked,
    blocks: own.map((one) => part(`${one.key}.weights`)), word: queries[place.row],
    marks: [...scores.row(place.head * n + place.row)], other: keys[most],
    weight: place.shares[most], width: part(`${key}.queries`).width };
}

const chosen = (value, n) => (value === null ? [] : [Math.min(value, n - 1)]);

export function drawStreamsOfAttention(group, look, page) {
  const plan = matrixPlan(look, page.width);
  drawStates(layer(group, "states"), look, plan, page);
  drawStreams(layer(group, "streams"), look, plan);
  drawMatrix(layer(group, "matrix"), look, plan, page);
  drawSoftmax(layer(group, "softmax"), look, plan);
  const y = drawBlocksOfHeads(layer(group, "heads"), look, page, plan);
  return Math.max(plan.end, drawOwnLines(layer(group, "own"), look.own, { ...plan.panel, y }));
}

// There is room for the finished text, so that nothing moves while the model writes; rows still to
// come are dashed.
function matrixPlan({ keys, queries, lane, full, masked }, width) {
  const wide = width >= 700, [left, stream] = wide ? [132, 36] : [74, 18], panel = wide ? 250 : 0;
  const rows = lane === "written" ? full : queries.length;
  const columns = masked ? full : keys.length;
  const cell = Math.min(76, (width - left - panel - (wide ? 24 : 0)) / columns);
  const high = Math.max(13, Math.min(wide ? 26 : 28, (wide ? 192 : 208) / rows)), top = 70;
  const bottom = top + high * rows, end = bottom + 108;
  const from = Math.min(width - panel, Math.max(500, left + cell * columns + 60));
  const toCome = Array.from({ length: rows - queries.length }, (_, i) => i + queries.length)
    .map((i) => `M${left} ${top + high * i}h${cell * (masked ? i + 1 : columns)}v${high}H${left}z`);
  return { wide, left, stream, cell, high, top, bottom, end, toCome, across: cell * keys.length,
    panel: wide ? { x: from, y: 0, width: width - from } : { x: 0, y: bottom + 120, width } };
}

// The three states of the matrix as buttons: scores, scaled and masked, shares; then times V.
function drawStates(group, { stage, width, masked }, plan, page) {
  const { wide, panel } = plan, scaled = `÷ √${width}${!masked ? "" : wide ? " + mask" : ", mask"}`;
  const all = wide ? ["scores: Q · Kᵀ", scaled, "shares: softmax"] : ["scores", scaled, "shares"];
  const side = Math.min(132, (wide ? panel.x - 100 : page.width) / 3 - 16);
  put.box(group, "states", all, (word, i) => ({
    x: i * (side + 20) + 1, y: 1, width: side, height: 24, rx: 12, word,
    font: `size-12${i === stage ? " strong" : ""}`, class: "box",
    ...choosable(`state ${i + 1}, ${word}`, i === stage, () => page.set({ stage: i })) }));
  put.label(group, "then", ["→", "→", wide ? "→ × V" : ""], (text, i) => [text,
    (i + 1) * (side + 20) - 17, 18, "strong", { fill: i < 2 ? "var(--soft)" : "var(--value)" }]);
}

// Q from the left, K from above, and V down to the weighted sum, as thick as the weights.
function drawStreams(group, { keys, row, shares, word, values, stage }, plan) {
  const { left, stream, cell, high, top, bottom } = plan, x = (j) => left + cell * (j + 0.5);
  const middle = top + high * (row + 0.5), sum = [left + plan.across / 2, bottom + 80];
  put.path(group, "K", shares, (share, j) => ({ d: `M${x(j)} 52V${top - 3}`,
    ...pen("--key", Math.min(16, cell * 0.3)), "stroke-opacity": 0.25 + 0.5 * share }));
  put.path(group, "Q", [`M${left - stream + 1} ${middle}H${left - 3}`], (d) =>
    ({ d, ...pen("--query", Math.min(16, high * 0.6)), "stroke-opacity": 0.45 }));
  const half = Math.min(30, cell * 0.42);
  put.image(group, "V strips", values, (value, j) => ({ x: x(j) - half, y: bottom + 38,
    width: 2 * half, height: 10, preserveAspectRatio: "none", "image-rendering": "pixelated",
    href: value && tensorHref(value), "pointer-events": "none" }));
  const flows = shares.map((share, j) => ({ key: j, share })).filter((one) => one.share >= 0.02);
  put.path(group, "V", flows, ({ key, share }) => ({
    d: `M${x(key)} ${bottom + 48}C${x(key)} ${bottom + 70} ${sum[0]} ${bottom + 56} ${sum}`,
    ...pen("--value", 1 + 13 * share), "stroke-opacity": stage === 2 ? 0.75 : 0.12, class: "quiet",
    ...told(`it takes ${share.toFixed(3)} of the value of “${keys[key]}”`, `key${key}`) }));
  const size = plan.wide ? 13 : 12;
  put.label(group, "key words", keys, (one, j) => [fitted(one, cell - 1, size, 600), x(j), 46,
    `middle size-${size}${shares[j] > 0.5 ? " strong" : ""}`], (_, j) => j);
  const said = `what “${fitted(word, 90)}” takes along`, wide = textWidth(said, 13) / 2 + 12;
  put.box(group, "sum", [said], () => ({
    x: Math.max(0, sum[0] - wide), y: sum[1], width: 2 * wide, height: 25, rx: 8, word: said,
    font: "size-13", class: "box marked", "data-links": "sum" }), () => "sum");
  const names = [["K · offers", 0, 44, "--key"], ["Q · asks", 0, top - 8, "--query"],
    ["V · gives", 0, bottom + 48, "--value"]];
  put.text(group, "names", names, ([text, at, y, color]) => ({
    text: fitted(text, left - 2, 13, 600), x: at, y,
    class: "strong size-13 halo", fill: `var(${color})` }), ([text]) => text);
}

function drawMatrix(group, look, plan, page) {
  const { queries, keys, row, column, head, weights, scores, masked, stage } = look;
  const { left, stream, cell, high, top } = plan, raw = Math.sqrt(look.width);
  put.path(group, "to come", plan.toCome, (d) => ({ d, ...pen("--line", 1, "3 4") }));
  put.rect(group, "boxes", queries, (word, i) => ({
    class: "box", x: 0, y: top + high * i + 1, width: left - stream, height: high - 2, rx: 6,
    ...choosable(`row ${i}, “${word}”`, i === row, () => page.set({ row: i }), `query${i}`) }),
  (_, i) => i);
  const size = high < 17 || !plan.wide ? 12 : 14;
  put.label(group, "words", queries, (word, i) => [
    fitted(word, left - stream - 8, size), (left - stream) / 2,
    top + high * (i + 0.5) + size * 0.36, `middle size-${size}${i === row ? " strong" : ""}`],
  (_, i) => i);
  const cells = queries.flatMap((word, i) => keys.map((other, j) => {
    const at = head * queries.length + i, hidden = masked && weights.row(at)[j] === 0;
    const share = weights.row(at)[j], score = scores.row(at)[j];
    return { key: `${i}.${j}`, i, j, hidden, share, score, words: hidden ?
      `“${word}” may not look at “${other}”` : `“${word}” looks at “${other}”: ` +
      `score ${score.toFixed(2)}, weight ${share.toFixed(3)}` };
  }));
  put.rect(group, "cells", cells, ({ i, j, words }) => ({
    class: "cell", x: left + cell * j, y: top + high * i, width: cell, height: high,
    fill: "var(--card)",
    ...choosable(words, i === row && j === column, () => page.set({ row: i, column: j }),
      `key${j} query${i}`), "data-preview": `${i}.${j}`, "data-quiet": plan.wide ? "" : null }));
  const most = Math.max(...cells.map(({ score }) => Math.abs(score) * raw).filter(Number.isFinite));
  const part = ({ score, share, hidden }) => stage === 2 ? share : hidden && stage ? 0 :
    (Math.abs(score) * (stage ? 1 : raw)) / most || 0;
  const color = ({ i, score }) => stage < 2 ? (score < 0 ? "--minus" : "--plus") :
    i === row ? "--value" : "--key";
  put.circle(group, "dots", cells, (one) => ({ cx: left + cell * (one.j + 0.5),
    cy: top + high * (one.i + 0.5), r: (Math.min(cell, high) / 2 - 2) * Math.sqrt(part(one)),
    fill: `var(${color(one)})`, opacity: one.i === row ? 1 : 0.4 }));
  put.label(group, "hidden", cells.filter(({ hidden }) => hidden && stage), ({ i, j }) =>
    ["×", left + cell * (j + 0.5), top + high * (i + 0.5) + 5, "strong middle",
      { "data-links": "mask", fill: "var(--query)" }]);
  put.rect(group, "column", [column], () => ({ x: left + cell * column + 3, width: cell - 6, rx: 3,
    y: top + high * row + 3, height: high - 6, ...pen("--query", 1.5, "3 2") }), () => "column");
  put.rect(group, "row", [row], () => ({ x: left, y: top + high * row, height: high, rx: 2,
    width: cell * keys.length, ...pen("--query", 2) }), () => "row");
}

// The scores and weights of the chosen row, below its columns.
function drawSoftmax(group, { keys, marks, shares, masked, width, stage }, { left, cell, bottom }) {
  const hidden = (j) => masked && stage && shares[j] === 0, digits = cell >= 38 ? 1 : 0;
  const score = (j) => (marks[j] * (stage ? 1 : Math.sqrt(width))).toFixed(digits);
  const lines = [[stage ? `Q · K / √${width}` : "Q · K", (j) => hidden(j) ? "×" : score(j)],
    ["softmax", (j) => stage < 2 ? "" : hidden(j) ? "0" : shares[j].toFixed(2)]];
  put.text(group, "names", lines, ([text], i) => [text, 0, bottom + 14 + 17 * i, "small"],
    (_, i) => i);
  const all = lines.flatMap(([, text], i) => keys.map((_, j) => ({ key: `${i}.${j}`, j, i,
    text: cell < 30 ? "" : text(j) }))).filter(({ text }) => text);
  put.label(group, "numbers", all, ({ text, i, j }) => [text, left + cell * (j + 0.5),
    bottom + 14 + 17 * i, `number middle${i && shares[j] > 0.5 ? " strong" : ""}`,
    { "data-links": i ? "weights" : "scores" }]);
}

// All heads of all blocks as small matrices, each a button, and below them the formula. Returns
// where they end.
function drawBlocksOfHeads(group, look, page, { panel }) {
  const { blocks, block, head, own } = look;
  const { x, width: room } = panel, y = panel.y + 14;
  const across = Math.min(8, blocks[0].shape[0]);
  const side = Math.min(own.length ? 26 : 36, room / across - 4);
  const lines = Math.ceil(blocks[0].shape[0] / 8), tall = 22 + lines * (side + 5);
  const all = blocks.flatMap((weights, b) => Array.from({ length: weights.shape[0] }, (_, h) => ({
    key: `${b}.${h}`, b, h, weights, at: [x + (h % 8) * (side + 4),
      y + 22 + b * tall + Math.floor(h / 8) * (side + 5)] })));
  put.text(group, "names", blocks, (_, b) => [
    `block ${b}${b === block ? `, head ${head}` : ""}`, x, y + 16 + b * tall,
    b === block ? "strong size-13" : "small"], (_, b) => b);
  put.rect(group, "boxes", all, ({ b, h, at }) => ({
    class: "box", x: at[0], y: at[1], width: side, height: side, rx: 6,
    ...choosable(`block ${b}, head ${h}`, b === block && h === head,
      () => page.set({ block: b, head: h })) }));
  put.path(group, "maps", all.flatMap(({ key, h, weights, at }) =>
    mapShades(key, headRows(weights, h), at, side)));
  put.text(group, "hint", [["each square is a head: press one", x, y - 2, "small"]]);
  const end = y + blocks.length * tall + 22;
  const steps = cellSteps(look, page.preview ?? `${look.row}.${look.column}`);
  put.text(group, "steps", steps, (text, i) => [fitted(text, room, 13), x, end + 18 * i,
    i ? "size-13" : "size-13 strong"], (_, i) => i);
  return end + 18 * steps.length;
}

// A cell's numbers in the formula, from the product of query and key to the weight.
function cellSteps({ queries, keys, head, scores, weights, width, masked }, cell) {
  const [i, j] = cell.split(".").map(Number), at = head * queries.length + i;
  const row = [...scores.row(at)], shares = weights.row(at), score = row[j];
  const title = `“${fitted(queries[i], 90, 13)}” and “${fitted(keys[j], 90, 13)}”:`;
  if (masked && shares[j] === 0 && j > i) {
    return [title, "mask: −∞, so its weight is 0", "", "", ""];
  }
  const sees = (k) => shares[k] || k <= i || !masked;
  const sum = row.reduce((all, one, k) => all + (sees(k) ? Math.exp(one) : 0), 0);
  const dot = (score * Math.sqrt(width)).toFixed(1);
  return [title, `q · k = ${dot}`, `${dot} / √${width} = ${score.toFixed(2)}`,
    `exp(${score.toFixed(2)}) / Σ`,
    `= ${short(Math.exp(score))} / ${short(sum)} = ${shares[j].toFixed(3)}`];
}
