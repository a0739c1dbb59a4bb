// A model on several devices over time: a row for each device, a box for each piece of work, and
// hatching while a device waits. In a pipeline, a device has some of the layers, and the parts of a
// batch go through all devices; with experts, it has some experts, and tokens go to theirs.

import { countOf, inkOn, layer, pen, put, set, told,
  wrapped } from "../../explorables/web/draw.js";
import { frame, shownWhile } from "../../explorables/web/frame.js";

const PASS_LENGTH = { forward: 1, backward: 2 }; // steps, as in training/pipeline.py
const HATCH = 7; // pixels between two lines

export function PipelineExplorer(view) {
  const sizes = ["stages", "parts", "order", "devices", "chosen", "favorites"];
  const traits = ["view", ...sizes, "time", "affinity", "popularity"];
  const now = () => Object.fromEntries(traits.map((name) => [name, view.model.get(name)]));
  const ends = () => [0, workOf(now()).end];
  return frame(view, {
    name: "Pipeline explorer",
    traits,
    controls: (make, page) => {
      const only = (name, ...nodes) => nodes.map((node) => shownWhile(page, "view", name, node));
      return [
        make.choice("View", "view", ["pipeline", "experts"]),
        ...only("pipeline", make.slider("Stages", "stages", [1, 8]),
          make.slider("Parts of a batch", "parts", [1, 16]),
          make.choice("Order", "order", ["GPipe", "1F1B"])),
        ...only("experts", make.choice("Devices", "devices", [2, 4, 8]),
          make.choice("Experts a token", "chosen", [1, 2]),
          make.slider("Router’s favorites", "favorites", [0, 1, 0.25])),
        make.slider("Time", "time", ends),
        make.play("time", ends, 250)];
    },
    draw: drawPipeline });
}

// As order_of_work in training/pipeline.py: what a stage does, in order, as [part, kind].
function orderOfWork(stage, { stages, parts, order }) {
  const all = Array.from({ length: parts }, (_, part) => part);
  const forward = all.map((part) => [part, "forward"]);
  const backward = all.map((part) => [part, "backward"]);
  if (order === "GPipe") return [...forward, ...backward.reverse()];
  const first = Math.min(parts, stages - stage - 1);
  const turns = forward.slice(first).flatMap((one, i) => [one, backward[i]]);
  return [...forward.slice(0, first), ...turns, ...backward.slice(parts - first)];
}

// The key of what must be done before a piece of work can begin; null for a part's first piece.
function neededWork(stage, stages, part, kind) {
  if (kind === "forward") return stage ? `${stage - 1} ${part} forward` : null;
  return stage < stages - 1 ? `${stage + 1} ${part} backward` : `${stage} ${part} forward`;
}

// As pipeline in training/pipeline.py: all pieces of work, each as soon as it can begin.
function pipelineWork(state) {
  const { stages } = state, ends = new Map([[null, 0]]), free = Array(stages).fill(0), blocks = [];
  const todo = free.map((_, stage) => orderOfWork(stage, state));
  while (todo.some((left) => left.length)) {
    todo.forEach((left, row) => {
      const [part, kind] = left[0] ?? [], needed = neededWork(row, stages, part, kind);
      if (!left.length || !ends.has(needed)) return;
      const start = Math.max(free[row], ends.get(needed)), length = PASS_LENGTH[kind];
      left.shift();
      free[row] = start + length;
      ends.set(`${row} ${part} ${kind}`, free[row]);
      blocks.push({ key: `${row} ${part} ${kind}`, row, start, length, kind, name: part,
        link: `part${part}`, words: `stage ${row}, part ${part} ${kind}` });
    });
  }
  return { blocks, end: Math.max(...free), rows: free.map((_, stage) => `stage ${stage}`) };
}

// The experts with the highest scores; ties go to the first.
function chosenExperts(own, { chosen, favorites, popularity }) {
  const scores = own.map((score, expert) => score + favorites * popularity[expert]);
  const ranked = scores.map((_, expert) => expert).sort((a, b) => scores[b] - scores[a] || a - b);
  return ranked.slice(0, chosen).sort((a, b) => a - b);
}

