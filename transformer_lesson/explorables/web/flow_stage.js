// The whole model at a glance: words in, encoder, decoder, and the word that comes next.

import { choosable, fitted, layer, pen, put, textLines, textWidth, told,
  wrapped } from "./draw.js";
import { firstLargest } from "./ranking.js";

const STAGE = { word: 34, band: 72, gap: 28, between: 66, answer: 62, unit: 88, large: 28 };

export const percent = (share) => share > 0.995 ? "> 99 %" : share < 0.001 ? "< 0.1 %" :
  `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;

// The source word that the last written word looks at most, in the mean over the heads of the last
// cross-attention: {j, share, shares}, or null if the model has none.
export function litWord({ byName, sublayers }) {
  const crossing = sublayers.findLast(({ kind }) => kind === "cross_attention");
  if (!crossing) return null;
  const { shape: [heads, queries], data, width } = byName.get(`${crossing.key}.weights`).value;
  const shares = Array.from({ length: width }, (_, j) => {
    let sum = 0;
    for (let h = 0; h < heads; h++) sum += data[(h * queries + queries - 1) * width + j];
    return sum / heads;
  });
  const j = firstLargest(shares);
  return { j, share: shares[j], shares };
}

export function drawStage(group, look, page) {
  const plan = stagePlan(look, page.width);
  drawBands(layer(group, "bands"), look, plan, page);
  drawPath(layer(group, "path"), look, plan, page);
  drawStageWords(layer(group, "words"), look, plan, page);
  if (look.writes) drawNextWord(layer(group, "answer"), look, plan, page);
  return plan.height;
}

// The layout: the places of the words, of encoder and decoder, of the next word and of the ribbon.
function stagePlan(look, width) {
  const { lit, next, writes, whole } = look, size = (word) => textWidth(word, 16, 600) + 18;
  const reads = look.translates || !writes, plan = { width };
  let y = 0;
  if (reads) {
    const words = look.read.map(size), free = width - words.reduce((a, b) => a + b + 6, 0);
    const more = Math.max(0, Math.min(90, free / words.length));
    const row = wrapped(words.map((wide) => wide + more), { x: 0, y: 20, width, high: STAGE.word,
      gap: 6 });
    plan.read = row.places;
    plan.encoder = { y: row.bottom + STAGE.gap, height: STAGE.band };
    y = plan.encoder.y + STAGE.band + STAGE.between;
  }
  if (!writes) return { ...plan, height: y };
  plan.decoder = { y, height: STAGE.band };
  const answerWide = (word) =>
    Math.min(width, textWidth(word, STAGE.large, 600) + STAGE.unit + 120);
  const inFlow = (words, word) => wrapped([...words.map((one) => size(one) - 4), answerWide(word)],
    { x: 0, y: y + STAGE.band + 44, width, high: STAGE.answer, gap: 5 });
  const now = inFlow(look.written, next.word), start = whole.length - look.most - 1;
  const ends = whole.slice(Math.max(0, start)).map((word, i) =>
    inFlow(whole.slice(0, start + i), word).bottom);
  plan.written = now.places.slice(0, -1).map((one) =>
    ({ ...one, y: one.y + (STAGE.answer - STAGE.word) / 2, height: STAGE.word }));
  plan.answer = now.places.at(-1);
  plan.from = lit && middleBelow(plan.read[lit.j]);
  const last = plan.written.at(-1), below = plan.answer.y > last.y;
  plan.to = [below ? Math.min(last.x + last.width + 26, width - 20) : plan.answer.x + 110,
    plan.answer.y];
  return { ...plan, height: Math.max(now.bottom, ...ends) + 4 };
}

const middleBelow = ({ x, y, width, height }) => [x + width / 2, y + height];
const middleAbove = ({ x, y, width }) => [x + width / 2, y];

// Encoder and decoder as two plain shapes; a click goes to their stop of the tour.
function drawBands(group, look, { encoder, decoder, width, from, to }, page) {
  const { sublayers, translates } = look, blocks = (name) =>
    new Set(sublayers.filter(({ stack }) => stack === name).map(({ block }) => block)).size;
  const all = [
    encoder && { key: "encoder", name: "Encoder", does: "every word looks at all the others",
      stop: 3, at: from?.[0], ...encoder },
    decoder && { key: "decoder", name: "Decoder", at: to[0], ...decoder, stop: translates ? 5 : 4,
      does: `looks back${translates ? ", and at the sentence" : " at what is there"}` }]
    .filter(Boolean);
  put.rect(group, "shapes", all, ({ key, name, does, y, height, stop }) => ({
    x: 0, y, width, height, rx: 18, class: "box",
    ...choosable(`${name}, ${blocks(key)} blocks: ${does}`, false, () => page.set({ stop })) }));
  const right = ({ at }) => at < width / 2;
  const room = ({ at = 0 }) => (at < width / 2 ? width - at : at) - 36;
  const x = (one) => (right(one) ? width - 18 : 18);
  put.label(group, "names", all, (one) =>
    [one.name, x(one), one.y + 27, `strong${right(one) ? " end" : ""}`]);
  const lines = all.flatMap((one) => textLines(one.does, room(one), 12).slice(0, 2)
    .map((text, i) => ({ ...one, key: `${one.key} ${i}`, text, line: one.y + 46 + 14 * i })));
  put.label(group, "does", lines, (one) =>
    [one.text, x(one), one.line, `small${right(one) ? " end" : ""}`]);
}

// A thin line for each word, and one ribbon from the word that is looked at most to the next word.
function drawPath(group, look, plan, page) {
  const { read = [], written = [], encoder, decoder, from, to, answer } = plan;
  const down = read.map((box) => middleBelow(box)).map(([x, y]) => `M${x} ${y}V${encoder.y}`);
  const up = written.map((box) => middleAbove(box)).map(([x, y]) =>
    `M${x} ${y}V${decoder.y + decoder.height}`);
  const across = encoder && decoder ? read.map((box) => middleBelow(box)[0]).map((x) =>
    `M${x} ${encoder.y + encoder.height}V${decoder.y}`) : [];
  put.path(group, "thin", [[...down, ...across, ...up].join("")], (d) =>
    ({ d, class: "axis", fill: "none", "stroke-width": 1.5 }));
  if (!answer) return;
  const bottom = decoder.y + decoder.height;
  const [under, over] = encoder ? [encoder.y + encoder.height, decoder.y] : [0, decoder.y];
  const d = from ? `M${from[0]} ${from[1]}V${under - 16}C${from[0]} ${over + 4} ${to[0]} ` +
    `${under - 4} ${to[0]} ${over + 16}V${to[1]}` : `M${to[0]} ${bottom - 20}V${to[1]}`;
  const last = written.at(-1), y = last.y + last.height / 2;
  const joins = answer.y < last.y ? `M${last.x + last.width} ${y}H${answer.x}` :
    `M${last.x + last.width / 2} ${last.y + last.height}V${answer.y}`;
  const words = look.lit ? `the last written word looks most at “${look.read[look.lit.j]}”: ` +
    `${look.lit.share.toFixed(2)}` : "the last vector becomes the next word";
  put.path(group, "lit", [{ key: "ribbon", d, "stroke-width": 3 + 9 * (look.lit?.share ?? 0.6),
    ...told(words, "lit") }, { key: "joins", d: joins, "stroke-width": 4 }], (one) =>
    ({ class: "ribbon crossing", "stroke-opacity": 0.85, ...one }));
  put.path(group, "pulse", page.pulsed ? [page.pulsed] : [], () =>
    ({ d, class: "pulse still", pathLength: 100, ...pen("--paper", 6, "14 200") }), String);
  if (from) nameLook(group, look, { from, to, under, over, width: plan.width });
}

// Who looks at whom, beside the ribbon, if there is room.
function nameLook(group, { lit, written, read }, { from, to, under, over, width }) {
  const words = [written.at(-1), read[lit.j]].map((word) => `“${fitted(word, 70, 12)}”`);
  const texts = [words.join(" looks most at "), `${words[0]} looks here`, "looks here"]
    .map((text) => `${text}: ${lit.share.toFixed(2)}`);
  const way = to[0] < from[0] ? -1 : 1;
  const places = [[from[0], -way, under + 20], [to[0], way, over - 10]];
  const all = texts.flatMap((text) => places.map((place) => [text, ...place]));
  const fits = all.filter(([text, at, side]) =>
    (side < 0 ? at : width - at) > textWidth(text, 12) + 22);
  put.label(group, "look", fits.slice(0, 1), ([text, x, side, y]) =>
    [text, x + side * 16, y, `small halo${side < 0 ? " end" : ""}`]);
}

function drawStageWords(group, look, plan, page) {
  const { lit } = look, rows = [["read", plan.read], ["written", plan.written]]
    .flatMap(([name, places]) => (places ?? []).map((place, i) =>
      ({ key: `${name} ${i}`, name, i, word: look[name][i], place })));
  const isLit = ({ name, i }) => name === "read" && i === lit?.j;
  const last = ({ name, i }) => name === "written" && i === look.written.length - 1;
  const arrives = (one) => (last(one) && one.i + 1 === page.arrived ? " arrives" : "");
  const says = ({ name, word, i }) => name === "written" ? `written: “${word}”` :
    lit ? `“${word}” gets ${lit.shares[i].toFixed(2)} of the attention` : `read: “${word}”`;
  put.rect(group, "boxes", rows, (one) => ({
    ...one.place, rx: 8, ...told(says(one), isLit(one) ? "lit" : ""),
    class: `box${isLit(one) || last(one) ? " marked" : ""}${arrives(one)}` }));
  put.label(group, "words", rows, (one) => [
    fitted(one.word, one.place.width - 8, 16), one.place.x + one.place.width / 2,
    one.place.y + 22.5, `middle size-16${isLit(one) || last(one) ? " strong" : ""}${arrives(one)}`,
    { fill: isLit(one) || last(one) ? null : "var(--soft)" }]);
  const second = look.translates ? "it has written" : "read and written";
  const names = [["it reads", plan.read], [second, plan.written]]
    .filter(([, places]) => places?.length);
  put.text(group, "names", names, ([text, [first]]) =>
    [text, 0, text === "it reads" ? first.y - 6 : first.y + first.height + 13, "small halo"],
  ([text]) => text);
}

// The next word, large, with its share as a bar; a click writes it.
function drawNextWord(group, look, { answer }, page) {
  const { next, written, most, full } = look, { x, y, width, height } = answer;
  const more = written.length < full, wide = Math.min(textWidth(next.word, STAGE.large, 600),
    width - STAGE.unit - 120);
  const words = `the next word is “${next.word}”: ${next.share.toFixed(3)}`;
  const write = () => page.set({ written: written.length - (full - most) + 1 });
  put.rect(group, "box", [next], () => ({
    class: "box marked", x, y, width, height, rx: 12,
    ...(more ? choosable(`${words}; write it`, false, write, "lit") : told(words, "lit")) }),
  () => "box");
  put.label(group, "word", [next], () =>
    [fitted(next.word, wide + 1, STAGE.large, 600), x + 18, y + 41, "answer"], () => "word");
  put.rect(group, "bar", [next], () => ({
    x: x + wide + 34, y: y + 21, height: 20, rx: 3, width: Math.max(2, next.share * STAGE.unit),
    fill: "var(--value)" }), () => "bar");
  put.label(group, "percent", [next], () => [
    percent(next.share), x + wide + 42 + next.share * STAGE.unit, y + 38, "size-20"],
  () => "percent");
}
