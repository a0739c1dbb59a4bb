// A word on its way through a model: the whole at a glance, and a tour of what happens inside.

import { element, fitted, layer, set } from "./draw.js";
import { attentionAt } from "./flow_attention.js";
import { blockAt } from "./flow_block.js";
import { drawOwnLines, ownLines } from "./flow_lines.js";
import { drawPartsOfModel } from "./flow_parts.js";
import { beatsOf, flowFor, mostDoubtful } from "./flow_pass.js";
import { sampled } from "./flow_rows.js";
import { goOnWith, litWord, mayGoOn } from "./flow_stage.js";
import { TOUR } from "./flow_tour.js";
import { frame, shownWhile } from "./frame.js";
import { softmax } from "./generation.js";
import { fromLargest } from "./ranking.js";
import { modelOf } from "./weights.js";

const ATTENTION = [3, 4, 5], INSIDE = 6, WARM = 7; // stops: with a matrix, a block, a temperature
const OFFERS = 9; // known words offered at once
const PACE = { first: 650, later: 320, answer: 900, word: 2200 }; // milliseconds that a beat stays
const EXAMPLES = ["the child opens the window .", "the woman does not buy a red car .",
  "the small mice steal many big cakes .", "the child opens window .",
  "the teacher says that the child sees the dog ."];

export const ModelFlow = (view) => frame(view, {
  name: "Model flow",
  traits: ["text", "written", "stop", "block", "head", "row", "column", "stage", "temperature",
    "top_k", "top_p", "log", "seed", "chosen", "lines"],
  controls: flowControls, load: modelOf, draw: drawFlow });

function flowControls(make, page) {
  const stops = () => stopsOf(page.flow);
  const at = () => stops().indexOf(page.look?.stop ?? 0), next = () => stops()[at() + 1] ?? 0;
  const tour = make.choice("Tour", "stop", () =>
    stops().map((stop) => [stop, `${stop || ""} ${TOUR[stop].name}`.trim()]));
  const turns = element("span", { class: "turns" },
    make.button("‹ Back", () => ({ stop: stops()[at() - 1] }), () => ({ disabled: !at() })),
    element("span"),
    make.button("", () => ({ stop: next() }), () => ({ text: next() ? "Next ›" : "Start over" })));
  tour.classList.add("dense", "tour");
  page.controls.classList.add("close");
  page.svg.style.setProperty("--pressed", "var(--value)");
  page.updates.push(() => {
    const n = stops().length - 1;
    toCurrent(tour);
    turns.children[1].textContent = at() ? `step ${at()} of ${n}` : `${n} steps`;
  });
  page.said.before(turnOf(page));
  page.beat = Infinity;
  const play = make.button("", () => playOn(page), () =>
    ({ text: page.timer ? "❚❚ Pause" : page.look?.stop ? "▶ Write on" : "▶ Play", class: "goes" }));
  const step = make.button("Step", () => page.look.stop ?
    { stage: (page.look.stage + 1) % 4 } : nextStepOf(page), () =>
    ({ disabled: !page.look?.stop && !page.flow?.most }));
  const text = make.text("Text", "text", { size: 26 });
  return [
    element("div", { class: "route" }, tour, turns),
    text, anExample(make, page), outcome(make, page),
    play, shownWhile(page, "stop", [0, ...ATTENTION], step),
    nearest(page, text.querySelector("textarea")),
    shownWhile(page, "stop", WARM, element("div", { class: "route" },
      ...samplingControls(make, page)))];
}

