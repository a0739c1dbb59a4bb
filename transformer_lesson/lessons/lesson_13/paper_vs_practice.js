// Twelve settings, three training runs of each: first a prediction, then what was measured.

import { choosable, grid, layer, pen, put, told } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";

export function PaperVsPractice(view) {
  const { model } = view, ends = () => [1, pointsOf(model.get("curves"))];
  return frame(view, {
    name: "Paper versus practice",
    traits: ["norm_position", "warmup_steps", "initialization", "point", "predictions", "ranked",
      "curves", "every", "learned", "missing"],
    controls: (make) => [
      make.choice("Norm", "norm_position", () => [["post", "post (paper)"], ["pre", "pre"]]),
      make.choice("Warm-up steps", "warmup_steps", [[0, "none"], [20, "20"], [100, "100"]]),
      make.choice("Weights", "initialization", () => Object.entries(WEIGHTS)),
      make.slider("Steps", "point", ends, (point) => String(point * model.get("every"))),
      make.play("point", ends, 120),
      make.toggle("rank what is measured", "ranked")],
    draw: drawPractice });
}

const pointsOf = (curves) => Math.max(1, ...Object.values(curves).flat().map((run) => run.length));
const WEIGHTS = { xavier: "Xavier", small: "small" };
const SEEDS = [["--key", null], ["--query", "7 3"], ["--value", "2 3"]]; // color and dashes

function drawPractice(state, page) {
  if (state.missing) return state.missing;
  const { svg, width } = page, beside = width >= 700, tall = beside ? 95 : 72;
  const settings = settingsOf(state), chosen = settings.find((one) => one.chosen);
  const across = beside ? 0.42 * width : width, x = beside ? across + 52 : 40;
  const chart = chartOf(state, { x, y: 34, wide: width - x - 56, tall: beside ? 300 : 170 });
  const cards = { top: beside ? 0 : chart.y + chart.tall + 44, wide: across / 3, tall };
  drawAxes(layer(svg, "axes"), chart, state);
  drawRuns(layer(svg, "runs"), settings, chosen, chart, state);
  drawQuestion(layer(svg, "question"), chosen, chart, page);
  drawCards(layer(svg, "cards"), settings, cards, state, page);
  return { ...practiceFacts(settings, chosen, state), height: cards.top + 4 * tall };
}

// All settings and their runs: as a grid, or the measured ones sorted by loss.
function settingsOf({ curves, predictions, ranked, learned, ...state }) {
  const now = `${state.norm_position} ${state.warmup_steps} ${state.initialization}`;
  const settings = Object.entries(curves).map(([key, runs]) => {
    const last = runs.map((run) => run.at(-1)), measured = key in predictions;
    const mean = last.reduce((a, b) => a + b) / last.length;
    return {
      key, runs, last, mean, measured, n: last.filter((loss) => loss < learned).length,
      chosen: key === now, predicted: predictions[key] ?? null, rank: measured ? mean : 1e9 };
  });
  return ranked ? settings.sort((a, b) => a.rank - b.rank) : settings;
}

const valuesOf = (key) => {
  const [norm_position, warmup, initialization] = key.split(" ");
  return { norm_position, warmup_steps: Number(warmup), initialization };
};

const linkOf = (key) => key.replaceAll(" ", "-");

function settingWords(key) {
  const { norm_position: norm, warmup_steps: warmup, initialization } = valuesOf(key);
  const warm = warmup ? `warm-up ${warmup}` : "no warm-up";
  return `${norm}-norm, ${warm}, ${WEIGHTS[initialization]} weights`;
}

function resultWords({ key, n, last, mean, measured, predicted }) {
  if (!measured) return `${settingWords(key)}: not measured yet`;
  const said = predicted === null ? "" : `, you said ${predicted}`;
  const losses = last.map((loss) => loss.toFixed(2)).join(", ");
  return `${settingWords(key)}: ${n} of ${last.length} seeds learn${said}; ` +
    `loss at the end ${losses}, mean ${mean.toFixed(2)}`;
}

