// A softmax in one pass: a query's scores come block by block. It keeps the largest so far and two
// sums, both of which shrink by the same factor when a larger score comes.

import { choosable, countOf, element, fixed, grid, layer, pen, put, set,
  told } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";

export function OnlineSoftmax(view) {
  const { model } = view;
  const ends = () => [0, Math.ceil(model.get("scores").length / model.get("block"))];
  return frame(view, {
    name: "Online softmax",
    traits: ["scores", "carried", "block", "step", "key", "shrinks"],
    controls: (make, page) => [
      make.choice("Keys in a block", "block", [1, 2, 3, 4, 8]),
      make.slider("Blocks read", "step", ends),
      make.play("step", ends, 1100),
      scoreSlider(page),
      make.toggle("shrink", "shrinks")],
    draw: drawOnlineSoftmax });
}

const chosenKey = ({ scores, key }) => Math.min(key, scores.length - 1);

function scoreSlider(page) {
  const { model } = page, input = element("input", { type: "range", autocomplete: "off" });
  const label = element("span"), output = element("output");
  const now = () => ({ scores: model.get("scores"), key: model.get("key") });
  input.oninput = () => {
    const { scores } = now(), key = chosenKey(now());
    page.set({ scores: scores.map((one, i) => (i === key ? Number(input.value) : one)) });
  };
  page.updates.push(() => {
    const key = chosenKey(now()), score = now().scores[key];
    set(label, { text: `Score of key ${key + 1}` });
    set(input, { min: -10, max: 10, step: 1, "aria-valuetext": score });
    if (Number(input.value) !== score) input.value = score;
    set(output, { text: signedScore(score) });
  });
  return element("label", {}, label, input, output);
}

const signedScore = (score) => String(score).replace("-", "−");

// The state after each block, starting with the empty one: the state before it, the factor by which
// that shrinks, what the block adds, and the new maximum m and sums l and o.
function onlineStates({ scores, carried, block, shrinks }) {
  const states = [{ m: -Infinity, l: 0, o: 0, end: 0 }];
  for (let start = 0; start < scores.length; start += block) {
    const before = states.at(-1), end = Math.min(start + block, scores.length);
    const m = Math.max(before.m, ...scores.slice(start, end));
    const factor = shrinks || !start ? Math.exp(before.m - m) : 1;
    const weights = scores.slice(start, end).map((score) => Math.exp(score - m));
    const added = weights.reduce((a, b) => a + b);
    const brought = weights.reduce((sum, weight, i) => sum + weight * carried[start + i], 0);
    states.push({ m, l: before.l * factor + added, o: before.o * factor + brought, start, end,
      before, factor, added, brought, larger: start > 0 && m > before.m });
  }
  return states;
}

function softmaxAtOnce(scores, carried, end) {
  const top = Math.max(...scores.slice(0, end));
  const powers = scores.slice(0, end).map((score) => Math.exp(score - top));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.reduce((sum, power, i) => sum + power * carried[i], 0) / total;
}

function drawOnlineSoftmax(state, page) {
  const { scores, carried, block } = state, states = onlineStates(state);
  if (scores.length < 2 || scores.length !== carried.length) {
    return `There are ${scores.length} scores, and ${carried.length} keys: give each key one.`;
  }
  const step = Math.min(state.step, states.length - 1), now = states[step];
  const all = { ...state, states, step, now, key: chosenKey(state),
    shrinking: states.filter(({ larger }) => larger).length, blocks: states.length - 1,
    once: now.end ? softmaxAtOnce(scores, carried, now.end) : null,
    whole: softmaxAtOnce(scores, carried, scores.length), block };
  const { svg, width } = page, beside = width >= 700;
  const wide = beside ? Math.min(0.54 * width, 620) : width;
  const place = { left: 22, wide, cell: (wide - 22) / scores.length, tall: 118, top: 122 };
  drawScores(layer(svg, "scores"), all, place, page);
  drawPowers(layer(svg, "powers"), all, place);
  const table = { x: beside ? wide + 34 : 0, y: beside ? 6 : place.top + place.tall + 26,
    wide: beside ? Math.min(width - wide - 34, 430) : width };
  const low = drawLedger(layer(svg, "ledger"), all, table);
  return { ...onlineFacts(all), height: Math.max(low, place.top + place.tall + 10) };
}

