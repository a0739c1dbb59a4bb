// A word on its way through a model: the whole at a glance, and a tour of what happens inside.

import { countOf, element, fitted, layer, set } from "./draw.js";
import { attentionAt, drawStreamsOfAttention } from "./flow_attention.js";
import { drawOwnLines, ownLines } from "./flow_lines.js";
import { drawPartsOfModel } from "./flow_parts.js";
import { flowFor } from "./flow_pass.js";
import { drawBuilding, drawLikeliest, drawVectors, sampled } from "./flow_rows.js";
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
  const most = () => [0, page.flow?.most ?? 0], stops = () => stopsOf(page.flow);
  const at = () => stops().indexOf(page.look?.stop ?? 0), next = () => stops()[at() + 1] ?? 0;
  const tour = make.choice("Tour", "stop", () =>
    stops().map((stop) => [stop, `${stop || ""} ${TOUR[stop].name}`.trim()]));
  const turns = element("span", { class: "turns" },
    make.button("‹ Back", () => ({ stop: stops()[at() - 1] }), () => ({ disabled: !at() })),
    element("span"),
    make.button("", () => ({ stop: next() }), () => ({ text: next() ? "Next ›" : "Start over" })));
  tour.classList.add("dense", "tour");
  page.controls.classList.add("close");
  page.updates.push(() => { // if there is no room for all stops, scrolls to the current one
    const { offsetLeft = 0, offsetWidth } = tour.querySelector("[aria-pressed=true]") ?? {};
    tour.style.setProperty("--to", `${offsetLeft + (offsetWidth ?? 0)}px`);
    tour.scrollLeft = offsetLeft - 100;
    const n = stops().length - 1;
    turns.children[1].textContent = at() ? `step ${at()} of ${n}` : `${n} steps`;
  });
  page.said.before(turnOf(page));
  const step = make.button("Step", () => stepOn(page), () =>
    ({ disabled: !page.look?.stop && !page.flow?.most }));
  return [
    element("div", { class: "route" }, tour, turns),
    make.text("Text", "text", { size: 26 }), anExample(make, page), nearest(page),
    make.slider("Written", "written", most),
    make.play("written", most, 2200, "Write on"),
    shownWhile(page, "stop", [0, ...ATTENTION], step),
    ...samplingControls(make, page).map((one) => shownWhile(page, "stop", WARM, one))];
}

// What the present stop asks for, and whether it is done.
function turnOf(page) {
  const mark = element("b", { class: "mark", role: "status" }), words = element("span");
  const turn = element("p", { class: "turn" }, mark, words), solved = new Set();
  page.updates.push(() => {
    const { look, now } = page, stop = look?.stop ?? 0, { asks, done } = TOUR[stop];
    turn.classList.toggle("hide", !asks || page.model.get("task")?.when?.stop === stop);
    if (page.entered?.stop !== stop) {
      page.entered = { ...now, stop };
      for (const part of [page.title, page.picture, page.said]) part.style.minHeight = "";
    }
    if (!asks) return;
    if (done(now, page.entered)) solved.add(stop);
    const [sign, label, more] = solved.has(stop) ? ["✓", "done", " Done."] :
      ["○", "to do", ""];
    set(mark, { text: sign, "aria-label": label });
    set(words, { text: asks(look) + more });
  });
  return turn;
}

// A button: a drop-down would lose its arrow keys to JupyterLab.
function anExample(make, page) {
  const next = () => EXAMPLES[(EXAMPLES.indexOf(page.model.get("text")) + 1) % EXAMPLES.length];
  const button = make.button("Example ›", () => ({ text: next() }), () => ({}));
  page.updates.push(() => button.classList.toggle("hide", !page.model.get("source_words").length));
  return button;
}

// One step: of an attention its next state; of the whole the next part, then the next word.
function stepOn(page) {
  const { stop, stage } = page.look, { most } = page.flow, written = page.model.get("written");
  if (stop) return { stage: (stage + 1) % 3 };
  page.steps = page.phase === 3;
  if (page.steps) return { written: written < most ? written + 1 : 0 };
  page.beats.forEach(clearTimeout);
  page.phase++;
  page.redraw();
  return {};
}

