// A beam search up to one step, as a tree: what was kept, dropped and finished so far.

import { fitted, layer, put, textLines, told } from "./draw.js";
import { lengthNormalized } from "./generation.js";
import { fromLargest } from "./ranking.js";

const BEAM_BOX = { high: 33, down: 38, drop: 36, top: 22 };
const MOST_FINISHED = 3; // texts that are written out
const LENGTH_PENALTY = 0.6;

// The indices of the candidates of steps 0 to `step` that lead to candidate i, itself included.
function beamPath(tree, step, i) {
  const numbers = [i];
  for (let s = step; s > 0; s--) numbers.unshift(tree[s][numbers[0]].parent);
  return numbers;
}

const beamTokens = (tree, step, i) =>
  beamPath(tree, step, i).map((number, s) => tree[s][number].token);

function finishedBeams({ tree, at }) {
  const beams = tree.slice(0, at + 1).flatMap((level, s) => {
    const ended = level.map((one, i) => ({ ...one, s, i })).filter(({ finished }) => finished);
    return ended.map((one) => ({
      ...one, score: lengthNormalized(one.logProbability, s + 1, LENGTH_PENALTY) }));
  });
  return fromLargest(beams.map(({ score }) => score), beams.length).map((i) => beams[i]);
}

const droppedShown = (beams) => beams > 3 ? 2 : 4;

// A step of the search, with what has finished by then; `words(s, i)` is a candidate's text.
function lookOfBeams(decoding) {
  const { tree, token, state } = decoding;
  const words = (s, i) => `“${beamTokens(tree, s, i).map(token).join(" ")}”`;
  return { ...decoding, words, finished: finishedBeams(decoding), beams: state.width };
}

// Draws the tree up to one step. Returns the best text, `written`; the tree's height; `list`, which
// draws the finished texts at a place; and `listed`, which returns the height of the final ones.
export function drawBeamTree(group, decoding, { width, preview }) {
  const look = lookOfBeams(decoding), { tree, at } = look;
  const [s, i] = preview?.split(".").map(Number) ?? [at, 0];
  const pointed = new Set(beamPath(tree, s, i).map((number, step) => `${step}.${number}`));
  const low = drawTreeBoxes(group, look, pointed, width);
  const height = drawTreeLegend(layer(group, "legend"), look, low, width);
  const list = (place) => drawFinished(layer(group, "finished"), look, place);
  const ends = { ...look, finished: finishedBeams({ tree, at: tree.length - 1 }) };
  const listed = (room) => 17 * finishedLines(ends, room).length + 10;
  return { written: beamTokens(tree, at, 0), height, list, listed };
}

export function beamFacts(decoding) {
  const { tree, at, state, words, finished } = lookOfBeams(decoding), level = tree[at];
  const kept = [...level.keys()].filter((number) => level[number].kept), n = kept.length;
  const title = `Step ${at + 1} of ${tree.length}: ${n} kept, ${level.length - n} dropped, ` +
    `${finished.length} finished so far`;
  const [best, ...others] = kept.map((number) => level[number].logProbability.toFixed(2));
  const ended = finished.slice(0, 1).map((one) => finishedWords(one, words));
  const said = `Beam width ${state.width}. Best kept: ${words(at, 0)}, log P ${best}` +
    (others.length ? `; the others: ${others.join(", ")}.` : ".") +
    (ended.length ? ` Best finished: ${ended[0]}.` : "");
  return { title, said };
}

const finishedWords = ({ s, i, logProbability, score }, words) =>
  `normalized ${score.toFixed(2)}, log P ${logProbability.toFixed(2)}: ${words(s, i)}`;