// The scores as buttons, with what their keys carry, grouped into blocks.
function drawScores(group, { scores, carried, block, now, key, states }, place, page) {
  const { left, cell } = place, x = (i) => left + i * cell, small = cell < 34;
  put.rect(group, "blocks", states.slice(1), (one, i) => ({
    x: x(one.start) + 2, y: 18, width: x(one.end) - x(one.start) - 4, height: 62, rx: 7,
    fill: one === now ? "var(--none)" : "transparent", "stroke-width": one === now ? 2.5 : 1,
    stroke: one === now ? "var(--key)" : "var(--line)", opacity: one.end <= now.end ? 1 : 0.6,
    ...told(onlineBlockWords(one, i, now), `block${i}`) }), "start");
  const names = block === 1 ? [] : states.slice(1);
  put.label(group, "names", names, (one, i) => [
    x(one.end) - x(one.start) < 54 ? i + 1 : `block ${i + 1}`, (x(one.start) + x(one.end)) / 2, 12,
    "small middle"], "start");
  const read = (i) => i < now.end;
  put.rect(group, "boxes", scores, (score, i) => ({
    x: x(i) + cell * 0.12, y: 24, width: cell * 0.76, height: 26, rx: 6, class: "box",
    opacity: read(i) ? 1 : 0.6,
    ...choosable(`key ${i + 1}: score ${signedScore(score)}, carries ${carried[i]}` +
      (read(i) ? "" : ", not read yet"), i === key, () => page.set({ key: i }), `key${i}`) }));
  const words = (name, text, y, style) =>
    put.label(group, name, scores, (one, i) =>
      [text(one, i), x(i) + cell / 2, y, `middle ${style}`]);
  words("numbers", signedScore, 42, small ? "size-13 strong" : "strong");
  words("carried", (_, i) => carried[i], 70, "small");
  put.label(group, "heads", [["s", 42], ["v", 70]], ([text, y]) =>
    [text, 2, y, "small strong"], ([text]) => text);
}

function onlineBlockWords({ start, end, larger, factor }, i, now) {
  const keys = end - start === 1 ? `key ${end}` : `keys ${start + 1} to ${end}`;
  if (end > now.end) return `block ${i + 1}, ${keys}: not read yet`;
  const what = larger ? `its larger score shrinks the sums by ${fixed(factor, 3)}` :
    start ? "no score is larger than before" : "nothing was summed before";
  return `block ${i + 1}, ${keys}: ${what}`;
}

// How much each key read so far counts in the sums; dashed, how much before this block.
function drawPowers(group, { scores, states, step, now, shrinks }, place) {
  const { left, cell, tall, top, wide } = place, up = (power) => top + tall * (1 - power);
  grid(group, { left, right: wide }, up, [0, 1]);
  const means = wide < 400 ? "" : "what each score counts in the sums: ";
  const heading = `${means}e to the power of s − m`;
  put.label(group, "heading", [[heading, left, top - 26, "small"]]);
  const counted = (until) => scores.slice(0, states[until]?.end ?? 0).map((score, i) => {
    const own = states.find(({ end }) => i < end).m;
    return { i, power: Math.exp(score - (shrinks ? states[until].m : own)) };
  });
  const bars = counted(step), before = now.larger && shrinks ? counted(step - 1) : [];
  const box = ({ i, power }) => ({ x: left + (i + 0.2) * cell, width: 0.6 * cell,
    y: up(power), height: Math.max(0.5, tall * power) });
  put.rect(group, "bars", bars, (one) => ({
    ...box(one), fill: one.i >= now.start ? "var(--query)" : "var(--key)",
    ...told(`key ${one.i + 1} counts ${fixed(one.power, 3)}`, `key${one.i}`) }), "i");
  put.rect(group, "before", before, (one) => ({ ...box(one), ...pen("--key", 1, "4 3") }), "i");
  put.label(group, "numbers", bars, ({ i, power }) => [
    fixed(power, 2), left + (i + 0.5) * cell, up(power) - 5,
    cell < 34 ? "middle size-10 halo" : "middle number halo"], "i");
}

