// Inside one block: what each sub-layer adds to a word's vector, and which word it would lead to.

import { choosable, fitted, layer, pen, put, textWidth, told } from "./draw.js";
import { putStrips } from "./flow_attention.js";
import { headingOf, sharesRead, streamBehind } from "./flow_pass.js";
import { remembered } from "./frame.js";
import { firstLargest } from "./ranking.js";
import { isInStream } from "./trace.js";
import { Tensor } from "./transformer.js";

// The block of the written words that is shown, the word, and its vectors on their way.
export function blockAt(look, state, page) {
  const own = look.sublayers.filter(({ lane }) => lane === "written");
  const blocks = [...new Set(own.map(({ block }) => block).filter((one) => one !== null))];
  const block = Math.min(state.block ?? blocks.length - 1, blocks.length - 1);
  const last = look.written.length - 1, row = Math.min(state.row ?? last, last);
  const goal = row === last ? look.next.id : look.ids.written[row + 1];
  const rows = remembered(page, "inside", [state.text, state.chosen, last, block, row], () => {
    const before = own.findLast((one) => one.kind !== "next" && (one.block ?? -1) === block - 1);
    return [streamRow(look, `enters block ${block}`, streamBehind(look, before, row), goal),
      ...own.filter((one) => one.block === block).flatMap((one) =>
        one.steps.map((i) => rowOfStep(look, one, look.steps[i], row, goal)).filter(Boolean))];
  });
  const { values = [] } = rows.find(({ kind }) => kind === "hidden") ?? {};
  return { block, row, blocks, rows, word: look.written[row], goal: look.token(goal),
    units: values.length, off: values.filter((one) => one <= 0).length };
}

function streamRow(look, name, values, goal) {
  const shares = sharesRead(look, values), best = firstLargest(shares);
  return { kind: "stream", name, values, share: shares[goal], best: look.token(best),
    most: shares[best], right: best === goal };
}

// The step of a sub-layer as a row: what it adds, the stream behind it, hidden units, a norm first.
function rowOfStep(look, one, { name, value }, row, goal) {
  const does = headingOf(one), { norm_position: position } = look.model.config;
  const values = () => value.row(row);
  if (isInStream(name)) {
    return streamRow(look, position === "post" ? "= norm of sum" : "= sum", values(), goal);
  }
  if (/\.(W_O|W_2|W_down)$/.test(name)) {
    return { kind: one.kind, name: `+ ${does}`, values: values() };
  }
  if (/\.hidden$/.test(name)) {
    return { kind: "hidden", name: `${value.width} units`, values: values() };
  }
  return /norm_\d$/.test(name) ? { kind: "norm", name: "norm", values: values() } : null;
}

const COLORS = { stream: "--value", hidden: "--query", feed_forward: "--query", norm: "--soft" };

