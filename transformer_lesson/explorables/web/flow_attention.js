// Inside one attention: queries, keys and values as three colored streams that meet in a matrix.

import { choosable, fitted, fixed, layer, pen, put, signed, textWidth, told } from "./draw.js";
import { drawOwnLines, short } from "./flow_lines.js";
import { largestOf, tensorHref } from "./heat_map.js";
import { firstLargest, fromLargest } from "./ranking.js";
import { headRows, mapShades } from "./small_map.js";
import { linear, Tensor } from "./transformer.js";

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
  const of = (name, i, n) => { // that row of the head, which may share its keys and values
    const all = look.byName.get(`${key}.${name}`)?.value, group = all && heads / all.shape[0];
    return all && new Tensor([1, all.width], all.row(Math.floor(place.head / group) * n + i));
  };
  const [column = most] = chosen(state.column, keys.length), width = part(`${key}.queries`).width;
  const values = keys.map((_, j) => of("values", j, keys.length));
  return { ...place, column, values, sum: of("heads", place.row, n), key,
    q: (i) => of("queries", i, n), k: (j) => of("keys", j, keys.length), lane, queries, keys,
    weights, scores, block, masked,
    blocks: own.map((one) => part(`${one.key}.weights`)), word: queries[place.row],
    marks: [...scores.row(place.head * n + place.row)], other: keys[most],
    weight: place.shares[most], width,
    made: madeOf(look, { ...place, key, heads, width, other: lane === "written" && !masked ?
      column : place.row }) };
}

// How the head makes the row's query, and the key and value of the same word (or, from the encoder,
// the column's), as rows: x · W = y, with a row of W for each number of y.
function madeOf({ model, inputs }, { key, head, heads, row, other, width }) {
  return [["q", row], ["k", other], ["v", other]].map(([name, i], n) => {
    const { weight, bias } = model.part(`${key}.W_${name.toUpperCase()}`);
    const from = Math.floor((head * weight.rows) / (heads * width)) * width, to = from + width;
    const x = new Tensor([1, weight.width], inputs.get(key)[n].row(i));
    const W = new Tensor([width, weight.width],
      weight.data.subarray(from * weight.width, to * weight.width));
    const b = bias && { data: bias.data.subarray(from, to) };
    return { name, i, x, W, y: linear(x, { weight: W, bias: b }) };
  });
}

const LAST = 3; // the state of the shares

const chosen = (value, n) => (value === null ? [] : [Math.min(value, n - 1)]);

export function drawStreamsOfAttention(group, look, page) {
  const plan = matrixPlan(look, page.width);
  for (const name of look.stage ? ["made"] : ["streams", "matrix", "softmax"]) {
    group.layers?.get(name)?.remove();
    group.layers?.delete(name);
  }
  drawStates(layer(group, "states"), look, plan, page);
  drawRows(layer(group, "rows"), look, plan, page);
  if (look.stage) {
    drawStreams(layer(group, "streams"), look, plan);
    drawMatrix(layer(group, "matrix"), look, plan, page);
    drawSoftmax(layer(group, "softmax"), look, plan);
  } else drawMade(layer(group, "made"), look, plan, page);
  const y = drawBlocksOfHeads(layer(group, "heads"), look, page, plan);
  return Math.max(plan.end, drawOwnLines(layer(group, "own"), look.own, { ...plan.panel, y }));
}

// There is room for the finished text, so that nothing moves while the model writes; rows still to
// come are dashed.
function matrixPlan({ keys, queries, lane, full, masked, stage, width: d }, width) {
  const wide = width >= 700, [left, stream] = wide ? [132, 36] : [74, 18], panel = wide ? 264 : 0;
  const rows = lane === "written" ? full : queries.length;
  const columns = masked ? full : keys.length;
  const cell = Math.min(76, (width - left - panel - (wide ? 24 : 0)) / columns);
  const high = Math.max(13, Math.min(wide ? 26 : 28, (wide ? 186 : 208) / rows)), top = 70;
  const from = Math.min(width - panel, Math.max(500, left + cell * columns + 60));
  const room = (wide ? from - 28 : width) - left - 1, most = Math.min(d, Math.floor(room / 24));
  const own = d > 2 * most ? most : Math.ceil(d / Math.ceil(d / most));
  const cells = { n: Math.min(d, 2 * own), own, wide: room / own, room };
  const line = 74 + 24 * Math.ceil(cells.n / own), bottom = top + high * rows;
  const end = stage ? bottom + 112 : Math.max(bottom + 112, 38 + 3 * line);
  const toCome = Array.from({ length: rows - queries.length }, (_, i) => i + queries.length)
    .map((i) => `M${left} ${top + high * i}h${cell * (masked ? i + 1 : columns)}v${high}H${left}z`);
  return { wide, left, stream, cell, high, top, bottom, end, toCome, cells,
    across: cell * keys.length,
    panel: wide ? { x: from, y: 0, width: width - from } : { x: 0, y: end + 8, width } };
}

