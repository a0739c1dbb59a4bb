// Nouns of a trained embedding table: one, its nearest neighbors, and what they share with it.

import { choosable, fitted, layer, pen, put, textWidth, wrapped } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";

const NOUN_CHIP = { high: 24, gap: 4, size: 13 }, NOUN_ROW = { least: 34, head: 26, says: 132 };

export const NounNeighbors = (view) => frame(view, {
  name: "Noun neighbors",
  traits: ["forms", "noun", "plural", "mark"],
  controls: (make) => [
    make.toggle("plurals", "plural"),
    make.choice("Color by", "mark", ["kind", "gender", "number"])],
  draw: drawNouns });

// A form's kind, gender or number, and how the list writes it.
const nounMark = (form, mark) => ({
  kind: form.kind, gender: form.gender.split(" ")[0], number: form.plural ? "many" : "one" })[mark];
const nounSays = (form, mark) => (mark === "gender" ? form.gender : nounMark(form, mark));

function chosenNoun({ forms, noun, plural }) {
  const own = forms.filter((form) => form.noun === noun);
  return own.find((form) => form.plural === plural) ?? own[0];
}

function drawNouns(state, page) {
  const { forms, mark, plural } = state, { svg, width } = page, wide = width >= 620;
  const chosen = chosenNoun(state), shares = (form) =>
    Boolean(mark) && nounMark(form, mark) === nounMark(chosen, mark);
  const near = chosen.near.map(([i, cosine]) => ({ ...forms[i], cosine }));
  const parts = { forms, mark, chosen, shares, near, page };
  const singulars = forms.filter((form) => !form.plural);
  const offered = singulars.map(({ noun }) => chosenNoun({ forms, noun, plural }));
  const top = drawNounChips(layer(svg, "nouns"), parts, offered) + 12;
  const room = wide ? Math.max(170, Math.min(300, page.high - top)) : 5 * NOUN_ROW.least;
  const list = { left: 0, top, width: wide ? width * 0.46 : width, height: room };
  drawNearest(layer(svg, "nearest"), parts, list);
  const map = wide ? { left: width * 0.5, top, width: width * 0.5, height: room } :
    { left: 0, top: top + room + 14, width, height: 220 };
  drawNounMap(layer(svg, "map"), parts, map);
  return { ...nounFacts(parts), height: map.top + map.height };
}

function drawNounChips(group, { chosen, page }, offered) {
  const { high, gap, size } = NOUN_CHIP, widths = offered.map(({ word }) =>
    textWidth(word, size) + 12);
  const { places, bottom } = wrapped(widths, { x: 0, y: 1, width: page.width, high, gap });
  put.rect(group, "chips", offered, (form, i) => ({
    ...places[i], rx: 5, class: "box",
    ...choosable(form.word, form.word === chosen.word, () => page.set({ noun: form.noun }),
      `noun-${form.word}`) }), "word");
  put.label(group, "words", offered, (form, i) => [
    form.word, places[i].x + places[i].width / 2, places[i].y + 16.5, "size-13 middle"], "word");
  return bottom;
}

function drawNearest(group, { mark, chosen, shares, near, page }, { left, top, width, height }) {
  const row = (height - NOUN_ROW.head) / near.length, bars = left + Math.max(98, width * 0.28);
  const says = left + width - (mark ? NOUN_ROW.says : 0), most = Math.max(16, says - bars - 40);
  const y = (i) => top + NOUN_ROW.head + i * row;
  put.text(group, "heading", [
    [`nearest to “${chosen.word}”`, left, top + 14, "small"],
    ...(mark ? [[mark === "gender" ? chosen.gender : `${mark}: ${nounMark(chosen, mark)}`, says,
      top + 14, "small strong"]] : [])]);
  put.rect(group, "rows", near, (form, i) => ({
    x: left, y: y(i), width, height: row - 4, rx: 5, class: "box",
    ...choosable(`“${form.word}”: cosine ${form.cosine.toFixed(2)}` + (mark ?
      `, ${mark} ${nounSays(form, mark)}, ${shares(form) ? "the same" : "another"}` : ""), false,
    () => page.set({ noun: form.noun, plural: form.plural }), `noun-${form.word}`) }));
  const middle = (i) => y(i) + (row - 4) / 2 + 4.5;
  put.label(group, "words", near, ({ word }, i) => [word, left + 8, middle(i), "size-13 strong"]);
  put.rect(group, "bars", near, ({ cosine }, i) => ({
    x: bars, y: y(i) + row / 2 - 7, width: Math.max(1, cosine * 2 * most), height: 10,
    fill: "var(--key)" }));
  put.label(group, "cosines", near, ({ cosine }, i) => [
    cosine.toFixed(2), bars + cosine * 2 * most + 5, middle(i), "small"]);
  put.label(group, "shares", mark ? near : [], (form, i) => [
    `${shares(form) ? "✓" : "✗"} ${nounSays(form, mark)}`, says, middle(i),
    shares(form) ? "size-13 strong" : "size-13",
    { fill: shares(form) ? "var(--value)" : "var(--soft)" }]);
}

