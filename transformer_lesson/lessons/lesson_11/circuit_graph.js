// A small model as wires: each path from one part to another is an edge that can be cut.

import { circuitOf, edgeName, readCut } from "./circuit_pass.js";
import { choosable, layer, pen, put, textWidth, told } from "../../explorables/web/draw.js";
import { frame, remembered } from "../../explorables/web/frame.js";
import { likeliest, logSoftmax } from "../../explorables/web/generation.js";
import { inPieces } from "../../explorables/web/in_pieces.js";
import { firstLargest } from "../../explorables/web/ranking.js";
import { headRows, mapShades } from "../../explorables/web/small_map.js";
import { modelOf } from "../../explorables/web/weights.js";

const MOST_READ = 300; // cases whose results are kept
const ROW = 24; // pixels from one line that a part reads to the next
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
  return [...buttons, make.toggle("size: what its cut would cost", "costs")];
}

function drawCircuit({ cut, costs }, page, { model }) {
  const [edges, rows, averaged] = ["edges", "rows", "averaged"].map((name) => page.model.get(name));
  const own = page.model.get("circuit"), outside = own.length ? othersCut(edges, own) : [];
  page.study ??= { circuit: circuitOf(model, edges), edges, averaged, outside, results: new Map(),
    chance: guessedAmongTheRows(rows), rows: rows.map((row) => ({ ...row, known: new Map() })) };
  remembered(page, "cases", [cut, costs], () => inPieces(page, readCuts(page.study, cut, costs)));
  const look = lookOfCuts(page.study, cut, costs);
  const { svg, width } = page, plan = circuitPlan(look, width);
  drawEdges(layer(svg, "edges"), look, plan, page);
  drawParts(layer(svg, "parts"), look, plan);
  const beside = plan.roomy && look.heads.length > 2, x = beside ? 2.7 * plan.step : 2;
  const end = drawRight(layer(svg, "shares"), look, { x, y: beside ? 0 : plan.high + 8,
    end: width - 2 });
  return { ...circuitFacts(look, page), height: Math.max(end, plan.high + 4) };
}

// The share that is right by guessing among the tokens that a row has.
const guessedAmongTheRows = (rows) =>
  rows.reduce((sum, { ids }) => sum + 1 / new Set(ids).size / rows.length, 0);

// Cases: which edges are cut, and how much is right without them

const cutName = (cut) => cut.map(edgeName).sort().join();

function withEdgeSwitched(cut, edge) {
  const without = cut.filter((one) => edgeName(one) !== edgeName(edge));
  return without.length < cut.length ? without : [...cut, edge];
}

function othersCut(edges, cut) {
  const names = cut.map(edgeName);
  return edges.filter((edge) => !names.includes(edgeName(edge)));
}

// The cut that is compared with all edges: this one, or, if nothing is cut, that of everything
// outside the circuit.
const cutBeside = ({ outside }, cut) => cut.length ? cut : outside;

// Reads what a picture needs: the means, all edges, this case, the case of `cutBeside` and its
// opposite, and, if costs are shown, this case with each edge switched.
function* readCuts(study, cut, costs) {
  const { edges, results } = study, beside = cutBeside(study, cut);
  if (!study.means) yield* readMeans(study);
  if (results.size > MOST_READ) results.clear();
  const switched = costs ? edges.map((edge) => withEdgeSwitched(cut, edge)) : [];
  for (const one of [[], cut, beside, othersCut(edges, beside), ...switched]) {
    const keep = one === cut && costs; // most heads send the same with one edge switched
    if (keep || !results.has(cutName(one))) yield* readCutRows(study, one, keep);
  }
}

// What each sender sends at each position, averaged over the sequences in `averaged`.
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
  const sums = { loss: 0, right: 0, count: 0, weights: new Map() };
  for (const row of rows) {
    const { sent, logits } = readCut(circuit, row.ids, cut, means, row.known);
    row.labels.forEach((label, i) => {
      if (label < 0) return; // does not count
      sums.loss -= logSoftmax(logits.row(i))[label];
      sums.right += likeliest(logits.row(i)) === label ? 1 : 0;
      sums.count += 1;
    });
    if (!cut.length) row.whole = [...sent.values()];
    if (keep || !cut.length) {
      row.known = new Map([...row.whole, ...sent.values()].map((one) => [one.key, one]));
    }
    if (row === rows[0]) for (const [name, { weights }] of sent) sums.weights.set(name, weights);
    yield;
  }
  results.set(cutName(cut), { ...sums, loss: sums.loss / sums.count });
}

// What the picture shows; results not read yet are undefined.
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
    chance: study.chance, beside, left: result(beside),
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

