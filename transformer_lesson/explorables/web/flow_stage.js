// The whole model at a glance: words in, encoder, decoder, and the word that comes next.

import { choosable, fitted, layer, pen, put, textLines, textWidth, told } from "./draw.js";
import { putStrips } from "./flow_attention.js";
import { streamBehind } from "./flow_pass.js";
import { remembered } from "./frame.js";
import { firstLargest } from "./ranking.js";
import { Tensor } from "./transformer.js";

const STAGE = { word: 34, answer: 80, unit: 88, large: 28, blocks: 3 };

// A share with two digits.
export const percent = (share) => share > 0.995 ? ">\u00a099\u00a0%" : share < 1e-5 ?
  "<\u00a00.001\u00a0%" :
  `${Number((100 * share).toPrecision(2))}\u00a0%`;

// The weights of an attention in the mean over its heads: a row for each query.
export function meanWeights({ byName }, key) {
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
  drawStacks(layer(group, "stacks"), look, plan, page);
  if (look.writes) drawRibbons(layer(group, "ribbons"), look, plan);
  drawVectorsOf(layer(group, "vectors"), look, plan, page);
  if (look.writes) drawNextWord(layer(group, "answer"), look, plan, page);
  drawStageWords(layer(group, "words"), look, plan, page);
  return plan.height;
}

// The layout: encoder beside decoder, or above it if there is no room; below the decoder the next
// word. There is room for all that the model will write.
function stagePlan(look, width) {
  const { translates, writes, whole, chips: read, written } = look, wide = width >= 700;
  const both = translates && writes, beside = both && wide, plan = { beside };
  const needs = (words) => words.reduce((sum, word) => sum + chipWidth(word) + GAP, MARGIN);
  const free = Math.max(0, width - 20 - needs(read) - needs(whole)) / 2;
  const left = beside ? Math.max(0.4 * width, Math.min(0.55 * width, needs(read) + free)) : width;
  if (translates || !writes) {
    plan.read = stackPlan(look, read, { lane: "read", x: 0, y: 20, width: left, wide,
      name: "Encoder", does: "every word looks at all the others" });
  }
  if (!writes) return withStrips({ ...plan, height: plan.read.bottom + 4 }, look);
  const x = beside ? left + 20 : 0, y = both && !beside ? plan.read.bottom + 84 : 20;
  plan.written = stackPlan(look, whole, { lane: "written", x, y, width: width - x, wide,
    name: "Decoder", does: translates ? "looks back, and at the sentence" : "looks back" });
  const { xs, bottom } = plan.written, own = plan.own = xs[written.length - 1];
  const high = Math.max(...whole.map((word) => textWidth(word, STAGE.large, 600)));
  const most = Math.min(width - x, Math.max(250, high + STAGE.unit + 120));
  plan.answer = { x: Math.max(x, Math.min(width - most, own - most / 2)), y: bottom + 22,
    width: most, height: STAGE.answer };
  return withStrips({ ...plan, width, height: bottom + 22 + STAGE.answer + 4 }, look);
}

// How wide a word's strip is, and how many of its numbers fit, each at least 1.5 pixels wide.
function withStrips(plan, { n: { d } }) {
  const gaps = [plan.read, plan.written].flatMap((stack) =>
    stack?.xs.slice(1).map((x, i) => x - stack.xs[i]) ?? []);
  const side = Math.max(6, Math.min(ROW_STRIP.most, ...gaps.map((gap) => gap - 6)));
  return { ...plan, side, n: Math.min(d, side < 24 ? Math.floor(side / 1.5) : 16) };
}

const MARGIN = 60, GAP = 3, chipWidth = (word) => textWidth(word, 14, 600) + 6;