// The four states as buttons: queries, keys and values, then the matrix as scores, scaled and
// masked, and as shares; then times V.
function drawStates(group, { stage, width, masked }, plan, page) {
  const { wide, panel } = plan, scaled = `÷ √${width}${masked && wide ? " + mask" : ""}`;
  const all = wide ? ["x · W: q, k, v", "scores: Q · Kᵀ", scaled, "shares: softmax"] :
    ["x · W", "scores", scaled, "shares"];
  const side = Math.min(132, (wide ? panel.x - 70 : page.width + 14) / 4 - 20);
  put.box(group, "states", all, (word, i) => ({
    x: i * (side + 20) + 1, y: 1, width: side, height: 24, rx: 12, word,
    font: `size-12${i === stage ? " strong" : ""}`, class: "box",
    ...choosable(`state ${i + 1}, ${word}`, i === stage, () => page.set({ stage: i })) }));
  put.label(group, "then", ["→", "→", "→", wide ? "→ × V" : ""], (text, i) => [text,
    (i + 1) * (side + 20) - 17, 18, "strong", { fill: i < 3 ? "var(--soft)" : "var(--value)" }]);
}

const MADE = { q: ["asks", "--query"], k: ["offers", "--key"], v: ["gives", "--value"] };

// The row's x · W, three times: x above W, whose every row times x is a number below, a button.
function drawMade(group, { made, queries, keys, lane, masked }, { left, end, cells }, page) {
  const line = (end - 38) / 3, y = (n) => 44 + line * n, { room, own, wide } = cells;
  const [at, j] = page.number ??= [0, 0], wordOf = ({ name, i }) =>
    (name === "q" ? queries : keys)[i];
  put.label(group, "names", made, (one, n) => [`${one.name} = x · W_${one.name.toUpperCase()}: ${
    `“${fitted(wordOf(one), 80, 12, 600)}” ${MADE[one.name][0]}`}`, left, y(n) + 10,
  "strong size-12", { fill: `var(${MADE[one.name][1]})` }]);
  const size = made[0].x.width, from = lane === "written" && !masked ? "the encoder's " : "";
  put.label(group, "sizes", room > 400 ? made : [], ({ name }, n) => [`x: ${
    name === "q" ? "" : from}${size} numbers · W: ${size} × ${made[n].y.width}`, left + room,
  y(n) + 10, "small end"]);
  putStrips(group, "x", made.map(({ x }) => x), (n) =>
    ({ x: left, y: y(n) + 17, width: room, height: 10 }));
  putStrips(group, "W", made.map(({ W }) => W), (n) =>
    ({ x: left, y: y(n) + 29, width: room, height: 32 }));
  const numbers = made.flatMap((one, n) => [...one.y.data.slice(0, cells.n)].map((value, d) =>
    ({ value, n, d, key: `${n} ${d}`, is: n === at && d === j, most: largestOf(one.y), words:
      `${one.name} of “${wordOf(one)}”, number ${d + 1}: ${fixed(value, 2)}` })));
  const place = (n, d) => ({ x: left + wide * (d % own), y: y(n) + 65 + 24 * Math.floor(d / own),
    width: wide, height: 24 });
  put.rect(group, "numbers", numbers, ({ value, most, n, d, is, words, key }) => ({ class: "cell",
    ...place(n, d), fill: signed(value, most), ...choosable(words, is, () => {
    page.number = key.split(" ").map(Number);
    page.redraw();
  }) }));
  put.rect(group, "picked", [[at, j]], ([n, d]) => ({ ...place(n, d), rx: 2, ...pen("--ink", 2) }));
  put.label(group, "letters", made.flatMap(({ name }, n) => [["x", 9], ["W", 32], [name, 64]]
    .map(([text, down]) => [text, left - 6, y(n) + 17 + down, "size-12 end"])));
  put.rect(group, "row of W", [[at, j]], ([n, d]) => ({ x: left - 2, width: room + 4, height: 6,
    rx: 2, y: y(n) + 29 + (32 * (d + 0.5)) / made[n].y.width - 3, ...pen("--ink", 1.5) }));
}

