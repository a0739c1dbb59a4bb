// Words as rows of numbers, the next word as it emerges block by block, and the likeliest ones.

import { choosable, fitted, layer, pen, put, textWidth, told } from "./draw.js";
import { short } from "./flow_lines.js";
import { remembered } from "./frame.js";
import { sampleProbabilities } from "./generation.js";
import { tensorHref } from "./heat_map.js";
import { chance } from "./next_token.js";
import { goOnWith, mayGoOn, percent } from "./flow_stage.js";
import { fromLargest } from "./ranking.js";
import { Tensor } from "./transformer.js";

// Each word with its embedding; at the second stop also its position's vector and their sum.
export function drawVectors(group, look, page) {
  const { sublayers, stop, n } = look, wide = page.width >= 700;
  const lanes = sublayers.filter(({ kind }) => kind === "embedding").map(({ key, lane }) => ({
    lane, ...vectorsOf(look, page, key), words: look[lane], ids: look.ids[lane],
    rows: lane === "written" ? look.full : look[lane].length }));
  const beside = wide && lanes.length > 1, most = Math.max(...lanes.map(({ rows }) => rows));
  const high = Math.max(14, Math.min(wide ? 34 : 26, (310 - 46 * look.own.length) / most));
  const width = beside ? page.width / 2 - 14 : page.width;
  let y = 0;
  lanes.forEach((one, i) => {
    const place = { x: beside ? i * (width + 28) : 0, y: beside ? 0 : y, width, high };
    drawVectorLane(layer(group, one.lane), one, place, { stop, d: n.d });
    y = Math.max(y, place.y + 44 + high * one.rows + 12);
  });
  return y;
}

function vectorsOf({ byName, written }, page, key) {
  const [tokens, both] = ["tokens", "output"].map((part) => byName.get(`${key}.${part}`).value);
  const places = remembered(page, `places ${key}`, [page.model.get("text"), written.length], () =>
    new Tensor(both.shape, both.data.map((value, i) => value - tokens.data[i])));
  return { tokens, places, both };
}

function drawVectorLane(group, one, { x, y, width, high }, { stop, d }) {
  const name = width < 370 ? 66 : 84, id = 40, left = x + name + id, rest = width - name - id;
  const parts = stop === 1 ? [[`its row of the table, ${d} numbers`, one.tokens]] :
    [["word", one.tokens], ["+ place", one.places], ["= both", one.both]];
  const wide = (rest - 14 * (parts.length - 1)) / parts.length, at = (k) => left + k * (wide + 14);
  const top = y + 42, tall = high * one.words.length, size = high < 18 ? 12 : 14;
  put.text(group, "titles", [[one.lane, x, "strong"]], ([text, at, kind]) =>
    [text, at, y + 14, kind]);
  put.text(group, "heads", [[stop === 1 ? "id" : "place", x + name], ...parts.map(([text], k) =>
    [text, at(k)])], ([text, at]) => [fitted(text, wide, 12), at, y + 34, "small"]);
  put.image(group, "pictures", parts, ([, tensor], k) => ({
    x: at(k), y: top, width: wide, height: tall, preserveAspectRatio: "none", class: "still",
    "image-rendering": "pixelated", href: tensorHref(tensor), "pointer-events": "none" }),
  (_, k) => k);
  put.path(group, "lines", [one.words.map((_, i) => `M${left} ${top + high * i}h${rest}`).join("")],
    (d) => ({ d, stroke: "var(--paper)", "stroke-width": 4 }));
  put.rect(group, "boxes", one.words, (word, i) => ({
    class: "box", x, y: top + high * i + 1, width: name - 8, height: high - 3, rx: 6,
    ...told(stop === 1 ? `“${word}” is token ${one.ids[i]}` : `“${word}” is at place ${i}`,
      `token${one.ids[i]}`) }), (_, i) => i);
  const texts = one.words.flatMap((word, i) => [
    [fitted(word, name - 14, size), x + (name - 8) / 2, `middle size-${size}`, i],
    [stop === 1 ? one.ids[i] : i, x + name, `number size-${size}`, i]]);
  put.label(group, "texts", texts, ([text, at, kind, i]) =>
    [text, at, top + high * (i + 0.5) + size * 0.33, kind]);
}