// A row of words and below it the blocks that they pass: each with the height where its words look
// at each other, where they look at the source, and where each thinks by itself.
function stackPlan({ sublayers, ...look }, words, { lane, x, y, width, wide, ...stack }) {
  const [high, margin] = { read: [[60, 58], [72, MARGIN]],
    written: [[100, 58], [114, MARGIN]] }[lane][+wide];
  const room = { x: x + margin, y, width: width - margin }, sizes = words.map(chipWidth);
  const { bottom } = inOrder(sizes, room), now = sizes.slice(0, look[lane].length + 1);
  const free = (room.width - now.reduce((a, b) => a + b + GAP, -GAP)) / now.length;
  const more = Math.max(0, Math.min(28, free)), gap = GAP + Math.max(0, free - more);
  const { places, xs } = inOrder(now.map((size) => size + more), { ...room, gap });
  const own = sublayers.filter((one) => one.lane === lane && one.block !== null), top = bottom + 12;
  const numbers = [...new Set(own.map(({ block }) => block))], shown = numbers.slice(-STAGE.blocks);
  const tall = shown.length > 2 ? (high * 2) / shown.length : high, crosses = lane === "written";
  const blocks = shown.map((block, i) => {
    const from = top + 16 + tall * i, at = (share) => from + tall * share;
    const looked = at(crosses ? 0.36 : 0.5), cross = at(0.56);
    return { block, y: from, height: tall, fan: [from, looked], cross, reads: cross, keys: looked,
      thinks: at(0.78), key: `${lane} ${block}`, rows: { self_attention: looked + ROW_STRIP.high,
        cross_attention: cross + ROW_STRIP.high + 4,
        feed_forward: from + tall - ROW_STRIP.high - 2 },
      looks: own.find((one) => one.block === block && one.kind === "self_attention") };
  });
  return { ...stack, lane, x, width, y: top, places, blocks, n: numbers.length, height: 18 +
    tall * shown.length, bottom: top + 18 + tall * shown.length, margin, xs };
}

// Words side by side, or, where they are too wide for that, in two to four rows by turns: from left
// to right they are in their order, and each has a place of its own for the line below it.
function inOrder(sizes, { x, y, width, gap = GAP }) {
  const n = sizes.length, high = STAGE.word, all = sizes.reduce((a, b) => a + b + gap, -gap);
  const most = all <= width + 1 ? width : width / 3;
  const wides = sizes.map((size) => Math.min(size, most));
  const step = (width - (wides[0] + wides.at(-1)) / 2) / Math.max(1, n - 1);
  const fits = (rows) => wides.every((wide, i) =>
    (wide + (wides[i + rows] ?? 0)) / 2 <= rows * step - gap);
  const rows = all <= width + 1 ? 1 : [2, 3].find(fits) ?? 4;
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
  put.label(group, "names", all, ({ name, x, places: [first] }) =>
    [name, x, first.y + 22, "strong size-12"], "lane");
  const blocks = all.flatMap((stack) => stack.blocks.map((block) => ({ ...stack, ...block })));
  const rows = blocks.flatMap(({ lane, fan, thinks, y, height, ...one }) => {
    const writes = lane === "written", half = writes && look.lit ? thinks - 8 : fan[1];
    return [[writes ? "looks back" : "looks", ...fan, writes ? 4 : 3, y + (writes ? 36 : 24)],
      ...(half > fan[1] ? [["reads", fan[1], half, 5, one.cross - 9]] : []),
      ["thinks", half, y + height, writes ? 6 : 3, thinks + 4]].map(([does, from, to, stop, at]) =>
      ({ ...one, key: `${one.key} ${does}`, part: `${one.key} ${does.slice(0, 6).trim()}`, does,
        from, to, stop, at }));
  });
  drawBeat(layer(group, "beat"), look, rows, blocks);
  put.rect(group, "rows", rows, ({ x, width, from, to, name, block, does, stop }) => ({
    x: x + 4, y: from + 1, width: width - 8, height: to - from - 2, rx: 8, class: "bar-place",
    ...choosable(`${name}, block ${block} ${does}: open it`, false, () =>
      page.set({ stop, block: stop === 6 ? null : block })) }), "key");
  put.label(group, "blocks", blocks, ({ margin, block, x, y, height }) =>
    [`block ${block}`, x + 8, y + (margin < MARGIN ? height * 0.5 : 7) + 4, "small"], "key");
  put.label(group, "steps", rows.filter(({ margin }) => margin >= MARGIN), ({ does, x, at }) =>
    [does, x + 8, at, "small"], "key");
  const lanes = all.flatMap(({ places, bottom, lane }) => places.slice(0, look[lane].length)
    .map((place) => `M${place.x + place.width / 2} ${place.y + place.height}V${bottom}`));
  put.path(group, "lanes", [lanes.join("")], (d) => ({ d, class: "axis", fill: "none" }));
  put.path(group, "fans", blocks.flatMap((block) => fanOf(look, block)));
  const isLit = (j) => j === look.lit.j && look.litSeen, out = look.seen("written null enters");
  put.circle(group, "outputs", look.lit ? plan.read.xs : [], (cx, j) => ({ cx, cy: plan.read.bottom,
    r: isLit(j) ? 6 : 4, stroke: "var(--line)",
    fill: `var(${isLit(j) ? "--value" : out ? "--soft" : "--paper"})` }));
}