// The latest steps that there is room for, in columns; dropped candidates only in the last one.
function drawTreeBoxes(group, { tree, at, token, words, beams }, pointed, width) {
  const { high, down, drop, top } = BEAM_BOX, [wide, across] = width >= 700 ? [96, 116] : [78, 90];
  const first = Math.max(0, at + 1 - Math.floor((width - 16) / across));
  const x = (s) => 20 + across * (s - first);
  const most = (s) => beams + (s === at ? droppedShown(beams) : 0);
  const boxes = tree.slice(first, at + 1).flatMap((level, k) => level.slice(0, most(first + k))
    .map((one, i) => ({ ...one, i, s: first + k, name: `${first + k}.${i}` })));
  const y = ({ kept, i }) => top + (kept ? down * i : down * beams + 8 + drop * (i - beams));
  const sign = (one) => (one.finished ? "■" : one.kept ? "✓" : "✗");
  const state = (one) => (one.finished ? "finished" : one.kept ? "kept" : "dropped");
  put.text(group, "steps", tree.slice(first, at + 1), (_, k) =>
    [`step ${first + k + 1}`, x(first + k) + wide / 2, 12, "small middle"], (_, k) => first + k);
  put.path(group, "edges", boxes, (one) => {
    const from = one.s > first ? [x(one.s) - across + wide, top + down * one.parent] : [0, top];
    const [right, left, middle] = [from[0], x(one.s), (from[0] + x(one.s)) / 2];
    const [a, b] = [from[1] + high / 2, y(one) + high / 2], lit = pointed.has(one.name);
    return { d: `M${right} ${a}C${middle} ${a} ${middle} ${b} ${left} ${b}`, class: "ribbon",
      "stroke-width": lit ? 4 : 1.5, opacity: lit ? 0.9 : 0.4 };
  }, "name");
  put.rect(group, "boxes", boxes, (one) => ({
    class: "box", x: x(one.s), y: y(one), width: wide, height: high, rx: 7,
    "stroke-dasharray": one.kept ? null : "4 3", "data-preview": one.name,
    ...told(`step ${one.s + 1}, ${state(one)}: ${words(one.s, one.i)}, log P ` +
      one.logProbability.toFixed(2)) }), "name");
  const label = (one) => `${sign(one)} ${fitted(token(one.token), wide - 22)}`;
  const texts = boxes.flatMap((one) => [
    { ...one, name: `${one.name} word`, text: label(one) },
    { ...one, name: `${one.name} score`, text: one.logProbability.toFixed(2), small: true }]);
  put.label(group, "words", texts, ({ text, small, ...one }) => [
    text, x(one.s) + wide / 2, y(one) + (small ? 28 : 15), small ? "small middle" : "middle",
  ], "name");
  const all = Math.max(...tree.map((level) => level.length)); // of all steps: the height stays
  const dropped = Math.max(0, Math.min(droppedShown(beams), all - beams));
  return top + 8 + down * beams + drop * dropped;
}

function drawTreeLegend(group, { tree, at, beams }, y, width) {
  const more = tree[at].length - beams - droppedShown(beams);
  const legend = "✓ kept · ✗ dropped · ■ finished · log P in nats" +
    (more > 0 ? ` · ${more} more dropped` : "");
  const explained = textLines(legend, width, 12);
  put.text(group, "lines", explained, (text, i) => [text, 0, y + 12 + 16 * i, "small"]);
  return y + 4 + 16 * explained.length;
}

function finishedLines({ finished, words }, width) {
  return finished.slice(0, MOST_FINISHED).flatMap((one) =>
    textLines(`■ ${finishedWords(one, words)}`, width, 13).map((line, i) => ({ one, line, i })));
}

// The best finished texts; returns where they end.
function drawFinished(group, { finished, words }, { x, y, width }) {
  const lines = finishedLines({ finished, words }, width);
  const text = (one) => finishedWords(one, words);
  const name = ({ s, i }) => `${s}.${i}`;
  put.text(group, "texts", lines, (at, i) => ({
    text: at.line, x, y: y + 12 + 17 * i, class: "size-13", "data-preview": name(at.one),
    ...(at.i ? { "pointer-events": "none" } : told(`finished: ${text(at.one)}`)),
  }), ({ one, i }) => `${name(one)}.${i}`);
  return y + 17 * lines.length + 4;
}
