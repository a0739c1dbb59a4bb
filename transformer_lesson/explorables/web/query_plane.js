// A plane with queries and four keys that can be dragged; scores, weights and mixed values follow.

import { choosable, fitted, fixed, layer, pen, put, textLines, textWidth, told } from "./draw.js";
import { frame } from "./frame.js";
import { fromLargest } from "./ranking.js";

const PLANE = { grid: 20, step: 0.1, even: 0.3, second: 0.2 };
const PLANE_WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const PLANE_HINT = "A word’s value is its color. Drag a point, or press where it should go; " +
  "with the keyboard: Shift and arrows.";

export const QueryPlane = (view) => frame(view, {
  name: "Query plane",
  traits: ["words", "asking", "colors", "reach", "offered", "key_points", "query_points", "heads",
    "d_k", "root", "held"],
  controls: planeControls, draw: drawQueryPlane });

function planeControls(make, { model }) {
  const offers = (name) => model.get("offered").includes(name);
  return [
    ...(offers("heads") ?
      [make.choice("Queries", "heads", [[1, "one"], [2, "two: two heads"]])] : []),
    ...(offers("d_k") ? [make.choice("d_k", "d_k", [2, 8, 32, 128]),
      make.toggle("divide by √d_k", "root")] : [])];
}

// The factor of dot products in the plane: those of random vectors grow like √d_k.
function planeFactor({ d_k, root }) {
  const grown = Math.sqrt(d_k / 2);
  return { grown, factor: root ? grown / Math.sqrt(d_k) : grown };
}

function planeLooks(state) {
  const { factor } = planeFactor(state);
  return state.query_points.slice(0, state.heads).map(([x, y]) => {
    const scores = state.key_points.map(([u, v]) => factor * (x * u + y * v));
    const most = Math.max(...scores), powers = scores.map((score) => Math.exp(score - most));
    const total = powers.reduce((sum, power) => sum + power, 0);
    const weights = powers.map((power) => power / total);
    const mix = [0, 1, 2].map((i) =>
      weights.reduce((sum, weight, j) => sum + weight * state.colors[j][i], 0));
    return { scores, weights, mix };
  });
}

const planeFill = (color) => `rgb(${color.map(Math.round).join(", ")})`;
const planePoint = ([x, y]) => `(${fixed(x, 2)}, ${fixed(y, 2)})`;
const planeColor = (mix) => ["red", "green", "blue"].map((name, i) =>
  `${name} ${Math.round(mix[i])}`).join(", ");

function drawQueryPlane(state, page) {
  const { svg, width } = page, wide = width >= 640, looks = planeLooks(state);
  const widest = wide ? width * 0.52 : width, hint = textLines(PLANE_HINT, width, 12);
  const side = Math.max(200, Math.min(widest, page.high - 10 - 16 * hint.length, 430));
  drawPlane(state, page, looks, side);
  const below = side + 18 + 16 * hint.length, row = !wide ? 26 : looks.length > 1 ? 34 : 44;
  put.text(layer(svg, "hint"), "lines", hint, (text, i) => [text, 0, side + 18 + 16 * i, "small"]);
  const first = wide ? { left: side + 36, top: 6 } : { left: 0, top: below + 8 };
  const place = { ...first, width: width - first.left, row, block: 4 * row + 48 };
  drawPlaneTable(layer(svg, "table"), state, looks, place);
  const low = first.top + looks.length * place.block - 16;
  return { ...planeFacts(state, looks), height: Math.max(below - 8, low) };
}

