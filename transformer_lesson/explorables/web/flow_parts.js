// The whole model as a strip above each stop of the tour; the part that is opened below is lit.

import { choosable, fitted, layer, pen, put, textWidth } from "./draw.js";

const STRIP = { high: 22, row: 26, below: 14,
  places: { 1: [0, 0.25], 2: [0.27, 0.37], 3: [0.4, 0.53], 4: [0.4, 0.53], 5: [0.555, 0.635],
    6: [0.66, 0.76], 7: [0.79, 1] } }; // from and to, in parts of the width

// Returns where the strip ends, and sets where on it the present part is.
export function drawPartsOfModel(group, look, page) {
  const { read, written, writes, translates, stop, stops } = look, { width } = page;
  const lanes = [[translates || !writes, read, [1, 2, 3]], [writes, written, [1, 2, 4, 5, 6, 7]]]
    .filter(([isThere]) => isThere);
  const texts = ([, words], at) => ({ 1: words.join(" "), 2: "+ place", 3: "encoder looks",
    4: "looks back", 5: "reads", 6: `thinks, × ${look.depth}`, 7: `“${look.next?.word}”` })[at];
  const parts = lanes.flatMap((lane, i) => lane[2].filter((at) => stops.includes(at)).map((at) => {
    const [from, to] = STRIP.places[at].map((part) => part * (width - 4) + 2);
    return { key: `${i} ${at}`, at, lane: i, x: from, y: 2 + STRIP.row * i, width: to - from,
      height: STRIP.high, text: texts(lane, at), here: at === stop };
  }));
  const open = parts.filter(({ here }) => here), last = open.at(-1), bottom = last.y + STRIP.high;
  const end = STRIP.row * lanes.length + STRIP.below;
  put.path(group, "opened", [last], ({ x, width: wide }) => ({ class: "opened",
    d: `M${x} ${bottom}H${x + wide}L${width} ${end - 4}H0z` }), () => "opened");
  const middle = (i) => 2 + STRIP.row * i + STRIP.high / 2, at = (part) => part * width;
  const ways = lanes.map(([, , all], i) => `M4 ${middle(i)}H${at(STRIP.places[all.at(-1)][0])}`);
  if (lanes.length > 1) ways.push(`M${at(0.5)} ${middle(0)}H${at(0.595)}V${middle(1)}`);
  put.path(group, "ways", [ways.join("")], (d) => ({ d, ...pen("--line", 3) }));
  put.rect(group, "parts", parts, ({ text, here, at, key, lane, ...box }) => ({ ...box, rx: 6,
    class: `box${here ? " here" : ""}`,
    ...choosable(`open ${text}`, here, () => page.set({ stop: at })) }), "key");
  put.label(group, "texts", parts, ({ text, at, here, x, y, width: wide }) => {
    const isWhole = textWidth(text, 12, 600) < wide - 6 || at === 1 || at === 7;
    const kind = `middle size-12${here ? " strong" : ""}`;
    return [isWhole ? fitted(text, wide - 8, 12, 600) : at, x + wide / 2, y + 15.5, kind,
      { fill: here ? "var(--paper)" : "var(--soft)" }];
  }, "key");
  page.part = last.x + last.width / 2;
  return end;
}
