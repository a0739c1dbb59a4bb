// A word on its way through a model: the whole at a glance, and a tour of what happens inside.

import { element, fitted, layer } from "./draw.js";
import { attentionAt, drawStreamsOfAttention } from "./flow_attention.js";
import { drawOwnLines, ownLines } from "./flow_lines.js";
import { flowFor } from "./flow_pass.js";
import { drawBuilding, drawLikeliest, drawVectors, sampled } from "./flow_rows.js";
import { drawStage, litWord, percent } from "./flow_stage.js";
import { frame, shownWhile } from "./frame.js";
import { softmax } from "./generation.js";
import { fromLargest } from "./ranking.js";
import { modelOf } from "./weights.js";

const ATTENTION = [3, 4, 5], WARM = 7; // the stops that have rows, and the one with a temperature
const PULSE = 1200; // milliseconds

export const ModelFlow = (view) => frame(view, {
  name: "Model flow",
  traits: ["text", "written", "stop", "block", "head", "row", "column", "temperature", "top_k", "top_p",
    "seed", "chosen", "lines"],
  controls: flowControls, load: modelOf, draw: drawFlow });

function flowControls(make, page) {
  const most = () => [0, page.flow?.most ?? 0];
  const open = () => stopsOf(page.flow)
    .map((stop) => [stop, `${stop || ""} ${TOUR[stop].name}`.trim()]);
  const tour = make.choice("Tour", "stop", open);
  const after = () => stopsOf(page.flow).find((stop) => stop > page.model.get("stop")) ?? 0;
  const on = make.button("Next stop", () => ({ stop: after() }), () =>
    ({ text: after() ? "Next stop ›" : "Start over" }));
  tour.classList.add("dense");
  page.controls.classList.add("close");
  page.updates.push(() => { // if there is no room for all stops, scrolls to the current one
    tour.scrollLeft = (tour.querySelector("[aria-pressed=true]")?.offsetLeft ?? 0) - 100;
  });
  return [
    tour, on,
    make.text("Text", "text", { size: 26 }),
    nearest(page),
    make.slider("Written", "written", most),
    make.play("written", most, 2200, "Write on"),
    shownWhile(page, "stop", ATTENTION, make.number("Row", "row",
      () => [0, (page.look?.queries?.length ?? 1) - 1], () => page.look?.row ?? 0)),
    ...samplingControls(make, page).map((one) => shownWhile(page, "stop", WARM, one))];
}

// Known words to press in place of the unknown ones.
function nearest(page) {
  const all = element("fieldset", { class: "dense", "aria-label": "known words" });
  page.updates.push(() => {
    const offers = (page.flow?.near ?? [])
      .flatMap(([word, known]) => known.map((one) => [word, one]));
    all.classList.toggle("hide", !offers.length);
    const change = ([word, one]) => () =>
      page.set({ text: page.model.get("text").replace(word, () => one) });
    all.replaceChildren(...offers.map((offer) => element("button", { type: "button",
      text: `${fitted(offer[0], 90)} → ${offer[1]}`, onclick: change(offer) })));
  });
  return all;
}

function samplingControls(make, page) {
  const off = (none) => (value) => (value === none ? "off" : String(value));
  const write = () => {
    const { output, written, full, most, drawn } = page.look, n = written.length - (full - most);
    return { chosen: [...output.slice(0, n), drawn.id], written: n + 1, seed: 0 };
  };
  const mayWrite = ({ drawn, ends, written, full, most }) => drawn && !ends.includes(drawn.id) &&
    written.length - (full - most) < 12;
  return [
    make.slider("Temperature", "temperature", [0.1, 2, 0.1]),
    make.slider("top-k", "top_k", [0, 50], off(0)),
    make.slider("top-p", "top_p", [0.05, 1, 0.05], off(1)),
    make.button("Draw", () => ({ seed: page.model.get("seed") + 1 }), () => ({})),
    make.button("Write it", write, () => ({ disabled: !mayWrite(page.look ?? {}),
      text: page.look?.drawn ? `Write “${fitted(page.look.token(page.look.drawn.id), 90)}”` :
        "Write it" }))];
}

