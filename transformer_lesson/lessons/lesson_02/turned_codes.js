// The dot products of turned codes with all codes of a sentence: where do two words look?

import { fitted, fixed, grid, layer, pen, put, told } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";
import { firstLargest } from "../../explorables/web/ranking.js";

const TURNED = { word: "the", box: 28, gap: 30, high: 84, colors: ["--query", "--key"] };

export const TurnedCodes = (view) => frame(view, {
  name: "Turned codes",
  traits: ["k", "sentences", "d_model", "farthest"],
  controls: (make, { model }) => {
    const most = model.get("farthest");
    return [make.slider("k, words ahead", "k", [-most, most])];
  },
  draw: drawTurned });

// The code of position p, turned by k words, times the code of position q.
function turnedProduct(dModel, distance) {
  let sum = 0;
  for (let i = 0; i < dModel / 2; i++) sum += Math.cos(distance / 10000 ** ((2 * i) / dModel));
  return sum;
}

// Of a sentence, each “the”, its dot products with all positions, and the best of them.
function turnedLooks({ k, d_model: dModel }, sentence) {
  const words = sentence.split(" ");
  const places = [...words.keys()].filter((p) => words[p] === TURNED.word);
  return { words, looks: places.map((p, number) => {
    const products = words.map((_, q) => turnedProduct(dModel, q - p - k));
    return { p, number, products, best: firstLargest(products) };
  }) };
}

function drawTurned(state, page) {
  const { svg, width } = page, all = state.sentences.map((one) => turnedLooks(state, one));
  const block = TURNED.gap + TURNED.box + TURNED.high + 42;
  all.forEach((one, i) =>
    drawTurnedSentence(layer(svg, `sentence${i}`), one, state, { top: i * block, width }));
  return { ...turnedFacts(all, state), height: all.length * block - 8 };
}

function drawTurnedSentence(group, { words, looks }, { d_model: dModel }, { top, width }) {
  const cell = Math.min(112, (width - 30) / words.length), most = dModel / 2;
  const x = (q) => 30 + (q + 0.5) * cell, y = top + TURNED.gap, head = y + TURNED.box + 18;
  const low = Math.min(...Array.from({ length: 15 }, (_, i) => turnedProduct(dModel, i)));
  const up = (product) => head + ((most - product) / (most - low)) * TURNED.high;
  const color = (number) => TURNED.colors[number];
  const moved = looks.filter(({ p, best }) => best !== p);
  put.path(group, "arcs", moved, ({ p, number, best }) => {
    const lift = y - 6 - 5 * Math.min(4, Math.abs(best - p));
    return { d: `M${x(p) - 4} ${y}C${x(p)} ${lift} ${x(best)} ${lift} ${x(best) + 4} ${y}`,
      ...pen(color(number), 2.5, number ? "6 4" : null) };
  }, "number");
  const looker = (q) => looks.find(({ p }) => p === q);
  const found = (q) => looks.filter(({ best }) => best === q);
  put.rect(group, "boxes", words, (word, q) => ({
    x: x(q) - cell / 2 + 2, y, width: cell - 4, height: TURNED.box, rx: 6, fill: "var(--card)",
    "stroke-width": looker(q) || found(q).length ? 2.5 : 1,
    stroke: looker(q) ? `var(${color(looker(q).number)})` :
      found(q).length ? `var(${color(found(q)[0].number)})` : "var(--line)" }));
  put.label(group, "words", words, (word, q) => [
    fitted(word, cell - 6, 13), x(q), y + 19, "size-13 middle"]);
  grid(group, { left: 30, right: 30 + cell * words.length }, up, [most, low], (one) => fixed(one, 0));
  put.path(group, "curves", looks, ({ number, products }) => ({
    d: `M${products.map((product, q) => `${x(q)} ${up(product)}`).join("L")}`,
    ...pen(color(number), 1.5, number ? "6 4" : null) }));
  const dots = looks.flatMap(({ p, number, products, best }) => products.map((product, q) =>
    ({ key: `${number}.${q}`, p, q, number, product, best: q === best })));
  put.circle(group, "dots", dots, ({ p, q, number, product, best }) => ({
    cx: x(q), cy: up(product), r: best ? 7 : 4,
    fill: best ? `var(${color(number)})` : "var(--paper)", stroke: `var(${color(number)})`,
    "stroke-width": 2,
    ...told(`“the” at ${p} with “${words[q]}” at ${q}: ${fixed(product, 1)}` +
      `${best ? ", the largest" : ""}`) }));
}

function turnedFacts(all, { k, d_model: dModel }) {
  const found = all.map(({ words, looks }) =>
    looks.map(({ best }) => `“${words[best]}”`).join(" and "));
  const ways = k === 0 ? "not turned" : `turned ${Math.abs(k)} ${k > 0 ? "ahead" : "back"}`;
  return {
    title: k === 0 ? "k = 0: each “the” finds itself" :
      `k = ${k}: the two “the” find ${found.join("; below, ")}`,
    said: `Dots: the dot product of the code of each “the”, ${ways}, with the code of each ` +
      `position, at most ${dModel / 2}. The first “the” has full lines, the second dashed ones.` };
}