function drawNounMap(group, { forms, mark, chosen, shares, near, page }, box) {
  const { left, top, width, height } = box, edge = 30;
  const scale = (i, from, room) => {
    const all = forms.map(({ place }) => place[i]), low = Math.min(...all);
    return (one) => from + edge + ((one - low) / (Math.max(...all) - low)) * (room - 2 * edge);
  };
  const across = scale(0, left, width), up = scale(1, 0, height - 26);
  const x = ({ place }) => across(place[0]), y = ({ place }) => top + height - up(place[1]);
  put.rect(group, "ground", [0], () => ({ x: left + 0.5, y: top + 0.5, width: width - 1,
    height: height - 1, rx: 8, fill: "var(--paper)", stroke: "var(--line)" }));
  put.text(group, "heading", [
    ["○ singular, ▫ plural", left + 10, top + 18, "small"],
    [fitted(mark ? `full: the same ${mark}` : "the two widest of 128 directions", width - 150, 12),
      left + width - 10, top + 18, "small end"]]);
  put.path(group, "lines", near, (form) =>
    ({ d: `M${x(chosen)} ${y(chosen)}L${x(form)} ${y(form)}`, ...pen("--query", 1.5) }));
  const close = new Set(near.map(({ word }) => word)), own = (form) => form.word === chosen.word;
  const rank = (form) => 4 * own(form) + 2 * close.has(form.word) + !form.plural;
  const size = (form) => own(form) ? 8 : close.has(form.word) ? 6 : form.plural ? 2.5 : 4.5;
  const drawn = forms.toSorted((a, b) => rank(a) - rank(b)); // the chosen ones on top
  put.rect(group, "dots", drawn, (form) => ({
    x: x(form) - size(form), y: y(form) - size(form), width: 2 * size(form),
    height: 2 * size(form), rx: form.plural ? 0 : size(form),
    opacity: form.plural && size(form) < 6 ? 0.5 : 1,
    fill: shares(form) ? "var(--value)" : "var(--paper)", "stroke-width": own(form) ? 3 : 1.5,
    stroke: own(form) ? "var(--query)" : shares(form) ? "var(--value)" : "var(--soft)",
    ...choosable(`“${form.word}”, ${form.gender}, ${form.kind}`, own(form),
      () => page.set({ noun: form.noun, plural: form.plural }), `noun-${form.word}`) }), "word");
  const names = nounNames([chosen, ...near].map((form) => ({ word: form.word, x: x(form), y: y(form),
    size: textWidth(form.word, 13, 600) })), box);
  put.path(group, "leaders", names.filter(({ leads }) => leads), ({ leads }) =>
    ({ d: leads, ...pen("--ink", 1) }));
  put.label(group, "names", names, ({ word, at }) => [word, ...at, "size-13 middle halo strong",
    word === chosen.word ? { fill: "var(--query)" } : {}], "word");
}

const NAME_TURNS = Array.from({ length: 16 }, (_, i) => (Math.PI * i) / 8); // from the right
const NAME_FAR = [28, 44, 60, 80, 104]; // pixels from a dot to the middle of its name

// Places names beside, above or below their dots, or farther off at the end of a leader line, so
// that they cover no other name and no named dot.
function nounNames(named, { left, top, width, height }) {
  const placed = [];
  const isFree = (word, size, [u, v]) =>
    u - size / 2 > left + 4 && u + size / 2 < left + width - 4 && v > top + 38 &&
    v < top + height - 6 &&
    placed.every(({ at, size: other }) =>
      Math.abs(at[0] - u) > (size + other) / 2 + 6 || Math.abs(at[1] - v) > 17) &&
    named.every((one) => one.word === word || Math.abs(one.x - u) > size / 2 + 9 ||
      Math.abs(one.y + 4.5 - v) > 15);
  const isClear = (word, [x, y], [u, v]) => [0.35, 0.6, 0.85].every((part) => named.every((one) =>
    one.word === word || Math.hypot(x + part * (u - x) - one.x, y + part * (v - y) - one.y) > 9));
  for (const { word, x, y, size } of named) {
    const beside = [[12 + size / 2, 4.5], [-12 - size / 2, 4.5], [0, -12], [0, 22]];
    const around = NAME_FAR.flatMap((far) => NAME_TURNS.map((turn) =>
      [(far + size / 2) * Math.cos(turn), 4.5 + far * Math.sin(turn)]));
    const place = [...beside, ...around].find(([dx, dy]) =>
      isFree(word, size, [x + dx, y + dy]) && isClear(word, [x, y], [x + dx, y + dy - 4.5]));
    if (!place) continue;
    const [u, v] = [x + place[0], y + place[1]], edge = Math.min(size / 2 + 2, Math.abs(u - x));
    const leads = beside.includes(place) ? null :
      `M${x} ${y}L${u - Math.sign(u - x) * edge} ${v - 4.5}`;
    placed.push({ word, at: [u, v], size, leads });
  }
  return placed;
}

function nounFacts({ mark, chosen, shares, near }) {
  const count = near.filter(shares).length;
  const named = near.map((form) => `${form.word} ${form.cosine.toFixed(2)}`).join(", ");
  return {
    title: mark ? `“${chosen.word}”: ${count} of its ${near.length} nearest nouns ` +
      `${count === 1 ? "shares" : "share"} its ${mark}` :
      `“${chosen.word}”: what do its ${near.length} nearest nouns share with it?`,
    said: `Of all singulars and plurals, the nearest to “${chosen.word}” ` +
      `${mark ? `(${mark}: ${nounSays(chosen, mark)}) ` : ""}are ${named}.` };
}