// A card for each setting, a button; elements keep their places' order while cards change places.
function drawCards(group, settings, { top, wide, tall }, { ranked, curves }, page) {
  const cards = Object.keys(curves).map((name) => {
    const place = settings.findIndex(({ key }) => key === name);
    const [x, y] = [(place % 3) * wide + 3, top + Math.floor(place / 3) * tall + 3];
    return { ...settings[place], x, y, place };
  });
  put.rect(group, "boxes", cards, (one) => ({
    x: one.x, y: one.y, width: wide - 6, height: tall - 6, rx: 9, class: "box",
    ...choosable(resultWords(one), one.chosen, () => page.set(valuesOf(one.key)), linkOf(one.key)),
  }));
  const texts = cards.flatMap((one) => cardTexts(one, ranked, wide - 6, tall));
  put.label(group, "texts", texts);
  const all = Object.values(curves).flat(2), ends = [Math.min(...all), Math.max(...all)];
  const small = cards.filter(({ measured }) => measured).flatMap(({ key, runs, x, y }) =>
    runs.map((run, i) => ({ key: `${key} ${i}`, run, i, x: x + 8, y: y + 34 })));
  put.path(group, "small", small, ({ run, i, x, y }) => ({
    d: curvePath(run, chartPlace(pointsOf(curves), ends,
      { x, y, wide: wide - 22, tall: tall - 60 })), ...pen(SEEDS[i % 3][0], 1.3) }));
}

function cardTexts({ key, x, y, n, runs, mean, measured, predicted, place }, ranked, wide, tall) {
  const { norm_position: norm, warmup_steps: warmup, initialization } = valuesOf(key);
  const mark = predicted === null ? "" : predicted === n ? "✓ " : "✗ ";
  const learn = `${mark}${n} of ${runs.length} learn`;
  const style = { class: "small", fill: "var(--ink)" };
  const result = ranked ? `${place + 1}. mean ${mean.toFixed(2)}` : learn;
  return [
    { key: `${key} norm`, text: `${norm} · ${warmup}`, x: x + 8, y: y + 17, ...style },
    { key: `${key} rest`, text: WEIGHTS[initialization], x: x + 8, y: y + 31, class: "small" },
    measured
      ? { key: `${key} result`, text: result, x: x + 6, y: y + tall - 14, ...style }
      : { key: `${key} asked`, text: "?", x: x + wide / 2, y: y + tall - 26,
        class: "middle strong" }];
}

function chartPlace(points, [low, high], { x, y, wide, tall }) {
  return {
    across: (i) => x + (wide * (i + 1)) / points,
    up: (loss) => y + (tall * (high - loss)) / (high - low) };
}

const curvePath = (run, { across, up }) =>
  `M${run.map((loss, i) => `${across(i).toFixed(1)} ${up(loss).toFixed(1)}`).join(" L")}`;

function chartOf({ curves }, box) {
  const all = Object.values(curves).flat(2), points = pointsOf(curves);
  const ends = [Math.floor(5 * Math.min(...all)) / 5, Math.ceil(5 * Math.max(...all)) / 5];
  return { ...box, points, ends, ...chartPlace(points, ends, box) };
}

function drawAxes(group, { x, y, wide, tall, points, ends, across, up }, { every, learned }) {
  const losses = [];
  for (let loss = Math.ceil(2 * ends[0]) / 2; loss <= ends[1]; loss += 0.5) losses.push(loss);
  grid(group, { left: x, right: x + wide }, up, losses, (loss) => loss.toFixed(1));
  const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => Math.round(part * points));
  put.label(group, "steps", marks, (mark) =>
    [mark * every, across(mark - 1), y + tall + 18, "small middle"], String);
  const names = [`loss, nats · dotted: learned below ${learned}`, "training step"];
  put.text(group, "names", names, (text, i) =>
    [text, i ? x + wide : x - 30, i ? y + tall + 34 : y - 14, i ? "small end" : "small"]);
  put.path(group, "bar", [{ d: `M${x} ${up(learned)}h${wide}`, ...pen("--focus", 1, "2 4") }]);
}