function drawPlane(state, page, looks, side) {
  const { reach, words, colors, key_points, held } = state, half = side / 2;
  const at = ([x, y]) => [half + (x / reach) * (half - 16), half - (y / reach) * (half - 16)];
  const from = ([x, y]) => [x - half, half - y].map((one) => (one / (half - 16)) * reach);
  const queries = state.query_points.slice(0, state.heads), [x, y] = [half, half];
  const group = layer(page.svg, "plane", {
    ...planeHands(page, from), class: "grab" });
  put.rect(group, "ground", [0], () => ({ x: 0.5, y: 0.5, width: side - 1, height: side - 1, rx: 8,
    fill: "var(--card)", stroke: "var(--line)", "pointer-events": "all" }));
  put.path(group, "axes", [`M8 ${y}H${side - 8}`, `M${x} 8V${side - 8}`], (d) =>
    ({ d, class: "axis" }));
  const line = (point) => `M${x} ${y}L${at(point).join(" ")}`;
  put.path(group, "key lines", key_points, (point, i) =>
    ({ d: line(point), ...pen("--soft", 1.5, "2 4"), "data-links": `key${i}` }));
  put.path(group, "arrows", queries, (point, i) =>
    ({ d: line(point), ...pen("--query", 3, i ? "7 4" : null) }));
  put.circle(group, "zero", [0], () => ({ cx: x, cy: y, r: 3.5, fill: "var(--ink)" }));
  const radius = (i) => 12 + 14 * Math.sqrt(Math.max(...looks.map(({ weights }) => weights[i])));
  const mark = (name, point, r, fill, words, link) => ({
    cx: at(point)[0], cy: at(point)[1], r, fill, "data-point": name, "stroke-width": 2,
    ...choosable(words, held === name, () => page.set({ held: name }), link) });
  put.circle(group, "keys", key_points, (point, i) => ({
    stroke: "var(--ink)", ...mark(`key${i}`, point, radius(i), planeFill(colors[i]),
      `key of “${words[i]}” at ${planePoint(point)}`, `key${i}`) }));
  put.circle(group, "queries", queries, (point, i) => ({
    stroke: "var(--query)", ...mark(`query${i}`, point, 13, planeFill(looks[i].mix),
      `${planeQuery(i, queries)} at ${planePoint(point)}`, `head${i}`), "stroke-width": 5 }));
  const whose = state.asking ? ` of ${state.asking}` : "";
  const labels = [...key_points.map((point, i) => [words[i], point, radius(i), {}]),
    ...queries.map((point, i) => [planeQuery(i, queries) + whose, point, 14, { fill: "var(--query)" }])];
  put.label(group, "names", labels, ([text, point, r, others]) => {
    const [u, v] = at(point), room = textWidth(text, 14, 600) / 2 + 4;
    const above = v - r - 6 > 16;
    return [text, Math.max(room, Math.min(side - room, u)), above ? v - r - 6 : v + r + 16,
      "middle strong halo", others];
  });
}

const planeQuery = (i, queries) => queries.length > 1 ? `query ${i}` : "query";

// Handlers that drag a point with the pointer, or move it with Shift and an arrow key.
function planeHands(page, from) {
  const { model, svg } = page;
  const move = (name, [x, y]) => {
    const trait = name.startsWith("key") ? "key_points" : "query_points";
    const most = model.get("reach"), number = Number(name.at(-1));
    const inside = (one) => Math.max(-most, Math.min(most, one));
    const place = [x, y].map((one) => Math.round(inside(one) * PLANE.grid) / PLANE.grid);
    page.set({ held: name, [trait]: model.get(trait).map((one, i) => i === number ? place : one) });
  };
  const place = (event) => {
    const point = new DOMPoint(event.clientX, event.clientY)
      .matrixTransform(svg.getScreenCTM().inverse());
    return from([point.x, point.y]);
  };
  const grab = (event) => {
    const named = event.target.dataset.point ?? model.get("held");
    page.drags = named === "query1" && model.get("heads") < 2 ? "query0" : named;
    event.currentTarget.setPointerCapture(event.pointerId);
    move(page.drags, event.target.dataset.point ? planeSpot(model, page.drags) : place(event));
  };
  const drop = () => {
    const named = `[data-point="${page.drags}"]`;
    if (page.drags) svg.querySelector(named).focus({ preventScroll: true });
    page.drags = "";
  };
  return {
    onpointerdown: grab, onpointerup: drop, onpointercancel: drop,
    ontouchstart: (event) => event.preventDefault(), // else a finger scrolls the page
    onpointermove: (event) => { if (page.drags) move(page.drags, place(event)); },
    onkeydown: (event) => {
      const name = event.target.dataset.point, way = event.shiftKey && PLANE_WAYS[event.key];
      if (!name || !way) return;
      move(name, planeSpot(model, name).map((one, i) => one + PLANE.step * way[i]));
      event.preventDefault();
      event.stopPropagation();
    } };
}

const planeSpot = (model, name) =>
  model.get(name.startsWith("key") ? "key_points" : "query_points")[Number(name.at(-1))];

