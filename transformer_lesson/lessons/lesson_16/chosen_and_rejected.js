// A run of DPO: how likely the chosen and the rejected answers are, which of them are written, and
// the loss of one pair with the weight of its gradient.

import { drawCurves } from "../../explorables/web/curves.js";
import { fixed, grid, layer, put, set, textLines, told } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";

export function ChosenAndRejected(view) {
  const { model } = view, runs = model.get("runs"), [first] = runs;
  const numbers = (many) => Array.from({ length: many }, (_, i) => [i, String(i + 1)]);
  const ends = () => [0, (first?.steps.length ?? 1) - 1];
  return frame(view, {
    name: "Chosen and rejected",
    traits: ["runs", "every", "missing", "run", "point", "pair", "beta"],
    controls: (make) => [
      make.choice("Run", "run", () => numbers(runs.length)),
      make.slider("Step", "point", ends, (point) => String(point * model.get("every"))),
      make.play("point", ends, 600),
      make.choice("Pair", "pair", () => numbers(first?.pairs.length ?? 0)),
      make.slider("β", "beta", [0.02, 0.5, 0.02],
        (beta) => fixed(beta, 2))],
    draw: drawPreference });
}

// The loss of a pair, -log sigmoid(margin), and the weight of its gradient, sigmoid(-margin); a
// margin is beta times how much further apart the two answers are than they were at first.
function preferenceLoss([chosen, rejected], [chosenFirst, rejectedFirst], beta) {
  const margin = beta * (chosen - chosenFirst - (rejected - rejectedFirst));
  return { margin, ...lossOfMargin(margin) };
}

function lossOfMargin(margin) {
  const loss = Math.log1p(Math.exp(-Math.abs(margin))) + Math.max(0, -margin);
  return { loss, weight: 1 / (1 + Math.exp(margin)) };
}

function preferenceNow({ runs, run, point, pair, beta, every }) {
  const { steps, pairs } = runs[Math.min(run, runs.length - 1)];
  const k = Math.min(point, steps.length - 1), i = Math.min(pair, pairs.length - 1);
  const [source, chosen, rejected] = pairs[i], history = steps.map((step) => step.pairs[i]);
  const losses = history.map((one) => preferenceLoss(one, history[0], beta));
  const text = history[k][2];
  const kind = text === chosen ? "chosen" : text === rejected ? "rejected" : "third";
  return { steps, step: steps[k], k, i, every, beta, source, chosen, rejected, history, losses,
    now: history[k], first: history[0], text, kind };
}

function drawPreference(state, page) {
  if (state.missing) return state.missing;
  const { svg, width } = page, all = preferenceNow(state), beside = width >= 700;
  const wide = beside ? Math.max(500, 0.62 * width) : width;
  const frames = preferenceFrames(all, beside && wide < 560 ? [80, 96] : [104, 126]);
  const bottom = drawCurves(layer(svg, "curves"), frames, { x: 0, y: 0, width: wide,
    chosen: all.k * all.every, choose: (step) => page.set({ point: step / all.every }) });
  const x = beside ? wide + 16 : 0, room = { x, y: beside ? 0 : bottom + 10, wide: width - x };
  const low = drawPreferencePair(layer(svg, "pair"), all, room);
  const end = drawPairLoss(layer(svg, "loss"), all, { ...room, y: low + 8 });
  set(svg, { width, height: Math.max(bottom, end) });
  const longest = all.steps.map((_, point) => preferenceFacts(preferenceNow({ ...state, point })));
  return { ...longest[all.k], longest };
}

function preferenceFrames({ steps, every }, high) {
  const points = (value) => steps.map((step, k) => [k * every, value(step)]);
  const third = ({ writes: [chosen, rejected] }) => Number((1 - chosen - rejected).toFixed(3));
  const curve = (name, look, value) => ({ name, look, points: points(value) });
  return [
    { heading: "log P of the answers, nats", log: false, high: high[0], curves: [
      curve("chosen", 0, ({ log_p: both }) => both[0]),
      curve("rejected", 1, ({ log_p: both }) => both[1])] },
    { heading: "share of the test sentences", log: false, high: high[1], curves: [
      curve("pairs won", 3, ({ wins }) => wins),
      curve("writes chosen", 0, ({ writes }) => writes[0]),
      curve("writes rejected", 1, ({ writes }) => writes[1]),
      curve("writes a third", 2, third),
      curve("wenn: right", 4, ({ wenn }) => wenn)] }];
}

