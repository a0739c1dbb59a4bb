// The whole model at a glance: words in, encoder, decoder, and the word that comes next.

import { choosable, fitted, layer, pen, put, textLines, textWidth, told } from "./draw.js";
import { firstLargest } from "./ranking.js";

const STAGE = { word: 34, answer: 66, unit: 88, large: 28, blocks: 3 };

// A share with two digits.
export const percent = (share) => share > 0.995 ? "> 99 %" : share < 1e-5 ? "< 0.001 %" :
  `${Number((100 * share).toPrecision(2))} %`;

// The weights of an attention in the mean over its heads: a row for each query.
function meanWeights({ byName }, key) {
  const weights = byName.get(`${key}.weights`).value, [heads, queries] = weights.shape;
  const all = Array.from({ length: heads }, (_, h) => h * queries);
  return Array.from({ length: queries }, (_, i) => Array.from(weights.row(i),
    (_, j) => all.reduce((sum, from) => sum + weights.row(from + i)[j], 0) / heads));
}

// The source word that the last written word looks at most, in the mean over the heads of the last
// cross-attention: {j, share, shares, heads, all}, `all` by block, or null if the model has none.
export function litWord(flow) {
  const crossing = flow.sublayers.filter(({ kind }) => kind === "cross_attention");
  if (!crossing.length) return null;
  const all = crossing.map(({ key }) => meanWeights(flow, key).at(-1)), shares = all.at(-1);
  const { shape: [heads] } = flow.byName.get(`${crossing[0].key}.weights`).value;
  const j = firstLargest(shares);
  return { j, share: shares[j], shares, heads, all };
}

export function drawStage(group, look, page) {
  const plan = stagePlan(look, page.width);
  const until = (phase, kind) => ({ class: look.phase < phase ? kind : null });
  drawStacks(layer(group, "stacks", until(1, "waits")), look, plan, page);
  if (look.writes) drawRibbons(layer(group, "ribbons", until(2, "unseen")), look, plan, page);
  if (look.writes) drawNextWord(layer(group, "answer"), look, plan, page);
  drawStageWords(layer(group, "words"), look, plan, page);
  return plan.height;
}

// The layout: encoder beside decoder, or above it if there is no room; below the decoder the next
// word. There is room for all that the model will write.
function stagePlan(look, width) {
  const { translates, writes, whole, chips: read, written } = look, wide = width >= 700;
  const both = translates && writes, beside = both && wide, plan = { beside };
  const needs = (words) => words.reduce((sum, word) => sum + chipWidth(word) + 6, 72);
  const left = !beside ? width : Math.max(0.4 * width,
    Math.min(0.6 * width, (width - 28 + needs(read) - needs(whole)) / 2));
  if (translates || !writes) {
    plan.read = stackPlan(look, read, { lane: "read", x: 0, y: 20, width: left, wide,
      name: "Encoder", does: "every word looks at all the others" });
  }
  if (!writes) return { ...plan, height: plan.read.bottom + 4 };
  const x = beside ? left + 28 : 0, y = both && !beside ? plan.read.bottom + 84 : 20;
  plan.written = stackPlan(look, whole, { lane: "written", x, y, width: width - x, wide,
    name: "Decoder", does: translates ? "looks back, and at the sentence" : "looks back" });
  const { xs, bottom } = plan.written, own = plan.own = xs[written.length - 1];
  const high = Math.max(...whole.map((word) => textWidth(word, STAGE.large, 600)));
  const most = Math.min(width - x, Math.max(250, high + STAGE.unit + 120));
  plan.answer = { x: Math.max(x, Math.min(width - most, own - most / 2)), y: bottom + 22,
    width: most, height: STAGE.answer };
  return { ...plan, height: bottom + 22 + STAGE.answer + 4 };
}

const chipWidth = (word) => textWidth(word, 14, 600) + 16;

// A row of words and below it the blocks that they pass: each with the height where its words look
// at each other, where they look at the source, and where each thinks by itself.
function stackPlan({ sublayers }, words, { lane, x, y, width, wide, ...stack }) {
  const high = wide ? { read: 58, written: 112 }[lane] : { read: 50, written: 84 }[lane];
  const margin = wide ? 72 : 58, sizes = words.map(chipWidth);
  const free = width - margin - sizes.reduce((a, b) => a + b + 6, 0);
  const more = Math.max(0, Math.min(34, free / words.length));
  const { places, xs, bottom } = inOrder(sizes.map((size) => size + more),
    { x: x + margin, y, width: width - margin });
  const own = sublayers.filter((one) => one.lane === lane && one.block !== null), top = bottom + 12;
  const numbers = [...new Set(own.map(({ block }) => block))], shown = numbers.slice(-STAGE.blocks);
  const tall = shown.length > 2 ? (high * 2) / shown.length : high, crosses = lane === "written";
  const blocks = shown.map((block, i) => {
    const from = top + 8 + tall * i, at = (share) => from + tall * share;
    return { block, y: from, height: tall, fan: [from, at(crosses ? 0.45 : 0.66)], cross: at(0.66),
      thinks: at(0.84), key: `${lane} ${block}`,
      looks: own.find((one) => one.block === block && one.kind === "self_attention") };
  });
  return { ...stack, lane, x, width, y: top, places, blocks, n: numbers.length, height: 12 +
    tall * shown.length, bottom: top + 12 + tall * shown.length, margin, xs };
}

