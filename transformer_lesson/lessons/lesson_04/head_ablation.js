// Switches off one or several heads: what that costs, where, and which of the others is then needed
// most. What a head costs is shown once it has been switched off.

import { choosable, fitted, layer, put, textWidth, told,
  wrapped } from "../../explorables/web/draw.js";
import { frame, remembered } from "../../explorables/web/frame.js";
import { likeliest, logSoftmax } from "../../explorables/web/generation.js";
import { inPieces } from "../../explorables/web/in_pieces.js";
import { firstLargest } from "../../explorables/web/ranking.js";
import { headRows, mapShades } from "../../explorables/web/small_map.js";
import { watched } from "../../explorables/web/transformer.js";
import { modelOf } from "../../explorables/web/weights.js";

const MOST_CASES = 200; // whose results are kept
const SWITCHES_HIGH = 380; // pixels for all heads, unless there are many

export const HeadAblation = (view) => frame(view, {
  name: "Head ablation",
  traits: ["removed", "tried"],
  controls: (make, { model }) => [make.button("All heads on", () => ({ removed: [] }),
    () => ({ disabled: !model.get("removed").length }))],
  load: modelOf, draw: drawAblation });

function drawAblation({ removed, tried = [] }, page, { model, tokenizer }) {
  const heads = page.model.get("heads"), off = removed.map(String);
  const fresh = removed.filter((head) => !tried.map(String).includes(String(head)));
  if (fresh.length) page.set({ tried: [...tried, ...fresh] });
  const all = [...tried, ...removed].map(String);
  page.study ??= { model, heads, layers: layersOf(model), results: new Map(),
    rows: page.model.get("rows").map((row) => ({ ...row })) };
  const [gone, known] = [off, all].map((names) =>
    [...heads.keys()].filter((i) => names.includes(String(heads[i]))));
  const key = [gone, known];
  remembered(page, "cases", key, () => inPieces(page, readCases(page.study, page, gone, known)));
  const look = lookOfCase(page.study, gone, known, page.preview);
  const { svg, width } = page, beside = width >= 700;
  const switches = switchPlaces(heads, beside ? width * 0.52 : width), { tall } = switches;
  const named = switches.names.map((name) => textWidth(attentionName(name, look.spelled), 14, 600));
  const left = Math.max(switches.wide + 66, Math.min(width * 0.52, Math.max(...named) + 40));
  drawSwitches(layer(svg, "switches"), look, page, { ...switches, room: beside ? left - 40 : width });
  const chart = beside ? { x: left, y: 0, width: width - left, high: Math.max(170, tall - 100) } :
    { x: 34, y: tall, width: width - 34, high: 130 };
  const end = look.spelled ? drawSpelled(layer(svg, "rows"), look, page.study.rows, tokenizer, chart) :
    drawLossCurves(layer(svg, "curves"), look, chart);
  return { ...ablationFacts(look, page), height: Math.max(tall, end) };
}

// Cases: which heads are off, and what the model does without them

const caseName = (gone) => [...gone].sort((a, b) => a - b).join();
const toggledHead = (gone, i) => gone.includes(i) ? gone.filter((one) => one !== i) : [...gone, i];

// Reads what a picture needs, in this order: the whole model, this case, the case that is pointed
// at, each known head alone, and this case with each head switched.
function* readCases(study, page, gone, known) {
  const { heads, results } = study, switched = [...heads.keys()].map((i) => toggledHead(gone, i));
  if (results.size > MOST_CASES) results.clear();
  const next = () => {
    const pointed = page.preview === null ? [] : [switched[page.preview]];
    const alone = known.map((i) => [i]);
    return [[], gone, ...pointed, ...alone, ...switched].find((one) => !results.has(caseName(one)));
  };
  for (let one = next(); one; one = next()) yield* readCase(study, one);
}

// Without some heads: the loss, mean and by position, the likeliest words, and where heads look.
function* readCase(study, gone) {
  const { heads, rows, results } = study, n = Math.max(...rows.map(({ labels }) => labels.length));
  const sums = Array(n).fill(0), counts = Array(n).fill(0), weights = [], likely = [];
  let right = 0;
  for (const row of rows) {
    const { seen, logits } = readRow(study, row, gone.map((i) => heads[i]));
    likely.push(row.labels.map((label, i) => (label < 0 ? label : likeliest(logits.row(i)))));
    row.labels.forEach((label, i) => {
      if (label < 0) return; // does not count
      sums[i] -= logSoftmax(logits.row(i))[label];
      counts[i] += 1;
      right += likely.at(-1)[i] === label ? 1 : 0;
    });
    const whole = results.get(caseName([]))?.weights;
    if (row === rows[0]) {
      weights.push(...heads.map(([name], i) => seen.get(`${name}.weights`) ?? whole[i]));
    }
    yield;
  }
  const places = [...counts.keys()].filter((i) => counts[i]);
  const [loss, count] = [sums, counts].map((numbers) => numbers.reduce((a, b) => a + b));
  results.set(caseName(gone), {
    weights, likely, loss: loss / count, right, count,
    curve: new Map(places.map((i) => [i, sums[i] / counts[i]])) });
}

