// Two prompts that differ: which vector of the clean run brings the clean answer back?

import { choosable, fitted, fixed, inkOn, layer, pen, put, signed, textWidth,
  told } from "../../explorables/web/draw.js";
import { frame, remembered } from "../../explorables/web/frame.js";
import { generate, logSoftmax } from "../../explorables/web/generation.js";
import { inPieces } from "../../explorables/web/in_pieces.js";
import { firstLargest, fromLargest } from "../../explorables/web/ranking.js";
import { watched } from "../../explorables/web/transformer.js";
import { notesOn, readSentence, sourceIds } from "../../explorables/web/typed_sentence.js";
import { modelOf } from "../../explorables/web/weights.js";

const LONGEST_PROMPT = { sentence: 14, ids: 48 }; // words and marks, or ids
const WORTH_TRACING = 0.05; // nats: a smaller difference is not traced
const MOST_ANSWERS = 4; // tokens whose probabilities are drawn

export const PatchingGrid = (view) => frame(view, {
  name: "Patching grid",
  traits: ["clean", "corrupted", "answer", "heads"],
  controls: (make, page) => patchControls(make, page, { size: 30 }),
  load: modelOf, draw: drawPatching });

function patchControls(make, page, field) {
  const last = () => (page.read?.length ?? 1) - 1;
  const name = (i) => (page.read ? `“${page.read[i]}”` : String(i));
  return [
    make.text("Clean", "clean", field),
    make.text("Corrupted", "corrupted", field),
    make.slider("Answer after", "answer", () => [0, last()], name),
    make.choice("Patch", "heads", [[false, "residual stream"], [true, "heads"]])];
}

function drawPatching(state, page, { model, tokenizer }) {
  const read = (text) => tokenizer ? readWords(text, page, tokenizer) : readIds(text, model.config);
  const clean = read(state.clean), corrupted = read(state.corrupted);
  const problem = clean.problem ?? corrupted.problem ?? unpatchable(clean, corrupted);
  if (problem) return problem;
  const key = [clean.ids, corrupted.ids, state.answer, state.heads];
  const trace = remembered(page, "trace", key, () => {
    const written = remembered(page, "written", clean.ids, () => writtenFor(model, clean.ids));
    const begun = traceOf(model, tokenizer, { clean, corrupted, written }, state);
    inPieces(page, begun.traced ? patchCells(begun) : [].values());
    return begun;
  });
  page.read = trace.read;
  const look = lookOfPatch(trace, page);
  const { svg, width } = page, place = patchPlaces(width, look);
  drawPromptTokens(layer(svg, "tokens"), look, place, page);
  drawSites(layer(svg, "sites"), look, place);
  drawPatchCells(layer(svg, "cells"), look, place);
  const end = drawAnswers(layer(svg, "answers"), look, place.answers);
  return { ...patchFacts(look), height: Math.max(place.bottom + 4, end) };
}

// Prompts

function readWords(text, page, tokenizer) {
  const reading = readSentence(text, new Set(page.model.get("source_words")), ".");
  const { length } = reading.tokens;
  if (!length) return { problem: "A sentence is empty: type one." };
  if (length > LONGEST_PROMPT.sentence) {
    return { problem: `The picture has room for ${LONGEST_PROMPT.sentence} words and marks, and ` +
      `a sentence has ${length}: shorten it.` };
  }
  return { notes: notesOn(reading), tokens: [...reading.tokens, "<eos>"],
    ids: sourceIds(tokenizer, reading) };
}

function readIds(text, { vocab_size: n, max_len: maxLen }) {
  const tokens = text.split(/[\s,]+/).filter(Boolean);
  const most = Math.min(LONGEST_PROMPT.ids, maxLen);
  const wrong = tokens.find((token) => !(/^\d{1,9}$/.test(token) && Number(token) < n));
  if (!tokens.length) return { problem: "A prompt is empty: type ids with spaces between them." };
  if (wrong !== undefined) {
    return { problem: `“${[...wrong].slice(0, 30).join("")}” is no id of this model: type whole ` +
      `numbers from 0 to ${n - 1} with spaces between them.` };
  }
  if (tokens.length > most) {
    return { problem: `There is room for ${most} ids, and a prompt has ${tokens.length}: ` +
      "shorten it." };
  }
  const ids = tokens.map(Number);
  return { ids, tokens: ids.map(String), notes: [] };
}

