// Where two words look while a model learns: arcs over and under the sentence, beside the curves.

import { drawCurves } from "../../explorables/web/curves.js";
import { fitted, layer, put, set, told } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";
import { firstLargest } from "../../explorables/web/ranking.js";

const NO_FILM = "There is no frame yet: train first, then show AttentionFilm(words, asking, frames).";
const FILM = { wide: 720, high: 330, faint: 0.02 };

export function AttentionFilm(view) {
  const frames = () => view.model.get("frames");
  const ends = () => [0, Math.max(0, frames().length - 1)];
  return frame(view, {
    name: "Attention film",
    traits: ["words", "asking", "frames", "number"],
    controls: (make) => [
      make.slider("Step", "number", ends, (number) => String(filmed(frames(), number)?.step ?? "")),
      make.play("number", ends, 700)],
    draw: drawFilm });
}

const filmed = (frames, number) => frames[Math.min(number, frames.length - 1)];

function drawFilm(state, page) {
  const { frames, number } = state, { svg, width } = page;
  if (!frames.length) return NO_FILM;
  const now = filmed(frames, number), wide = width >= FILM.wide;
  const left = wide ? width * 0.52 : width;
  drawFilmedLooks(layer(svg, "looks"), state, now, left);
  const points = (name) => frames.map((one) => [one.step, one[name]]);
  const curves = [["loss", "loss of a batch", 0], ["right", "share of articles right", 1]];
  const end = drawCurves(layer(svg, "curves"), curves.map(([name, heading, look]) => ({
    heading, log: false, high: 92, curves: [{ name, look, points: points(name) }] })), {
    x: wide ? left + 24 : 0, y: wide ? 0 : FILM.high, width: wide ? width - left - 24 : width,
    chosen: now.step, choose: (step) =>
      page.set({ number: frames.findIndex((one) => one.step === step) }) });
  const height = wide ? Math.max(end, FILM.high) : end;
  set(svg, { width, height });
  return { ...filmFacts(state, now), height,
    longest: frames.map((one) => filmFacts(state, one)) };
}

// The first asking word's arcs are above the sentence, the second one's below.
function drawFilmedLooks(group, { words, asking }, now, width) {
  const apart = width / words.length, middle = FILM.high / 2;
  const across = (i) => (i + 0.5) * apart;
  const arcs = asking.flatMap((from, side) => now.weights[side].map((weight, to) => ({
    from, to, side, weight, key: `${side}.${to}` })));
  const aside = (right) => (right ? 1 : -1) * Math.min(30, 0.27 * apart);  // off the arcs' ends
  const edge = (side) => middle + (side ? 20 : -20);
  put.path(group, "arcs", arcs.filter(({ from, to }) => from !== to), ({ from, to, side, weight }) => {
    const high = Math.min(middle - 52, 30 + 26 * Math.abs(to - from));
    const [x, y] = [(across(from) + across(to)) / 2, edge(side) + (side ? 2 : -2) * high];
    return { d: `M${across(from)} ${edge(side)}Q${x} ${y} ${across(to)} ${edge(side)}`,
      fill: "none", stroke: side ? "var(--query)" : "var(--key)", "stroke-linecap": "round",
      "stroke-width": 1 + 11 * weight, opacity: weight < FILM.faint ? 0.12 : 0.25 + 0.75 * weight,
      "data-of": `look${side}-${to}` };
  }, "key");
  put.rect(group, "words", words, (word, i) => ({
    x: i * apart + 3, y: middle - 18, width: apart - 6, height: 36, rx: 7, fill: "var(--card)",
    stroke: asking.includes(i) ? (i === asking[1] ? "var(--query)" : "var(--key)") : "var(--line)",
    "stroke-width": asking.includes(i) ? 3 : 1 }));
  put.label(group, "names", words, (word, i) =>
    [fitted(word, apart - 10), across(i), middle + 5, "middle strong"]);
  put.text(group, "sides", asking, (place, side) => [
    `where the ${side ? "second" : "first"} “${words[place]}” looks`, 4,
    side ? FILM.high - 6 : 14, "strong", { fill: side ? "var(--query)" : "var(--key)" }]);
  put.text(group, "numbers", arcs, ({ to, side, weight, from }) => [
    weight.toFixed(2), across(to) + aside(to > from), middle + (side ? 38 : -28), weight > 0.5 ? "strong middle halo" :
      "small middle halo", told(`${filmAsks(words, side)} gives “${words[to]}” ${weight.toFixed(2)}` +
      `${to === from ? ", itself" : ""}`, `look${side}-${to}`)], "key");
}

const filmAsks = (words, side) => (side ? "the second" : "the first");

function filmFacts({ words, asking }, { step, loss, right, weights }) {
  const best = weights.map((row) => {
    const i = firstLargest(row);
    return `“${words[i]}” (${row[i].toFixed(2)})`;
  });
  const asks = `the second “${words[asking[1]]}”`;
  return {
    title: `Step ${step}: ${asks} looks mostly at ${best[1]}`,
    said: `Loss ${loss.toFixed(2)}; ${Math.round(100 * right)} % of the articles are right. ` +
      `The first “${words[asking[0]]}” looks mostly at ${best[0]}, the second at ${best[1]}.` };
}