// As sent_to_devices in training/pipeline.py: tokens, in order, on the devices of their experts.
function expertWork(state) {
  const { affinity, devices } = state, free = Array(devices).fill(0), blocks = [];
  const each = affinity[0].length / devices;
  affinity.forEach((own, token) => {
    for (const expert of chosenExperts(own, state)) {
      const row = Math.floor(expert / each), start = free[row]++;
      blocks.push({ key: `${token} ${expert}`, row, start, length: 1, name: token,
        kind: "forward", link: `token${token} expert${expert}`,
        words: `device ${row}, token ${token} at expert ${expert}` });
    }
  });
  const rows = free.map((_, row) => (each === 1 ? `expert ${row}` :
    `experts ${row * each}–${(row + 1) * each - 1}`));
  return { blocks, end: Math.max(...free), rows };
}

function workOf(state) {
  const work = state.view === "pipeline" ? pipelineWork(state) : expertWork(state);
  const busy = work.rows.map((_, row) => work.blocks.filter((one) => one.row === row)
    .reduce((sum, { length }) => sum + length, 0));
  const all = work.end * busy.length;
  return { ...work, busy, waiting: 1 - busy.reduce((a, b) => a + b) / all };
}

// When a row has nothing to do: [row, start, end].
function gapsOf({ blocks, rows, end }) {
  return rows.flatMap((_, row) => {
    const own = blocks.filter((one) => one.row === row).sort((a, b) => a.start - b.start);
    const starts = [0, ...own.map(({ start, length }) => start + length)];
    const stops = [...own.map(({ start }) => start), end];
    return starts.map((start, i) => [row, start, stops[i]]).filter(([, a, b]) => b > a);
  });
}

function drawPipeline(state, page) {
  const { svg, width } = page, work = workOf(state), beside = width >= 640;
  const left = beside ? 92 : 0, right = width - (beside ? 96 : 2), pitch = beside ? 40 : 46;
  const high = beside ? 30 : 24, step = (right - left) / work.end;
  const time = Math.min(state.time, work.end);
  const place = { beside, left, right, width, high, step, time, x: (at) => left + at * step,
    y: (row) => (beside ? 4 : 20) + row * pitch };
  drawGaps(layer(svg, "gaps"), work, state, place);
  drawWork(layer(svg, "work"), work, place);
  drawRowNames(layer(svg, "rows"), work, state, place);
  const bottom = place.y(work.rows.length - 1) + high + 4;
  drawClock(layer(svg, "clock"), work, bottom, place);
  set(svg, { width, height: drawKinds(layer(svg, "kinds"), state, bottom + 26, place) + 8 });
  return state.view === "pipeline" ? pipelineFacts(work, state) : expertFacts(work, state);
}

function drawGaps(group, work, { view }, { x, y, step, high }) {
  const who = view === "pipeline" ? "stage" : "device";
  put.path(group, "paths", gapsOf(work), ([row, start, end]) => ({
    d: hatching(x(start), y(row), (end - start) * step - 1, high), class: "still",
    ...pen("--soft", 1), ...told(`${who} ${row} waits from ${start} to ${end}`, "wait"),
  }), ([row, start]) => `${row} ${start}`);
}

function hatching(x, y, wide, high) {
  const lines = [`M${x} ${y}h${wide}v${high}h${-wide}z`];
  for (let at = HATCH; at < wide + high; at += HATCH) {
    const [top, bottom] = [Math.min(at, wide), Math.max(0, at - high)];
    lines.push(`M${x + bottom} ${y + Math.min(at, high)}L${x + top} ${y + Math.max(0, at - wide)}`);
  }
  return lines.join("");
}

// The pieces of work; those still to come are pale.
function drawWork(group, { blocks }, { x, y, step, high, time }) {
  const color = { forward: "--key", backward: "--query" };
  put.rect(group, "blocks", blocks, (one) => ({
    x: x(one.start), y: y(one.row), width: Math.max(1, one.length * step - 1), height: high,
    rx: Math.min(3, step / 4), fill: `var(${color[one.kind]})`,
    opacity: one.start < time ? 1 : 0.25,
    ...told(`${one.words}, from ${one.start} to ${one.start + one.length}`, one.link) }));
  const named = blocks.filter((one) => one.length * step >= 9 * `${one.name}`.length);
  put.label(group, "names", named, (one) => [
    `${one.name}`, x(one.start + one.length / 2) - 0.5, y(one.row) + high / 2 + 4,
    `${step < 14 ? "size-10" : "number"} middle`,
    { fill: one.start < time ? inkOn(`var(${color[one.kind]})`) : null }]);
}