// The stops that a model has: an encoder writes nothing, and a decoder alone has no source to look
// at.
function stopsOf(flow) {
  const has = (name) => !flow || flow.sublayers.some(({ key }) => name.test(key));
  const needs = { 3: /^encoder/, 4: /^decoder/, 5: /cross/, 6: /^decoder/, 7: /^next/ };
  return TOUR.map((_, stop) => stop).filter((stop) => has(needs[stop] ?? /./));
}

function drawFlow(state, page, loaded) {
  if ((page.typed ?? state.text) !== state.text && state.chosen.length) { // chosen for another text
    page.set({ chosen: [] });
    state = { ...state, chosen: [] };
  }
  page.typed = state.text;
  const flow = flowFor(state, page, loaded), { svg } = page;
  if (typeof flow === "string") return flow;
  page.flow = flow;
  state = { ...state, row: rowOf(page, flow, state) };
  const last = Math.min(state.stop, TOUR.length - 1);
  const stop = stopsOf(flow).includes(last) ? last : 0;
  const look = page.look = { ...lookAtStop(flow, stop, state), pending: page.pending && !stop };
  const scene = TOUR[stop].draw.name;
  for (const [name, group] of svg.layers ?? []) {
    if (name !== scene && svg.layers.delete(name)) group.remove();
  }
  const height = TOUR[stop].draw(layer(svg, scene), look, page);
  const below = { x: 0, y: height, width: page.width };
  const end = ATTENTION.includes(stop) ? height :
    drawOwnLines(layer(layer(svg, scene), "own"), look.own, below);
  return { ...flowFacts(look), height: end };
}

// The chosen row; one among the written words is deselected when their number changes.
function rowOf(page, { written }, { text, stop, row }) {
  const before = page.wrote, now = { text, n: written.length };
  page.wrote = now;
  const adds = before?.text === text && before.n < now.n;
  if (adds) page.arrived = now.n;
  if (adds || (page.plays && page.pulsed !== now.n)) sendPulse(page, now.n);
  if (before?.text !== text || before.n === now.n || row === null || stop <= 3) return row;
  page.set({ row: null, column: null });
  return null;
}

// Until the pulse has arrived, the next word is not shown.
function sendPulse(page, n) {
  page.pulsed = n;
  clearTimeout(page.pending);
  page.pending = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : setTimeout(() => {
    page.pending = 0;
    page.redraw();
  }, PULSE);
}

function lookAtStop(flow, stop, state) {
  const { read, written, translates, token, model } = flow;
  const look = { ...flow, stop, own: ownLines(state.lines, stop) };
  look.said = (translates ? written.slice(1) : written).join(" ");
  look.lit = litWord(flow);
  if (flow.writes) {
    const logits = flow.byName.get("logits").value, own = [...logits.row(logits.rows - 1)];
    Object.assign(look, { logits: own, row: state.row }, stop === WARM ?
      { ...sampled(own, state, written.length), temperature: state.temperature } :
      { shares: [...softmax(own)] });
    const shown = fromLargest(own, 8), drawn = look.drawn?.id ?? shown[0];
    if (!shown.includes(drawn)) shown[7] = drawn;
    look.best = shown.map((id) => ({ id, word: token(id), share: look.shares[id] }));
    look.next = look.best[0];
  }
  const n = { words: read.length, d: model.source.d_model };
  const attended = ATTENTION.includes(stop) ? attentionAt(look, state) : {};
  return { ...look, n, ...attended };
}

const quoted = (text) => `“${fitted(text, 330)}”`;
const likeliestOf = ({ best }, count = 3) =>
  best.slice(0, count).map(({ word, share }) => `“${word}” (${share.toFixed(3)})`).join(", ");

function wholeTitle({ writes, translates, said, next, n, pending }) {
  if (pending) return said ? `After ${quoted(said)}, what comes next?` : "What comes first?";
  if (!writes) return `It reads ${n.words} tokens, and each becomes a vector of ${n.d} numbers`;
  const comes = `“${next.word}” (${percent(next.share)})`;
  if (!translates) return `After ${quoted(said)} comes ${comes}`;
  return said ? `It has read the sentence, written ${quoted(said)}, and says next: ${comes}` :
    `It has read the sentence, and its first word is ${comes}`;
}

