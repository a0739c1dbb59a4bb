// Inside one block: what each sub-layer adds to a word's vector, and which word it would lead to.

import { choosable, fitted, layer, pen, put, textWidth, told } from "./draw.js";
import { firstNumbers, putStrips } from "./flow_attention.js";
import { headingOf, sharesRead, streamBehind } from "./flow_pass.js";
import { remembered } from "./frame.js";
import { firstLargest } from "./ranking.js";
import { isInStream } from "./trace.js";
import { Tensor } from "./transformer.js";

// The block of the written words that is shown, the word, and its vectors on their way.
export function blockAt(look, state, page) {
  const own = look.sublayers.filter(({ lane, kind }) => lane === "written" && kind !== "next");
  const n = own.at(-1).block + 1, block = Math.min(state.block ?? n, n - 1);
  const last = look.written.length - 1, row = Math.min(state.row ?? last, last);
  const goal = row === last ? look.next.id : look.ids.written[row + 1];
  const rows = remembered(page, "inside", [state.text, state.chosen, last, block, row], () => {
    const before = own.findLast((one) => (one.block ?? -1) === block - 1);
    const all = own.filter((one) => one.block === block).flatMap((one) =>
      one.steps.map((i) => rowOfStep(look, one, look.steps[i], row, goal)));
    return [streamRow(look, `enters block ${block}`, streamBehind(look, before, row), goal),
      ...all.filter(Boolean)];
  });
  return { block, row, n: { ...look.n, blocks: n }, rows, word: look.written[row],
    goal: look.token(goal) };
}

function streamRow(look, name, values, goal) {
  const shares = sharesRead(look, values), best = firstLargest(shares), word = look.token(best);
  return { name, values, share: shares[goal], best: word, isRight: best === goal,
    says: `${word} ${shares[best].toFixed(2)}`, tells: `${name}: “${look.token(goal)}” has ${
      shares[goal].toFixed(3)}, likeliest is “${word}” (${shares[best].toFixed(3)})` };
}

// A step of a sub-layer: the stream behind it, hidden units, what it adds, or a norm before it.
function rowOfStep(look, one, { name, value }, row, goal) {
  const values = value.row(row), post = look.model.config.norm_position === "post";
  if (isInStream(name)) return streamRow(look, post ? "= norm of sum" : "= sum", values, goal);
  const [off, all] = [values.filter((unit) => unit <= 0).length, values.length];
  if (/\.hidden$/.test(name)) {
    return { name: `${all} units`, values, color: "--query", says: `${off} of ${all} off`,
      tells: `${off} of ${all} units are off` };
  }
  const adds = /\.(W_O|W_2|W_down)$/.test(name), says = firstNumbers(values);
  const does = adds ? `+ ${headingOf(one)}` : "norm", thinks = one.kind === "feed_forward";
  return (adds || /norm_\d$/.test(name)) && { name: does, values, adds, says,
    color: thinks ? "--query" : "--key", tells: `${does}: ${says}` };
}

export function drawInside(group, look, page) {
  const { goal, own } = look, { width } = page, wide = width >= 700, top = wide ? 60 : 78;
  const high = Math.max(20, Math.min(31, (300 - 46 * own.length) / look.rows.length));
  const from = wide ? 150 : 138, long = wide ? Math.min(420, width - 530) : 70;
  const after = from + long + 12, likely = wide ? width - 126 : width, room = likely - after - 54;
  const rows = look.rows.map((one, i) => ({ ...one, i, y: top + high * (i + 0.5) }));
  const streams = rows.filter(({ best }) => best), end = rows.at(-1).y;
  const heads = [[wide ? "the vector's numbers" : "numbers", from, long],
    [`share of “${goal}”`, after, room + 40], ...(wide ? [["likeliest here", likely, 126]] : [])];
  drawChoices(layer(group, "choices"), look, page);
  put.label(group, "heads", heads, ([text, x, most]) =>
    [fitted(text, most, 12), x, top - 6, "small"]);
  put.path(group, "spine", [`M9 ${top}V${end}`], (d) =>
    ({ d, class: "ribbon crossing", "stroke-width": 6, "stroke-opacity": 0.4 }));
  put.path(group, "branches", rows.filter(({ adds }) => adds), ({ color, i, y }) => {
    const start = streams.findLast((one) => one.i < i).y;
    return { ...pen(color, 3), d: `M9 ${start}C28 ${start + 8} 28 ${y} 9 ${y + high}` };
  }, "i");
  put.circle(group, "dots", streams, ({ y: cy }) =>
    ({ cx: 9, cy, r: 6, fill: "var(--value)" }), "i");
  put.rect(group, "places", rows, ({ tells, y }) => ({ rx: 6, class: "bar-place", x: 20,
    y: y - high / 2, width: width - 20, height: high, ...told(tells) }));
  putStrips(group, "strips", rows.map(({ values }) => new Tensor([1, values.length], values)),
    (i) => ({ x: from, y: rows[i].y - 8, width: long, height: 16 }));
  put.label(group, "names", rows, ({ name, best, color, y }) =>
    [fitted(name, from - 32, wide ? 14 : 12), 28,
    y + 5, `size-${wide ? 14 : 12}${best ? " strong" : ""}`, { fill: color && `var(${color})` }]);
  put.rect(group, "bars", streams, ({ share, y }) => ({ x: after, y: y - 7, height: 14, rx: 3,
    fill: "var(--value)", width: Math.max(1.5, share * room) }), "i");
  put.label(group, "shares", streams, ({ share, y }) =>
    [share.toFixed(3), after + 6 + share * room, y + 4, "number"], "i");
  put.label(group, "says", rows.filter(({ best }) => wide || !best), ({ says, best, isRight, y }) =>
    [fitted(says, width - (best ? likely : after), best ? 14 : 12), best ? likely : after, y + 5,
      best ? isRight ? "strong" : "" : "small"], "i");
  return top + high * rows.length + 8;
}

// The written words and the blocks, each a button.
function drawChoices(group, { written, row, n, block }, page) {
  const wide = page.width >= 700, right = wide ? page.width - 78 * n.blocks : 1;
  const most = ((wide ? right : page.width) - 4) / written.length - 6;
  let left = 1;
  const chips = [...written.map((word, i) => {
    const side = Math.min(most, textWidth(word, 12, 600) + 16), x = left;
    left += side + 6;
    return { x, y: 2, width: side, word: fitted(word, side - 4, 12, 600), is: i === row,
      words: `the vector of “${word}”, at ${i}`, changes: { row: i } };
  }), ...Array.from({ length: n.blocks }, (_, i) => ({ x: right + 78 * i, y: wide ? 2 : 31,
    width: 72, word: `block ${i}`, is: i === block, words: `open block ${i}`,
    changes: { block: i } }))];
  put.box(group, "chips", chips, ({ is, words, changes, ...place }) => ({ ...place, height: 25,
    rx: 8, font: `size-12${is ? " strong" : ""}`,
    ...choosable(words, is, () => page.set(changes)) }), "words");
}