// The layout: parts on a diagonal, in the order of computation. What a part sends runs down from
// it, what it reads comes in from the left, and an edge is a dot where the two cross.
function circuitPlan({ edges, heads }, width) {
  const names = ["embedding", ...heads, "logits"], parts = new Map(), rows = new Map();
  const step = (width - 8) / names.length, wide = Math.min(step - 10, 132);
  let top = 2;
  for (const [i, name] of names.entries()) {
    const letters = heads.includes(name) ? [".q", ".k", ".v"] : [""];
    const high = Math.max(28, ROW * letters.length), x = 2 + i * step;
    const own = name === "logits" ? Math.max(wide, Math.min(48, step + 4)) : wide;
    parts.set(name, { x, y: top, width: own, height: high, down: x + own / 2 });
    letters.forEach((letter, k) => rows.set(name + letter,
      { end: x, y: top + high / 2 + ROW * (k - (letters.length - 1) / 2), letter }));
    top += high + 10;
  }
  const at = ({ sender, receiver }) => ({ x: parts.get(sender).down, y: rows.get(receiver).y });
  return { parts, rows, at, heads, step, high: top - 10, edges, width, roomy: width >= 560 };
}

const colorOf = (receiver) => `var(${READS[receiver.split(".")[2]]?.[1] ?? "--ink"})`;

// Senders' lines, receivers' lines, and a dot for each edge; once costs are known, the larger the
// more it would cost to cut the edge.
function drawEdges(group, { edges, now }, plan, page) {
  const there = edges.filter(({ gone }) => !gone), { parts, rows, at } = plan;
  const senders = [...parts.keys()].filter((name) => name !== "logits");
  put.path(group, "down", senders, (name) => {
    const { down, y, height } = parts.get(name), own = there.filter((e) => e.sender === name);
    return { d: `M${down} ${y + height}V${Math.max(y + height, ...own.map((e) => at(e).y))}`,
      ...pen("--soft", 1.5) };
  }, String);
  put.path(group, "across", [...rows.keys()].filter((name) => name !== "embedding"), (name) => {
    const { end, y } = rows.get(name), own = there.filter((e) => e.receiver === name);
    return { d: `M${Math.min(end, ...own.map((e) => at(e).x))} ${y}H${end}`, fill: "none",
      stroke: colorOf(name), "stroke-width": 2 };
  }, String);
  put.path(group, "ways", edges, (edge) => {
    const { x, y } = at(edge), { height, ...from } = parts.get(edge.sender);
    return { d: `M${x} ${from.y + height}V${y}H${rows.get(edge.receiver).end}`, fill: "none",
      stroke: "transparent", "data-links": edge.name };
  }, "name");
  const turn = ({ edge }) => () => page.set({ cut: withEdgeSwitched(page.model.get("cut"), edge) });
  put.rect(group, "near", edges, (edge) => { // a target around each dot, large enough for a finger
    const { x, y } = at(edge), side = Math.min(plan.step, 44);
    return { x: x - side / 2, y: y - ROW / 2, width: side, height: ROW, fill: "transparent",
      "data-of": edge.name, onclick: turn(edge) };
  }, "name");
  const rise = ({ then, gone }) => (then && !gone ? Math.max(0, then.loss - now.loss) : 0);
  const most = Math.max(1e-9, ...edges.map(rise));
  put.circle(group, "dots", edges, (edge) => {
    const { x, y } = at(edge), color = edge.gone ? "var(--soft)" : colorOf(edge.receiver);
    return { cx: x, cy: y, r: edge.then && !edge.gone ? 3 + 7 * Math.sqrt(rise(edge) / most) : 7,
      fill: edge.gone ? "var(--paper)" : color, stroke: color,
      ...choosable(edgeTold(edge), edge.gone, turn(edge), edge.name) };
  }, "name");
}

function edgeTold(edge) {
  const what = `${edgeWords(edge)}, ${edge.gone ? "cut" : "there"}`;
  if (!edge.then) return what;
  return `${what}; ${edge.gone ? "with it back" : "without it"} ${rightAndLoss(edge.then)}`;
}