// Reads one row without these heads. The layers before them are not computed: their outputs were
// kept when the whole model read the row.
function readRow({ model, layers }, row, heads) {
  const { source, target } = row, seen = new Map();
  const off = heads.map(([name]) => name.split(".", 2).join("."));
  const first = layers.findIndex((name) => off.includes(name));
  const known = new Map(layers.slice(0, Math.max(0, first)).map((name) => [name, row.kept[name]]));
  const logits = watched(model, { seen, replace: withoutHeads(heads), known }, () =>
    model.decode(target, source && model.encode(source), source));
  row.kept ??= Object.fromEntries(layers.map((name) => [name, seen.get(`${name}.output`)]));
  return { seen, logits };
}

function layersOf({ kind, source, config }) {
  const names = (stack, { n_layers: n }) => Array.from({ length: n }, (_, i) => `${stack}.${i}`);
  const reads = kind === "EncoderDecoderTransformer" ? names("encoder", source) : [];
  return [...reads, ...names("decoder", config)];
}

function withoutHeads(heads) {
  const replaced = {};
  for (const [attention] of heads) {
    const numbers = heads.filter(([name]) => name === attention).map(([, number]) => number);
    replaced[`${attention}.heads`] = (outputs) => {
      const each = outputs.data.length / outputs.shape[0];
      for (const number of numbers) outputs.data.fill(0, number * each, (number + 1) * each);
      return outputs;
    };
  }
  return replaced;
}

// What the picture shows; results not yet read, or of heads not yet tried, are undefined.
function lookOfCase({ heads, rows, results }, gone, known, preview) {
  const result = (one) => results.get(caseName(one)), now = result(gone);
  const then = heads.map((_, i) => (known.includes(i) ? result(toggledHead(gone, i)) : undefined));
  const pointed = preview === null ? null : Number(preview);
  return { heads, gone, known, then, now, pointed, spelled: rows[0]?.words, all: result([]),
    alone: known.map((i) => ({ ...result([i]), i })), complete: known.length === heads.length,
    shown: pointed === null ? now : then[pointed] };
}

// Rows with spelled words are the translator's, whose cross-attention looks at English.
function attentionName(attention, spelled) {
  const [stack, number, kind] = attention.split("."), across = kind === "cross_attention";
  const looks = across ? ` (looking at the ${spelled ? "English" : "source"})` : "";
  return `${stack} block ${number}${looks}`;
}

const headName = ([attention, number], spelled) =>
  `head ${number} of ${attentionName(attention, spelled)}`;

// Block and number if all heads are of one kind; else the whole name.
function shortHeadName(heads, i) {
  const kinds = new Set(heads.map(([name]) => name.replace(/\d+/, "")));
  const [attention, number] = heads[i];
  return kinds.size > 1 ? headName(heads[i]) : `head ${attention.split(".")[1]}.${number}`;
}

const rightOf = ({ right, count }) => `${right} of ${count} right`;
const lossAndRight = (one) => `${one.loss.toFixed(2)} nats (${rightOf(one)})`;

// The layout: one attention below the other, each with its heads side by side.
function switchPlaces(heads, width) {
  const gap = 12, names = [...new Set(heads.map(([name]) => name))];
  const most = Math.max(...heads.map(([, number]) => number)) + 1, narrow = width < 340;
  const columns = Math.min(most, width >= 400 && names.length > 1 ? 8 : 4);
  const rows = Math.ceil(most / columns) * names.length, largest = narrow ? 92 : 150;
  const side = Math.max(28, Math.min(largest, (width - 4 - gap * (columns - 1)) / columns,
    (SWITCHES_HIGH - 26 * names.length) / rows - 40)), line = side + 40;
  const block = Math.ceil(most / columns) * line + 26, top = (name) => names.indexOf(name) * block;
  return { names, top, side, tall: 24 + names.length * block, wide: columns * (side + gap) - gap,
    place: (i) => {
      const [name, number] = heads[i], row = Math.floor(number / columns);
      return [2 + (number % columns) * (side + gap), 44 + top(name) + row * line];
    } };
}