function drawRowNames(group, work, state, { beside, width, y, high }) {
  const at = (row) => (beside ? y(row) + high / 2 + 5 : y(row) - 5);
  put.text(group, "names", work.rows, (text, row) => [text, 0, at(row), "size-13"]);
  const words = work.rows.map((_, row) => (state.view === "pipeline" ?
    `keeps ${countOf(partsKept(work, row), "part")}` :
    `${work.busy[row]} of ${work.blocks.length}`));
  put.text(group, "words", words, (text, row) => [text, width, at(row), "small end"]);
}

// As parts_kept in training/pipeline.py: the most parts whose activations a stage keeps at once.
function partsKept({ blocks }, row) {
  const own = blocks.filter((one) => one.row === row).sort((a, b) => a.start - b.start);
  let kept = 0, most = 0;
  for (const { kind } of own) {
    kept += kind === "forward" ? 1 : -1;
    most = Math.max(most, kept);
  }
  return most;
}

function drawClock(group, { end }, bottom, { x, y, time, left, right }) {
  put.path(group, "line", [{ d: `M${x(time)} ${y(0) - 4}V${bottom + 4}`, ...pen("--ink", 2) }]);
  const late = x(time) > (left + right) / 2;
  put.label(group, "time", [0], () => [
    `${time} of ${end} steps`, x(time) + (late ? -4 : 4), bottom + 12, late ? "small end" : "small",
  ]);
}

// What the colors mean; returns where it ends.
function drawKinds(group, { view }, y, { left, right }) {
  const waits = ["waits", null], kinds = view === "experts" ? [["a token", "--key"], waits] :
    [["forward", "--key"], ["backward, twice as long", "--query"], waits];
  const { places, bottom } = wrapped(kinds.map(([text]) => 22 + 6.3 * text.length),
    { x: left, y, width: right - left, high: 12, gap: 12, between: 8 });
  put.path(group, "marks", kinds, ([, color], i) => ({
    d: color ? `M${places[i].x} ${places[i].y}h16v12h-16z` :
      hatching(places[i].x, places[i].y, 16, 12), class: "still",
    fill: color ? `var(${color})` : "none", stroke: color ? null : "var(--soft)",
  }), ([text]) => text);
  put.text(group, "words", kinds, ([text], i) =>
    [text, places[i].x + 22, places[i].y + 10, "small"], ([text]) => text);
  return bottom;
}

const percentOf = (share) => `${Math.round(100 * share)} %`;

function pipelineFacts(work, { stages, parts, order }) {
  const title = `With ${countOf(stages, "stage")} and ${countOf(parts, "part")}, the bubble is ` +
    `${percentOf(work.waiting)} of the time`;
  const most = Math.max(...work.rows.map((_, row) => partsKept(work, row)));
  const said = `Each stage works for ${work.busy[0]} of ${work.end} steps and waits for ` +
    `${work.end - work.busy[0]}: (p − 1) / (m + p − 1) = ${stages - 1}/${parts + stages - 1}. ` +
    `In the order ${order}, a stage keeps what ${countOf(most, "part")} left behind, at most.`;
  return { title, said };
}

function expertFacts({ busy, end, waiting, blocks }, { devices, chosen, affinity }) {
  const fullest = busy.indexOf(end), even = blocks.length / devices;
  const title = `Device ${fullest} has ${end} of the ${blocks.length} passes, and on average a ` +
    `device waits ${percentOf(waiting)} of the time`;
  const said = `${affinity.length} tokens go through ${countOf(chosen, "expert")} each. The ` +
    `devices get ${busy.join(", ")} passes. With ${even} each the layer would take ${even} ` +
    `steps, not ${end}.`;
  return { title, said };
}