// Boxes with names; in a head's box, where it looks in the first row, and a letter for each line.
function drawParts(group, { heads, now, all }, { parts, rows, roomy, width: end }) {
  const names = [...parts.keys()], weights = (now ?? all)?.weights;
  put.rect(group, "boxes", names, (name) => {
    const { down, ...box } = parts.get(name);
    return { ...box, rx: 8, class: "box" };
  }, String);
  const lines = names.flatMap((name) => {
    const { x, y, width, height, down } = parts.get(name), head = heads.includes(name);
    const inside = !head && (roomy || name === "logits"), text = head ? `head ${name}` : name;
    const cut = !inside && x + width + 8 + textWidth(text, 13, 600) > end;
    return (cut ? text.split(" ") : [text]).map((line, k, all) => ({ key: `${name} ${k}`,
      text: line, x: inside ? down : x + width + 8,
      y: y + height / 2 + 5 + 16 * (k - (all.length - 1) / 2),
      class: inside ? "middle strong size-13" : "strong size-13" }));
  });
  put.text(group, "names", lines);
  const maps = !weights ? [] : heads.flatMap((name) => {
    const { x, y, width, height } = parts.get(name), side = Math.min(height - 4, width - 18);
    const corner = [x + 16 + (width - 18 - side) / 2, y + (height - side) / 2];
    return mapShades(name, headRows(weights.get(name), 0), corner, side);
  });
  put.path(group, "maps", maps);
  put.label(group, "letters", [...rows].filter(([, { letter }]) => letter),
    ([, { end, y, letter }]) => [letter.slice(1), end + 10, y + 4, "middle number strong"],
    ([name]) => name);
}

// How much is right with all edges, with those that are left, and with only those that are cut; if
// none is cut, with only the circuit and with all but the circuit.
function drawRight(group, { edges, cut, all, beside, left, alone, chance }, { x, y, end }) {
  const n = edges.length, m = beside.length;
  const cutAlone = m === 1 ? "the cut one alone" : `the ${m} cut ones alone`;
  const names = cut.length ? [`the ${n - m} that are left`, cutAlone] :
    [`the circuit’s ${n - m} alone`, `the other ${m} alone`];
  const rows = [[`all ${n} edges`, all], ...(m ? [[names[0], left], [names[1], alone]] : [])]
    .filter(([, result]) => result);
  const low = end - x < 330 ? 16 : 0; // then the numbers have a line of their own
  const top = (i) => y + i * (36 + low), bar = (i) => top(i) + 17 + low;
  const long = ({ right, count }) => (right / count) * (end - x);
  put.text(group, "labels", rows, ([name], i) => [name, x, top(i) + 12, "size-13"]);
  put.rect(group, "rooms", rows, (_, i) =>
    ({ x, y: bar(i), width: end - x, height: 10, rx: 3, fill: "var(--none)" }));
  put.rect(group, "bars", rows, ([name, result], i) => ({
    x, y: bar(i), width: Math.max(1, long(result)), height: 10, rx: 3,
    fill: i === 2 ? "var(--minus)" : "var(--plus)", ...told(`${name}: ${rightAndLoss(result)}`) }));
  put.label(group, "numbers", rows, ([, result], i) =>
    [rightAndLoss(result), end, top(i) + 12 + low, "number end"]);
  put.path(group, "chance", rows.length ? [0] : [], () => ({
    d: rows.map((_, i) => `M${x + chance * (end - x)} ${bar(i) - 3}v16`).join(""),
    ...pen("--ink", 1, "3 3") }), String);
  put.text(group, "chance name", rows.length ? [0] : [], () =>
    ["chance", x + chance * (end - x) + 4, top(rows.length) + 6, "small"], String);
  return top(3) + 10;
}

function circuitFacts(look, page) {
  const { edges, cut, all, now, alone, chance } = look, n = edges.length, left = n - cut.length;
  if (!now || !all) return { title: "The model reads", said: "The model reads its sequences." };
  const chances = `By chance ${(100 * chance).toFixed(1)} % would be.`;
  const next = nextWords(look, page);
  if (!cut.length) {
    const said = "Each dot is an edge: the part above it sends, the part to its right " +
      `reads. ${now.right} of ${now.count} labels are right. ${chances}${next}`;
    return { title: `All ${n} edges: ${rightAndLoss(now)}`, said };
  }
  const title = `${left} of ${n} edges left: ${rightAndLoss(now)}`;
  const names = edges.filter(({ gone }) => gone).map(edgeWords).join("; ");
  const begin = cut.length <= 2 ? `Cut: ${names}. ` : "";
  const who = cut.length > 1 ? `The ${cut.length}` : "That one";
  const others = alone ? `${who} alone: ${rightAndLoss(alone)}. ` : "";
  return { title, said: `${begin}All edges: ${rightAndLoss(all)}. ${others}${next.trim()}` };
}

// Which of the remaining edges would cost least to cut; only if costs are shown.
function nextWords({ edges, costs }, page) {
  const left = edges.filter(({ gone }) => !gone);
  if (!costs || !left.length) return "";
  if (page.work || left.some(({ then }) => !then)) return " Each edge is being cut and read.";
  const least = left[firstLargest(left.map(({ then }) => -then.loss))];
  return ` Missed least: ${edgeWords(least)}; without it ${rightAndLoss(least.then)}.`;
}
