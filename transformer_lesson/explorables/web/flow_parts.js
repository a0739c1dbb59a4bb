// The whole model as a strip above each stop of the tour; the part that is opened below is lit.

import { choosable, fitted, pen, put, textWidth } from "./draw.js";

const STRIP = { high: 22, row: 26, below: 10,
  places: { 1: [0, 0.25], 2: [0.27, 0.37], 3: [0.4, 0.53], 4: [0.4, 0.53], 5: [0.555, 0.635],
    6: [0.66, 0.76], 7: [0.79, 1] } }; // from and to, in parts of the width

// Returns where the strip ends, and notes where on it the present part is.
export function drawPartsOfModel(group, { read, written, writes, stop, stops, ...look }, page) {
  const lanes = [...(look.translates || !writes ? [[read, [1, 2, 3]]] : []),
    ...(writes ? [[written, [1, 2, 4, 5, 6, 7]]] : [])], { width } = page;
  const depth = look.sublayers.filter(({ block, lane }) => block !== null && lane === "written");
  const texts = { 2: "+ place", 3: "encoder looks", 4: "looks back", 5: "reads",
    6: `a block, × ${new Set(depth.map(({ block }) => block)).size}`, 7: `“${look.next?.word}”` };
  const has = (all) => all.filter((at) => stops.includes(at));
  const parts = lanes.flatMap(([words, all], i) => has(all).map((at) => {
    const [x, to] = STRIP.places[at].map((part) => part * (width - 4) + 2);
    return { key: `${i} ${at}`, at, x, y: 2 + STRIP.row * i, wide: to - x, middle: (x + to) / 2,
      text: texts[at] ?? words.join(" "), here: at === stop };
  }));
  const end = STRIP.row * lanes.length + STRIP.below, last = parts.findLast(({ here }) => here);
  put.path(group, "opened", [last], ({ x, y, wide }) => ({ class: "opened",
    d: `M${x} ${y + STRIP.high}H${x + wide}L${width} ${end - 2}H0z` }), () => "opened");
  const ways = lanes.map(([, all], i) => `M4 ${13 + STRIP.row * i}H${width * (all[3] ? .9 : .5)}`);
  if (lanes[1]) ways.push(`M${width / 2} 13H${width * 0.595}V${STRIP.row}`);
  put.path(group, "ways", ways, (d) => ({ d, ...pen("--line", 3) }));
  put.rect(group, "parts", parts, ({ text, here, at, x, y, wide }) => ({ x, y, width: wide, rx: 6,
    height: STRIP.high, class: `box${here ? " here" : ""}`,
    ...choosable(`open ${text}`, here, () => page.set({ stop: at })) }), "key");
  put.label(group, "texts", parts, ({ text, at, here, middle, y, wide }) => {
    const isWhole = textWidth(text, 12, 600) < wide - 6 || at === 1 || at === 7;
    return [isWhole ? fitted(text, wide - 8, 12, 600) : at, middle, y + 15.5, "middle size-12" +
      (here ? " strong" : ""), { fill: `var(${here ? "--paper" : "--soft"})` }];
  }, "key");
  page.part = last.middle;
  return end;
}