const ROW_STRIP = { high: 7, most: 48, does: { embedding: "enters", self_attention: "looks",
  cross_attention: "reads", feed_forward: "thinks" } };

// The first numbers of each word's vector, as it enters and behind each sub-layer, where Play has
// computed it; else an empty place.
function drawVectorsOf(group, look, plan, page) {
  const { side, n } = plan, key = [page.model.get("text"), look.whole, look.written.length, n];
  const all = remembered(page, "strips", key, () => look.sublayers.flatMap((one) =>
    one.kind === "next" ? [] : look[one.lane].map((_, i) => ({ ...one, i, key: `${one.key} ${i}`,
      strip: new Tensor([1, n], streamBehind(look, one, i).slice(0, n)) }))));
  const shown = all.map(({ lane, block, kind, i, ...one }) => {
    const stack = plan[lane], at = stack?.blocks.find((each) => each.block === block);
    return { ...one, x: stack?.xs[i] - side / 2, y: (block === null ? stack.y + 8 :
      at?.rows[kind]) - ROW_STRIP.high / 2, fresh: lane === "written" && isNew(look, lane, i),
    seen: !isNew(look, lane, i) || look.seen(`${lane} ${block} ${ROW_STRIP.does[kind]}`) };
  }).filter(({ y }) => y >= 0);
  put.rect(group, "places", shown, ({ x, y, fresh }) => ({ x: x - 1, y: y - 1, width: side + 2,
    height: ROW_STRIP.high + 2, rx: 2, fill: "var(--paper)",
    stroke: `var(${fresh ? "--value" : "--line"})` }), "key");
  const seen = shown.filter((one) => one.seen);
  putStrips(group, "strips", seen.map(({ strip }) => strip), (k) => ({ x: seen[k].x, y: seen[k].y,
    width: side, height: ROW_STRIP.high }));
}

// During Play: the parts that have had their moment are tinted, the present one more; and where
// words look back, their keys and the query are dots.
function drawBeat(group, look, rows, blocks) {
  const glow = ({ part, key }) => look.isNow(part) || look.isNow(key.replace("looks back", "keys"));
  put.rect(group, "filled", rows, (one) => ({ x: one.x + 4, y: one.from + 1, rx: 6,
    width: one.width - 8, height: one.to - one.from - 2, fill: "var(--value)",
    opacity: look.beat === Infinity ? 0 : glow(one) ? 0.24 : 0.08 * look.seen(one.part) }), "key");
  const asks = blocks.filter(({ key, lane }) => lane === "written" &&
    (look.isNow(`${key} keys`) || look.isNow(`${key} looks`)));
  put.circle(group, "keys", asks.flatMap(({ key, xs, fan: [cy] }) => look.written.map((_, i) =>
    ({ key: `${key} ${i}`, cx: xs[i], cy, r: 5, fill: "var(--key)" }))));
  put.circle(group, "queries", asks, ({ xs, fan: [, cy] }) =>
    ({ cx: xs[look.written.length - 1], cy, r: 6, fill: "var(--query)" }), "key");
}

// Whether the pass shown computes this word: in the decoder the newest one, the others are known.
const isNew = (look, lane, i) => lane === "read" || i === look.written.length - 1;

// Lines from each key's lane to each query's, in four strengths of the mean over the heads.
function fanOf(look, { key, lane, looks, fan: [top, bottom], xs }) {
  if (!looks) return [];
  const strengths = ["", "", "", ""], middle = (top + bottom) / 2, seen = look.seen(`${key} looks`);
  meanWeights(look, looks.key).forEach((row, i) => row.forEach((share, j) => {
    if (share < 0.04 || (!seen && isNew(look, lane, i))) return;
    strengths[Math.min(3, Math.floor(4 * share))] +=
      `M${xs[j]} ${top}C${xs[j]} ${middle} ${xs[i]} ${middle} ${xs[i]} ${bottom}`;
  }));
  return strengths.map((d, k) => ({ key: `${key} ${k}`, d, ...pen("--key", 0.8 + 0.6 * k),
    "stroke-opacity": 0.25 + 0.2 * k, "data-fan": looks.key }));
}

