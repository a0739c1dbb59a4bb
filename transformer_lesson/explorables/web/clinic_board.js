// The board of a clinic: a sick program beside the healthy one, suspects, and probes that cost
// minutes. Each clinic describes its own curve.

import { choosable, countOf, fixed, grid, layer, pen, put, textLines, told } from "./draw.js";

const CLINIC_ROW = 24; // pixels from one button to the next: the minimum for a finger

// The control that chooses the open case.
export function clinicCases(make, page) {
  const cases = () => page.model.get("cases").map((_, i) => [i + 1, i + 1]);
  const choice = make.choice("Case", "case", cases);
  choice.classList.add("dense");
  choice.style.flexWrap = "wrap"; // on a phone, too, so that all cases stay visible
  return [choice];
}

// Draws a clinic's open case. `board` describes its curve:
//
//   curve     its name; the axis goes up to `top`, with `ticks`, and below it are steps, `labels`
//   every     steps from one point to the next
//   ends      (case, healthy) => a sentence on how both ended
export function drawClinic(state, page, board) {
  if (state.missing) return state.missing;
  const { svg, width } = page, now = clinicCase(state), beside = width >= 700;
  const column = beside ? (width - 32) / 3 : width, panelWide = beside ? 2 * column + 16 : width;
  const left = { x: 0, y: 0, wide: column, tall: beside ? 142 : 110 };
  const below = left.tall + (state.healthy.sentences ? 110 : 36);
  const middle = beside ? { x: column + 16, y: 0, wide: column } : { x: 0, y: below, wide: width };
  const end = drawSuspects(layer(svg, "suspects"), now, middle, page);
  drawPatient(layer(svg, "patient"), now, state, { ...left, board });
  const panel = { x: 0, y: Math.max(end, beside ? below : 0) + 8, wide: panelWide };
  const panelEnd = drawVerdict(layer(svg, "verdict"), now, panel, page);
  const right = beside ? { x: 2 * column + 32, y: 0, wide: column }
    : { x: 0, y: panelEnd + 16, wide: width };
  drawProbes(layer(svg, "probes"), now, right, page);
  const probesEnd = right.y + 22 + CLINIC_ROW * state.probes.length;
  return { ...clinicFacts(now, state, board), height: Math.max(panelEnd, probesEnd) + 4 };
}

function clinicCase({ case: number, cases, taken, verdicts, probes, healthy }) {
  const one = cases[number - 1], pressed = taken[number] ?? [], accused = verdicts[number] ?? "";
  const minutes = minutesOf(pressed, probes), rows = probes.map((probe) => {
    const [sick, right] = [one, healthy].map((it) => fixed(it.probes[probe.name], probe.digits));
    const shown = Boolean(accused) || pressed.includes(probe.name);
    return { ...probe, sick, right, shown, pressed: pressed.includes(probe.name) };
  });
  return { ...one, number, pressed, accused, minutes, rows, solved: accused === one.guilty };
}

const minutesOf = (names, probes) =>
  probes.reduce((sum, { name, cost }) => sum + (names.includes(name) ? cost : 0), 0);

const minuteWords = (n) => countOf(n, "minute");

function drawPatient(group, now, { healthy }, { x, y, wide, tall, board }) {
  const chart = { x: x + 26, y: y + 16, wide: wide - 34, tall: tall - 10 };
  const across = (i) => chart.x + (i / (healthy.losses.length - 1)) * chart.wide;
  const up = (one) => chart.y + chart.tall * (1 - Math.min(one, board.top) / board.top);
  drawClinicAxes(layer(group, "axes"), chart, board, { across, up });
  const curves = [["healthy", healthy, "--key", "5 4"], ["sick", now, "--query", null]];
  put.path(group, "curves", curves, ([, { losses }, color, dash]) => ({
    d: `M${losses.map((one, i) => `${across(i).toFixed(1)} ${up(one).toFixed(1)}`).join("L")}`,
    ...pen(color, 2, dash) }), ([name]) => name);
  const both = (i) => `sick ${now.losses[i].toFixed(2)}, healthy ${healthy.losses[i].toFixed(2)}`;
  put.rect(group, "steps", now.losses, (_, i) => ({
    x: across(i - 0.5), y: chart.y, width: chart.wide / (now.losses.length - 1), height: chart.tall,
    fill: "transparent", ...told(`step ${board.every * i}: ${both(i)}`) }));
  if (!healthy.sentences) return;
  const [sick, right] = [now, healthy].map(
    ({ sentences }) => sentences[now.sample].replace("<bos> ", ""));
  const lines = [["sick: ", sick, "sick"], ["healthy: ", right, "sound"]].flatMap(
    ([who, text, color], k) => textLines(who + text, wide, 13).slice(0, 2).map((line, i) => (
      { line, color, y: y + tall + 48 + 33 * k + 16 * i })));
  put.text(group, "sentences", lines, (one) =>
    [one.line, x, one.y, `size-13 ${one.color}`], (one) => one.y);
}

