// A typed sentence and its translation: who looked at whom, what else was likely at each step, and
// how the rest changes when another word is forced.

import { choosable, fitted, layer, put, shade, textWidth, told } from "./draw.js";
import { frame, remembered } from "./frame.js";
import { generate, likeliest, softmax } from "./generation.js";
import { firstLargest, fromLargest } from "./ranking.js";
import { watched } from "./transformer.js";
import { notesOn, readSentence, sourceIds } from "./typed_sentence.js";
import { modelOf } from "./weights.js";

const PLAYGROUND = { read: 24, written: 30, rivals: 6 }; // the most shown
const WHOLE = { forced: [], shown: PLAYGROUND.written };
const FIRST = [-1, 8]; // the range of the first position; at -1 no positions are added

export const TranslationPlayground = (view) => frame(view, {
  name: "Translation playground",
  traits: ["sentence", "layer", "head", "word", "shown", "forced", "first"],
  controls: playgroundControls, load: modelOf, draw: drawPlayground });

function playgroundControls(make, page) {
  const begin = () => page.set(WHOLE), config = () => page.loaded?.model.config;
  const numbers = (n = 1) => Array.from({ length: n }, (_, i) => [i, String(i)]);
  const typed = make.text("English sentence", "sentence", { size: 52 });
  const examples = make.choice("Examples", "sentence", () => page.model.get("examples"));
  const heads = [
    make.choice("Block", "layer", () => numbers(config()?.n_layers)),
    make.choice("Head", "head", () => [[null, "mean"], ...numbers(config()?.n_heads)])];
  for (const group of [examples, ...heads]) group.classList.add("dense");
  const first = page.model.get("counted") ?
    [make.slider("First position", "first", FIRST, (n) => (n < 0 ? "off" : `${n}`))] : [];
  for (const one of [typed, ...first]) one.addEventListener("input", begin);
  examples.addEventListener("click", begin);
  const free = make.button("Force nothing", () => WHOLE,
    () => ({ disabled: !page.model.get("forced").length }));
  return [
    typed,
    ...first,
    make.play("shown", () => [1, page.steps ?? 1]),
    free,
    ...(page.model.get("examples").length ? [examples] : []),
    ...(page.model.get("simple") ? [] : heads)];
}

function drawPlayground(state, page, { model, tokenizer }) {
  const vocabulary = new Set(page.model.get("source_words"));
  const reading = readSentence(state.sentence, vocabulary, page.model.get("closing"));
  const problem = untranslatable(reading, model) ?? unforceable(state.forced, tokenizer);
  if (problem) return problem;
  const key = [reading.tokens, state.forced, state.first];
  const translation = remembered(page, "forced", key, () => {
    const source = sourceIds(tokenizer, reading);
    const room = Math.min(PLAYGROUND.written, model.config.max_len - 1);
    const all = () => generate(model, source, room).ids;
    const silent = page.model.get("silent"), counted = page.model.get("counted");
    const replace = silent ? silentEncoder(model) : {};
    const change = { replace, first: !counted ? 0 : state.first < 0 ? null : state.first };
    const free = remembered(page, "free", [source, state.first], () => watched(model, change, all));
    const whole = (silent || counted) && remembered(page, "whole", source, all);
    const own = translateForced(model, tokenizer, { source, room, free, change }, state.forced);
    const broken = counted ? own.ids.findIndex((id, i) => id !== whole[i]) : -1;
    return { ...own, reading, counted, broken, whole: whole && tokenizer.decode(whole) };
  });
  page.steps = translation.written.length;
  const look = lookOfStep(translation, state, model.config, page.preview);
  const longest = remembered(page, "longest", [key, state.layer, state.head], () =>
    translation.written.map((_, i) => playgroundFacts(
      lookOfStep(translation, { ...state, shown: i + 1 }, model.config))));
  const { svg, width } = page, place = wordsAcross(width, look) ?? wordsDown(width, look);
  drawLookRibbons(layer(svg, "ribbons"), look, place);
  drawRead(layer(svg, "read"), look, place);
  drawWritten(layer(svg, "written"), look, place, page);
  const end = drawRivals(layer(svg, "rivals"), look, page, place.rivals);
  return { ...playgroundFacts(look), longest, height: Math.max(place.height, end) };
}

