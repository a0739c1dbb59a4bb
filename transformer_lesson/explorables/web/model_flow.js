// A word on its way through a model: the whole at a glance, and a tour of what happens inside.

import { element, fitted, layer, set } from "./draw.js";
import { attentionAt, drawStreamsOfAttention } from "./flow_attention.js";
import { drawOwnLines, ownLines } from "./flow_lines.js";
import { drawPartsOfModel } from "./flow_parts.js";
import { flowFor } from "./flow_pass.js";
import { drawBuilding, drawLikeliest, drawVectors, inPercent, sampled } from "./flow_rows.js";
import { drawStage, litWord, percent } from "./flow_stage.js";
import { frame, shownWhile } from "./frame.js";
import { softmax } from "./generation.js";
import { fromLargest } from "./ranking.js";
import { modelOf } from "./weights.js";

const ATTENTION = [3, 4, 5], WARM = 7; // the stops that have rows, and the one with a temperature
const BEATS = [350, 700, 1250]; // milliseconds after which keys, ribbon and answer are shown
const EXAMPLES = ["the child opens the window .", "the woman does not buy a red car .",
  "the small mice steal many big cakes .", "the king closes the book .",
  "the teacher says that the child sees the dog ."];

export const ModelFlow = (view) => frame(view, {
  name: "Model flow",
  traits: ["text", "written", "stop", "block", "head", "row", "column", "stage", "temperature",
    "top_k", "top_p", "log", "seed", "chosen", "lines"],
  controls: flowControls, load: modelOf, draw: drawFlow });

function flowControls(make, page) {
  const most = () => [0, page.flow?.most ?? 0];
  const open = () => stopsOf(page.flow)
    .map((stop) => [stop, `${stop || ""} ${TOUR[stop].name}`.trim()]);
  const tour = make.choice("Tour", "stop", open), where = element("span", { class: "where" });
  const near = (way) => {
    const all = stopsOf(page.flow);
    return all[all.indexOf(page.look?.stop ?? 0) + way];
  };
  const back = make.button("‹ Back", () => ({ stop: near(-1) }), () =>
    ({ disabled: !page.look?.stop }));
  const next = make.button("Next ›", () => ({ stop: near(1) ?? 0 }), () =>
    ({ text: near(1) ? "Next ›" : "Start over" }));
  tour.classList.add("dense", "tour");
  page.controls.classList.add("close");
  page.updates.push(() => { // if there is no room for all stops, scrolls to the current one
    const now = tour.querySelector("[aria-pressed=true]"), all = stopsOf(page.flow);
    if (!now) return;
    tour.style.setProperty("--to", `${now.offsetLeft + now.offsetWidth - tour.offsetLeft}px`);
    tour.scrollLeft = now.offsetLeft - tour.offsetLeft - 100;
    const at = all.indexOf(page.look?.stop ?? 0);
    where.textContent = at ? `step ${at} of ${all.length - 1}` : `${all.length - 1} steps`;
  });
  page.said.before(turnOf(page));
  return [
    element("div", { class: "route" }, tour,
      element("span", { class: "turns" }, back, where, next)),
    make.text("Text", "text", { size: 26 }), examples(page), nearest(page),
    make.slider("Written", "written", most),
    make.play("written", most, 2200, "Write on"),
    shownWhile(page, "stop", [0, ...ATTENTION],
      make.button("Step", () => stepOn(page), () => ({}))),
    ...samplingControls(make, page).map((one) => shownWhile(page, "stop", WARM, one))];
}

// What the present stop asks for, and whether it is done.
function turnOf(page) {
  const mark = element("b", { class: "mark", role: "status" }), words = element("span");
  const turn = element("p", { class: "turn" }, mark, words), solved = new Set();
  page.updates.push(() => {
    const { stop } = page.look ?? {}, { asks, done } = TOUR[stop] ?? {}, values = page.now;
    turn.classList.toggle("hide", !asks || page.model.get("task")?.when?.stop === stop);
    if (page.entered?.stop !== stop) {
      page.entered = { ...values, stop };
      for (const part of [page.title, page.picture, page.said]) part.style.minHeight = "";
    }
    if (!asks) return;
    if (done(values, page.entered)) solved.add(stop);
    const isDone = solved.has(stop);
    set(mark, { text: isDone ? "✓" : "○", "aria-label": isDone ? "done" : "to do" });
    set(words, { text: `${asks(page.look)}${isDone ? " Done: go on with Next ›" : ""}` });
    set(turn, { "data-done": isDone ? "" : null });
  });
  return turn;
}