// Known words to press in place of the unknown ones.
function nearest(page) {
  const all = element("fieldset", { class: "dense", "aria-label": "known words" });
  page.updates.push(() => {
    const text = page.model.get("text");
    all.replaceChildren(...(page.flow?.near ?? []).flatMap(([word, known]) => known.map((one) =>
      element("button", { type: "button", text: `${fitted(word, 90)} → ${one}`,
        onclick: () => page.set({ text: text.replace(word, () => one) }) }))));
    all.classList.toggle("hide", !all.children.length);
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

// The stops that a model has: an encoder writes nothing, a decoder alone has no source.
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
  const last = Math.min(state.stop, TOUR.length - 1), stops = stopsOf(flow);
  const stop = stops.includes(last) ? last : 0, phase = stop ? 3 : page.phase;
  const look = page.look = { ...lookAtStop(flow, stop, state), stops, phase, pending: phase < 3 };
  page.now = state;
  const scene = TOUR[stop].draw.name;
  for (const [name, group] of svg.layers ?? []) {
    if (name !== scene && (name !== "parts" || !stop) && svg.layers.delete(name)) group.remove();
  }
  const top = stop ? drawPartsOfModel(layer(svg, "parts"), look, page) : 0;
  const outer = layer(svg, scene, { transform: `translate(0 ${top})` });
  const group = layer(outer, "opens", { class: "opens" });
  group.style.transformOrigin = `${page.part ?? page.width / 2}px 0px`;
  const y = TOUR[stop].draw(group, look, page), end = ATTENTION.includes(stop) ? y :
    drawOwnLines(layer(group, "own"), look.own, { x: 0, y, width: page.width });
  return { ...flowFacts(look), height: top + end };
}

// The chosen row; one among the written words is deselected when their number changes.
function rowOf(page, { written }, { text, stop, row }) {
  const before = page.wrote, n = written.length, same = before?.text === text;
  page.wrote = { text, n };
  if (same && before.n < n) page.arrived = n;
  if ((same && before.n < n) || (page.plays && page.pulsed !== n)) sendPulse(page, n);
  else if (!same || before.n !== n) endPulse(page);
  if (!same || before.n === n || row === null || stop <= 3) return row;
  page.set({ row: null, column: null });
  return null;
}

// Words, keys, ribbon, answer: one after the other, unless each waits for Step.
function sendPulse(page, n) {
  const waits = page.steps, calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  endPulse(page);
  page.pulsed = n;
  if (waits || !calm) page.phase = 0;
  page.beats = waits || calm ? [] : BEATS.map((after, i) => setTimeout(() => {
    page.phase = i + 1;
    page.redraw();
  }, after));
}

function endPulse(page) {
  page.beats?.forEach(clearTimeout);
  Object.assign(page, { phase: 3, steps: false });
}

function lookAtStop(flow, stop, state) {
  const { read, written, translates, token, model } = flow;
  const look = { ...flow, stop, stage: Math.min(state.stage, 2), log: state.log,
    own: ownLines(state.lines, stop), lit: litWord(flow),
    said: (translates ? written.slice(1) : written).join(" ") };
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
  look.n = { words: read.length, d: model.source.d_model };
  return ATTENTION.includes(stop) ? { ...look, ...attentionAt(look, state) } : look;
}


function wholeTitle({ writes, translates, said, next, n, pending }) {
  const after = `After “${fitted(said, 330)}”`;
  if (pending) return said ? `${after}, what comes next?` : "What comes first?";
  if (!writes) return `It reads ${n.words} tokens, and each becomes a vector of ${n.d} numbers`;
  const comes = `“${next.word}” (${percent(next.share)})`;
  return said ? `${after} ${translates ? "it writes" : "comes"} ${comes}` :
    `It has read the sentence, and its first word is ${comes}`;
}

function wholeSentence({ writes, lit, n, best, read, written, phase }) {
  const looks = lit ? `“${written.at(-1)}” looks most at “${read[lit.j]}”: ` +
    `${lit.share.toFixed(2)} of its attention in the last block, mean of ${lit.heads} heads. ` : "";
  if (phase < 3) return `${phase + 1} of 4: ${["The words are in: each is a vector.",
    "Keys: each word looks at those it may see.", looks || "The last vector goes on."][phase]}`;
  const likely = best?.slice(0, 3).map(({ word, share }) => `“${word}” (${share.toFixed(3)})`);
  return writes ? `${looks}Next: ${likely.join(", ")}.` :
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
    says: () => "A word's id picks a row of a table that training filled. Blue is above 0.",
    asks: () => "Change a word of the text: what is new?", done: (a, b) => a.text !== b.text },
  { name: "places", draw: drawVectors,
    title: () => "Each place adds a pattern of its own, so that no two rows agree",
    says: () => "Word plus place enters the blocks, unless queries and keys bring the place in.",
    asks: () => "Add a word, or Write on: which pattern does its place add?", done: writesOn },
  { name: "encoder", draw: drawStreamsOfAttention,
    title: (look) => `In the encoder, ${looksAt(look)}`,
    says: () => "Each word's query meets every word's key; softmax turns the scores into shares.",
    asks: ({ queries: [a, b = a] }) => `Press the row of “${fitted(b, 150)}”: where does it look?`,
    done: ({ row }, before) => row !== null && row !== before.row },
  { name: "looks back", draw: drawStreamsOfAttention,
    title: (look) => `Looking back, ${looksAt(look)}`,
    says: () => "The mask (×) hides what comes later; softmax shares 1 among the rest.",
    asks: () => "Press “scores”, then the mask beside it: what happens to later words?",
    done: ({ stage }) => stage === 1 },
  { name: "reads", draw: drawStreamsOfAttention,
    title: (look) => `In the source, ${looksAt(look)}`,
    says: () => "Keys and values are the encoder's output now; the query is the written word's.",
    asks: () => "Press another of the small squares: does every head look at the same word?",
    done: ({ head }, before) => head !== before.head },
  { name: "blocks", draw: drawBuilding,
    title: ({ next }) => `Block after block the vector is reworked, until it says “${next.word}”`,
    says: ({ written }) => `The vector of “${written.at(-1)}” after each step, read as if the ` +
      "blocks ended there. “Thinks” is the feed-forward network.",
    asks: () => "Press Write on: after which step does its share jump?", done: writesOn },
  { name: "next word", draw: drawLikeliest,
    title: ({ next, temperature, drawn, token, shares }) => drawn ?
      `The draw falls on “${token(drawn.id)}”, which has ${percent(shares[drawn.id])}` :
      `“${next.word}” gets ${percent(next.share)} at temperature ${temperature}`,
    says: ({ order }) => "Logit ÷ temperature, cut by top-k and top-p, softmax: " +
      `${countOf(order.length, "word")} share 1. The lower the temperature, the surer the first.`,
    asks: () => "Set the temperature to 2 and press Draw: which word does it fall on?",
    done: ({ temperature, seed }) => temperature >= 1.9 && seed > 0 }];

// Title and sentence, and the longest that they can become while the model writes on.
function flowFacts(look) {
  const { whole, notes, best = [] } = look, { title, says } = TOUR[look.stop];
  const longest = (words) => words.reduce((a, b) => (b.length > a.length ? b : a), "");
  const facts = (one) => ({ title: title(one), said: [says(one), ...notes].join(" ") });
  const wide = longest(whole), next = { word: wide, share: 0.5 };
  const most = { ...look, pending: 0, phase: 3, said: whole.join(" "), written: [wide], next,
    best: best.slice(0, 3).map(() => next), word: wide, other: longest([...look.read, wide]),
    lit: look.lit && { ...look.lit, j: look.read.indexOf(longest(look.read)) } };
  return { ...facts(look), longest: look.writes ? [facts(most)] : [] };
}