// What temperature, top-k and top-p leave of the logits, and the token that the draw picks.
export function sampled(logits, { temperature, top_k: k, top_p: p, seed }, n) {
  const knobs = { temperature, topK: k || null, topP: p === 1 ? null : p };
  const heated = logits.map((one) => one / temperature);
  const shares = sampleProbabilities(logits, knobs);
  const onlyK = sampleProbabilities(logits, { ...knobs, topP: null });
  const cut = [...shares].map((share, id) => (share ? "" : onlyK[id] ? "top-p" : "top-k"));
  const sum = heated.reduce((all, one, id) => all + (cut[id] ? 0 : Math.exp(one)), 0);
  const order = fromLargest([...shares], logits.length).filter((id) => shares[id] > 0);
  const at = chance(1000 * seed + n)();
  let before = 0;
  const id = order.find((one) => (before += shares[one]) > at) ?? order.at(-1);
  return { shares, heated, cut, sum, order, drawn: seed ? { id, at } : null };
}

const LEAST = 1e-4; // the share at which a bar begins on the log scale

// A row for each of the likeliest words: logit, ÷ temperature, kept or cut, share; a click goes on
// with that word. Below them the numbers in the formula of the first or the one that is pointed at,
// and the strip that a draw falls on.
export function drawLikeliest(group, look, page) {
  const { best, logits, own, heated, cut, shares, temperature, drawn, log } = look;
  const { width } = page, wide = width >= 700, isTold = (id, i) => (drawn ? id === drawn.id : !i);
  const x = wide ? [150, 235, 330, 350, 450] : [84, 130, 174, 0, 184], high = own.length ? 22 : 24;
  const from = x[4], unit = width - from - (wide ? 76 : 66), least = Math.log10(LEAST);
  const long = (share) => Math.max(1.5, unit *
    (log ? 1 - Math.log10(Math.max(share, LEAST)) / least : share));
  const kept = look.order.length, n = Math.max(0, kept - best.length); // the cut share nothing
  const open = Math.max(0, best.findIndex(({ id }) => `${id}` === page.preview));
  const soft = ({ cut }) => ({ fill: cut ? "var(--soft)" : null });
  const rest = Math.max(0, 1 - best.reduce((sum, { id }) => sum + shares[id], 0));
  const y = (i) => 26 + high * i, all = best.map(({ id, word }, i) => ({ id, word, i, cut: cut[id],
    share: shares[id], tells: `“${word}”: logit ${logits[id].toFixed(2)}, share ${
      shares[id].toFixed(3)}${cut[id] ? `, cut by ${cut[id]}` : ""}` }));
  if (n) all.push({ id: "rest", word: `${n} others`, i: best.length, share: rest, cut: "",
    tells: `${n} others together: ${rest.toFixed(3)}` });
  const ticks = [[0.25, 0.5, 0.75, 1], [0.001, 0.01, 0.1, 1]][+log].filter((_, k) =>
    wide || k === 3 || (k === 1 && unit > 84));
  const heads = [["logit", x[1], " end"], [`÷ ${temperature}`, x[2], " end"],
    ...(wide ? [[`${kept} kept`, x[3], ""]] : []),
    ...ticks.map((one) => [`${100 * one} %`, from + long(one), " middle"])];
  put.label(group, "heads", heads, ([text, at, kind]) => [text, at, 13, `small${kind}`]);
  put.path(group, "scale", ticks, (one) =>
    ({ d: `M${from + long(one)} 18V${y(all.length) - 4}`, class: "axis" }), (_, k) => k);
  put.rect(group, "places", all, ({ id, i, tells }) => ({ class: `bar-place${i === open ?
    " picked" : ""}`, x: 1, y: y(i) - 2, width: width - 2, height: high - 1, rx: 6,
    ...(id === "rest" || !mayGoOn(look, id) ? told(tells) : choosable(tells, i === open, () =>
      page.set(goOnWith(look, id)))), "data-preview": id, "data-quiet": wide ? null : "" }), "id");
  put.rect(group, "bars", all, ({ id, i, share }) => ({
    x: from, y: y(i) + 2, height: high - 9, rx: 3, width: share ? long(share) : 0,
    fill: isTold(id, i) ? "var(--value)" : "var(--key)",
    opacity: id === "rest" ? 0.4 : isTold(id, i) ? 1 : 0.7 }), "id");
  put.label(group, "words", all, (one) => {
    const [kind, ...font] = one.id === "rest" ? ["small", 12] :
      [one.cut ? "struck" : "strong", 14, 600];
    return [fitted(one.word, x[0] - 6, ...font), x[0] - 4, y(one.i) + 14, `end ${kind}`, soft(one)];
  }, "id");
  put.label(group, "logits", all.slice(0, best.length).flatMap((one) => [
    [logits[one.id].toFixed(2), x[1], one], [heated[one.id].toFixed(2), x[2], one],
    ...(wide ? [[one.cut ? `✗ ${one.cut}` : "kept", x[3], one]] : [])]), ([text, at, one]) =>
    [text, at, y(one.i) + 14, `number${at < x[3] || !wide ? " end" : ""}`, soft(one)]);
  put.label(group, "shares", all, (one) => [one.cut ? "✗ 0" : percent(one.share),
    from + 6 + (one.share ? long(one.share) : 0), y(one.i) + 14, `number${one.i ? "" : " strong"}`,
    soft(one)], "id");
  const cuts = all.filter((one) => one.cut).slice(0, 1), dashes = pen("--query", 2, "6 4");
  put.path(group, "cut", cuts, ({ i }) => ({ d: `M0 ${y(i) - 3}H${width}`, ...dashes }), () => "");
  put.label(group, "cut by", wide ? cuts : [], ({ cut, i }) => [`${cut} cuts: shares of 0`, width,
    y(i) + 14, "small end halo", { fill: "var(--query)" }], () => "cut");
  const { id, word } = best[open], most = width < 320 ? 36 : 70;
  const formula = cut[id] ? [`“${fitted(word, 90)}” is cut by ${cut[id]}: its share is 0`] :
    [`share of “${fitted(word, most)}” = exp(${logits[id].toFixed(2)} / ${temperature}) / Σ`,
    ` = ${short(Math.exp(heated[id]))} / ${short(look.sum)} = ${shares[id].toFixed(3)}`];
  const line = wide ? [formula.join("")] : formula, end = y(all.length) + 12;
  put.text(group, "formula", line, (text, i) => [text, wide ? x[0] - 130 : 0, end + 18 * i,
    "strong"]);
  return drawStrip(layer(group, "strip"), look, width, end + 18 * line.length);
}