// Words side by side, or, where they are too wide for that, in two to four rows by turns: from left
// to right they are in their order, and each has a place of its own for the line below it.
function inOrder(sizes, { x, y, width, gap = 6 }) {
  const n = sizes.length, high = STAGE.word, all = sizes.reduce((a, b) => a + b + gap, -gap);
  const most = all <= width ? width : width / 3, wides = sizes.map((size) => Math.min(size, most));
  const step = (width - (wides[0] + wides.at(-1)) / 2) / Math.max(1, n - 1);
  const fits = (rows) => wides.every((wide, i) =>
    (wide + (wides[i + rows] ?? 0)) / 2 <= rows * step - gap);
  const rows = all <= width ? 1 : [2, 3].find(fits) ?? 4;
  let left = x;
  const places = wides.map((wide, i) => {
    const own = rows === 4 ? Math.min(wide, 4 * step - gap) : wide;
    const from = rows > 1 ? x + wides[0] / 2 + step * i - own / 2 : left;
    left += wide + gap;
    return { x: from, y: y + (i % rows) * (high + gap), width: own, height: high };
  });
  return { places, xs: places.map((place) => place.x + place.width / 2),
    bottom: y + Math.min(n, rows) * (high + gap) - gap };
}

// Encoder and decoder with their blocks: thin lines from word to word, as strong as the attention;
// a click on a part opens it.
function drawStacks(group, look, plan, page) {
  const all = [plan.read, plan.written].filter(Boolean);
  put.rect(group, "shapes", all, ({ name, n, does, x, y, width, height }) => ({
    x, y, width, height, rx: 14, class: "box", ...told(`${name}, ${n} blocks: ${does}`) }), "lane");
  put.label(group, "names", all, ({ name, x, places: [first], margin }) =>
    [name, x, first.y + 22, `strong${margin < 70 ? " size-12" : " size-13"}`], "lane");
  const blocks = all.flatMap((stack) => stack.blocks.map((block) => ({ ...stack, ...block })));
  const rows = blocks.flatMap(({ lane, fan, thinks, y, height, ...one }) => {
    const writes = lane === "written", half = writes && look.lit ? thinks - 8 : fan[1];
    return [[writes ? "looks back" : "looks", ...fan, writes ? 4 : 3, y + (writes ? 36 : 24)],
      ...(half > fan[1] ? [["reads", fan[1], half, 5, fan[1] + 14]] : []),
      ["thinks", half, y + height, writes ? 6 : 3, thinks + 4]].map(([does, from, to, stop, at]) =>
      ({ ...one, key: `${one.key} ${does}`, does, from, to, stop, at }));
  });
  put.rect(group, "rows", rows, ({ x, width, from, to, name, block, does, stop }) => ({
    x: x + 4, y: from + 1, width: width - 8, height: to - from - 2, rx: 8, class: "bar-place",
    ...choosable(`${name}, block ${block} ${does}: open it`, false, () =>
      page.set({ stop, block: stop === 6 ? null : block })) }), "key");
  put.label(group, "blocks", blocks, ({ margin, block, x, y, height }) =>
    [`block ${block}`, x + 8, y + (margin < 70 ? height * 0.5 : 7) + 4, "small"], "key");
  put.label(group, "steps", rows.filter(({ margin }) => margin >= 70), ({ does, x, at }) =>
    [does, x + 8, at, "small"], "key");
  const lanes = all.flatMap(({ places, bottom, lane }) => places.slice(0, look[lane].length)
    .map((place) => `M${place.x + place.width / 2} ${place.y + place.height}V${bottom}`));
  put.path(group, "lanes", [lanes.join("")], (d) => ({ d, class: "axis", fill: "none" }));
  put.path(group, "fans", blocks.flatMap((block) => fanOf(look, block)));
  put.circle(group, "outputs", look.lit ? plan.read.xs : [], (cx, j) => ({ cx, cy: plan.read.bottom,
    r: j === look.lit.j ? 6 : 4, fill: `var(${j === look.lit.j ? "--value" : "--soft"})` }));
  put.rect(group, "thinks", blocks.flatMap(({ key, thinks, xs, lane }) => look[lane].map((_, i) =>
    ({ key: `${key} ${i}`, x: xs[i] - 9, y: thinks - 4, width: 18, height: 8, rx: 3,
      fill: "var(--hidden)" }))));
}