// Each head is a button with its map; below it the number right, or the loss, if it is switched.
function drawSwitches(group, look, page, { names, top, side, place, room }) {
  const { heads, gone, pointed } = look;
  const start = switchedStart(look), from = start ? `, bars from ${start.toFixed(2)}` : "";
  const note = look.spelled ? "under each: how many are right if you switch it" :
    `under each: the loss if you switch it${from}; line: the loss now`;
  put.text(group, "names", [note, ...names], (name, i) => [
    i ? fitted(attentionName(name, look.spelled), room, 14, 600) : fitted(name, room, 12), 0,
    i ? 36 + top(name) : 12, i ? "strong" : "small"], String);
  const all = [...heads.keys()], click = (i) => () => {
    const off = page.model.get("removed"), name = String(heads[i]);
    const others = off.filter((head) => String(head) !== name);
    page.set({ removed: others.length < off.length ? others : [...off, heads[i]] });
  };
  put.rect(group, "boxes", all, (i) => ({
    x: place(i)[0], y: place(i)[1], width: side, height: side, rx: 8, class: "box",
    ...choosable(switchWords(look, i), gone.includes(i), click(i), `head${i}`),
    "data-preview": look.known.includes(i) ? i : null }), String);
  drawHeadMaps(group, look, place, side);
  (look.spelled ? drawSwitchedRight : drawSwitchedLosses)(group, look, place, side);
  const off = all.filter((i) => gone.includes(i) !== (i === pointed));
  put.path(group, "crosses", off, (i) => ({
    d: `M${place(i)[0] + 6} ${place(i)[1] + 6}l${side - 12} ${side - 12}m0 ${12 - side}` +
      `l${12 - side} ${side - 12}`, stroke: "var(--query)", "stroke-width": 3,
    "stroke-dasharray": i === pointed ? "7 5" : "none" }), String);
}

function switchWords({ heads, gone, known, then, spelled }, i) {
  const off = gone.includes(i);
  const name = `${headName(heads[i], spelled)} is ${off ? "off" : "on"}`;
  if (!known.includes(i)) return `${name}; not tried yet`;
  if (!then[i]) return `${name}; not read yet`;
  const how = off ? "with it back on" : "without it";
  return spelled ? `${name}; ${how}: ${rightOf(then[i])}` :
    `${name}; loss ${how}: ${lossAndRight(then[i])}`;
}

// Where each head looks in the first row, in the case that is pointed at.
function drawHeadMaps(group, { heads, gone, now, all, shown }, place, side) {
  const { weights = [] } = shown ?? now ?? all ?? {};
  const levels = weights.flatMap((one, i) =>
    mapShades(heads[i], headRows(one, heads[i].at(-1)), place(i), side)
      .map((path) => ({ ...path, opacity: gone.includes(i) ? 0.35 : 1 })));
  put.path(group, "maps", levels);
}

// Where an axis begins: at 0, or, if all losses are nearly equal, just below them.
function lossStart(losses) {
  const low = Math.min(...losses), high = Math.max(...losses);
  const close = losses.length > 1 && low > 0.7 * high && high > low;
  return close ? Math.max(0, Math.floor(100 * (low - (high - low) / 4)) / 100) : 0;
}

const switchedStart = ({ now, then }) =>
  lossStart([now, ...then].filter(Boolean).map(({ loss }) => loss));

// A bar for the loss after each switch, on one scale; a mark shows the loss as it is now.
function drawSwitchedLosses(group, look, place, side) {
  const { now, then } = look, read = [...then.keys()].filter((i) => then[i] && now);
  const worst = Math.max(1e-9, ...read.map((i) => then[i].loss), now?.loss ?? 0);
  const start = switchedStart(look), below = (i) => place(i)[1] + side;
  const wide = (loss) => Math.max(1, ((loss - start) / (worst - start)) * side);
  put.rect(group, "bars", read, (i) => ({
    x: place(i)[0], y: below(i) + 5, width: wide(then[i].loss), height: 8, rx: 2,
    fill: then[i].loss > now.loss ? "var(--minus)" : "var(--plus)", "data-links": `head${i}`,
  }), String);
  put.rect(group, "marks", read, (i) => ({
    x: place(i)[0] + wide(now.loss) - 1, y: below(i) + 3, width: 2, height: 12, fill: "var(--ink)",
  }), String);
  const digits = start ? 3 : 2;
  drawSwitchedNumbers(group, look, place, side, {
    widest: worst.toFixed(digits), number: (one) => one.loss.toFixed(digits) });
}