function drawPreferencePair(group, { source, chosen, rejected, history, now, text, kind }, room) {
  const { x, y, wide } = room;
  const marks = { chosen: "✓ the chosen one", rejected: "✗ the rejected one",
    third: "✗ neither of them" };
  const parts = [
    ["asked", source, ""],
    ["chosen", chosen, `log P ${fixed(now[0], 2)}`],
    ["rejected", rejected, `log P ${fixed(now[1], 2)}`],
    ["written", text, marks[kind]]];
  const lines = [];
  let low = y;
  for (const [name, words, number] of parts) {
    low += 16;
    lines.push({ key: name, text: number ? `${name}, ${number}` : name, y: low, class: "small" });
    const bold = name === "written", inLines = (all) =>
      textLines(all, wide, 14, bold ? 600 : 400).slice(0, 3);
    inLines(words).forEach((text, k) => {
      lines.push({ key: `${name}${k}`, text, y: low + 17 * (k + 1),
        class: bold ? "strong" : null });
    });
    const all = bold ? history.map(([, , text]) => text) : [words]; // it stays as high as any
    low += 17 * Math.max(...all.map((one) => inLines(one).length)) + 4;
  }
  put.text(group, "texts", lines, ({ text, y: height, class: style }) => [text, x, height, style]);
  return low;
}

// The loss over the margin, a dot for each step of the run; at the present one the slope, which is
// minus the weight.
function drawPairLoss(group, { losses, k, every, beta }, { x, y, wide }) {
  const margins = losses.map(({ margin }) => margin), low = Math.min(-0.5, ...margins);
  const high = Math.max(2, ...margins) * 1.03, most = lossOfMargin(low).loss;
  const place = { top: y + 22, tall: 92, left: x + 26, right: x + wide - 8 };
  const across = (margin) =>
    place.left + ((margin - low) / (high - low)) * (place.right - place.left);
  const up = (loss) => place.top + place.tall * (1 - loss / most);
  const heading = { text: `loss of this pair, β = ${fixed(beta, 2)}`, x, y: y + 12,
    class: "strong size-13" };
  drawPairAxes(group, heading, { ...place, across, up, high, most });
  const line = Array.from({ length: 41 }, (_, i) => low + (i / 40) * (high - low));
  const path = line.map((margin) => `${across(margin)} ${up(lossOfMargin(margin).loss)}`);
  const { margin, loss, weight } = losses[k], half = 0.16 * (high - low);
  const tangent = [-half, half].map((d) => `${across(margin + d)} ${up(loss - weight * d)}`);
  const curves = [[path, "var(--soft)", 2], [tangent, "var(--query)", 3]];
  put.path(group, "lines", curves, ([points, color, thick]) => ({
    d: `M${points.join("L")}`, fill: "none", stroke: color, "stroke-width": thick, class: "still",
  }));
  put.circle(group, "dots", losses, (one, i) => ({
    cx: across(one.margin), cy: up(one.loss), r: i === k ? 6 : 3.5,
    fill: i === k ? "var(--query)" : "var(--key)", ...told(pairLossWords(one, i * every)) }));
  return place.top + place.tall + 34;
}

function drawPairAxes(group, heading, { top, tall, left, right, across, up, high, most }) {
  const words = [heading, { text: "margin", x: right, y: top + tall + 28, class: "small end" }];
  put.text(group, "words", words);
  const marks = [0, 0.5, 1].filter((loss) => loss <= most);
  grid(group, { left, right }, up, marks);
  put.label(group, "margins", [0, Math.floor(high)], (margin) =>
    [String(margin), across(margin), top + tall + 15, "small middle"], String);
}

function pairLossWords({ margin, loss, weight }, step) {
  return `this pair at step ${step}: margin ${fixed(margin, 3)}, loss ${fixed(loss, 3)}, ` +
    `weight ${fixed(weight, 3)}`;
}

function preferenceFacts({ step, k, i, every, beta, losses, kind, now, first }) {
  const title = `Step ${k * every}: ${fixed(step.wins, 2)} of pairs won, ` +
    `${fixed(step.writes[0], 2)} of answers are the chosen one`;
  const { margin, loss, weight } = losses[k];
  const gains = [now[0] - first[0], now[1] - first[1]].map((gain) => fixed(gain, 2));
  const written = { chosen: "the chosen answer", rejected: "the rejected answer",
    third: "a third answer" }[kind];
  return { title, said: `Pair ${i + 1}: the chosen answer gained ${gains[0]} nats, the rejected ` +
    `one ${gains[1]}; with β = ${fixed(beta, 2)} the margin is ${fixed(margin, 2)}, the loss ` +
    `${fixed(loss, 2)} and its gradient's weight ${fixed(weight, 2)}. ` +
    `The model writes ${written}.` };
}