function examples(page) {
  const list = element("select", { "aria-label": "example sentences" },
    element("option", { value: "", text: "examples" }),
    ...EXAMPLES.map((text) => element("option", { text })));
  list.onchange = () => {
    page.set({ text: list.value });
    list.selectedIndex = 0;
  };
  page.updates.push(() => list.classList.toggle("hide", !page.model.get("source_words").length));
  return list;
}

// One step: of an attention its next state; of the whole the next part, then the next word.
function stepOn(page) {
  const { stop, stage } = page.look, { most } = page.flow;
  if (stop) return { stage: (stage + 1) % 3 };
  page.beats?.forEach(clearTimeout);
  if (page.phase < 3) {
    page.phase++;
    page.redraw();
    return {};
  }
  page.steps = true;
  const written = Math.min(page.model.get("written"), most);
  return { written: written < most ? written + 1 : 0 };
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
    make.toggle("log", "log"),
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
  const phase = stop ? 3 : page.phase ?? 3;
  const look = page.look = { ...lookAtStop(flow, stop, state), phase, pending: phase < 3 };
  page.now = state;
  const scene = TOUR[stop].draw.name;
  for (const [name, group] of svg.layers ?? []) {
    const stays = name === scene || (name === "parts" && stop);
    if (!stays && svg.layers.delete(name)) group.remove();
  }
  const top = stop ? drawPartsOfModel(layer(svg, "parts"), look, page) : 0;
  const outer = layer(svg, scene, { transform: top ? `translate(0 ${top})` : null });
  const group = layer(outer, "opens", { class: "opens" });
  group.style.transformOrigin = `${page.part ?? page.width / 2}px 0px`;
  const height = TOUR[stop].draw(group, look, page);
  const below = { x: 0, y: height, width: page.width };
  const end = ATTENTION.includes(stop) ? height :
    drawOwnLines(layer(group, "own"), look.own, below);
  return { ...flowFacts(look), height: top + end };
}

// The chosen row; one among the written words is deselected when their number changes.
function rowOf(page, { written }, { text, stop, row }) {
  const before = page.wrote, now = { text, n: written.length };
  page.wrote = now;
  const adds = before?.text === text && before.n < now.n;
  if (adds) page.arrived = now.n;
  if (adds || (page.plays && page.pulsed !== now.n)) sendPulse(page, now.n);
  else if (before?.text !== text || before.n !== now.n) endPulse(page);
  if (before?.text !== text || before.n === now.n || row === null || stop <= 3) return row;
  page.set({ row: null, column: null });
  return null;
}

// Words, keys, ribbon, answer: one after the other, unless each waits for Step.
function sendPulse(page, n) {
  endPulse(page);
  page.pulsed = n;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (page.steps || !calm) page.phase = 0;
  page.beats = page.steps || calm ? [] : BEATS.map((after, i) => setTimeout(() => {
    page.phase = i + 1;
    page.redraw();
  }, after));
  page.steps = false;
}

function endPulse(page) {
  page.beats?.forEach(clearTimeout);
  page.phase = 3;
}

function lookAtStop(flow, stop, state) {
  const { read, written, translates, token, model } = flow;
  const look = { ...flow, stop, stops: stopsOf(flow), stage: Math.min(state.stage, 2),
    own: ownLines(state.lines, stop), log: state.log };
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
  look.depth = new Set(flow.sublayers.filter(({ lane }) => lane === "written")
    .map(({ block }) => block).filter((block) => block !== null)).size;
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
  return said ? `After ${quoted(said)} ${translates ? "it writes" : "comes"} ${comes}` :
    `It has read the sentence, and its first word is ${comes}`;
}

const PHASES = ["The words are in: each is a vector.",
  "Keys: each word looks at those that it may see.", "The newest word looks at the source."];

function wholeSentence({ writes, lit, n, best, read, written, phase }) {
  const looks = lit ? `“${written.at(-1)}” looks most at “${read[lit.j]}”: ` +
    `${lit.share.toFixed(2)} of its attention in the last block, mean of ${lit.heads} heads. ` : "";
  if (phase < 3) return `${phase + 1} of 4: ${phase === 2 && looks ? looks : PHASES[phase]}`;
  return writes ? `${looks}Next: ${likeliestOf({ best })}.` :
    `${n.words} tokens in, ${n.words} vectors out, each of which knows of the others.`;
}