function drawClinicAxes(group, { x, y, wide, tall }, board, { across, up }) {
  grid(group, { left: x, right: x + wide }, up, board.ticks);
  put.label(group, "steps", board.labels, (step) =>
    [step, across(step / board.every), y + tall + 14, "small middle"], String);
  const names = [[board.curve, x - 26, y - 6, "small"],
    ["step", x + wide, y + tall + 14, "small end"],
    ["— sick", x + wide - 70, y - 6, "small end sick"],
    ["- - healthy", x + wide, y - 6, "small end sound"]];
  put.text(group, "names", names);
}

// A card for each suspect; a click accuses it. Returns where they end.
function drawSuspects(group, now, { x, y, wide }, page) {
  let top = y + 22;
  const cards = now.suspects.map((one) => {
    const lines = textLines(`${suspectMark(one, now)}${one.says}`, wide - 20, 13);
    const card = { ...one, lines, top, high: 12 + 17 * lines.length };
    top += card.high + 6;
    return card;
  });
  put.text(group, "head", [0], () =>
    [now.accused ? "Suspects" : "Suspects: accuse one of them", x, y + 12, "strong"]);
  const accuse = (name) => () => {
    const verdicts = page.model.get("verdicts");
    if (!verdicts[now.number]) page.set({ verdicts: { ...verdicts, [now.number]: name } });
  };
  put.rect(group, "boxes", cards, (one) => ({
    x: x + 1, y: one.top, width: wide - 2, height: one.high, rx: 8, class: "box",
    ...choosable(`${suspectMark(one, now)}${one.says}`, now.accused === one.name, accuse(one.name)),
  }), "name");
  const lines = cards.flatMap((one) => one.lines.map((text, i) => (
    { text, y: one.top + 19 + 17 * i, key: `${one.name} ${i}` })));
  put.label(group, "words", lines, ({ text, y: at }) => [text, x + 10, at, "size-13"]);
  return top;
}

const suspectMark = ({ name }, { accused, guilty }) =>
  !accused ? "" : name === guilty ? "✓ " : name === accused ? "✗ " : "";

// A button for each probe, with its cost and, once it was pressed or the case is closed, with what
// it measured.
function drawProbes(group, now, { x, y, wide }, page) {
  const rows = now.rows.map((one, i) => ({ ...one, top: y + 22 + CLINIC_ROW * i }));
  const press = (name) => () => {
    const taken = page.model.get("taken"), before = taken[now.number] ?? [];
    if (before.includes(name) || page.model.get("verdicts")[now.number]) return;
    page.set({ taken: { ...taken, [now.number]: [...before, name] } });
  };
  put.rect(group, "boxes", rows, (one) => ({
    x: x + 1, y: one.top, width: wide - 2, height: CLINIC_ROW - 3, rx: 6, class: "box",
    ...choosable(probeWords(one), one.pressed, press(one.name)) }), "name");
  const places = { name: x + 9, cost: x + wide * 0.52, sick: x + wide * 0.76, right: x + wide - 9 };
  const heads = [["Probes", "name"], ["min", "cost"], ["sick", "sick"], ["healthy", "right"]];
  put.text(group, "heads", heads, ([text, at], i) =>
    [text, i ? places[at] : x, y + 12, i ? "small end" : "strong"], ([text]) => text);
  const cells = rows.flatMap((one) => Object.keys(places).map((at) => ({
    key: `${one.name} ${at}`, at, y: one.top + 15,
    text: at === "name" || at === "cost" || one.shown ? one[at] : "" })));
  put.label(group, "cells", cells, ({ text, at, y: top }) =>
    [text, places[at], top, at === "name" ? "size-13" : "number end"]);
}