function unpatchable(clean, corrupted) {
  const [n, m] = [clean.tokens.length, corrupted.tokens.length];
  return n === m ? undefined : `The clean prompt has ${n} tokens and the corrupted one ${m}: a ` +
    "vector is put back at its own place, so make them equally long.";
}

// Runs

// Both runs, and what is needed to patch one into the other.
function traceOf(model, tokenizer, { clean, corrupted, written }, { answer, heads }) {
  const translates = model.kind === "EncoderDecoderTransformer";
  const at = Math.min(answer, written.length - 1), before = written.slice(0, at + 1);
  const run = (ids, changes = {}) => {
    const seen = new Map(), logits = watched(model, { seen, ...changes }, () => {
      return translates ? model.decode(before, model.encode(ids), ids)
        : model.decode(ids.slice(0, at + 1));
    });
    return { seen, logs: logSoftmax(logits.row(at)) };
  };
  const right = run(clean.ids), wrong = run(corrupted.ids), best = firstLargest([...right.logs]);
  const name = (id) => (tokenizer ? tokenizer.token(id) : String(id));
  return { run, clean, corrupted, right, wrong, best, name, at, read: written.map(name),
    sites: heads ? headSites(model, translates) : streamSites(model, translates), cells: [],
    columns: translates ? clean.ids.length : at + 1, heads,
    traced: Math.abs(right.logs[best] - wrong.logs[best]) > WORTH_TRACING };
}

// <bos> and what a translator writes for the clean sentence; for another model, the prompt.
function writtenFor(model, ids) {
  if (model.kind !== "EncoderDecoderTransformer") return ids;
  const written = generate(model, ids, Math.min(30, model.config.max_len - 1)).ids;
  const ends = model.config.eos_ids.includes(written.at(-1));
  return [model.config.bos_id, ...(ends ? written.slice(0, -1) : written)];
}

function streamSites({ config }, translates) {
  const stack = translates ? "encoder" : "decoder";
  const embedding = translates ? "source_embedding" : "embedding";
  return [{ label: "embedding", short: "embedding", point: `${embedding}.output` },
    ...Array.from({ length: config.n_layers }, (_, i) => ({
      label: `after block ${i}`, short: `block ${i}`, point: `${stack}.${i}.output` }))];
}

function headSites({ config }, translates) {
  const stack = translates ? "encoder" : "decoder";
  return Array.from({ length: config.n_layers * config.n_heads }, (_, i) => {
    const number = Math.floor(i / config.n_heads), head = i % config.n_heads;
    return { label: `block ${number}, head ${head}`, group: `block ${number}`,
      short: String(head), head, point: `${stack}.${number}.self_attention.heads` };
  });
}

// Each cell is one run of the corrupted prompt with one vector of the clean run.
function* patchCells({ run, corrupted, right, wrong, best, sites, columns, cells }) {
  const low = wrong.logs[best], high = right.logs[best];
  for (let site = 0; site < sites.length; site++) {
    for (let position = 0; position < columns; position++) {
      const { logs } = run(corrupted.ids, patchOf(sites[site], position, right.seen, wrong.seen));
      cells.push({ site, position, logs, share: (logs[best] - low) / (high - low) });
      yield;
    }
  }
}

// The changes that put one vector of the clean run into the corrupted one, whose layers before that
// vector are not computed again.
function patchOf({ point, head = 0 }, position, right, wrong) {
  const stored = right.get(point), patch = (x) => {
    const patched = x.map((value) => value), row = head * x.shape.at(-2) + position;
    patched.row(row).set(stored.row(row));
    return patched;
  };
  const [stack, layer] = point.split("."), after = point === `${stack}.${layer}.output`;
  const before = Array.from({ length: Number(layer) || 0 }, (_, i) => `${stack}.${i}`);
  const known = new Map(before.map((name) => [name, wrong.get(`${name}.output`)]));
  if (after) known.set(`${stack}.${layer}`, patch(wrong.get(point)));
  return { known, replace: after ? {} : { [point]: patch } };
}