// What to change in a sentence, or null.
function untranslatable({ tokens, known, offers }, model) {
  const room = Math.min(PLAYGROUND.read, model.source.max_len - 1), { length } = tokens;
  if (!length) return "There is nothing to translate: type a sentence.";
  if (length > room) {
    return `The sentence has ${length} words and marks, but there is room for ${room}: shorten it.`;
  }
  if (!tokens.some((token, i) => known[i] && /[\p{L}\p{N}]/u.test(token))) {
    return `The translator knows none of these words. ${offers.join(" ")}`;
  }
  return null;
}

function unforceable(forced, tokenizer) {
  const wrong = forced.find(([, word]) => !tokenizer.vocabulary.has(word));
  return wrong && `“${wrong[1]}” cannot be forced as word ${wrong[0] + 1}: it is not in the ` +
    "model's vocabulary; choose one of the words that it knows.";
}

// Replacements that make every head of the encoder output zeros.
function silentEncoder(model) {
  const zeros = (outputs) => {
    outputs.data.fill(0);
    return outputs;
  };
  return Object.fromEntries(Array.from({ length: model.source.n_layers }, (_, i) =>
    [`encoder.${i}.self_attention.heads`, zeros]));
}

// Translates greedily except for the forced words, and keeps probabilities and attention weights.
function translateForced(model, tokenizer, { source, room, free, change }, forced) {
  const wanted = new Map(forced.map(([step, word]) => [step, tokenizer.vocabulary.get(word)]));
  const draft = free.slice(0, -1).map((id, i) => wanted.get(i) ?? id), seen = new Map();
  let step = 0;
  const choose = (logits) => wanted.get(step++) ?? likeliest(logits);
  const { ids, logits } = watched(model, { ...change, seen }, () => {
    const output = generate(model, source, room, { choose, draft });
    const read = [model.config.bos_id, ...output.ids.slice(0, -1)];
    if (!output.foreseen) model.decode(read, model.encode(source), source);
    return output;
  });
  return { seen, tokenizer, ids, written: ids.map((id) => tokenizer.texts[id]),
    shares: logits.map(softmax), text: tokenizer.decode(ids), free: tokenizer.decode(free) };
}

// Everything that the picture shows about one step: the one under the pointer, or the chosen one.
function lookOfStep(translation, state, config, preview) {
  const { written, reading } = translation, shown = Math.min(state.shown, written.length);
  const chosen = state.word < written.length ? state.word : Math.floor(written.length / 2);
  const at = Number(preview ?? (shown < written.length ? shown - 1 : chosen));
  const head = state.head === null ? null : Math.min(state.head, config.n_heads - 1);
  const where = { layer: Math.min(state.layer, config.n_layers - 1), head };
  const looks = written.map((_, i) => crossWeights(translation.seen, where, i));
  const shares = translation.shares[at], { texts, vocabulary } = translation.tokenizer;
  const rivals = fromLargest([...shares], PLAYGROUND.rivals).map((id) => texts[id]);
  if (!rivals.includes(written[at])) rivals[rivals.length - 1] = written[at];
  const isForced = (i) => state.forced.some(([step]) => step === i);
  return { ...translation, ...where, shown, at, looks, weights: looks[at], forced: state.forced,
    isForced, first: state.first, read: [...reading.tokens, "<eos>"],
    known: [...reading.known, true],
    mark: (i) => (isForced(i) ? " ✎" : i === translation.broken ? " ✗" : ""),
    rivals: rivals.map((word) => ({ word, share: shares[vocabulary.get(word)] })) };
}

// Where one head, or the mean over all, looked when a word was chosen.
function crossWeights(seen, { layer: number, head }, step) {
  const weights = seen.get(`decoder.${number}.cross_attention.weights`), [all, n] = weights.shape;
  const heads = head === null ? [...Array(all).keys()] : [head];
  const rows = heads.map((h) => weights.row(h * n + step));
  return [...rows[0].keys()].map((j) => rows.reduce((sum, row) => sum + row[j], 0) / rows.length);
}

