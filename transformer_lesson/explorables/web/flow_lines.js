// The learner's own lines, beside what they compute; Python has found them.

import { fitted, put, textWidth, told } from "./draw.js";

const OWN = { letter: 7.3, rows: 3, head: 22, row: 15, gap: 5, side: 3,
  colors: { scores: "--query", mask: "--query", weights: "--full", sum: "--value" } };

// Of all lines, those of a stop.
export const ownLines = (lines, stop) => lines.filter(([at]) => at === stop)
  .map(([, what, name, number, code]) => ({ what, where: `your ${name}, line ${number}`, code }));

// Draws these lines from `y` down, and returns where they end.
export function drawOwnLines(group, own, { x, y, width }) {
  let top = y + 8;
  const most = Math.floor((width - 20) / OWN.letter), all = own.map((one) => {
    const rows = rowsOfCode(one.code, most), from = top;
    top += OWN.head + OWN.row * rows.length + OWN.gap;
    return { ...one, rows, y: from, high: top - from - OWN.gap };
  });
  put.rect(group, "places", all, ({ y, high, what, where, code }) => ({ class: "box", x, y, width,
    height: high, ...told(`${what}, ${where}: ${code}`, what) }), "what");
  put.rect(group, "sides", all, ({ y, high, what }) => ({ x, y, width: OWN.side, height: high,
    fill: `var(${OWN.colors[what] ?? "--focus"})` }), "what");
  put.label(group, "what", all, ({ y, what }) => [what, x + 12, y + 15, "strong size-12"], "what");
  put.label(group, "where", all, ({ y, what, where }) => {
    const from = 20 + textWidth(what, 12, 600);
    return [fitted(where, width - from - 4, 12), x + from, y + 15, "small"];
  }, "what");
  put.label(group, "code", all.flatMap(({ y, rows, what }) => rows.map((text, i) =>
    ({ text, x: x + 12, y: y + 31 + OWN.row * i, class: "code", key: `${what} ${i}` }))));
  return own.length ? top : y;
}

// Code in rows of at most `most` letters, broken at blanks if there are any; "…" if it goes on.
function rowsOfCode(code, most) {
  const rows = [];
  let rest = code;
  while (rest && rows.length < OWN.rows) {
    const blank = rest.lastIndexOf(" ", most), cut = rest.length <= most ? rest.length :
      blank > 0 ? blank : most;
    rows.push(rest.slice(0, cut));
    rest = rest.slice(cut).trimStart();
  }
  if (rest) rows.push(`${rows.pop().slice(0, most - 1)}…`);
  return rows;
}

// A positive number in three digits.
export const short = (value) => value >= 0.01 && value < 1e4 ? `${Number(value.toPrecision(3))}` :
  value.toExponential(2).replace("e+", "e");