// A bar for how many words are right after each switch, as wide as the head's box if all are.
function drawSwitchedRight(group, look, place, side) {
  const { now, then } = look, read = [...then.keys()].filter((i) => then[i] && now);
  put.rect(group, "bars", read, (i) => ({
    x: place(i)[0], y: place(i)[1] + side + 5, height: 8, rx: 2,
    width: Math.max(1, then[i].right / then[i].count * side),
    fill: then[i].right < now.right ? "var(--minus)" : "var(--plus)", "data-links": `head${i}`,
  }), String);
  const number = ({ right, count }) => `${right}/${count}`, most = now?.count ?? 0;
  drawSwitchedNumbers(group, look, place, side, { widest: `${most}/${most}`, number });
}

// Under each head its name, as long a form as fits, and its number once it is known.
function drawSwitchedNumbers(group, { heads, known, then }, place, side, { widest, number }) {
  const name = ["head 0.0", "0.0", "0"].find((form) =>
    form === "0" || textWidth(`${form}: ${widest}`, 12) <= side);
  const label = ([attention, one]) =>
    name.replace("0.0", `${attention.split(".")[1]}.${one}`).replace(/^0$/, one);
  const shown = (i) => (then[i] ? number(then[i]) : known.includes(i) ? "…" : "?");
  put.label(group, "numbers", [...then.keys()], (i) => [
    `${label(heads[i])}: ${shown(i)}`, place(i)[0], place(i)[1] + side + 27, "number",
    { "data-links": `head${i}` }], String);
}

// The loss at each position: of the whole model, of this case, and of the case that is pointed at.
// Lines join the losses of one position, not neighboring positions, which may be far apart.
function drawLossCurves(group, look, { x, y, width, high }) {
  const curves = curvesOf(look), top = y + 66;
  const places = [...(curves[0]?.curve.keys() ?? [])];
  const losses = curves.flatMap(({ curve }) => [...curve.values()]);
  const low = curves.length > 1 ? lossStart(losses) : 0;
  const most = Math.max(1e-9, ...losses), from = low ? `, from ${low.toFixed(2)}` : "";
  const last = Math.max(1, places.at(-1) - places[0]), step = width / (last + 1);
  const across = (place) => x + (place - places[0] + 0.5) * step;
  const up = (loss) => top + high * (1 - (loss - low) / (most - low));
  put.text(group, "title", [[`loss at each position, in nats${from}`, x - 30, y + 14, "strong"]]);
  drawLossNames(group, curves, x - 30, y + 36);
  put.path(group, "changes", places, (at) => {
    const heights = curves.map(({ curve }) => up(curve.get(at)));
    return { class: "axis",
      d: `M${across(at)} ${Math.min(...heights)}V${Math.max(...heights)}` };
  }, String);
  const dots = curves.flatMap(({ name, color, hollow, curve }) =>
    [...curve].map(([at, loss]) => ({ name: `${name} ${at}`, color, hollow, at, loss })));
  put.circle(group, "dots", dots, ({ color, hollow, at, loss }) =>
    ({ cx: across(at), cy: up(loss), ...lossDot(color, hollow) }), "name");
  const ends = places.length ? [[most, "high"], [low, "low"]] : [];
  put.label(group, "ticks", ends, ([loss]) =>
    [loss.toFixed(low ? 2 : loss ? 1 : 0), x - 6, up(loss) + 4, "small end"], ([, name]) => name);
  put.path(group, "axis", [{ d: `M${x} ${top + high}h${width}`, class: "axis" }]);
  drawPlaces(group, curves, places, { across, step, top, high });
  return top + high + 30;
}

// The rows as text, with the model's likeliest word in place of each word that counts.
function drawSpelled(group, look, rows, { texts }, { x, y, width }) {
  const likely = (look.shown ?? look.now ?? look.all)?.likely ?? [], left = x - 30;
  put.text(group, "title", [["the likeliest words; ✗: wrong", left, y + 14, "strong"]]);
  let bottom = y + 22;
  const words = likely.flatMap((said, row) => {
    const each = rows[row].words.map((text, i) => {
      const right = rows[row].labels[i], counts = right >= 0, wrong = counts && said[i] !== right;
      return { key: `${row} ${i}`, text: counts ? texts[said[i]] + (wrong ? "✗" : "") : text, counts,
        wrong, words: `row ${row}: “${texts[said[i]]}”${wrong ? `, not “${text}”` : ", right"}` };
    });
    const widths = each.map(({ text, counts }) => textWidth(text, 14, counts ? 600 : 400));
    const lines = wrapped(widths, { x: left, y: bottom, width: width + 30, high: 20, gap: 5 });
    bottom = lines.bottom + 6;
    return each.map((one, i) => ({ ...one, x: lines.places[i].x, y: lines.places[i].y + 15 }));
  });
  put.text(group, "words", words, ({ text, counts, wrong, x: at, y: down, words: tells }) => [
    text, at, down, counts ? "strong" : "", { fill: wrong ? "var(--query)" : counts ? "var(--key)" :
      "var(--soft)", ...(counts ? told(tells) : {}) }], "key");
  return bottom + 4;
}