// From each of the encoder's outputs a ribbon into the lane of the newest word, as strong as its
// attention, in every block, and from there on to the next word.
function drawRibbons(group, look, { read, written, own, answer, beside, width }) {
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
  const crossed = ({ key }) => look.seen(`${key} reads`);
  const weak = !lit ? [] : written.blocks.filter(crossed).flatMap((block) => lit.all[block.block]
    .map((share, j) => ({ ...block, key: `${block.key} ${j}`, j, share,
      now: look.isNow(`${block.key} reads`) }))
    .filter((one) => one.cross === crossing ? one.j !== lit.j && one.share > 0.005 :
      one.share > 0.08));
  put.path(group, "weak", weak, ({ j, share, cross, now }) => ({ class: "ribbon crossing",
    "stroke-width": 1 + 10 * share, "stroke-opacity": (now ? 0.3 : 0.15) + 0.3 * share,
    d: way(j, cross) }));
  const words = lit ? `the last written word looks most at “${look.read[lit.j]}”: ` +
    `${lit.share.toFixed(2)}, mean of ${lit.heads} heads` : "the last vector becomes the next word";
  const from = lit && read.xs[lit.j];
  const shown = !lit || look.litSeen, now = look.beats[look.beat] ?? {};
  const here = now.lane === "written" && written.blocks.find(({ block }) => block === now.block);
  const end = !look.pending ? answer.y : here ? here[now.does === "looks" ? "keys" : now.does] :
    written.y; // how far down the newest word has got
  const strong = 3 + 10 * (lit?.share ?? 0.6);
  put.path(group, "lit", [
    ...(look.seen("written null enters") ? [{ key: "own", "stroke-width": 4,
      d: `M${own} ${start}V${lit ? Math.min(end, crossing) : end}` }] : []),
    ...(lit && shown ? [{ key: "lane", "stroke-width": 2,
      d: `M${from} ${read.places[lit.j].y + 34}V${under}` }] : []),
    ...(shown && end >= crossing ? [{ key: "ribbon", "stroke-width": strong,
      d: lit ? `${way(lit.j)}V${end}` : `M${own} ${start}V${end}`,
      "stroke-linejoin": "round", ...told(words, "lit") }] : []),
  ], (one) => ({ class: "ribbon crossing", "stroke-opacity": 0.9, ...one }));
  put.circle(group, "meets", lit ? written.blocks : [], (one) => ({ cx: own, cy: one.cross,
    r: one.cross === crossing && shown ? 4 + strong / 2 : 5, stroke: "var(--value)",
    fill: `var(${crossed(one) ? "--value" : "--paper"})` }), "block");
  if (!lit) return;
  const near = from + 0.25 * (own - from), right = !beside && from + near < width;
  const at = right ? Math.max(from, near) + 20 : 0, fits = beside ? 90 : 60;
  const room = beside ? width : right ? width - at : Math.min(from, near) - 16;
  const [asks, asked] = [look.written.at(-1), look.read[lit.j]]
    .map((word) => fitted(word, fits, 14, 600));
  const texts = !shown ? [] : [
    [`${beside ? `After “${asks}” it` : `“${asks}”`} looks at “${asked}”: ${
      lit.share.toFixed(2)}`, "strong"],
    [`${beside ? "of its attention, for the next word; " : ""}mean of ${lit.heads} heads`, "small"]]
    .flatMap(([text, kind]) => textLines(text, room, 14, 600).map((line) => [line, kind]));
  put.label(group, "who", beside && look.who ? textLines(look.who, read.width, 12) : [],
    (text, i) => [text, 0, crossing + 84 + 17 * i, "small"]);
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
  const isLit = ({ lane, i }) => look.litSeen && lane === "read" && i === lit?.j;
  const last = ({ lane, i }) => lane === "written" && i === look.written.length - 1;
  const arrives = (one) => (last(one) && one.i + 1 === page.arrived ? " arrives" : "");
  const from = plan.written?.places[look.written.length - 1];
  if (from) { // where the newest word comes from
    page.svg.style.setProperty("--dx", `${plan.answer.x + 20 - from.x}px`);
    page.svg.style.setProperty("--dy", `${plan.answer.y + 10 - from.y}px`);
  }
  const says = ({ lane, word, i }) => lane === "written" ? `written: “${word}”` :
    !lit || !look.litSeen ? `read: “${word}”` :
      `“${word}” gets ${lit.shares[i].toFixed(2)} of the attention`;
  const strong = (one) => look.isNow(`${one.lane} null enters`) ? one.lane === "read" || last(one) :
    (last(one) && look.seen("written null enters")) || isLit(one);
  const now = look.written.length;
  put.path(group, "slot", plan.written?.places.slice(now, now + 1) ?? [],
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
  const { x, width, places: [first] } = plan.read ?? plan.written;
  const of = plan.beside ? `first ${plan.n} of a word's ${look.n.d}` : `${plan.n} of ${look.n.d}`;
  put.text(group, "key", [`strips: ${of} numbers`], (text) =>
    [text, x + width, first.y - 6, "small end"]);
}

// The next word, large, with its share as a bar; a click writes it. During Play it appears when the
// pulse has arrived.
function drawNextWord(group, look, { answer }, page) {
  const { next, written, full, best } = look, { x, y, width, height } = answer;
  const more = written.length < full, all = textWidth(next.word, STAGE.large, 600);
  const unit = Math.max(30, Math.min(STAGE.unit, width - 120 - all));
  const wide = Math.min(all, width - unit - 120);
  const words = look.pending ? "the next word is on its way" :
    `the next word is “${next.word}”: ${next.share.toFixed(3)}`;
  const write = () => page.set({ written: written.length - look.given + 1 });
  const shown = look.pending ? [] : [next], key = () => `${written.length}`;
  put.rect(group, "box", [next], () => ({
    class: `box${look.pending ? "" : " marked"}`, x, y, width, height, rx: 12,
    "stroke-dasharray": look.pending ? "5 4" : null,
    ...(more ? choosable(look.pending ? words : `${words}; write it`, false, write, "lit") :
      told(words, "lit")) }), () => "box");
  put.label(group, "word", shown, () => [fitted(next.word, wide + 1, STAGE.large, 600), x + 18,
    y + 36, "answer"], key);
  put.rect(group, "track", shown, () => ({ x: x + wide + 34, y: y + 16, height: 20, rx: 3,
    width: unit, fill: "none", stroke: "var(--soft)" }), key);
  put.rect(group, "bar", shown, () => ({ class: "grows",
    x: x + wide + 34, y: y + 16, height: 20, rx: 3, width: Math.max(2, next.share * unit),
    fill: "var(--value)" }), key);
  put.label(group, "percent", shown, () => [
    percent(next.share), x + wide + 42 + unit, y + 33, "size-20"], key);
  let at = x + 76;
  const rivals = look.pending || !more ? [] : best.slice(1, 3).filter(({ id }) =>
    mayGoOn(look, id)).map(({ id, word, share }) => {
    const text = `${fitted(word, 80, 12)} ${percent(share)}`, wide = textWidth(text, 12) + 16;
    at += wide + 6;
    return { id, word, text, wide, at: at - wide - 6 };
  }).filter((one) => one.at + one.wide < x + width - 8);
  put.label(group, "or", rivals.slice(0, 1), () => ["or go on", x + 18, y + 66, "small"], key);
  put.box(group, "rivals", rivals, ({ id, word, text, wide, at }) => ({ x: at, y: y + 49, rx: 8,
    width: wide, height: 25, word: text, font: "size-12",
    ...choosable(`go on with “${word}”`, false, () => page.set(goOnWith(look, id))) }), "id");
}

// What continues with this token in place of the likeliest one.
export const goOnWith = ({ output, written, given }, id) => ({ seed: 0, row: null,
  chosen: [...output.slice(0, written.length - given), id], written: written.length - given + 1 });

export const mayGoOn = ({ ends, written, given }, id) =>
  !ends.includes(id) && written.length - given < 12;
