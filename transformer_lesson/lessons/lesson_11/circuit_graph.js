// A small model as a graph: each path from one part to another is an edge that can be cut.

import { circuitOf, edgeName, readCut } from "./circuit_pass.js";
import { choosable, layer, pen, put, told } from "../../explorables/web/draw.js";
import { frame, remembered } from "../../explorables/web/frame.js";
import { likeliest, logSoftmax } from "../../explorables/web/generation.js";
import { inPieces } from "../../explorables/web/in_pieces.js";
import { firstLargest } from "../../explorables/web/ranking.js";
import { headRows, mapShades } from "../../explorables/web/small_map.js";
import { modelOf } from "../../explorables/web/weights.js";

const MOST_READ = 300; // cases whose results are kept
const DOT = 13, MAP = 92; // pixels from edge to edge where they arrive, and of a head's map
const READS = { q: ["queries", "--query"], k: ["keys", "--key"], v: ["values", "--value"] };

export const CircuitGraph = (view) => frame(view, {
  name: "Circuit graph",
  traits: ["cut", "costs"],
  controls: circuitControls, load: modelOf, draw: drawCircuit });

function circuitControls(make, page) {
  const [edges, circuit] = ["edges", "circuit"].map((name) => page.model.get(name));
  const names = circuit.map(edgeName), inside = (edge) => names.includes(edgeName(edge));
  const cuts = { "All edges": [] };
  if (circuit.length) {
    cuts["Only the circuit"] = edges.filter((edge) => !inside(edge));
    cuts["All but the circuit"] = edges.filter(inside);
  }
  const isNow = (cut) => cutName(page.model.get("cut")) === cutName(cut);
  const buttons = Object.entries(cuts).map(([text, cut]) =>
    make.button(text, () => ({ cut }), () => ({ "aria-pressed": String(isNow(cut)) })));
  return [...buttons, make.toggle("width: what its cut would cost", "costs")];
}

function drawCircuit({ cut, costs }, page, { model }) {
  const [edges, rows, averaged] = ["edges", "rows", "averaged"].map((name) => page.model.get(name));
  const own = page.model.get("circuit"), outside = own.length ? othersCut(edges, own) : [];
  page.study ??= { circuit: circuitOf(model, edges), edges, averaged, outside, results: new Map(),
    rows: rows.map((row) => ({ ...row, known: new Map() })) };
  remembered(page, "cases", [cut, costs], () => inPieces(page, readCuts(page.study, cut, costs)));
  const look = lookOfCuts(page.study, cut, costs);
  const { svg, width } = page, plan = circuitPlan(look, width);
  drawEdges(layer(svg, "edges"), look, plan, page);
  drawParts(layer(svg, "parts"), look, plan);
  const end = drawRight(layer(svg, "shares"), look, { y: plan.high + 12, width });
  return { ...circuitFacts(look, page), height: end };
}

// What is right with some edges cut: of all cases, those read so far

const cutName = (cut) => cut.map(edgeName).sort().join();

function withEdgeSwitched(cut, edge) {
  const without = cut.filter((one) => edgeName(one) !== edgeName(edge));
  return without.length < cut.length ? without : [...cut, edge];
}

function othersCut(edges, cut) {
  const names = cut.map(edgeName);
  return edges.filter((edge) => !names.includes(edgeName(edge)));
}

// The text below all edges: what is left and what is cut, or the circuit and all but it.
const cutBeside = ({ outside }, cut) => cut.length ? cut : outside;

// Reads what a picture needs: the means, all edges, this case, what is beside it, and, where
// costs are asked for, the case with each edge switched.
function* readCuts(study, cut, costs) {
  const { edges, results } = study, beside = cutBeside(study, cut);
  if (!study.means) yield* readMeans(study);
  if (results.size > MOST_READ) results.clear();
  const switched = costs ? edges.map((edge) => withEdgeSwitched(cut, edge)) : [];
  for (const one of [[], cut, beside, othersCut(edges, beside), ...switched]) {
    const keep = one === cut && costs; // what its heads send serves those with one edge switched
    if (keep || !results.has(cutName(one))) yield* readCutRows(study, one, keep);
  }
}

// What each sender sends at each position, in the mean over the sequences for that.
function* readMeans(study) {
  const sums = new Map();
  for (const ids of study.averaged) {
    for (const [sender, { x }] of readCut(study.circuit, ids, [], sums).sent) {
      const sum = sums.get(sender) ?? new Float32Array(x.data.length);
      x.data.forEach((value, i) => { sum[i] += value / study.averaged.length; });
      sums.set(sender, sum);
    }
    yield;
  }
  study.means = sums;
}