// The layout with read words in a row above and written words in a row below; null if they are too
// wide.
function wordsAcross(width, { read, written, mark }) {
  const marked = written.map((word, i) => word + mark(i));
  const needed = [read, marked].map((words) => words.map((word) => textWidth(word) + 18));
  const spare = needed.map((sizes) => (width - sizes.reduce((a, b) => a + b)) / sizes.length);
  if (Math.min(...spare) < 0) return null;
  const row = (k, y) => (i) => {
    const wide = needed[k][i] + spare[k], box = Math.max(needed[k][i] - 8, Math.min(120, wide - 8));
    const before = needed[k].slice(0, i).reduce((a, b) => a + b + spare[k], 0);
    return { x: before + (wide - box) / 2, y, width: box, height: 34 };
  };
  const above = row(0, 34), below = row(1, 160);
  const middle = ({ x, width: wide }) => x + wide / 2;
  const ribbon = (i, j) => {
    const from = middle(below(i)), to = middle(above(j));
    return `M${from} 160C${from} 106 ${to} 122 ${to} 68`;
  };
  return { read: above, written: below, ribbon, height: 194, names: [[0, 12], [0, 154]],
    number: (j) => ({ x: middle(above(j)), y: 28, class: "small middle" }),
    rivals: { x: 0, y: 204, width } };
}

// The layout for less room: two columns, with the rivals beside or below them.
function wordsDown(width, { read, written }) {
  const wide = width >= 720, all = wide ? width * 0.55 : width, box = Math.min(150, all * 0.34);
  const n = Math.max(read.length, written.length), high = Math.max(17, Math.min(34, 300 / n));
  const column = (x) => (i) => ({ x, y: 20 + high * i, width: box, height: high - 3 });
  const left = column(0), right = column(all - box), height = 26 + high * n;
  const ribbon = (i, j) => {
    const [from, to, middle] = [right(i).y + high / 2, left(j).y + high / 2, all / 2];
    return `M${all - box} ${from}C${middle} ${from} ${middle} ${to} ${box + 46} ${to}`;
  };
  return { read: left, written: right, ribbon, height, names: [[0, 12], [all - box, 12]],
    number: (j) => ({ x: box + 4, y: left(j).y + high / 2 + 3, class: "small" }),
    rivals: wide ? { x: all + 40, y: 0, width: width - all - 40 } : { x: 0, y: height, width } };
}

// Ribbons from the written words to those that they looked at, as thick as the weights.
function drawLookRibbons(group, { looks, shown, at }, place) {
  const all = looks.slice(0, shown).flatMap((weights, i) => {
    return weights.map((weight, j) => ({ i, j, weight }));
  });
  const large = all.filter(({ weight }) => weight >= 0.02);
  put.path(group, "paths", large, ({ i, j, weight }) => ({
    class: "ribbon", d: place.ribbon(i, j), opacity: i === at ? 0.8 : 0.12,
    "stroke-width": 1 + 13 * weight }), ({ i, j }) => `${i}.${j}`);
}

// Words in boxes; `describe` returns a box's other attributes, `mark` what follows a word.
function drawBoxedWords(group, words, box, describe, mark = () => "") {
  put.box(group, "boxes", words, (word, i) => ({
    rx: 6, ...box(i), word: fitted(word + mark(i), box(i).width - 8), ...describe(word, i) }));
}

function drawRead(group, { read, known, weights }, place) {
  const [x, y] = place.names[0];
  put.text(group, "name", [["read", x, y, "small"]]);
  drawBoxedWords(group, read, place.read, (word, j) => ({
    "stroke-dasharray": known[j] ? null : "4 3",
    ...told(`“${word}”${known[j] ? "" : ", read as <unk>,"} gets ${weights[j].toFixed(2)}`,
      `read${j}`) }));
  const numbers = weights.map((weight, j) => ({
    j, text: `${known[j] ? "" : "? "}${weight >= 0.02 ? weight.toFixed(2) : ""}`.trim() }));
  const some = numbers.filter(({ text }) => text);
  put.label(group, "numbers", some, ({ j, text }) => ({ text, ...place.number(j) }), "j");
}

function drawWritten(group, look, place, page) {
  const { written, shown, at, looks, isForced, broken, mark } = look, [x, y] = place.names[1];
  put.text(group, "name", [["written", x, y, "small"]]);
  drawBoxedWords(group, written.slice(0, shown), place.written, (word, i) => ({
    "data-preview": i,
    "stroke-dasharray": i === broken ? "4 3" : null,
    ...choosable(`word ${i + 1}, “${word}”${isForced(i) ? ", forced" : ""}` +
      `${i === broken ? ", the first that differs" : ""}`, i === at,
      () => page.set({ word: i, shown: PLAYGROUND.written }), `read${firstLargest(looks[i])}`),
  }), mark);
}