// What the picture shows: the cells computed so far, and the one under the pointer, or else the
// best of all heads, or the best of the stream after block 0.
function lookOfPatch(trace, page) {
  const { cells, columns, sites, heads } = trace, ready = Math.floor(cells.length / columns);
  const rows = sites.slice(0, ready).map((_, i) => cells.slice(i * columns, (i + 1) * columns));
  const tops = rows.map((row) => row[firstLargest(row.map(({ share }) => share))]);
  const best = heads ? tops[tops.length && firstLargest(tops.map(({ share }) => share))] : tops[1];
  const shown = cells.find((cell) => patchCellName(cell) === page.preview) ?? best;
  return { ...trace, tops, shown, works: Boolean(page.work) };
}

const patchCellName = ({ site, position }) => `${site}.${position}`;

// Picture

// The layout: tokens in a row above the grid, or, if that is too narrow, in a column to its left.
// The answers are below, or, if there are many heads, beside it.
function patchPlaces(width, { clean, sites, heads }) {
  const n = clean.tokens.length, label = 104, gap = heads ? 0 : 16, m = sites.length;
  const least = Math.min(40, 4 + Math.max(...clean.tokens.map((token) => textWidth(token, 12))));
  const beside = m > 6 && 0.6 * width - label >= least * n, room = beside ? 0.6 * width : width;
  if ((room - label) / n >= least) {
    const wide = Math.min(84, (room - label) / n), high = !heads ? 28 : m > 6 ? 19 : 24, top = 54;
    const bottom = top + m * (high + gap) - gap, x = label + n * wide + 28;
    return { across: true, wide, high, label, bottom,
      answers: beside ? { x, y: 0, width: width - x } : { x: 0, y: bottom + 14, width },
      token: (i) => ({ x: label + i * wide, y: 2, width: wide - 2, height: 44 }),
      cell: ({ site, position }) => ({ x: label + wide * position, y: top + (high + gap) * site }),
    };
  }
  const left = 92, high = n > 16 ? 17 : 22, top = heads ? 40 : 22;
  const wide = Math.min(84, (width - left + gap) / m - gap), bottom = top + n * high;
  return { across: false, wide, high, room: wide + gap, bottom, top,
    answers: { x: 0, y: bottom + 12, width },
    token: (i) => ({ x: 2, y: top + i * high, width: left - 8, height: high - 2 }),
    cell: ({ site, position }) => ({ x: left + site * (wide + gap), y: top + position * high }) };
}

function drawPromptTokens(group, { clean, corrupted }, place, page) {
  const others = page.model.get("others"), pairs = clean.tokens.map((token, i) => ({
    token, i, now: corrupted.tokens[i], differs: token !== corrupted.tokens[i] }));
  const replace = (i) => () => page.set({
    corrupted: clean.tokens.filter((token) => token !== "<eos>")
      .map((token, j) => (i === j ? others[i][1] : token)).join(" ") });
  const words = ({ token, now, differs, i }) => {
    const name = `token ${i}, “${token}”`;
    return differs ? `${name}, became “${now}”` : name;
  };
  const offer = ({ token, i }) => (others[i]?.[0] === token ? others[i][1] : undefined);
  put.rect(group, "boxes", pairs, (pair) => ({
    ...place.token(pair.i), rx: 6, class: "box", ...(offer(pair)
      ? choosable(pair.differs ? words(pair) : `${words(pair)}: replace it with “${offer(pair)}”`,
        pair.differs, replace(pair.i), `at${pair.i}`)
      : told(words(pair), `at${pair.i}`)) }), "i");
  const texts = pairs.flatMap((pair) => tokenTexts(pair, place));
  put.label(group, "words", texts, ({ name, ...text }) => text, "name");
}

// A clean token and what it became, below each other or in one line.
function tokenTexts({ token, now, differs, i }, { across, token: placeOf }) {
  const { x, y, width, height } = placeOf(i), middle = x + width / 2;
  const became = `${fitted(token, 34, 12)} → ${fitted(now, 34, 12)}`;
  if (!across) {
    return [{ name: i, text: differs ? became : fitted(token, width - 8, 12), x: middle,
      y: y + height / 2 + 4,
      class: differs ? "number strong middle" : "small middle" }];
  }
  const line = (text) => ({ text: fitted(text, width, 12), x: middle });
  return [{ name: `${i}.clean`, ...line(token), y: y + 17, class: "small middle" },
    ...(differs ? [{ name: `${i}.now`, ...line(now), y: y + 36, class: "number strong middle" }] :
      [])];
}