// Loss and right labels with some edges cut, and where the heads look in the first row.
function* readCutRows({ circuit, rows, means, results }, cut, keep) {
  const found = { loss: 0, right: 0, count: 0, weights: new Map() };
  for (const row of rows) {
    const { sent, logits } = readCut(circuit, row.ids, cut, means, row.known);
    row.labels.forEach((label, i) => {
      if (label < 0) return; // does not count
      found.loss -= logSoftmax(logits.row(i))[label];
      found.right += likeliest(logits.row(i)) === label ? 1 : 0;
      found.count += 1;
    });
    if (!cut.length) row.whole = [...sent.values()];
    if (keep || !cut.length) {
      row.known = new Map([...row.whole, ...sent.values()].map((one) => [one.key, one]));
    }
    if (row === rows[0]) for (const [name, { weights }] of sent) found.weights.set(name, weights);
    yield;
  }
  results.set(cutName(cut), { ...found, loss: found.loss / found.count });
}

// What the picture shows; what is not read yet is undefined.
function lookOfCuts(study, cut, costs) {
  const { edges, results, circuit } = study, beside = cutBeside(study, cut);
  const result = (one) => results.get(cutName(one)), names = new Set(cut.map(edgeName));
  const all = result([]), now = result(cut);
  const looks = edges.map((edge) => {
    const gone = names.has(edgeName(edge)), [sender, receiver] = edge;
    const then = costs && now ? result(withEdgeSwitched(cut, edge)) : undefined;
    return { edge, sender, receiver, gone, then, name: edgeName(edge) };
  });
  return { edges: looks, cut, costs, all, now, heads: [...circuit.heads.keys()],
    chance: 1 / circuit.model.config.vocab_size, beside, left: result(beside),
    alone: result(othersCut(edges, beside)) };
}

const rightAndLoss = ({ right, count, loss }) =>
  `${(100 * right / count).toFixed(1)} % right, loss ${loss.toFixed(2)} nats`;

function receiverName(receiver) {
  const [block, head, part] = receiver.split(".");
  return part ? `${READS[part][0]} of head ${block}.${head}` : receiver;
}

const edgeWords = ({ sender, receiver }) =>
  `${sender === "embedding" ? sender : `head ${sender}`} to ${receiverName(receiver)}`;

// Picture

// The layout: the embedding, the heads of each block beside each other, the logits,
// from left to right, or where that is too narrow from top to bottom. `along` counts in the
// direction in which the model computes, `cross` across it. Beside a single head a lane is left.
function circuitPlan({ edges, heads }, width) {
  const blocks = new Set(heads.map((name) => name.split(".")[0])).size;
  const each = heads.length / blocks, slots = Math.max(2, each), gap = 26;
  const size = Math.max(MAP + 12, 3 * (1 + heads.length - each) * DOT + 30);
  const whole = slots * (size + gap) - gap, wide = width >= 168 + blocks * 118 + (blocks + 1) * 56;
  const deep = wide ? MAP + 26 : MAP + 42, ends = wide ? 84 : 34;
  const step = wide ? (width - 2 * ends - blocks * deep - 4) / (blocks + 1) : 84;
  const middle = Math.max(whole, wide ? 0 : width - 4) / 2, parts = new Map();
  const add = (name, stage, cross, size) => parts.set(name, { stage, cross, size,
    from: stage && ends + step + (stage - 1) * (deep + step),
    deep: stage > 0 && stage <= blocks ? deep : ends });
  add("embedding", 0, middle - 45, 90);
  heads.forEach((name, i) => {
    const slot = slots - each + i % each, stage = 1 + Math.floor(i / each);
    add(name, stage, middle - whole / 2 + slot * (size + gap), size);
  });
  const last = Math.max(90, (1 + heads.length) * DOT + 14);
  add("logits", blocks + 1, middle - last / 2, last);
  const lane = middle - whole / 2 + Math.ceil(slots / 2) * (size + gap) - gap / 2;
  const total = parts.get("logits").from + ends;
  return { wide, parts, lane, stage: (i) => ({ from: ends + step + (i - 1) * (deep + step), deep }),
    high: (wide ? whole : total) + 4, edges, senders: ["embedding", ...heads],
    at: (along, cross) => (wide ? [along + 2, cross + 2] : [cross + 2, along + 2]) };
}

// Where an edge arrives: at its receiver, queries before keys before values.
function arrival({ parts, edges }, { receiver, name }) {
  const owner = receiver.split(".").slice(0, 2).join("."), part = parts.get(owner);
  const all = edges.filter((one) => one.receiver.split(".").slice(0, 2).join(".") === owner);
  const place = all.findIndex((one) => one.name === name) - (all.length - 1) / 2;
  const apart = receiver === owner ? 0 : 6 * ("qkv".indexOf(receiver.at(-1)) - 1);
  return { along: part.from - 6, cross: part.cross + part.size / 2 + place * DOT + apart };
}