// Q from the left, K from above, and V down to the weighted sum, as thick as the weights.
function drawStreams(group, { keys, row, shares, word, values, stage, sum: taken }, plan) {
  const { left, stream, cell, high, top, bottom } = plan, x = (j) => left + cell * (j + 0.5);
  const sum = [Math.max(82, left + plan.across / 2), bottom + 74], named = plan.wide ? 2 : 1;
  const middle = top + high * (row + 0.5);
  put.path(group, "K", shares, (share, j) => ({ d: `M${x(j)} 52V${top - 3}`,
    ...pen("--key", Math.min(16, cell * 0.3)),
    "stroke-opacity": 0.25 + 0.5 * (stage === LAST ? share : 0.2) }));
  put.path(group, "Q", [`M${left - stream + 1} ${middle}H${left - 3}`], (d) =>
    ({ d, ...pen("--query", Math.min(16, high * 0.6)), "stroke-opacity": 0.45 }));
  const half = Math.min(30, cell * 0.42);
  putStrips(group, "V strips", values, (j) => ({ x: x(j) - half, y: bottom + 38,
    width: 2 * half, height: 10 }));
  const isLast = stage === LAST, result = [taken].filter(() => isLast);
  const flows = shares.map((share, j) => ({ key: j, share }))
    .filter((one) => isLast && one.share >= 0.02);
  put.path(group, "V", flows, ({ key, share }) => ({
    d: `M${x(key)} ${bottom + 48}C${x(key)} ${bottom + 66} ${sum[0]} ${bottom + 54} ${sum}`,
    ...pen("--value", 1 + 13 * share), "stroke-opacity": 0.75, class: "quiet",
    ...told(`it takes ${share.toFixed(3)} of the value of “${keys[key]}”`, `key${key}`) }));
  const size = plan.wide && cell > 64 ? 14 : 12;
  put.label(group, "key words", keys, (one, j) => [fitted(one, cell - 1, size, 600), x(j), 46,
    `middle size-${size}${isLast && shares[j] > 0.5 ? " strong" : ""}`], (_, j) => j);
  const most = fromLargest(shares, named).filter((j) => shares[j] >= 0.005)
    .map((j) => `${shares[j].toFixed(2)} · V(${fitted(keys[j], 60, 12)})`).join(" + ");
  const said = `“${fitted(word, 90, 12, 600)}” takes along ${most}${
    shares.filter((share) => share > 0).length > named ? " + …" : ""}`;
  const wide = textWidth(said, 12, 600) / 2, right = plan.wide ? plan.panel.x : plan.panel.width;
  const from = Math.max(80, wide, Math.min(sum[0], right - wide));
  putStrips(group, "sum strip", result, () =>
    ({ x: sum[0] - 80, y: sum[1], width: 160, height: 14, "data-links": "sum" }));
  put.rect(group, "sum", [taken], () => ({ x: sum[0] - 82, y: sum[1] - 2, width: 164, height: 18,
    rx: 4, ...(isLast ? pen("--value", 2) : pen("--line", 1.5, "4 4")), "data-links": "sum" }));
  put.label(group, "takes", isLast ? [said] : [], (text) =>
    [text, from, sum[1] + 31, "strong size-12 middle", { "data-links": "sum" }]);
  const names = [["K · offers", 0, 44, "--key"], ["Q · asks", 0, top - 8, "--query"],
    ["V · gives", 0, bottom + 48, "--value"]];
  put.text(group, "names", names, ([text, at, y, color]) => ({
    text: fitted(text, left - 2, 12, 600), x: at, y,
    class: "strong size-12 halo", fill: `var(${color})` }), ([text]) => text);
}

export const firstNumbers = (values) => `${[...values.slice(0, 3)].map((one) =>
  fixed(one, 2).replace("-", "−")).join("  ")} …`;