// The likeliest words of one step, each a button that forces it. Returns where they end.
function drawRivals(group, look, page, { x, y, width }) {
  const { rivals, written, at } = look, columns = width >= 620 ? 2 : 1;
  const wide = (width - 16 * (columns - 1)) / columns, unit = wide - 205, rows = 6 / columns;
  const top = (i) => y + 24 + 31 * (i % rows), left = (i) => x + (wide + 16) * Math.floor(i / rows);
  const before = written.slice(0, at).join(" ");
  const first = `likeliest as word ${at + 1}`, indent = textWidth(first, 14, 600) + 14;
  const then = `click one to force it${before && ` after “${before}”`}`;
  const titles = [first, fitted(then, width - indent, 12)];
  put.text(group, "titles", titles, (text, i) =>
    [text, x + i * indent, y + 14, i ? "small" : "strong"]);
  const mark = (word) => (word !== written[at] ? "" : look.isForced(at) ? "forced ✎" : "written");
  put.rect(group, "boxes", rivals, ({ word, share }, i) => ({
    class: "box", x: left(i), y: top(i), width: wide, height: 28, rx: 7,
    ...choosable(`“${word}”: ${share.toFixed(4)}${mark(word) && `, ${mark(word)}`}`,
      word === written[at], () => force(page, look, word)) }), "word");
  put.rect(group, "bars", rivals, ({ share }, i) => ({
    x: left(i) + 100, y: top(i) + 7, height: 14, width: Math.max(1, share * unit), rx: 2,
    fill: shade(0.3 + 0.7 * share) }), "word");
  put.label(group, "words", rivals, ({ word }, i) =>
    [fitted(word, 84), left(i) + 92, top(i) + 19, "end"], "word");
  put.label(group, "numbers", rivals, ({ word, share }, i) =>
    [`${share.toFixed(4)} ${mark(word)}`, left(i) + 106 + share * unit, top(i) + 19, "small"],
    "word");
  return y + 24 + 31 * rows;
}

// Forces a word at the step that is shown, unless the model prefers it anyway. Words forced after
// it are dropped, because they were meant for another text.
function force(page, { forced, at, rivals }, word) {
  const before = forced.filter(([step]) => step < at), own = word === rivals[0].word;
  page.set({ ...WHOLE, word: at, forced: own ? before : [...before, [at, word]] });
}

function playgroundFacts(look) {
  const { written, read, weights, shown, at, rivals, reading } = look, word = written[at];
  const most = fromLargest(weights, 3).filter((j, i) => i === 0 || weights[j] >= 0.01);
  const best = most.map((j) => `“${read[j]}” (${weights[j].toFixed(2)})`);
  const shares = rivals.slice(0, 3).map(({ word, share }) => `“${word}” ${share.toFixed(4)}`);
  const head = look.head === null ? "mean of its heads" : `head ${look.head}`;
  const far = shown < written.length ? " so far" : "";
  const text = far ? written.slice(0, shown).join(" ") : look.text;
  const forced = look.forced.filter(([step]) => step < written.length);
  const words = forced.map(([step, one]) => `“${one}” as word ${step + 1}`).join(", ");
  const changed = words ? ` Forced: ${words}. Left alone it writes “${look.free}”.` : "";
  const looked = `${best.join(", ")} (block ${look.layer}, ${head})`;
  const said = `Written${far}: “${text}”. For word ${at + 1}, “${word}”, the model looked ` +
    `most at ${looked}. Likeliest there: ${shares.join(", ")}.${changed}`;
  const notes = [said, ...notesOn(reading)];
  if (look.counted) {
    const same = look.whole === look.free, first = look.first;
    return {
      title: `${first < 0 ? "Without positions" : `Counted from ${first}`}: “${look.free}”`,
      said: [first === 0 ? "" : same ? "The same as counted from 0." :
        `Counted from 0: “${look.whole}”.`, ...notes].join(" ").trim() };
  }
  const beside = look.whole === look.free ? "the same as the whole translator" :
    `the whole translator writes “${look.whole}”`;
  return look.whole ? {
    title: `Without attention in the encoder: “${look.free}”`,
    said: [`In comparison: ${beside}.`, ...notes].join(" ") } : {
    title: `For “${word}” the model looked most at ${best[0]}`,
    said: notes.join(" ") };
}