// The way of an edge; past a block it goes through the lane between that block's heads.
function edgeWay(plan, edge) {
  const sender = plan.parts.get(edge.sender), end = arrival(plan, edge);
  const receiver = plan.parts.get(edge.receiver.split(".").slice(0, 2).join("."));
  let now = { along: sender.from + sender.deep, cross: sender.cross + sender.size / 2 };
  const { at } = plan, ways = [`M${at(now.along, now.cross)}`];
  const curve = (to) => {
    const half = (now.along + to.along) / 2;
    ways.push(`C${at(half, now.cross)} ${at(half, to.cross)} ${at(to.along, to.cross)}`);
    now = to;
  };
  const side = Math.sign(sender.cross + sender.size / 2 - plan.lane);
  const part = "qkv".indexOf(edge.receiver.split(".")[2] ?? "v");
  const aside = sender.stage ? 5 * side : edge.receiver === "logits" ? 10 : 5 * (part - 1);
  for (let stage = sender.stage + 1; stage < receiver.stage; stage++) {
    const { from, deep } = plan.stage(stage), cross = plan.lane + aside;
    curve({ along: from, cross });
    ways.push(`L${at(from + deep, cross)}`);
    now = { along: from + deep, cross };
  }
  curve(end);
  return ways.join("");
}

// Each edge with a button where it arrives; where costs are known, the wider the more it costs.
function drawEdges(group, { edges, now }, plan, page) {
  const color = ({ receiver }) => `var(${READS[receiver.split(".")[2]]?.[1] ?? "--ink"})`;
  const rise = ({ then, gone }) => (then && !gone ? Math.max(0, then.loss - now.loss) : 0);
  const most = Math.max(1e-9, ...edges.map(rise));
  const ordered = [...edges.filter(({ gone }) => gone), ...edges.filter(({ gone }) => !gone)];
  put.path(group, "lines", ordered, (edge) => ({
    d: edgeWay(plan, edge), fill: "none", stroke: edge.gone ? "var(--soft)" : color(edge),
    "stroke-width": edge.gone ? 1 : edge.then ? 1.2 + 6 * rise(edge) / most : 2.2,
    "stroke-dasharray": edge.gone ? "2 5" : "none", "data-links": edge.name }), "name");
  const turn = ({ edge }) => () => page.set({ cut: withEdgeSwitched(page.model.get("cut"), edge) });
  put.path(group, "ways", edges, (edge) =>
    ({ d: edgeWay(plan, edge), class: "hand", "data-of": edge.name, onclick: turn(edge) }), "name");
  put.circle(group, "near", edges, (edge) => { // what a finger hits around a dot
    const { along, cross } = arrival(plan, edge), [cx, cy] = plan.at(along, cross);
    return { cx, cy, r: DOT / 2 + 1, fill: "transparent", "data-of": edge.name,
      onclick: turn(edge) };
  }, "name");
  put.circle(group, "dots", edges, (edge) => {
    const { along, cross } = arrival(plan, edge), [cx, cy] = plan.at(along, cross);
    return { cx, cy, r: 5, fill: edge.gone ? "var(--paper)" : color(edge),
      stroke: edge.gone ? "var(--soft)" : color(edge),
      ...choosable(edgeTold(edge), edge.gone, turn(edge), edge.name) };
  }, "name");
}

function edgeTold(edge) {
  const what = `${edgeWords(edge)}, ${edge.gone ? "cut" : "there"}`;
  if (!edge.then) return what;
  return `${what}; ${edge.gone ? "with it again" : "without it"} ${rightAndLoss(edge.then)}`;
}

// Boxes with names; in a head's box where it looks in the first row, and which edges arrive where.
function drawParts(group, { heads, now, all }, plan) {
  const box = (name) => {
    const { from, deep, cross, size } = plan.parts.get(name), [x, y] = plan.at(from, cross);
    return plan.wide ? { x, y, width: deep, height: size } : { x, y, width: size, height: deep };
  };
  put.rect(group, "boxes", [...plan.parts.keys()], (name) =>
    ({ ...box(name), rx: 8, class: "box" }), String);
  put.text(group, "names", [...plan.parts.keys()], (name) => {
    const { x, y, width, height } = box(name), head = heads.includes(name);
    return { text: head ? `head ${name}` : name, class: "middle strong size-13",
      x: x + width / 2 + (head && plan.wide ? 8 : 0),
      y: y + (!head ? height / 2 + 5 : plan.wide ? (height - MAP) / 2 : 30) };
  }, String);
  const corner = (name) => {
    const { x, y, width, height } = box(name), low = plan.wide ? (height - MAP) / 2 + 6 : 34;
    return [x + (plan.wide ? 20 : (width - MAP) / 2), y + low];
  };
  const weights = (now ?? all)?.weights, shades = !weights ? [] : heads.flatMap((name) =>
    mapShades(name, headRows(weights.get(name), 0), corner(name), MAP));
  put.rect(group, "frames", heads, (name) => ({
    x: corner(name)[0], y: corner(name)[1], width: MAP, height: MAP, fill: "var(--none)", rx: 4,
  }), String);
  put.path(group, "maps", shades);
  drawLetters(group, plan);
}