// What the present stop asks for, with answers to guess from, and whether it is done.
function turnOf(page) {
  const mark = element("b", { class: "mark", role: "status" }), words = element("span");
  const buttons = [];
  const turn = element("p", { class: "turn" }, mark, words), solved = new Set();
  page.updates.push(() => {
    const { look, now } = page, stop = look?.stop ?? 0, { asks, done, sees, guess } = TOUR[stop];
    turn.classList.toggle("hide", !asks || page.model.get("task")?.when?.stop === stop);
    if (page.entered?.stop !== stop) {
      page.entered = { ...now, stop, ids: look?.ids?.read ?? [] };
      for (const part of [page.title, page.picture, page.said]) part.style.minHeight = "";
    }
    if (!asks) return;
    if (done(now, page.entered)) solved.add(stop);
    const { entered } = page, isDone = solved.has(stop);
    if (!isDone && !entered.guess) entered.asked = guess(look, now);
    const [answers, right] = entered.asked ?? [[]], said = entered.guess;
    const isWrong = isDone && said && right(look, entered) !== said;
    const before = !isDone || !said ? "" : isWrong ? `You guessed “${said}”. ` :
      `“${said}” is right. `;
    const [sign, label] = !isDone ? ["○", "to do"] : isWrong ? ["✗", "guessed another"] :
      ["✓", "done"];
    set(mark, { text: sign, "aria-label": label });
    set(words, { text: isDone ? before + sees(look, entered) : asks(look) });
    (isDone ? [] : answers).forEach((text, i) => {
      buttons[i] ??= turn.appendChild(element("button", { type: "button" }));
      set(buttons[i], { text, "aria-pressed": String(text === said), onclick: () => {
        entered.guess = text;
        page.redraw();
      } });
    });
    for (const button of buttons.splice(isDone ? 0 : answers.length)) button.remove();
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

// All that the model writes of the text, at once; a word shows how it came about.
function outcome(make, page) {
  const row = make.choice("It writes", "written", () => {
    const { whole = [], written = [], given = 0, most = 0, pending } = page.look ?? {};
    return whole.slice(given, given + most + 1).map((word, i) =>
      [i, page.beat < Infinity && i + given > written.length - Number(pending) ? "…" : word]);
  });
  row.classList.add("dense", "tour", "outcome");
  page.updates.push(() => toCurrent(row));
  return row;
}

// Where there is no room for all buttons, scrolls to the current one.
function toCurrent(row) {
  const { offsetLeft = 0, offsetWidth = 0 } = row.querySelector("[aria-pressed=true]") ?? {};
  row.style.setProperty("--to", `${offsetLeft + offsetWidth}px`);
  row.scrollLeft = offsetLeft - 100;
}

// On to the next beat: the encoder, once, then part by part and word by word. At other stops than
// the whole a word is written. `plays` goes on from the word that is shown.
function nextStepOf(page, plays = false) {
  const { stop, beats } = page.look, { most } = page.flow, { written, text } = page.now;
  const now = Math.min(written, most), word = beats.findIndex(({ lane }) => lane === "written");
  const starts = page.beat === Infinity, isLast = page.beat >= beats.length - 1;
  if (stop ? now === most : isLast && !starts && now === most) return endBeats(page);
  const n = starts && !stop ? plays * now : now + (stop > 0 || isLast);
  page.beat = stop ? Infinity : starts ? plays * word : isLast ? word : page.beat + 1;
  page.beaten = `${n} ${text}`;
  page.redraw();
  return { written: n, ...(starts && !plays && !stop ? { chosen: [] } : {}) };
}

function endBeats(page) {
  clearTimeout(page.timer);
  Object.assign(page, { beat: Infinity, timer: 0 });
  page.redraw();
  return {};
}

// Play: beat after beat, slowly up to the first word, until it is pressed again.
function playOn(page) {
  const { stop } = page.look, next = () => {
    const { beats, written, given } = page.look;
    page.timer = setTimeout(tick, page.look.stop ? PACE.word : page.beat === beats.length - 1 ?
      PACE.answer : written.length > given ? PACE.later : PACE.first);
  };
  const tick = () => {
    const changes = nextStepOf(page, true);
    if (page.timer && page.svg.isConnected) next();
    page.set(changes);
  };
  if (page.timer) {
    clearTimeout(page.timer);
    page.timer = 0;
    page.redraw();
    return {};
  }
  next();
  return stop ? { written: page.now.written % (page.flow.most || 1) } : nextStepOf(page);
}

// Known words to press in place of the unknown ones; and once one types, those that begin with the
// letters before the caret.
function nearest(page, field) {
  const all = element("fieldset", { class: "dense near", "aria-label": "known words" });
  let last = null; // where the caret is
  field.onfocus = field.onclick = field.onkeyup = page.redraw;
  page.updates.push(() => {
    const text = page.model.get("text"), words = page.model.get("source_words");
    if (field === page.root.activeElement) last = field.selectionStart;
    const start = text.slice(0, last ?? 0), [typed] = start.match(/\p{L}*$/u), n = typed.length;
    const begin = last === null ? [] : words.filter((one) => /\p{L}/u.test(one) &&
      one.toLowerCase().startsWith(typed.toLowerCase()));
    const swap = (word) => start.slice(0, start.length - n) + word +
      text.slice(start.length).replace(/^\p{L}*/u, "");
    const offers = [...(page.flow?.near ?? []).flatMap(([word, known]) => known.map((one) =>
      [`${fitted(word, 90)} → ${one}`, text.replace(word, () => one)])),
    ...begin.slice(0, OFFERS).map((one) => [one, swap(one)])];
    all.replaceChildren(...(last === null || !words.length ? [] : [element("span", { text:
      `${n ? `${begin.length} of ` : ""}${words.length} known words${n ? ` begin with “${typed}”` :
        ""}:` })]),
    ...offers.map(([text, whole]) => element("button", { type: "button", text,
      onclick: () => {
        page.set({ text: whole });
        if (last !== null) field.focus();
      } })), begin.length > OFFERS ? "…" : "");
    all.classList.toggle("hide", !all.children.length);
  });
  return all;
}

function samplingControls(make, page) {
  const off = (none) => (value) => (value === none ? "off" : String(value));
  const drawn = () => page.look?.drawn?.id;
  return [
    make.slider("Temperature", "temperature", [0.1, 2, 0.1]),
    make.slider("top-k", "top_k", [0, 50], off(0)),
    make.slider("top-p", "top_p", [0.05, 1, 0.05], off(1)),
    make.toggle("log", "log"),
    make.button("Draw", () => ({ seed: page.model.get("seed") + 1 }), () => ({})),
    make.button("Write it", () => goOnWith(page.look, drawn()), () => ({
      disabled: drawn() === undefined || !mayGoOn(page.look, drawn()),
      text: drawn() === undefined ? "Write it" :
        `Write “${fitted(page.look.token(drawn()), 90)}”` }))];
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
  if (state.stop === WARM && (page.look?.stop ?? WARM) !== WARM && !state.chosen.length &&
    page.now.written === state.written && page.now.text === state.text && page.flow.writes) {
    state = { ...state, ...toDoubt(page, loaded, state) };
  }
  const flow = flowFor(state, page, loaded), { svg } = page;
  if (typeof flow === "string") return flow;
  page.flow = flow;
  state = { ...state, row: rowOf(page, flow, state) };
  const last = Math.min(state.stop, TOUR.length - 1), stops = stopsOf(flow);
  const stop = stops.includes(last) ? last : 0;
  if (page.beat < Infinity && (stop || page.beaten !== `${state.written} ${state.text}`)) {
    endBeats(page);
  }
  const look = page.look = { ...lookAtStop(flow, stop, state, page), stops };
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

// On the way to stop 7: to the step where the model hesitates most, in the text or an example.
function toDoubt(page, loaded, { text }) {
  const { text: other, written } = mostDoubtful(page, loaded, text,
    EXAMPLES.includes(text) && page.model.get("source_words").length ? EXAMPLES : []);
  page.typed = other;
  page.set({ text: other, written });
  return { text: other, written };
}

// The chosen row; one among the written words is deselected when their number changes.
function rowOf(page, { written }, { text, stop, row }) {
  const before = page.wrote, n = written.length, same = before?.text === text;
  page.wrote = { text, n };
  if (same && before.n < n) page.arrived = n;
  if (!same || before.n === n || row === null || stop <= 3) return row;
  page.set({ row: null, column: null });
  return null;
}

function lookAtStop(flow, stop, state, page) {
  const { read, written, translates, token, model } = flow;
  const look = { ...flow, stop, stage: Math.min(state.stage, 3), log: state.log,
    own: ownLines(state.lines, stop), lit: litWord(flow), ...beatAt(flow, page.beat),
    english: page.model.get("source_words").length,
    who: whoItIs(flow.model.source, page.model.get("source_words").length),
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
  if (stop === INSIDE) return { ...look, ...blockAt(look, state, page) };
  return ATTENTION.includes(stop) ? { ...look, ...attentionAt(look, state) } : look;
}

// How far Play or Step has got: `seen` says whether a part of the model has had its moment.
function beatAt(flow, beat) {
  const beats = beatsOf(flow), places = new Map(beats.map(({ key }, i) => [key, i]));
  const seen = (key) => !(places.get(key) > beat), crossing = beats.findLast((one) =>
    one.does === "reads");
  return { beats, beat, seen, isNow: (key) => beats[beat]?.key === key,
    litSeen: seen(crossing?.key), pending: beat < beats.length - 1 };
}

// What model this is, and what it takes.
function whoItIs({ n_layers: blocks, n_heads: heads, d_model: d }, words) {
  return words && `${blocks} + ${blocks} blocks of ${heads} heads, ${d} numbers a word, trained ` +
    `for this course. Type any of ${words} English words: it translates at once, offline.`;
}

// Title and sentence, and the longest that they can become while the model writes on.
function flowFacts(look) {
  const { whole, notes, best = [] } = look, { title, says } = TOUR[look.stop];
  const longest = (words) => words.reduce((a, b) => (b.length > a.length ? b : a), "");
  const facts = (one) => ({ title: title(one), said: [says(one), ...notes].join(" ") });
  const wide = longest(whole), next = { word: wide, share: 0.5 };
  const most = { ...look, pending: false, said: whole.join(" "), written: [wide], next,
    best: best.slice(0, 3).map(() => next), word: wide, other: longest([...look.read, wide]),
    lit: look.lit && { ...look.lit, j: look.read.indexOf(longest(look.read)) } };
  return { ...facts(look), longest: look.writes ? [facts(most)] : [] };
}