export function drawInside(group, look, page) {
  const { rows, goal, off, own } = look, { width } = page, wide = width >= 700;
  const top = wide ? 60 : 78;
  const high = Math.max(20, Math.min(31, (300 - 46 * own.length) / rows.length));
  const y = (i) => top + high * (i + 0.5), color = ({ kind }) => `var(${COLORS[kind] ?? "--key"})`;
  const from = wide ? 150 : 124, long = wide ? Math.min(420, width - 530) : 84;
  const after = from + long + 12, says = wide ? width - 126 : width, room = says - after - 54;
  drawChoices(layer(group, "choices"), look, page);
  const heads = [[wide ? "the vector's numbers" : "its numbers", from, long], [`share of “${goal}”`, after, room + 40],
    ...(wide ? [["likeliest here", says, 126]] : [])];
  put.label(group, "heads", heads, ([text, x, most]) =>
    [fitted(text, most, 12), x, top - 6, "small"]);
  const streams = rows.map((one, i) => ({ ...one, i })).filter(({ kind }) => kind === "stream");
  put.path(group, "spine", [`M9 ${top}V${y(rows.length - 1)}`], (d) =>
    ({ d, class: "ribbon crossing", "stroke-width": 6, "stroke-opacity": 0.4 }));
  const adds = rows.map((one, i) => ({ ...one, i })).filter(({ name }) => name.startsWith("+"));
  const before = (i) => streams.findLast((one) => one.i < i).i;
  put.path(group, "branches", adds, (one) => ({ ...pen("--key", 3), stroke: color(one),
    d: `M9 ${y(before(one.i))}C28 ${y(before(one.i)) + 8} 28 ${y(one.i)} 9 ${y(one.i + 1)}` }), "i");
  put.circle(group, "dots", streams, ({ i }) =>
    ({ cx: 9, cy: y(i), r: 6, fill: "var(--value)" }), "i");
  put.rect(group, "places", rows, ({ name, kind, share, best, most, values }, i) => ({ rx: 6,
    class: "bar-place", x: 20, y: y(i) - high / 2, width: width - 20, height: high,
    ...told(kind === "stream" ? `${name}: “${goal}” has ${share.toFixed(3)}, likeliest is “${
      best}” (${most.toFixed(3)})` : kind === "hidden" ?
      `${off} of ${values.length} units are off` : `${name}: ${firstNumbers(values)}`) }));
  putStrips(group, "strips", rows.map(({ values }) => new Tensor([1, values.length], values)),
    (i) => ({ x: from, y: y(i) - 8, width: long, height: 16 }));
  put.label(group, "names", rows, (one, i) => [fitted(one.name, from - 34, wide ? 14 : 12), 28,
    y(i) + 5, one.kind === "stream" ? `strong${wide ? "" : " size-12"}` : wide ? "" : "size-12",
    { fill: one.kind === "stream" ? null : color(one) }]);
  put.rect(group, "bars", streams, ({ share, i }) => ({ x: after, y: y(i) - 7, height: 14, rx: 3,
    fill: "var(--value)", width: Math.max(1.5, share * room) }), "i");
  put.label(group, "shares", streams, ({ share, i }) =>
    [share.toFixed(3), after + 6 + share * room, y(i) + 4, "number"], "i");
  put.label(group, "best", wide ? streams : [], ({ best, most, right, i }) => [
    fitted(`${best} ${most.toFixed(2)}`, 126, 14, 600), says, y(i) + 5, right ? "strong" : ""],
  "i");
  put.text(group, "adds", rows.map((one, i) => ({ ...one, i })).filter(({ kind }) =>
    kind !== "stream"), ({ kind, values, i }) => [fitted(kind === "hidden" ?
    `${off} of ${values.length} off` : firstNumbers(values, wide ? 3 : 2), width - after, 12), after,
  y(i) + 4, kind === "hidden" ? "number strong" : "small"], "i");
  return top + high * rows.length + 8;
}

const firstNumbers = (values, n = 3) => `${[...values.slice(0, n)].map((one) =>
  one.toFixed(2).replace("-", "−")).join("  ")} …`;

// The written words and the blocks, each a button.
function drawChoices(group, { written, row, blocks, block }, page) {
  const last = page.width - 78 * blocks.length, wide = page.width >= 700, x = [];
  const most = ((wide ? last : page.width) - 4) / written.length - 6;
  const sizes = written.map((word) => Math.min(most, textWidth(word, 12, 600) + 16));
  sizes.forEach((size, i) => x.push(i ? x[i - 1] + sizes[i - 1] + 6 : 1));
  put.box(group, "words", written, (word, i) => ({ x: x[i], y: 2, width: sizes[i], height: 25,
    rx: 8, word: fitted(word, sizes[i] - 4, 12, 600), font: `size-12${i === row ? " strong" : ""}`,
    ...choosable(`the vector of “${word}”, at ${i}`, i === row, () => page.set({ row: i })) }),
  (_, i) => i);
  put.box(group, "blocks", blocks, (one) => ({ x: (wide ? last : 1) + 78 * one, y: wide ? 2 : 31,
    width: 72, height: 25, rx: 8, word: `block ${one}`,
    font: `size-12${one === block ? " strong" : ""}`,
    ...choosable(`open block ${one}`, one === block, () => page.set({ block: one })) }));
}
