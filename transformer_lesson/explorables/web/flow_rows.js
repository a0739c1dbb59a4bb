// Words as rows of numbers, the next word as it emerges block by block, and the likeliest ones.

import { fitted, layer, put, textWidth, told } from "./draw.js";
import { headingOf, sharesRead, streamBehind } from "./flow_pass.js";
import { remembered } from "./frame.js";
import { tensorHref } from "./heat_map.js";
import { firstLargest } from "./ranking.js";
import { Tensor } from "./transformer.js";

// Each word with its embedding; at the second stop also its position's vector and their sum.
export function drawVectors(group, look, page) {
  const { sublayers, stop, n } = look, wide = page.width >= 700;
  const lanes = sublayers.filter(({ kind }) => kind === "embedding").map(({ key, lane }) => ({
    lane, ...vectorsOf(look, page, key), words: look[lane], ids: look.ids[lane],
    rows: lane === "written" ? look.full : look[lane].length }));
  const beside = wide && lanes.length > 1, most = Math.max(...lanes.map(({ rows }) => rows));
  const high = Math.max(14, Math.min(wide ? 34 : 26, (372 - 46 * look.own.length) / most));
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

// The last word's vector after each sub-layer, read as if the blocks ended there.
export function drawBuilding(group, look, page) {
  const { width } = page, wide = width >= 700, { next, written } = look;
  const steps = remembered(page, "building", [page.model.get("text"), written.length], () =>
    look.sublayers.filter(({ lane, kind }) => lane === "written" && kind !== "next").map((one) => {
      const shares = sharesRead(look, streamBehind(look, one, written.length - 1));
      const best = firstLargest(shares);
      return { key: one.key, one, share: shares[next.id], best, most: shares[best] };
    }));
  const labelOf = (one) => labelOfStep(one, wide);
  const high = Math.max(16, Math.min(46, (340 - 46 * look.own.length) / steps.length)), y = (i) => 50 + high * (i + 0.5);
  const name = wide ? 220 : 36 + Math.max(...steps.map(({ one }) => textWidth(labelOf(one))));
  const least = width < 320, says = wide ? 210 : least ? 66 : 104; // that has room for a word alone
  const unit = width - name - says - 56, asked = `share of “${next.word}”`;
  const room = width - name - says - 12, isRead = textWidth(asked, 12) <= room;
  put.text(group, "heads", [["after", 26],
    [isRead ? asked : fitted(`“${next.word}”`, room, 12), name],
    [least ? "likeliest" : "likeliest here", width - says]], ([text, x]) => [text, x, 38, "small"]);
  put.path(group, "stream", [`M9 18V${y(steps.length - 1)}`], (d) =>
    ({ d, class: "ribbon crossing", "stroke-width": 6, "stroke-opacity": 0.5 }));
  put.text(group, "word", [`“${fitted(written.at(-1), width - 46, 14, 600)}”`], (text) =>
    [text, 26, 16, "strong"]);
  put.circle(group, "dots", steps, (_, i) => ({ cx: 9, cy: y(i), r: 5, fill: "var(--value)" }));
  put.rect(group, "places", steps, ({ one, share, best, most }, i) => ({
    class: "bar-place", x: 20, y: y(i) - high / 2, width: width - 20, height: high,
    ...told(`after ${labelOf(one)}: “${next.word}” has ${share.toFixed(3)}, likeliest is ` +
      `“${look.token(best)}” (${most.toFixed(3)})`) }));
  put.rect(group, "bars", steps, ({ share }, i) => ({
    x: name, y: y(i) - 8, height: Math.min(16, high - 2), rx: 3, fill: "var(--value)",
    width: Math.max(1.5, share * unit) }));
  put.label(group, "names", steps, ({ one }, i) => [labelOf(one), 26, y(i) + 5, ""]);
  put.label(group, "shares", steps, ({ share }, i) =>
    [share.toFixed(3), name + 8 + share * unit, y(i) + 4, "number"]);
  put.label(group, "best", steps, ({ best, most }, i) => {
    const isNext = best === next.id, word = look.token(best), weight = isNext ? 600 : 400;
    const all = `${word} ${most.toFixed(2)}`, isWhole = textWidth(all, 14, weight) <= says;
    return [fitted(isWhole && !least ? all : word, says, 14, weight), width - says, y(i) + 5,
      isNext ? "strong" : ""];
  });
  return 50 + high * steps.length + 8;
}

function labelOfStep({ kind, block, lane }, wide) {
  if (kind === "embedding") return kind;
  if (!wide) return `${block} ${headingOf({ kind, lane })}`;
  const source = kind === "cross_attention" && "looks at the source";
  return `block ${block} ${source || headingOf({ kind, lane })}`;
}

export function drawLikeliest(group, look, page) {
  const { best, logits, own } = look, { width } = page, name = width < 700 ? 100 : 190;
  const unit = width - name - 74, high = own.length ? 32 : 37, n = logits.length - best.length;
  put.rect(group, "bars", best, ({ share }, i) => ({
    x: name, y: 8 + high * i, height: 26, width: Math.max(2, share * unit), rx: 4,
    fill: i ? "var(--hidden)" : "var(--value)" }), "id");
  put.rect(group, "places", best, ({ id, word, share }, i) => ({
    class: "bar-place", x: 0, y: 2 + high * i, width, height: high,
    ...told(`“${word}”: logit ${logits[id].toFixed(2)}, share ${share.toFixed(3)}`) }), "id");
  put.label(group, "words", best, ({ word }, i) => [
    fitted(word, name - 14, i ? 16 : 20, 600), name - 12, 27 + high * i,
    `end ${i ? "size-16" : "size-20 strong"}`], "id");
  put.label(group, "numbers", best, ({ share }, i) =>
    [share.toFixed(3), name + 8 + share * unit, 26 + high * i, i ? "" : "strong"], "id");
  const rest = Math.max(0, 1 - best.reduce((sum, { share }) => sum + share, 0));
  const y = 8 + high * best.length, words = `${n} others`;
  put.rect(group, "rest", n ? [rest] : [], () => ({ x: name, y, height: 26, rx: 4,
    width: Math.max(2, rest * unit), class: "box", ...told(`${words} together: ${rest.toFixed(3)}`) }));
  put.label(group, "rest words", n ? [[words, name - 12, "end small"],
    [rest.toFixed(3), name + 8 + rest * unit, "number"]] : [], ([text, x, kind]) =>
    [text, x, y + 18, kind]);
  return y + 30;
}
