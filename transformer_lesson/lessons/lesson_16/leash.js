// A reward that can be fooled: what the grader gives, what the model writes, and, once the learner
// has said where to stop, how much of it is right.

import { choosable, fitted, fixed, grid, layer, pen, put, set, textLines,
  told } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";

export function Leash(view) {
  const { model } = view, runs = model.get("runs");
  const last = Math.max(0, (runs[0]?.points[0].length ?? 1) - 1);
  return frame(view, {
    name: "Leash",
    traits: ["leashes", "runs", "every", "noise", "missing", "run", "leash", "stop", "committed"],
    controls: (make) => [
      make.choice("Run", "run", () => runs.map((_, i) => [i, String(i + 1)])),
      make.choice("Leash", "leash", () => model.get("leashes").map((leash, i) =>
        [i, leash === 0 ? "none" : String(leash)])),
      make.slider("Stop at step", "stop", () => [0, last],
        (stop) => String(stop * model.get("every"))),
      make.play("stop", () => [0, last], 500),
      make.button("Stop here", () => ({ committed: { ...model.get("committed"),
        [model.get("run")]: [model.get("leash"), model.get("stop")] } }),
      () => ({ disabled: String(model.get("run")) in model.get("committed") }))], // once per run
    draw: drawLeash });
}

const leashWords = (leashes, i) => leashes[i] === 0 ? "without a leash" : `on leash ${leashes[i]}`;

// What the learner sees: the chosen run, leash and stop, and, after committing, the place that was
// committed to and the best one, the earliest of equals.
function leashNow({ leashes, runs, every, run, leash: asked, stop: at, committed }) {
  const { points, sentences } = runs[Math.min(run, runs.length - 1)];
  const leash = Math.min(asked, points.length - 1), curve = points[leash];
  const stop = Math.min(at, curve.length - 1), now = curve[stop];
  const [chosen, end] = committed[run] ?? [], shown = chosen !== undefined;
  let best = [0, 0];
  points.forEach((line, i) => line.forEach(({ truth }, k) => {
    if (truth > points[best[0]][best[1]].truth) best = [i, k];
  }));
  return { leashes, points, sentences, curve, now, shown, best, every, leash, stop,
    mine: shown ? points[chosen][end] : null, chosen, end };
}

function drawLeash(state, page) {
  if (state.missing) return state.missing;
  const { svg, width } = page, all = leashNow(state), beside = width >= 700;
  const wide = beside ? 0.56 * width : width, last = all.curve.length - 1;
  const left = 34, right = wide - 14, tall = 134;
  const across = (k) => left + (k / last) * (right - left);
  const values = state.runs.flatMap(({ points }) => points.flat().map(({ reward }) => reward));
  const by = beside ? "by training step" : "by step";
  const reward = { name: "reward", heading: `reward: points from the grader, ${by}`,
    top: 24, low: Math.floor(Math.min(...values) / 5) * 5,
    high: Math.ceil(Math.max(...values) / 5) * 5,
    ticks: 5, words: (one) => `${fixed(one.reward, 2)} points` };
  const chart = { left, right, tall, across, page };
  drawLeashChart(layer(svg, "reward"), all, reward, { ...chart, until: all.stop });
  const text = { x: beside ? wide + 18 : 0, y: beside ? 12 : 24 + tall + 44 };
  const low = drawLeashTexts(layer(svg, "texts"), all, { ...text, wide: width - text.x });
  const top = beside ? 24 + tall + 52 : low + 24;
  const truth = { name: "truth", heading: `truth: share of right answers, ${by}`,
    top, low: 0, high: 1, ticks: 0.25, words: (one) => `${fixed(one.truth, 3)} right` };
  drawLeashChart(layer(svg, "truth"), all, truth, { ...chart, until: all.shown ? last : -1 });
  drawLeashMarks(layer(svg, "marks"), all, truth, chart);
  set(svg, { width, height: Math.max(top + tall + 36, beside ? low : 0) });
  const longest = all.curve.map((_, stop) => leashFacts(leashNow({ ...state, stop }), state));
  return { ...leashFacts(all, state), longest };
}