// `limit`, where a clinic has one, says how far off a number may be and still count as healthy.
const probeWords = ({ name, cost, asks, unit, sick, right, limit = "", shown }) => shown
  ? `${name}: ${asks} sick ${sick}, healthy ${right}${limit} (${unit})`
  : `${name}, ${minuteWords(cost)}: ${asks}`;

// What the last probe measured; after the verdict the reason, and the wrong and the right lines of
// code. Returns where it ends.
function drawVerdict(group, now, { x, y, wide }, page) {
  const prose = (text) => textLines(text, wide - 8, 13).map((line) => [line, "size-13"]);
  const indent = Math.min(...[...now.wrong, ...now.right].map((one) => one.search(/\S/)));
  const code = (lines, sign, style) => lines
    .flatMap((one) => codeLines(one.slice(indent), wide - 24))
    .map((line) => [`${sign} ${line}`, `code ${style}`]);
  const last = now.rows.find(({ name }) => name === now.pressed.at(-1));
  const lines = now.accused ? [
    ...prose(`In ${now.place}: ${now.reason}`),
    ...code(now.wrong, "✗", "sick"), ...code(now.right, "✓", "sound"),
  ] : last ? [...prose(probeWords(last)), ...(now.texts?.[last.name] ?? []).flatMap(prose)] :
    prose("Press a probe. It costs minutes, and shows what it measures of both programs.");
  put.text(group, "lines", lines, ([text, style], i) => [text, x, y + 14 + 17 * i, style]);
  const again = now.accused ? [0] : [], top = y + 17 * lines.length + 10;
  const restart = () => {
    const [taken, verdicts] = ["taken", "verdicts"].map((one) => ({ ...page.model.get(one) }));
    for (const one of [taken, verdicts]) delete one[now.number];
    page.set({ taken, verdicts });
  };
  put.box(group, "again", again, () => ({
    x: x + 1, y: top, width: 118, height: 22, rx: 7, word: "open it again", font: "size-13",
    ...choosable("open the case again", false, restart) }), String);
  return top + 24;
}

function codeLines(line, wide) {
  const most = Math.floor(wide / 7.3), pieces = [];
  let rest = line;
  while (rest.length > most) {
    const cut = rest.lastIndexOf(" ", most), end = cut > most / 2 ? cut + 1 : most;
    pieces.push(rest.slice(0, end));
    rest = `    ${rest.slice(end)}`;
  }
  return [...pieces, rest];
}

function clinicFacts(now, { cases, verdicts, healthy, probes }, board) {
  const closed = Object.entries(verdicts);
  const solved = closed.filter(([n, name]) => cases[n - 1]?.guilty === name).length;
  const count = `${solved} of ${cases.length} cases solved.`;
  if (!now.accused) {
    const taken = now.pressed.length;
    return {
      title: `Case ${now.number}: ${now.symptom}`,
      said: `${board.ends(now, healthy)} ${countOf(taken, "probe")}, ` +
        `${minuteWords(now.minutes)}. ${count}` };
  }
  const truth = now.suspects.find(({ name }) => name === now.guilty).says.replace(/\.$/, "");
  const least = minutesOf(now.cheapest, probes), names = now.cheapest.join(" and ");
  const tell = now.cheapest.length > 1 ? "tell" : "tells";
  return {
    title: `Case ${now.number}, ${now.solved ? "right" : "wrong"} after ` +
      `${minuteWords(now.minutes)}: ${truth}`,
    said: `You spent ${minuteWords(now.minutes)}. In hindsight, ${names} ` +
      `(${minuteWords(least)}) ${tell} this fault from the other suspects. ${count}` };
}