// The chosen setting's runs as far as they are replayed, before what else is measured.
function drawRuns(group, settings, chosen, chart, { point, every }) {
  const beside = settings.filter((one) => one.measured && chosen.measured && one !== chosen);
  const others = beside.flatMap(({ key, runs }) =>
    runs.map((run, i) => ({ key, run, name: `${key} ${i}` })));
  put.path(group, "others", others, ({ key, run }) =>
    ({ d: curvePath(run, chart), ...pen("--line", 1), "data-links": linkOf(key) }), "name");
  const now = Math.min(point, chart.points), runs = chosen.measured ? chosen.runs : [];
  const shown = runs.map((run) => run.slice(0, now));
  put.path(group, "runs", shown, (run, i) =>
    ({ d: curvePath(run, chart), ...pen(SEEDS[i % 3][0], 2, SEEDS[i % 3][1]) }));
  const heights = apart(shown.map((run) => chart.up(run.at(-1))), chart.y + chart.tall - 4);
  put.text(group, "seeds", shown, (run, i) =>
    [`seed ${i}`, chart.across(run.length - 1) + 6, heights[i] + 4, "small"]);
  const steps = runs.length ? [...Array(now).keys()] : [];
  put.rect(group, "steps", steps, (i) => ({
    x: chart.across(i - 0.5), y: chart.y, width: chart.wide / chart.points, height: chart.tall,
    fill: "transparent", ...told(`step ${(i + 1) * every}: ${lossWords(runs, i)}`) }), String);
}

const lossWords = (runs, i) => runs.map((run, seed) =>
  `seed ${seed} ${run[i]?.toFixed(3) ?? "diverged"}`).join(", ");

// Heights of labels, pushed down where they would lie on one another, and all up to the lowest.
function apart(heights, lowest) {
  const order = heights.map((_, i) => i).sort((a, b) => heights[a] - heights[b]), placed = [];
  let free = -Infinity;
  for (const i of order) {
    placed[i] = Math.max(heights[i], free);
    free = placed[i] + 13;
  }
  const rise = Math.max(0, free - 13 - lowest);
  return placed.map((height) => height - rise);
}

// What is asked before a setting is shown: a button for each answer.
function drawQuestion(group, { key, runs, measured }, { x, y, wide, tall }, page) {
  const answers = measured ? [] : [...Array(runs.length + 1).keys()], middle = x + wide / 2;
  const box = Math.min(70, wide / answers.length - 8);
  const left = middle - (answers.length * (box + 8)) / 2;
  const top = y + tall * 0.36;
  const lines = measured ? [] : [`How many of its ${runs.length} runs`, "will learn?"];
  put.text(group, "words", lines, (text, i) => [text, middle, top + 20 * i, "middle strong"]);
  const place = (i) => ({ x: left + i * (box + 8) + 4, y: top + 40 });
  put.box(group, "answers", answers, (i) => ({
    ...place(i), width: box, height: 44, rx: 9, word: i, font: "strong",
    ...choosable(`${i} of ${runs.length} will learn`, false,
      () => page.set({ predictions: { ...page.model.get("predictions"), [key]: i } })) }), String);
}

function practiceFacts(settings, chosen, { ranked, point, every, curves }) {
  const measured = settings.filter((one) => one.measured);
  const asked = measured.filter(({ predicted }) => predicted !== null);
  const right = asked.filter(({ predicted, n }) => predicted === n).length;
  const words = settingWords(chosen.key), name = words[0].toUpperCase() + words.slice(1);
  let said = `${measured.length} of ${settings.length} settings measured, ` +
    `${right} of ${asked.length} predictions right.`;
  if (ranked) {
    const [{ key, mean }] = settings;
    said += ` Lowest of them: ${settingWords(key)}, mean ${mean.toFixed(2)}.`;
  }
  if (!chosen.measured) return { title: `${name}: what do you expect?`, said };
  const now = Math.min(point, pointsOf(curves));
  const result = resultWords(chosen);
  const title = `${name}: ${chosen.n} of ${chosen.runs.length} seeds learn`;
  said = `${result[0].toUpperCase()}${result.slice(1)}. At step ${now * every}: ` +
    `${lossWords(chosen.runs, now - 1)}. ${said}`;
  return { title, said };
}