// The kept words side by side, each as wide as its share, and where the draw fell.
function drawStrip(group, { order, shares, drawn, token }, width, y) {
  let before = 0;
  const places = order.map((id) => ({ id, from: before, to: (before += shares[id]) }));
  put.rect(group, "all", [0], () => ({ x: 0, y, width, height: 22, class: "box" }));
  put.rect(group, "places", places.slice(0, 12), ({ id, from, to }, i) => ({ x: from * width, y,
    width: Math.max(0.5, (to - from) * width), height: 22, class: "cell",
    fill: (drawn ? id === drawn.id : !i) ? "var(--value)" : "var(--hidden)" }), "id");
  put.label(group, "names", places.slice(0, 6).filter(({ id, from, to }) =>
    (to - from) * width > textWidth(token(id), 12) + 8), ({ id, from, to }) =>
    [token(id), ((from + to) / 2) * width, y + 15, "size-12 middle strong",
      { fill: (drawn ? id === drawn.id : id === order[0]) ? "var(--paper)" : "var(--ink)" }], "id");
  put.path(group, "marker", drawn ? [drawn] : [], ({ at }) => ({ fill: "var(--query)",
    d: `M${at * width} ${y + 22}l-6 11h12z`, class: "drops",
    ...told(`the draw ${at.toFixed(4)} falls on “${token(drawn.id)}”`) }), ({ at }) => at);
  const text = drawn ? `the draw ${drawn.at.toFixed(4)} falls on “${fitted(token(drawn.id), 90)}”` :
    "Draw drops a marker on this strip";
  put.label(group, "says", [text], (one) => {
    const x = drawn ? drawn.at * width : 0, right = x + textWidth(one, 12) + 12 > width;
    const from = right ? Math.max(textWidth(one, 12), x - 10) : x + (drawn ? 10 : 0);
    return [one, from, y + 46, `small${right ? " end" : ""}`];
  });
  return y + 52;
}