function drawSites(group, { sites }, { across, cell, wide, high, label, room, top }) {
  const at = (site) => cell({ site, position: 0 });
  const names = across
    ? sites.map(({ label: text }, i) => ({ text, x: label - 8, y: at(i).y + high / 2 + 4,
      class: "small end" }))
    : sites.map(({ short }, i) => ({ text: fitted(short, room, 12), x: at(i).x + wide / 2,
      y: top - 8, class: "small middle" }));
  const groups = across ? [] : sites.filter(({ head }) => head === 0).map(({ group: text }) => {
    return { text, x: at(sites.findIndex(({ group: other }) => other === text)).x, y: 16,
      class: "small" };
  });
  put.label(group, "names", [...names, ...groups]);
  const lines = across ? [{ text: "clean", y: 19 }, { text: "corrupted", y: 38 }] : [];
  put.label(group, "lines", lines, ({ text, y }) => [text, label - 8, y, "small end"], "text");
}

function drawPatchCells(group, look, place) {
  const { cells, sites, clean, shown } = look, { cell, wide, high } = place;
  const large = cells.filter(({ share }) => Math.abs(share) >= 0.05 && high >= 16 &&
    wide >= (share < 0 ? 25 : 19));
  put.rect(group, "shares", cells, (one) => ({
    ...cell(one), width: wide, height: high, class: "cell", fill: signed(one.share, 1),
    ...told(`${sites[one.site].label}, token ${one.position} “${clean.tokens[one.position]}”: ` +
      `${fixed(one.share, 2)} comes back`, `at${one.position}`), "data-preview": patchCellName(one),
  }), patchCellName);
  put.label(group, "numbers", large, (one) => [
    fixed(one.share, wide >= 34 ? 2 : 1), cell(one).x + wide / 2, cell(one).y + high / 2 + 4,
    "number middle", { fill: inkOn(signed(one.share, 1)) }], patchCellName);
  put.rect(group, "shown", shown ? [shown] : [], (one) =>
    ({ ...cell(one), width: wide, height: high, ...pen("--ink", 2) }));
  const steps = look.heads ? [] : carriers(look).slice(1).map((to, i) => [carriers(look)[i], to]);
  put.path(group, "path", steps, ([from, to]) =>
    ({ d: stepBetween(cell(from), cell(to), place), ...pen("--value", 3) }), ([, to]) => to.site);
}

const carriers = ({ tops }) => tops.filter(({ share }) => share >= 0.5);

// A curve from the end of one cell to the beginning of a later one.
function stepBetween(from, to, { across, wide, high }) {
  const [x, y, u, v] = across ? [from.x + wide / 2, from.y + high, to.x + wide / 2, to.y]
    : [from.x + wide, from.y + high / 2, to.x, to.y + high / 2];
  const [a, b] = [(x + u) / 2, (y + v) / 2];
  return across ? `M${x} ${y}C${x} ${b} ${x} ${b} ${a} ${b}S${u} ${b} ${u} ${v}`
    : `M${x} ${y}C${a} ${y} ${a} ${y} ${a} ${b}S${a} ${v} ${u} ${v}`;
}