function wholeSentence({ writes, lit, n, best, read, written, pending }) {
  const looks = lit ? `“${written.at(-1)}” looks most at “${read[lit.j]}”: ` +
    `${lit.share.toFixed(2)} of its attention in the last block, mean of ${lit.heads} heads. ` : "";
  return pending ? looks : writes ? `${looks}Next: ${likeliestOf({ best })}.` :
    `${n.words} tokens in, ${n.words} vectors out, each of which knows of the others.`;
}

const looksAt = ({ word, other, weight, head }) => `“${word}” looks most at “${other}” ` +
  `(${weight.toFixed(2)} in head ${head})`;
const SOFTMAX = "Its query meets every key; softmax turns these scores into weights: how much of " +
  "each value it takes along.";

// The tour: each stop's name, title and sentence, and the function that draws it.
const TOUR = [
  { name: "whole", title: wholeTitle, says: wholeSentence, draw: drawStage },
  { name: "words in", draw: drawVectors,
    title: ({ n }) => `Each word becomes ${n.d} numbers, the same wherever it stands`,
    says: () => "Every word has an id, and the id picks a row of a table that training " +
      "filled. Blue is above 0, orange below. The model never sees letters, only such rows." },
  { name: "positions", draw: drawVectors,
    title: () => "Each place adds a pattern of its own, so that a word differs from place to place",
    says: () => "Word plus place enters the blocks. Where no place is added here, the model " +
      "tells places apart later, in queries and keys." },
  { name: "encoder", draw: drawStreamsOfAttention,
    title: (look) => `In the encoder, ${looksAt(look)}`,
    says: () => `Every word may look at all the others. ${SOFTMAX}` },
  { name: "looks back", draw: drawStreamsOfAttention,
    title: (look) => `Among the words written so far, ${looksAt(look)}`,
    says: () => `The mask (×) hides what comes later. ${SOFTMAX}` },
  { name: "looks at source", draw: drawStreamsOfAttention,
    title: (look) => `In the sentence that was read, ${looksAt(look)}`,
    says: () => `Keys and values are now the encoder's. ${SOFTMAX}` },
  { name: "blocks again", draw: drawBuilding,
    title: ({ next }) =>
      `Block after block the vector is reworked, until it says “${next.word}”`,
    says: ({ written }) => `The vector of “${written.at(-1)}” after each step, read as if the ` +
      "blocks ended there. “Thinks” is the feed-forward network: each word by itself." },
  { name: "next word", draw: drawLikeliest,
    title: ({ next, temperature, drawn, token, shares }) => drawn ?
      `The draw falls on “${token(drawn.id)}”, which has ${percent(shares[drawn.id])}` :
      `“${next.word}” gets ${percent(next.share)} at temperature ${temperature}`,
    says: (look) => `Logit ÷ temperature, top-k and top-p cut, softmax: ${look.order.length} words ` +
      `share 1. Next: ${likeliestOf(look)}. The lower the temperature, the surer the first. ` +
      "Bars: each line is ten times the last." }];

// Title and sentence, and the longest that they can become while the model writes on.
function flowFacts(look) {
  const { whole, notes, best = [], stop } = look, longest = (words) =>
    words.reduce((a, b) => (b.length > a.length ? b : a), "");
  const facts = (one) => ({ title: TOUR[stop].title(one),
    said: [TOUR[stop].says(one), ...notes].join(" ") });
  const wide = longest(whole), next = { word: wide, share: 0.5 };
  const most = { ...look, pending: 0, said: whole.join(" "), written: [wide], next,
    best: best.slice(0, 3).map(() => next), word: wide, other: longest([...look.read, wide]),
    lit: look.lit && { ...look.lit, j: look.read.indexOf(longest(look.read)) } };
  return { ...facts(look), longest: look.writes ? [facts(most)] : [] };
}