// What is kept: before the block, the factor, what the block adds, and now; below it the output.
function drawLedger(group, { states, step, now, once, whole, scores }, { x, y, wide }) {
  const columns = [0.2, 0.46, 0.7, 1].map((part) => x + part * wide), old = now.before;
  const kept = (name, digits) => {
    const value = (one) => (one ? fixed(one[name], digits) : "");
    return [value(old?.end ? old : null), old?.end ? `× ${fixed(now.factor, 3)}` : "",
      step ? `+ ${fixed(name === "l" ? now.added : now.brought, digits)}` : "", value(now)];
  };
  const largest = [old?.end ? signedScore(old.m) : "", "", "", step ? signedScore(now.m) : "−∞"];
  const rows = [["", "before", "shrinks", "block", "now"], ["m", ...largest],
    ["ℓ", ...kept("l", 3)], ["o", ...kept("o", 2)]];
  const texts = rows.flatMap((row, k) =>
    row.map((text, n) => ({ k, n, text, at: y + 10 + 25 * k })));
  const said = (k) => `${["largest score m", "sum ℓ", "weighted sum o"][k - 1]}: ` +
    rows[k].slice(1).filter(Boolean).join(" ").replace(/ (?=[^ ]*$)/, " = ");
  put.text(group, "texts", texts, ({ k, n, text, at }) => ({
    text, y: at, x: n ? columns[n - 1] : x, class: ledgerStyle(k, n),
    ...(k && n === 4 ? told(step ? said(k) : `${said(k)}, nothing is read`) :
      { "aria-hidden": "true" }) }), ({ k, n }) => `${k}.${n}`);
  const part = now.end < scores.length ? `softmax of these ${now.end} keys at once` :
    "softmax of all keys at once";
  const out = !step ? [] : [["o / ℓ, from what is kept", now.o / now.l],
    [part, once], ...(now.end < scores.length ? [["of all keys, in the end", whole]] : [])];
  const low = y + 10 + 25 * 4 + 8;
  put.path(group, "lines", [y + 17, low - 18], (at) =>
    ({ d: `M${x} ${at}H${x + wide}`, class: "axis" }));
  put.label(group, "names", out, ([text], i) =>
    [text, x, low + 25 * i, i ? "size-13" : "size-13 strong"]);
  put.text(group, "outputs", out, ([text, value], i) => [
    fixed(value, 2), x + wide, low + 25 * i, i ? "end" : "end strong",
    told(`${text}: ${fixed(value, 2)}`)]);
  return low + 25 * 2 + 12;
}

function ledgerStyle(row, column) {
  if (!row) return column ? "small end" : "small";
  return `size-13 ${column ? "end" : "strong"}${column === 4 ? " strong" : ""}`;
}

function onlineFacts({ step, now, once, shrinking, blocks, block, scores, shrinks }) {
  const out = step ? fixed(now.o / now.l, 2) : "", wanted = step ? fixed(once, 2) : "";
  const first = { title: "Nothing is read yet: no largest score, and both sums are 0" };
  const right = now.larger
    ? `Block ${step} has a larger score: the sums shrink to ${fixed(now.factor, 3)} of themselves`
    : `Block ${step} has no larger score: nothing shrinks`;
  const wrong = `Without shrinking ${out} comes out, and it should be ${wanted}`;
  const begun = step === 1 ? "The first block: nothing was summed before" : right;
  const title = !step ? first.title : !shrinks && out !== wanted ? wrong : begun;
  const times = { 1: "once", 2: "twice" }[shrinking] ?? `${shrinking} times`;
  const most = Math.min(block, scores.length);
  const held = `It keeps 3 numbers and ${countOf(most, "score")} at a time`;
  const result = step ? `After ${now.end} of ${scores.length} keys o / ℓ is ${out}, ` +
    `and a softmax of them at once gives ${wanted}. ` : "";
  const need = !shrinking ? "never have to shrink" : shrinks ? `shrink ${times}` :
    `would have to shrink ${times}`;
  return { title, said: `${result}${held}. In ${countOf(blocks, "block")} ` +
    `the sums ${need}.` };
}