function drawLossNames(group, curves, x, y) {
  const left = (i) => x + 92 * i, name = (curve) => curve.name;
  put.circle(group, "signs", curves, ({ color, hollow }, i) =>
    ({ cx: left(i) + 5, cy: y - 4, ...lossDot(color, hollow) }), name);
  put.text(group, "legend", curves, ({ name: text }, i) => [text, left(i) + 14, y, "small"], name);
}

const lossDot = (color, hollow) =>
  ({ r: 4.5, fill: hollow ? "var(--paper)" : color, stroke: color, "stroke-width": 2 });

function curvesOf({ all, now, shown, gone, pointed }) {
  const curves = [
    { name: "all heads", ...all, color: "var(--key)" },
    ...(gone.length ? [{ name: "now", ...now, color: "var(--query)" }] : []),
    ...(pointed === null ? [] : [{ name: "once switched", ...shown, color: "var(--value)",
      hollow: true }])];
  return curves.filter(({ curve }) => curve);
}

// A column for each position, which pointer and keyboard can reach.
function drawPlaces(group, curves, places, { across, step, top, high }) {
  const words = (place) => {
    const losses = curves.map(({ name, curve }) => `${name} ${curve.get(place).toFixed(2)}`);
    return `position ${place}: ${losses.join(", ")}`;
  };
  put.rect(group, "places", places, (place) => ({
    x: across(place) - step / 2, y: top, width: step, height: high, fill: "transparent",
    ...told(words(place)) }), String);
  const every = Math.ceil(24 / step), named = places.filter((place) => place % every === 0);
  put.label(group, "place names", named, (place) =>
    [place, across(place), top + high + 18, "small middle"], String);
}

function ablationFacts(look, page) {
  const { heads, gone, all, now } = look;
  if (!now) return { title: "The model reads", said: "The model reads without these heads." };
  const names = gone.map((i) => headName(heads[i], look.spelled)).join("; ");
  const begin = gone.length ? `Taken away: ${names}.` : "Nothing is taken away.";
  const means = ` Mean loss ${lossAndRight(now)}, with all heads ${lossAndRight(all)}.`;
  const said = `${begin}${look.spelled ? "" : means} ${neededWords(look, page)}`;
  return { title: ablationTitle(look), said };
}

// Until each head has been switched off once, the title compares only those that were.
function ablationTitle({ heads, gone, known, all, now, alone, complete, spelled }) {
  const whole = all.loss.toFixed(2), loss = now.loss.toFixed(2), n = heads.length;
  if (spelled) {
    const without = gone.length ? `Without ${gone.length} head${gone.length > 1 ? "s" : ""}` :
      `With all ${n} heads`;
    return `${without}, ${now.right} of ${now.count} are right`;
  }
  if (gone.length > 1 || (gone.length && complete)) {
    const plural = gone.length > 1 ? "s" : "";
    return `Without ${gone.length} head${plural}: loss ${loss}, with all ${whole}`;
  }
  const read = alone.filter((one) => one.loss !== undefined);
  if (!read.length) return `With all ${n} heads the loss is ${whole}; none is off yet`;
  const most = read[firstLargest(read.map((one) => one.loss))], name = shortHeadName(heads, most.i);
  const cost = most.loss.toFixed(2), largest = known.length > 1 ? ", the largest so far" : "";
  if (complete) return `With all heads the loss is ${whole}, without ${name} ${cost}`;
  return `Tried ${known.length} of ${n} heads: without ${name} the loss is ${cost}${largest}`;
}

// Which of the remaining heads is needed most; shown only once all have been tried.
function neededWords({ heads, gone, known, then, complete, spelled }, page) {
  const left = [...heads.keys()].filter((i) => !gone.includes(i));
  const open = heads.length - known.length;
  if (!left.length) return "No head is left.";
  if (!complete) return `${open} head${open > 1 ? "s are" : " is"} left to try.`;
  if (page.work) return "Now it reads what each of the others costs.";
  if (spelled) return "All heads were tried.";
  const most = left[firstLargest(left.map((i) => then[i].loss))];
  return `Of those left, ${headName(heads[most])} is needed most: without it too, ` +
    `${lossAndRight(then[most])}.`;
}