// Numbers as cells: blue above 0, orange below.
export function putStrips(group, name, strips, at) {
  put.image(group, name, strips.filter(Boolean), (strip, i) => ({ preserveAspectRatio: "none",
    "image-rendering": "pixelated", "pointer-events": "none", class: "still",
    href: tensorHref(strip), ...at(i) }));
}

function drawRows(group, { queries, row }, { left, stream, high, top, wide }, page) {
  put.rect(group, "boxes", queries, (word, i) => ({
    class: "box", x: 0, y: top + high * i + 1, width: left - stream, height: high - 2, rx: 6,
    ...choosable(`row ${i}, “${word}”`, i === row, () => page.set({ row: i }), `query${i}`) }),
  (_, i) => i);
  const size = high < 17 || !wide ? 12 : 14;
  put.label(group, "words", queries, (word, i) => [
    fitted(word, left - stream - 8, size), (left - stream) / 2,
    top + high * (i + 0.5) + size * 0.36, `middle size-${size}${i === row ? " strong" : ""}`],
  (_, i) => i);
}

function drawMatrix(group, look, plan, page) {
  const { queries, keys, row, column, head, weights, scores, masked, stage } = look;
  const { left, cell, high, top } = plan, raw = Math.sqrt(look.width);
  put.path(group, "to come", plan.toCome, (d) => ({ d, ...pen("--line", 1, "3 4") }));
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
    ...choosable(words, i === row && j === column, () =>
      page.set({ row: i, column: j, head, block: look.block }),
      `key${j} query${i}`), "data-preview": `${i}.${j}`, "data-quiet": plan.wide ? "" : null }));
  const most = Math.max(...cells.map(({ score }) => Math.abs(score) * raw).filter(Number.isFinite));
  const part = ({ score, share, hidden }) => stage === LAST ? share : hidden && stage > 1 ?
    0 : (Math.abs(score) * (stage > 1 ? 1 : raw)) / most || 0;
  const color = ({ i, score }) => stage < LAST ? (score < 0 ? "--minus" : "--plus") :
    i === row ? "--value" : "--key";
  put.circle(group, "dots", cells, (one) => ({ cx: left + cell * (one.j + 0.5),
    cy: top + high * (one.i + 0.5), r: (Math.min(cell, high) / 2 - 2) * Math.sqrt(part(one)),
    fill: `var(${color(one)})`, opacity: one.i === row ? 1 : 0.4 }));
  put.label(group, "hidden", cells.filter(({ hidden }) => hidden && stage > 1), ({ i, j }) =>
    ["×", left + cell * (j + 0.5), top + high * (i + 0.5) + 5, "strong middle",
      { "data-links": "mask", fill: "var(--query)" }]);
  put.rect(group, "column", [column], () => ({ x: left + cell * column + 3, width: cell - 6, rx: 3,
    y: top + high * row + 3, height: high - 6, ...pen("--value", 1.5, "3 2") }), () => "column");
  put.rect(group, "row", [row], () => ({ x: left, y: top + high * row, height: high, rx: 2,
    width: cell * keys.length, ...pen("--value", 2) }), () => "row");
}

// The scores and weights of the chosen row, below its columns.
function drawSoftmax(group, { keys, marks, shares, masked, width, stage }, { left, cell, bottom }) {
  const hidden = (j) => masked && stage > 1 && shares[j] === 0, digits = cell >= 38 ? 1 : 0;
  const score = (j) => (marks[j] * (stage > 1 ? 1 : Math.sqrt(width))).toFixed(digits);
  const lines = [[stage > 1 ? `Q · K / √${width}` : "Q · K", (j) => hidden(j) ? "×" : score(j)],
    ["softmax", (j) => stage < LAST ? "" : hidden(j) ? "0" : shares[j].toFixed(2)]];
  put.text(group, "names", lines, ([text], i) => [text, 0, bottom + 14 + 17 * i, "small"],
    (_, i) => i);
  const all = lines.flatMap(([, text], i) => keys.map((_, j) => ({ key: `${i}.${j}`, j, i,
    text: cell < 30 ? "" : text(j) }))).filter(({ text }) => text);
  put.label(group, "numbers", all, ({ text, i, j }) => [text, left + cell * (j + 0.5),
    bottom + 14 + 17 * i, `number middle${i && shares[j] > 0.5 ? " strong" : ""}`,
    { "data-links": i ? "weights" : "scores" }]);
}