function drawLetters(group, plan) {
  const letters = new Map();
  for (const edge of plan.edges) {
    const part = edge.receiver.split(".")[2];
    if (part) letters.set(edge.receiver, [...(letters.get(edge.receiver) ?? []),
      arrival(plan, edge)]);
  }
  put.label(group, "letters", [...letters], ([name, places]) => {
    const cross = places.reduce((sum, one) => sum + one.cross, 0) / places.length;
    const [x, y] = plan.at(places[0].along + 15, cross);
    return { text: name.at(-1), x, y: y + 4, class: "middle number strong" };
  }, ([name]) => name);
}

// What is right with all edges, with those that are left, and with those alone that are cut; where
// none is cut, with the circuit and with all but it.
function drawRight(group, { edges, cut, all, beside, left, alone, chance }, { y, width }) {
  const n = edges.length, m = beside.length, wide = width >= 560, line = wide ? 22 : 38;
  const names = cut.length ? [`the ${n - m} that are left`, `the ${m} cut ones alone`] :
    [`the circuit’s ${n - m} alone`, `the other ${m} alone`];
  const rows = [[`all ${n} edges`, all], ...(m ? [[names[0], left], [names[1], alone]] : [])]
    .filter(([, result]) => result);
  const x = wide ? 150 : 0, end = wide ? width - 210 : width - 2, top = (i) => y + i * line;
  const long = ({ right, count }) => (right / count) * (end - x), low = wide ? 4 : 18;
  put.text(group, "labels", rows, ([name], i) => [name, 0, top(i) + 14, "size-13"]);
  put.rect(group, "rooms", rows, (_, i) =>
    ({ x, y: top(i) + low, width: end - x, height: 12, rx: 3, fill: "var(--none)" }));
  put.rect(group, "bars", rows, ([name, result], i) => ({
    x, y: top(i) + low, width: Math.max(1, long(result)), height: 12, rx: 3,
    fill: i === 2 ? "var(--minus)" : "var(--plus)", ...told(`${name}: ${rightAndLoss(result)}`) }));
  put.label(group, "numbers", rows, ([, result], i) =>
    [rightAndLoss(result), width - 2, top(i) + 14, "number end"]);
  put.path(group, "chance", rows.length ? [0] : [], () => ({
    d: rows.map((_, i) => `M${x + chance * (end - x)} ${top(i) + low - 3}v18`).join(""),
    ...pen("--ink", 1, "3 3") }), String);
  put.text(group, "chance name", rows.length ? [0] : [], () =>
    ["chance", x + chance * (end - x) + 4, top(rows.length) + 10, "small"], String);
  return top(3) + 14;
}

function circuitFacts(look, page) {
  const { edges, cut, all, now, alone, chance } = look, n = edges.length, left = n - cut.length;
  if (!now || !all) return { title: "The model reads", said: "The model reads its sequences." };
  const chances = `By chance ${(100 * chance).toFixed(1)} % would be.`;
  const next = nextWords(look, page);
  if (!cut.length) {
    const said = `${now.right} of ${now.count} labels are right. ${chances}${next}`;
    return { title: `All ${n} edges: ${rightAndLoss(now)}`, said };
  }
  const title = `${left} of ${n} edges left: ${rightAndLoss(now)}`;
  const names = edges.filter(({ gone }) => gone).map(edgeWords).join("; ");
  const begin = cut.length <= 2 ? `Cut: ${names}. ` : "";
  const others = alone ? `The ${cut.length} alone: ${rightAndLoss(alone)}. ` : "";
  return { title, said: `${begin}All edges: ${rightAndLoss(all)}. ${others}${next.trim()}` };
}

// Of the edges that are left, which one would cost least: told where costs are asked for.
function nextWords({ edges, costs }, page) {
  const left = edges.filter(({ gone }) => !gone);
  if (!costs || !left.length) return "";
  if (page.work || left.some(({ then }) => !then)) return " Each edge is being cut and read.";
  const least = left[firstLargest(left.map(({ then }) => -then.loss))];
  return ` Missed least: ${edgeWords(least)}; without it ${rightAndLoss(least.then)}.`;
}
