// One word's vector on its way through the blocks: what each sub-layer adds, and what the model
// would say after it.

import { choosable, fitted, fixed, layer, pen, put, signed } from "../../explorables/web/draw.js";
import { flowFor, headingOf, saidBy } from "../../explorables/web/flow_pass.js";
import { frame, remembered } from "../../explorables/web/frame.js";
import { largestOf, tensorHref } from "../../explorables/web/heat_map.js";
import { isInStream } from "../../explorables/web/trace.js";
import { Tensor } from "../../explorables/web/transformer.js";
import { modelOf } from "../../explorables/web/weights.js";

const BRANCH = /\.(W_O|W_2|W_down)$/; // a sub-layer's output before it is added to the stream

export const StreamExplorer = (view) => frame(view, {
  name: "Stream explorer",
  traits: ["text", "written", "side", "row", "point", "number"],
  controls: streamControls, load: modelOf, draw: drawStream });

function streamControls(make, page) {
  const ends = (n) => [0, Math.max(0, (n ?? 1) - 1)];
  const words = () => page.river?.words.map((word, i) => [i, word]) ?? [];
  return [
    make.text("Text", "text", { size: 34 }),
    make.choice("Follow a word", "side", ["read", "written"]),
    make.play("point", () => ends(page.river?.points.length), 1000),
    make.slider("Number", "number", () => ends(page.river?.width)),
    make.choice("Word", "row", words)];
}

function drawStream(state, page, loaded) {
  const flow = flowFor(state, page, loaded), { width, svg } = page;
  if (typeof flow === "string") return flow;
  const has = (side) => flow.sublayers.some(({ lane }) => lane === side);
  const side = has(state.side) ? state.side : has("read") ? "read" : "written", words = flow[side];
  const row = Math.min(state.row, words.length - 1);
  const river = remembered(page, "river", [state.text, state.written, side, row], () =>
    riverOf(flow, side, row));
  page.river = { ...river, words };
  const point = Math.min(state.point, river.points.length - 1);
  const number = Math.min(state.number, river.width - 1);
  const look = { ...river, word: words[row], point, number, high: width >= 700 ? 42 : 50 };
  const place = placesOf(width, river);
  drawTitles(layer(svg, "titles"), place);
  drawStrips(layer(svg, "strips"), look, place);
  drawPoints(layer(svg, "points"), look, place, page);
  return { ...streamFacts(look, flow.notes), height: 24 + look.high * river.points.length };
}

// The points at which something is added to one word's stream, {name, added, state, share, sum,
// likeness, says}, and all additions and all states as tensors.
function riverOf(flow, side, row) {
  const points = flow.sublayers.filter(({ lane, kind }) => lane === side && kind !== "next")
    .flatMap((sublayer) => joinings(flow, sublayer, row));
  const first = points[0].state, width = first.length;
  points.forEach((one, i) => {
    one.share = i ? lengthOf(one.added) / lengthOf(points[i - 1].state) : 0;
    one.sum = i ? points[i - 1].state.map((value, k) => value + one.added[k]) : one.state;
    one.likeness = dotOf(one.state, first) / (lengthOf(one.state) * lengthOf(first));
    one.says = flow.writes && side === "written" ? saidBy(flow, one.state) : null;
  });
  const flat = (rows) => Float32Array.from(rows.flatMap((one) => [...one]));
  const stacked = (rows) => new Tensor([rows.length, width], flat(rows));
  return { points, width, states: stacked(points.map(({ state }) => state)),
    added: stacked(points.map(({ added }) => added)) };
}

// What a sub-layer adds to a row of the stream, and the stream after it. An embedding starts the
// stream and then adds the position.
function joinings({ steps, byName }, sublayer, row) {
  const own = sublayer.steps.map((i) => steps[i]);
  const state = own.findLast(({ name }) => isInStream(name)).value.row(row);
  if (sublayer.kind !== "embedding") {
    const added = own.find(({ name }) => BRANCH.test(name)).value.row(row);
    const { kind, block } = sublayer;
    return [{ name: `${kind.replace("_", "-")} ${block}`, short: `${headingOf(sublayer)} ${block}`,
      added, state }];
  }
  const token = byName.get(`${sublayer.key}.tokens`).value.row(row);
  const place = token.map((value, k) => state[k] - value), nothing = token.map(() => 0);
  const begun = { name: "embedding", added: nothing, state: token };
  const moved = place.some((value) => value); // not with rotary positions
  return [begun, ...(moved ? [{ name: "position", added: place, state }] : [])];
}

const lengthOf = (vector) => Math.sqrt(dotOf(vector, vector));
const dotOf = (a, b) => a.reduce((sum, value, k) => sum + value * b[k], 0);

function placesOf(width, { points }) {
  const wide = width >= 700, [name, like] = wide ? [138, 60] : [84, 46];
  const says = points[0].says ? (wide ? 100 : 64) : 0, gap = wide ? 24 : 8;
  const rest = width - name - says - like - 2 * gap, added = rest * 0.42;
  return { name, added: { x: name, width: added }, wide,
    state: { x: name + added + gap, width: rest * 0.58 },
    like: { x: width - says - like, width: like }, says: { x: width - says, width: says } };
}

function drawTitles(group, { added, state, like, says }) {
  const all = [["what it adds, × stream's length", added], ["the stream after it", state],
    ["cosine", like], ...(says.width ? [["would say", says]] : [])];
  put.text(group, "texts", all, ([text, { x, width }]) =>
    [fitted(text, width + 4, 12), x, 12, "small"], ([text]) => text);
}