// All heads of all blocks as small matrices, each a button, and below them the chosen cell.
// Returns where they end.
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
    b === block ? "strong size-12" : "small"], (_, b) => b);
  put.rect(group, "boxes", all, ({ b, h, at }) => ({
    class: "box", x: at[0], y: at[1], width: side, height: side, rx: 6,
    ...choosable(`block ${b}, head ${h}`, b === block && h === head,
      () => page.set({ block: b, head: h })) }));
  put.path(group, "maps", all.flatMap(({ key, h, weights, at }) =>
    mapShades(key, headRows(weights, h), at, side)));
  put.text(group, "hint", [["each square is a head: press one", x, y - 2, "small"]]);
  return drawCell(layer(group, "cell"), look, page, { x, room, y: y + blocks.length * tall + 18 });
}

// The chosen cell's query and key (or before there are cells, x and the row of W), and their
// products, as strips of all their numbers, the first three written, and below them the formula.
function drawCell(group, look, page, { x, y, room }) {
  const cell = page.preview ?? `${look.row}.${look.column}`, [i, j] = cell.split(".").map(Number);
  const [n, d] = page.number ?? [0, 0], { name, ...one } = look.made[n], first = !look.stage;
  const [q, k] = first ? [one.x, new Tensor(one.x.shape, one.W.row(d))] : [look.q(i), look.k(j)];
  const product = q && k && new Tensor(q.shape, q.data.map((one, d) => one * k.data[d]));
  const strips = (first ? [["x", q, "--ink"], ["w", k, "--ink"], ["x·w", product, "--ink"]] :
    [["q", q, "--query"], ["k", k, "--key"], ["q·k", product, "--ink"]])
    .filter(([, strip]) => strip), at = (d) => y + 8 + 17 * d, from = at(strips.length) + 12;
  const texts = strips.map(([, { data }]) => firstNumbers(data));
  const long = room - 42 - Math.max(...texts.map((text) => textWidth(text, 12)));
  const pair = first ? `number ${d + 1} of ${name}: x times column ${d + 1} of W` :
    `“${fitted(look.queries[i], 84, 12, 600)}” asks “${fitted(look.keys[j], 84, 12, 600)}”:`;
  const steps = first ? firstProducts("xw", product, fixed(one.y.data[d], 2).replace("-", "−")) :
    cellSteps(look, i, j, product).slice(0, look.stage + 1);
  put.label(group, "pair", [pair], (text) => [text, x, y, "strong size-12"]);
  putStrips(group, "strips", strips.map(([, strip]) => strip), (d) =>
    ({ x: x + 32, y: at(d), width: long, height: 12 }));
  put.label(group, "names", strips, ([text, , color], d) =>
    [text, x, at(d) + 10, "strong size-12", { fill: `var(${color})` }]);
  put.text(group, "numbers", texts, (text, d) => [text, x + 38 + long, at(d) + 10, "number"]);
  put.text(group, "steps", steps, (text, n) =>
    [fitted(text, room, 12), x, from + 17 * n, "size-12"], (_, n) => n);
  return from + 17 * 3 + 6;
}

// A cell's numbers in the formula, from the products of query and key to the weight.
function cellSteps({ queries, head, scores, weights, width, masked }, i, j, product) {
  const at = head * queries.length + i, row = [...scores.row(at)], shares = weights.row(at);
  if (masked && shares[j] === 0 && j > i) return ["mask: −∞, so its weight is 0"];
  const sees = (k) => shares[k] || k <= i || !masked, score = row[j];
  const sum = row.reduce((all, one, k) => all + (sees(k) ? Math.exp(one) : 0), 0);
  const dot = (score * Math.sqrt(width)).toFixed(1);
  return [...firstProducts("qk", product, dot), `${dot} / √${width} = ${score.toFixed(2)}`,
    `exp(${score.toFixed(2)}) / Σ = ${short(Math.exp(score))} / ${short(sum)} = ${
      shares[j].toFixed(3)}`];
}

// The first three products, and what all add up to.
function firstProducts([a, b], product, sum) {
  const terms = [...(product?.data.slice(0, 3) ?? [])].map((one, d) =>
    (d ? one < 0 ? " − " : " + " : one < 0 ? "−" : "") + Math.abs(one).toFixed(2));
  return [`${a}₁${b}₁ + ${a}₂${b}₂ + ${a}₃${b}₃ + …`, `= ${terms.join("")} + … = ${sum}`];
}