// Lines from each key's lane to each query's, in four strengths of the mean over the heads.
function fanOf(look, { key, looks, fan: [top, bottom], xs }) {
  if (!looks) return [];
  const strengths = ["", "", "", ""], middle = (top + bottom) / 2;
  meanWeights(look, looks.key).forEach((row, i) => row.forEach((share, j) => {
    if (share < 0.04) return;
    strengths[Math.min(3, Math.floor(4 * share))] +=
      `M${xs[j]} ${top}C${xs[j]} ${middle} ${xs[i]} ${middle} ${xs[i]} ${bottom}`;
  }));
  return strengths.map((d, k) => ({ key: `${key} ${k}`, d, ...pen("--key", 0.8 + 0.6 * k),
    "stroke-opacity": 0.25 + 0.2 * k, "data-fan": looks.key }));
}

// From each of the encoder's outputs a ribbon into the lane of the newest word, as strong as its
// attention, in every block, and from there on to the next word.
function drawRibbons(group, look, { read, written, own, answer, beside }, page) {
  const { lit } = look, last = written.blocks.at(-1), under = read?.bottom ?? 0;
  const place = written.places[look.written.length - 1], start = place.y + place.height;
  const crossing = lit ? last.cross : last.fan[1], gap = beside ? read.x + read.width + 14 : 0;
  const way = (j, to = crossing) => {
    const from = read.xs[j], middle = (under + to) / 2;
    if (!beside) return `M${from} ${under}C${from} ${middle} ${own} ${middle} ${own} ${to}`;
    if (to > under + 20) return `M${from} ${under}C${from} ${to} ${from + 50} ${to} ${
      Math.max(from + 60, own - 90)} ${to}H${own}`;
    return `M${from} ${under}C${from} ${under + 30} ${gap - 20} ${under + 30} ${gap} ${middle}C${
      gap + 14} ${to} ${gap + 14} ${to} ${gap + 40} ${to}H${own}`;
  };
  const weak = !lit ? [] : written.blocks.flatMap(({ block, cross }) => lit.all[block]
    .map((share, j) => ({ key: `${block} ${j}`, j, share, cross }))
    .filter((one) => cross === crossing ? one.j !== lit.j && one.share > 0.005 : one.share > 0.08));
  put.path(group, "weak", weak, ({ j, share, cross, key }) => ({ key, class: "ribbon crossing",
    "stroke-width": 1 + 10 * share, "stroke-opacity": 0.15 + 0.3 * share, d: way(j, cross) }));
  const on = `V${answer.y}`, strong = 3 + 10 * (lit?.share ?? 0.6);
  const d = lit ? `${way(lit.j)}${on}` : `M${own} ${start}${on}`;
  const words = lit ? `the last written word looks most at “${look.read[lit.j]}”: ` +
    `${lit.share.toFixed(2)}, mean of ${lit.heads} heads` : "the last vector becomes the next word";
  const from = lit && read.xs[lit.j];
  put.path(group, "lit", [
    { key: "lane", d: lit && `M${from} ${read.places[lit.j].y + 34}V${under}`, "stroke-width": 2 },
    { key: "own", d: `M${own} ${start}V${crossing}`, "stroke-width": 4 },
    { key: "ribbon", d, "stroke-width": strong, "stroke-linejoin": "round", ...told(words, "lit") },
  ], (one) => ({ class: "ribbon crossing", "stroke-opacity": 0.9, ...one }));
  put.circle(group, "meets", lit ? written.blocks : [], ({ cross }) => ({ cx: own, cy: cross,
    r: cross === crossing ? 4 + strong / 2 : 5, fill: "var(--value)" }), "block");
  put.path(group, "pulse", look.phase === 2 ? [page.pulsed] : [], () =>
    ({ d, class: "pulse still", pathLength: 100, ...pen("--paper", 6, "14 200") }), String);
  if (!lit) return;
  const near = from + 0.25 * (own - from), right = !beside && from + near < page.width;
  const at = right ? Math.max(from, near) + 20 : 0, fits = beside ? 90 : 44;
  const room = beside ? page.width : right ? page.width - at : Math.min(from, near) - 16;
  const texts = [[`“${fitted(look.written.at(-1), fits, 13, 600)}” looks at “${
    fitted(look.read[lit.j], fits, 13, 600)}”: ${lit.share.toFixed(2)}`, "size-13 strong"],
  [`${beside ? "of its attention, " : ""}mean of ${lit.heads} heads`, "small"]]
    .flatMap(([text, kind]) => textLines(text, room, 13, 600).map((line) => [line, kind]));
  put.label(group, "look", texts, ([text, kind], i) =>
    [text, at, (beside ? crossing + 42 : under + 26) + 17 * i, `halo ${kind}`]);
}