// The likeliest tokens of the clean and the corrupted run, with their probabilities in all runs.
function drawAnswers(group, look, { x: edge, y, width }) {
  const { right, wrong, shown, name, at, read, best, sites } = look;
  const both = [...right.logs].map((log, id) => Math.exp(Math.max(log, wrong.logs[id])));
  const others = fromLargest(both, MOST_ANSWERS).filter((id) => id !== best);
  const ids = [best, ...others.slice(0, MOST_ANSWERS - 1)], low = width < 540;
  const first = edge + (low ? 66 : 96), wide = (edge + width - first) / 3, high = low ? 36 : 22;
  const runs = [["clean", right, "var(--key)"], ["corrupted", wrong, "var(--query)"],
    ["patched", shown, "var(--value)"]];
  const where = shown && `patched: ${sites[shown.site].label}, token ${shown.position}`;
  const notes = low && shown ? [where] : [], top = y + 18 * notes.length;
  put.text(group, "title", [`after “${read[at]}” comes`], (text) =>
    [fitted(text, width, 14, 600), edge, y + 14, "strong"]);
  put.text(group, "notes", notes, (text) => [fitted(text, width, 12), edge, y + 32, "small"]);
  put.text(group, "runs", runs, ([run, one], i) => [
    fitted(!low && run === "patched" && one ? where : run, wide - 4, 12), first + i * wide,
    top + 34, "small"], ([run]) => run);
  put.label(group, "words", ids, (id, row) => [
    fitted(`${id === best ? "▶ " : ""}${name(id)}`, first - edge - 12), first - 10,
    top + 56 + high * row, "end"], String);
  const cells = ids.flatMap((id, row) => runs.map(([run, one, color], i) => ({
    id, run, color, x: first + i * wide, y: top + 43 + high * row,
    share: one ? Math.exp(one.logs[id]) : null }))).filter(({ share }) => share !== null);
  const key = ({ run, id }) => `${run}.${id}`, most = wide - (low ? 8 : 52);
  put.rect(group, "bars", cells, ({ id, run, color, share, x, y: above }) => ({
    x, y: above, height: 16, rx: 2, width: Math.max(2, share * most), fill: color,
    ...told(`“${name(id)}”, ${run} run: ${share.toFixed(3)}`, `answer${id}`) }), key);
  put.label(group, "numbers", cells, ({ share, x, y: above }) =>
    [share.toFixed(3), low ? x : x + 6 + share * most, above + (low ? 28 : 13), "small"], key);
  return top + 44 + high * ids.length;
}

function patchFacts(look) {
  const { clean, corrupted, right, wrong, best, name, at, read, traced, cells } = look;
  const answer = `“${name(best)}”`, [high, low] = [right, wrong].map(({ logs }) =>
    Math.exp(logs[best]).toFixed(2));
  const said = (text) => [replacedWords(look), `The probability of ${answer} after “${read[at]}” ` +
    `goes from ${high} to ${low}.`, text,
    ...new Set([...clean.notes, ...corrupted.notes])].join(" ");
  if (!traced) {
    const title = `${answer} does not need what differs: nothing to trace`;
    return { title, said: said("That is too little to trace: replace another token.") };
  }
  if (look.works) {
    const count = `${cells.length} of ${look.sites.length * look.columns}`;
    const text = `One vector after the other is put back: ${count}.`;
    return { title: `What brings ${answer} back?`, said: said(text) };
  }
  const { title, text } = comesBack(look, answer);
  return { title, said: said(text) };
}

function replacedWords({ clean, corrupted }) {
  const places = [...clean.ids.keys()].filter((i) => clean.tokens[i] !== corrupted.tokens[i]);
  if (!places.length) return "Both prompts are the same.";
  const words = (i) => `token ${i}, “${clean.tokens[i]}”, by “${corrupted.tokens[i]}”`;
  return `Replaced: ${places.map(words).join("; ")}.`;
}

function comesBack({ tops, sites, clean, heads }, answer) {
  const order = fromLargest(tops.map(({ share }) => share), 4), best = tops[order[0]];
  const places = order.map((i) => {
    const { share, position } = tops[i];
    return `${sites[i].label}: ${fixed(share, 2)} at ${position} “${clean.tokens[position]}”`;
  });
  const text = `One vector of the clean run brings back, at most: ${places.join("; ")}.`;
  const path = carriers({ tops }).map(({ position }) => position);
  const stops = path.filter((position, i) => position !== path[i - 1]);
  if (heads) {
    const title = `${sites[order[0]].label} alone brings ${fixed(best.share, 2)} of ${answer} back`;
    return { title: title.replace(/^b/, "B"), text };
  }
  const title = path.length === tops.length
    ? `${answer} is carried by position ${stops.join(", then ")}`
    : `${answer}: no single position carries it through every block`;
  return { title, text };
}