// For each query a row for each word, with color, score and weight, and beside them the mix.
function drawPlaneTable(group, { words, colors, query_points }, looks, place) {
  const { left, top, width, row, block } = place, high = row - 8;
  const swatch = Math.min(96, width * 0.2), bars = left + (width < 330 ? 122 : 150);
  const room = Math.max(20, left + width - swatch - 62 - bars), right = left + width - swatch;
  const rows = looks.flatMap(({ scores, weights }, head) => words.map((word, i) => ({
    head, i, word, score: scores[i], weight: weights[i], key: `${head}.${i}`,
    y: top + 26 + head * block + i * row })));
  const heads = looks.map((look, head) => ({ ...look, head, y: top + 26 + head * block }));
  const queries = query_points.slice(0, looks.length);
  put.text(group, "titles", heads.flatMap(({ head, y }) => [
    [planeQuery(head, queries), left, y - 8, "strong", { fill: "var(--query)" }],
    ["score", bars - 10, y - 8, "small end"], ["weight", bars, y - 8, "small"],
    ["handed over", left + width, y - 8, "small end"]]));
  put.rect(group, "chips", rows, ({ i, y }) =>
    ({ x: left, y: y + row / 2 - 8, width: 14, height: 14, rx: 3, fill: planeFill(colors[i]),
      stroke: "var(--ink)" }), "key");
  put.label(group, "words", rows, ({ word, y }) =>
    [fitted(word, 68), left + 22, y + row / 2 + 4], "key");
  put.label(group, "scores", rows, ({ score, y }) =>
    [fixed(score, 2), bars - 10, y + row / 2 + 4, "number end"], "key");
  put.rect(group, "places", rows, ({ y }) =>
    ({ x: bars, y: y + 3, width: room, height: high, rx: 3, fill: "var(--none)" }), "key");
  put.rect(group, "bars", rows, ({ head, i, word, score, weight, y }) => ({
    x: bars, y: y + 3, width: Math.max(1, weight * room), height: high, rx: 3,
    fill: planeFill(colors[i]), stroke: "var(--ink)", "stroke-width": 1,
    ...told(`${planeQuery(head, queries)}, “${word}”: score ${fixed(score, 2)}, ` +
      `weight ${weight.toFixed(2)}`, `key${i}`) }), "key");
  put.label(group, "weights", rows, ({ weight, y }) =>
    [weight.toFixed(2), bars + room + 8, y + row / 2 + 4, "number strong"], "key");
  put.rect(group, "mixes", heads, ({ mix, head, y }) => ({
    x: right, y: y + 3, width: swatch, height: 4 * row - 8, rx: 8, fill: planeFill(mix),
    stroke: "var(--query)", "stroke-width": 3,
    ...told(`${planeQuery(head, queries)} hands over ${planeColor(mix)}`, `head${head}`) }));
}

function planeFacts(state, looks) {
  const { words, d_k, root, offered } = state, { grown, factor } = planeFactor(state);
  const named = ({ weights }) => words.map((word, i) => `${word} ${weights[i].toFixed(2)}`);
  const said = looks.map((look, head) => `${looks.length > 1 ? `Head ${head}` : "Weights"}: ` +
    `${named(look).join(", ")}; handed over: ${planeColor(look.mix)}.`);
  if (offered.includes("d_k")) {
    const times = `${Number(grown.toFixed(2))} time${grown === 1 ? "" : "s"}`;
    const scaled = root ? `, then divided by √${d_k}: ${factor.toFixed(2)} × q · k` : "";
    said.push(d_k === 2 ? `d_k is 2: a score is q · k${root ? " / √2" : ""}.` :
      `Random vectors of ${d_k} numbers typically have dot products ${times} as large as ` +
      `vectors of 2, so the plane’s are multiplied by ${Number(grown.toFixed(2))}${scaled}.`);
  }
  return { title: planeTitle(words, looks), said: said.join(" ") };
}

function planeTitle(words, looks) {
  const best = looks.map(({ weights }) => fromLargest(weights, 2)
    .map((i) => ({ word: `“${words[i]}”`, weight: weights[i], share: weights[i].toFixed(2) })));
  if (looks.length > 1) {
    return best.map(([{ word, share }], head) =>
      `${head ? "head" : "Head"} ${head} gives ${word} ${share}${head ? "" : " of its weight"}`)
      .join(", ");
  }
  const [[first, second]] = best, shares = looks[0].weights;
  if (first.weight < PLANE.even) {
    const [least, most] = [Math.min(...shares), first.weight].map((one) => one.toFixed(2));
    return `Nobody wins: each word gets ${least === most ? most : `${least} to ${most}`}`;
  }
  const also = second.weight >= PLANE.second ? `, ${second.word} ${second.share}` : "";
  return `${first.word} gets ${first.share} of the weight${also}`;
}