// One quantity on all leashes, the chosen one in front, up to the point `until`.
function drawLeashChart(group, all, quantity, { left, right, tall, across, until, page }) {
  const { name, heading, top, low, high, ticks, words } = quantity, { points, leash } = all;
  const up = (value) => top + tall * (1 - (value - low) / (high - low));
  const marks = Array.from({ length: Math.round((high - low) / ticks) + 1 }, (_, i) =>
    low + i * ticks);
  grid(group, { left, right }, up, marks);
  const steps = [0, 3, 6, 9, 12].filter((k) => k < all.curve.length);
  put.label(group, "steps", steps, (k) =>
    [String(k * all.every), across(k), top + tall + 15, "small middle"], String);
  put.text(group, "heading", [heading], (text) =>
    [fitted(text, page.width, 13, 600), 0, top - 9, "strong size-13"]);
  const line = (i) => points[i].slice(0, until + 1), end = Math.max(0, until) * all.every;
  const others = points.map((_, i) => i).filter((i) => i !== leash && until >= 0);
  const path = (i) => line(i).map((one, k) => `${across(k)} ${up(one[name])}`).join("L");
  put.path(group, "others", others, (i) => ({
    d: `M${path(i)}`, ...pen("--soft", 1.5), opacity: 0.55,
    ...choosable(`${name} ${leashWords(all.leashes, i)} at step ${end}: ${words(line(i).at(-1))}`,
      false, () => page.set({ leash: i })) }), String);
  const own = until >= 0 ? [leash] : [];
  put.path(group, "own", own, (i) => ({ d: `M${path(i)}`, ...pen("--key", 2.5) }));
  const dots = own.flatMap((i) => line(i).map((one, k) => ({ one, k })));
  put.circle(group, "dots", dots, ({ one, k }) => ({
    cx: across(k), cy: up(one[name]), r: k === all.stop ? 5.5 : 3.5, fill: "var(--key)",
    ...told(`${name} at step ${k * all.every}: ${words(one)}`, `step${k}`) }), "k");
}

// What lies over the truth's chart: a note while it is hidden, then your stop and the best one.
function drawLeashMarks(group, all, { top }, { left, right, tall, across }) {
  const { shown, points, chosen, end, best } = all, up = (value) => top + tall * (1 - value);
  const until = right - left < 250 ? "you stop" : "you press “Stop here”";
  const hidden = shown ? [] : [`hidden until ${until}`];
  put.text(group, "hidden", hidden, (text) =>
    [text, (left + right) / 2, top + tall / 2 + 5, "middle halo"]);
  const marks = shown ? [["you", chosen, end], ["best", ...best]] : [];
  const place = ([, i, k]) => [across(k), up(points[i][k].truth)];
  put.circle(group, "rings", marks, (mark) => ({
    cx: place(mark)[0], cy: place(mark)[1], r: mark[0] === "you" ? 8 : 11, ...pen("--query", 2),
  }), ([name]) => name);
  put.label(group, "names", marks, (mark) => [
    mark[0], place(mark)[0], place(mark)[1] + (mark[0] === "you" ? 25 : -15),
    "strong size-13 middle halo"], ([name]) => name);
}

// What the model writes at the stop, below what it read; returns where it ends.
function drawLeashTexts(group, { sentences, curve, now, every, stop, shown }, { x, y, wide }) {
  const lines = [{ key: "heading", text: `written at step ${stop * every}`, y,
    class: "strong size-13" }];
  let low = y + 8;
  const inLines = (words, size) => textLines(words, wide, size).slice(0, 5);
  const add = (key, words, size, style, all) => { // takes the room of the longest of `all`
    inLines(words, size).forEach((text, k) =>
      lines.push({ key: `${key}.${k}`, text, y: low + 18 * (k + 1), class: style }));
    low += 18 * Math.max(...all.map((one) => inLines(one, size).length));
  };
  sentences.forEach(([source, right], i) => {
    const marked = ({ texts }) => (shown ? texts[i] === right ? "✓ " : "✗ " : "") + texts[i];
    add(`source${i}`, source, 12, "small", [source]);
    add(`text${i}`, marked(now), 14, null, curve.map(marked));
    low += 6;
  });
  put.text(group, "texts", lines, ({ text, y: height, class: style }) => [text, x, height, style]);
  return low + 10;
}

function leashFacts(all, { noise }) {
  const { now, leashes, leash, stop, every, shown, mine, best, points, chosen, end } = all;
  const where = `Step ${stop * every} ${leashWords(leashes, leash)}`;
  const right = shown ? `, ${fixed(now.truth, 3)} right` : "";
  const title = `${where}: ${fixed(now.reward, 2)} points${right}`;
  const means = `An answer has ${fixed(now.words, 1)} words and is ${fixed(now.drift, 1)} nats ` +
    "likelier than before the training. ";
  if (!shown) return { title, said: `${means}How many are right stays hidden until you stop.` };
  const top = points[best[0]][best[1]].truth, good = mine.truth >= top - noise;
  const peak = `${fixed(top, 3)} (step ${best[1] * every} ${leashWords(leashes, best[0])})`;
  const verdict = good ? `as good as the best, ${peak}` : `the best was ${peak}`;
  return { title, said: `${means}You stopped at step ${end * every} ` +
    `${leashWords(leashes, chosen)}: ${fixed(mine.truth, 3)} right, ${verdict}.` };
}