// What stands below a word in its chip.
const MEANS = { "<bos>": "start", "<eos>": "end" };

function drawStageWords(group, look, plan, page) {
  const { lit } = look, rows = [plan.read, plan.written].filter(Boolean)
    .flatMap(({ lane, places }) => look[lane].map((word, i) => {
      const struck = lane === "read" && look.struck(i);
      return { key: `${lane} ${i}`, lane, i, word: struck ? look.chips[i] : word, struck,
        place: places[i], below: struck ? word : MEANS[word] };
    }));
  const isLit = ({ lane, i }) => lane === "read" && i === lit?.j;
  const last = ({ lane, i }) => lane === "written" && i === look.written.length - 1;
  const arrives = (one) => (last(one) && one.i + 1 === page.arrived ? " arrives" : "");
  const from = plan.written?.places[look.written.length - 1];
  if (from) { // where the newest word comes from
    page.svg.style.setProperty("--dx", `${plan.answer.x + 20 - from.x}px`);
    page.svg.style.setProperty("--dy", `${plan.answer.y + 10 - from.y}px`);
  }
  const says = ({ lane, word, i }) => lane === "written" ? `written: “${word}”` :
    lit ? `“${word}” gets ${lit.shares[i].toFixed(2)} of the attention` : `read: “${word}”`;
  const strong = (one) => !look.phase || last(one) || (look.phase > 1 && isLit(one));
  const now = look.written.length, slots = plan.beside ? undefined : now + 1;
  put.path(group, "slot", plan.written?.places.slice(now, slots) ?? [],
    ({ x, y, width, height }) => ({ d: `M${x} ${y}h${width}v${height}h${-width}z`,
      ...pen("--line", 1.5, "4 4") }));
  put.rect(group, "boxes", rows, (one) => ({
    ...one.place, rx: 8, ...told(says(one), isLit(one) ? "lit" : ""),
    class: `box${strong(one) ? " marked" : ""}${arrives(one)}` }));
  put.label(group, "words", rows, (one) => [
    fitted(one.word, one.place.width - 6, 14, 600), one.place.x + one.place.width / 2,
    one.place.y + (one.below ? 16 : 22), `middle${strong(one) ? " strong" : ""}${arrives(one)}${
      one.struck ? " struck" : ""}`, { fill: strong(one) ? null : "var(--soft)" }]);
  put.label(group, "below", rows.filter(({ below }) => below), ({ below, place }) =>
    [below, place.x + place.width / 2, place.y + 29, "small middle"]);
  const names = [["it reads", plan.read],
    [look.translates ? "it has written" : "read and written", plan.written]]
    .filter(([, stack]) => stack);
  put.text(group, "names", names, ([text, { places: [first] }]) =>
    [text, first.x, first.y - 6, "small halo"], ([text]) => text);
}

// The next word, large, with its share as a bar; a click writes it. During Play it appears when the
// pulse has arrived.
function drawNextWord(group, look, { answer }, page) {
  const { next, written, most, full, logits } = look, { x, y, width, height } = answer;
  const more = written.length < full, all = textWidth(next.word, STAGE.large, 600);
  const unit = Math.max(30, Math.min(STAGE.unit, width - 120 - all));
  const wide = Math.min(all, width - unit - 120);
  const words = look.pending ? "the next word is on its way" :
    `the next word is “${next.word}”: ${next.share.toFixed(3)}`;
  const write = () => page.set({ written: written.length - (full - most) + 1 });
  const shown = look.pending ? [] : [next], key = () => `${written.length}`;
  put.rect(group, "box", [next], () => ({
    class: "box marked", x, y, width, height, rx: 12,
    ...(more ? choosable(look.pending ? words : `${words}; write it`, false, write, "lit") :
      told(words, "lit")) }), () => "box");
  put.label(group, "word", shown, () => [fitted(next.word, wide + 1, STAGE.large, 600), x + 18,
    y + 36, "answer"], key);
  put.rect(group, "bar", shown, () => ({ class: "grows",
    x: x + wide + 34, y: y + 16, height: 20, rx: 3, width: Math.max(2, next.share * unit),
    fill: "var(--value)" }), key);
  put.label(group, "percent", shown, () => [
    percent(next.share), x + wide + 42 + next.share * unit, y + 33, "size-20"], key);
  const others = `${logits.length - 1} others share ${percent(1 - next.share)}`;
  put.label(group, "others", shown, () =>
    [fitted(`for “${next.word}”; ${others}`, width - 30, 12), x + 18, y + 56, "small"], key);
}