// All vectors as two images with one color scale each; steps not reached yet are covered.
function drawStrips(group, { points, added, states, point, number, width, high }, place) {
  const pictures = [["added", added, place.added], ["states", states, place.state]];
  const tall = high * points.length;
  put.image(group, "pictures", pictures, ([, tensor, at]) => ({
    ...at, y: 20, height: tall, preserveAspectRatio: "none", "image-rendering": "pixelated",
    href: tensorHref(tensor), class: "still" }), ([name]) => name);
  const covers = [...points.map((_, i) => ({ y: 20 + high * i + 24, height: high - 24 })),
    { y: 20 + high * (point + 1), height: Math.max(0, tall - high * (point + 1)) }];
  put.rect(group, "covers", covers, (cover) => ({
    ...cover, x: place.added.x, width: place.state.x + place.state.width - place.added.x,
    fill: "var(--paper)" }));
  const marks = pictures.flatMap(([name, , at]) => points.slice(0, point + 1).map((_, i) => ({
    key: `${name} ${i}`, x: at.x + (at.width * number) / width, y: 18 + high * i,
    width: Math.max(2, at.width / width), height: 28 })));
  put.rect(group, "marks", marks, ({ key, ...mark }) => ({ ...mark, ...pen("--query") }));
}

// The points, each a button; beside it the length of what it adds, and what the word has become.
function drawPoints(group, look, place, page) {
  const { points, point, number, added, states, high } = look, top = (i) => 20 + high * i;
  const shown = points.map((one, i) => ({ ...one, i })), now = shown.slice(0, point + 1);
  put.rect(group, "boxes", shown, (one) => ({
    class: "box", x: 0, y: top(one.i), width: place.name - 8, height: 26, rx: 6,
    ...choosable(pointWords(one, look), one.i === point, () => page.set({ point: one.i })) }), "i");
  const texts = [
    ...shown.map(({ i, name, short }) => ({ key: `name ${i}`, x: 6, y: top(i) + 17,
      text: fitted((!place.wide && short) || name, place.name - 20, 13), class: "size-13" })),
    ...now.flatMap(({ i, share, likeness, says }) => [
      { key: `added ${i}`, x: place.added.x, y: top(i) + 36, class: "number halo",
        text: !i ? "" : share.toFixed(2) + (place.wide ? `; number ${number}: ` +
          (added.row(i)[number] > 0 ? "+" : "") + fixed(added.row(i)[number], 2) : "") },
      { key: `state ${i}`, x: place.state.x, y: top(i) + 36, class: "number halo",
        text: (place.wide ? `number ${number}: ` : "") +
          sumAndNorm(points[i], number, place.wide ? ", after the norm " : " → ") },
      { key: `like ${i}`, x: place.like.x, y: top(i) + 17, class: "number",
        text: fixed(likeness, 2) },
      ...(says ? [{ key: `says ${i}`, x: place.says.x, y: top(i) + 17, class: "size-13",
        text: fitted(says.word, place.says.width, 13) },
      { key: `share ${i}`, x: place.says.x, y: top(i) + 34, class: "number",
        text: says.share.toFixed(2) }] : [])])].filter(({ text }) => text);
  drawDots(layer(group, "dots"), now, look, place, top);
  put.label(group, "texts", texts);
}

// A number of the stream; if a norm follows the sum, both before and after it.
function sumAndNorm({ sum, state }, number, between) {
  const [before, after] = [sum, state].map((vector) => fixed(vector[number], 2));
  const normed = sum.some((value, k) => Math.abs(value - state[k]) > 0.001);
  return normed ? `${before}${between}${after}` : after;
}

function pointWords({ i, name, share, likeness, says }, { point, number, states }) {
  if (i > point) return `${name}: not yet`;
  const adds = i ? `, adds ${share.toFixed(2)} of the stream's length` : "";
  const speaks = says ? `, would say “${says.word}” (${says.share.toFixed(2)})` : "";
  return `${name}${adds}: cosine with the beginning ${fixed(likeness, 2)}, number ${number} is ` +
    `${fixed(states.row(i)[number], 2)}${speaks}`;
}

// The chosen number as a dot at each point, to the right of the axis if it is above zero.
function drawDots(group, now, { number, states }, { state }, top) {
  const largest = largestOf(states), middle = state.x + state.width / 2;
  put.path(group, "axis", [0], () =>
    ({ d: `M${middle} 18V${top(now.length - 1) + 26}`, class: "axis", "stroke-dasharray": "2 3" }));
  const x = (i) => middle + (states.row(i)[number] / largest) * (state.width / 2 - 8);
  put.path(group, "way", [0], () => ({
    d: now.map(({ i }) => `${i ? "L" : "M"}${x(i)} ${top(i) + 12}`).join(""), ...pen("--ink", 1.5),
  }));
  put.circle(group, "dots", now, ({ i }) => ({
    cx: x(i), cy: top(i) + 12, r: 5, stroke: "var(--ink)",
    fill: signed(states.row(i)[number], largest) }), "i");
}

function streamFacts({ points, point, word, number, states }, notes) {
  const now = points[point], like = fixed(now.likeness, 2);
  const adds = point ? `${now.name} adds a vector ${now.share.toFixed(2)} times as long as the ` +
    "stream was" : "the stream begins as a row of the embedding table";
  const says = now.says ? ` Read out here, it would say “${now.says.word}” ` +
    `(${now.says.share.toFixed(2)}).` : "";
  return {
    title: point ? `After ${now.name}, “${word}”: cosine ${like} with its embedding` :
      `“${word}” begins as its row in the embedding table`,
    said: [`Point ${point} of ${points.length - 1}: ${adds}. ` +
      `Number ${number} of “${word}” is now ` +
      `${fixed(states.row(point)[number], 2)}; at the beginning it was ` +
      `${fixed(states.row(0)[number], 2)}.${says}`, ...notes].join(" ") };
}