const looksAt = ({ word, other, weight, head }) => `“${word}” looks most at “${other}” ` +
  `(${weight.toFixed(2)} in head ${head})`;
const writesOn = (state, before) => state.written !== before.written || state.text !== before.text;

// The tour: each stop's name, title and sentence, the function that draws it, and what it asks for.
const TOUR = [
  { name: "whole", title: wholeTitle, says: wholeSentence, draw: drawStage },
  { name: "words", draw: drawVectors,
    title: ({ n }) => `Each word becomes ${n.d} numbers, the same wherever it stands`,
    says: () => "Every word has an id, and the id picks a row of a table that training filled. " +
      "Blue is above 0, orange below.",
    asks: () => "Change one word of the text, or pick an example: which rows are new?",
    done: (state, before) => state.text !== before.text },
  { name: "places", draw: drawVectors,
    title: () => "Each place adds a pattern of its own, so that no two rows agree",
    says: () => "Word plus place enters the blocks. Where none is added here, the model tells " +
      "places apart in queries and keys.",
    asks: ({ writes }) => `${writes ? "Press Write on" : "Type one word more"}: ` +
      "which pattern does its place add?", done: writesOn },
  { name: "encoder", draw: drawStreamsOfAttention,
    title: (look) => `In the encoder, ${looksAt(look)}`,
    says: () => "Every word may look at all the others: its query meets every key, and softmax " +
      "turns the scores into shares.",
    asks: ({ queries }) => `Press the row of “${fitted(queries[1] ?? queries[0], 150)}”: ` +
      "where does it look?",
    done: ({ row }, before) => row !== null && row !== before.row },
  { name: "looks back", draw: drawStreamsOfAttention,
    title: (look) => `Looking back, ${looksAt(look)}`,
    says: () => "The mask (×) hides what comes later; softmax shares 1 among the rest.",
    asks: ({ width }) => `Press “scores”, then “÷ √${width} + mask”: ` +
      "what becomes of the words to come?",
    done: ({ stage }) => stage === 1 },
  { name: "reads", draw: drawStreamsOfAttention,
    title: (look) => `In the source, ${looksAt(look)}`,
    says: () => "Keys and values are the encoder's output now; the query is the written word's.",
    asks: () => "Press another of the small squares: does every head look at the same word?",
    done: ({ head }, before) => head !== before.head },
  { name: "blocks", draw: drawBuilding,
    title: ({ next }) =>
      `Block after block the vector is reworked, until it says “${next.word}”`,
    says: ({ written }) => `The vector of “${written.at(-1)}” after each step, read as if the ` +
      "blocks ended there. “Thinks” is the feed-forward network.",
    asks: () => "Press Write on: after which step does the next word's share jump?",
    done: writesOn },
  { name: "next word", draw: drawLikeliest,
    title: ({ next, temperature, drawn, token, shares }) => drawn ?
      `The draw falls on “${token(drawn.id)}”, which has ${inPercent(shares[drawn.id])}` :
      `“${next.word}” gets ${percent(next.share)} at temperature ${temperature}`,
    says: ({ order }) => "Logit ÷ temperature, cut by top-k and top-p, softmax: " +
      `${order.length} words share 1. The lower the temperature, the surer the first.`,
    asks: () => "Set the temperature to 2 and press Draw: which word does it fall on?",
    done: ({ temperature, seed }) => temperature >= 1.9 && seed > 0 }];

// Title and sentence, and the longest that they can become while the model writes on.
function flowFacts(look) {
  const { whole, notes, best = [], stop } = look, longest = (words) =>
    words.reduce((a, b) => (b.length > a.length ? b : a), "");
  const facts = (one) => ({ title: TOUR[stop].title(one),
    said: [TOUR[stop].says(one), ...notes].join(" ") });
  const wide = longest(whole), next = { word: wide, share: 0.5 };
  const most = { ...look, pending: 0, phase: 3, said: whole.join(" "), written: [wide], next,
    best: best.slice(0, 3).map(() => next), word: wide, other: longest([...look.read, wide]),
    lit: look.lit && { ...look.lit, j: look.read.indexOf(longest(look.read)) } };
  return { ...facts(look), longest: look.writes ? [facts(most)] : [] };
}
