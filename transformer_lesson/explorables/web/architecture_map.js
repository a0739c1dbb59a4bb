// The Transformer of the paper's figure 1, and its two halves; every box opens its lesson.

import { choosable, element, fitted, join, layer, set, textWidth, told } from "./draw.js";
import { frame } from "./frame.js";

export function ArchitectureMap(view) {
  return frame(view, {
    name: "Architecture map",
    traits: ["part", "kind", "norm_position", "parts"],
    controls: (make) => [
      make.choice("Model", "kind", () =>
        Object.keys(ARCHITECTURES).map((kind) => [kind, ARCHITECTURES[kind].word])),
      make.choice("Norm", "norm_position", () => [["post", "post (paper)"], ["pre", "pre"]]),
    ],
    draw: drawMap,
  });
}

// What each model reads and writes, column by column; `side` is where the residual paths run.
const NEXT_TOKEN = "next token probabilities";
const ARCHITECTURES = {
  "encoder-decoder": {
    word: "encoder-decoder",
    columns: [
      { side: -1, block: "Encoder block", reads: "source token ids" },
      { side: 1, block: "Decoder block", reads: "target token ids so far", writes: NEXT_TOKEN },
    ],
  },
  "encoder-only": {
    word: "encoder-only (BERT)",
    columns: [{ side: -1, block: "Encoder block", reads: "token ids, some hidden",
      writes: "hidden token probabilities" }],
  },
  "decoder-only": {
    word: "decoder-only (GPT)",
    columns: [{ side: 1, block: "GPT block", reads: "token ids so far", writes: NEXT_TOKEN }],
  },
};

// The sub-layers of each block, and the attention inside of them.
const SUBLAYERS = {
  "Encoder block": [["Multi-head attention", "Attention"], ["Feed-forward"]],
  "Decoder block": [["Multi-head attention", "Masked attention"], ["Cross-attention", "Attention"],
    ["Feed-forward"]],
  "GPT block": [["Multi-head attention", "Masked attention"], ["Feed-forward"]],
};

const BOX_COLORS = {
  "Token embedding": "--value", "Positional encoding": "--value", "Linear + softmax": "--value",
  "Multi-head attention": "--query", "Cross-attention": "--query", "Attention": "--query",
  "Masked attention": "--query", "Feed-forward": "--key",
};

function drawMap(state, page) {
  const { svg } = page, { columns } = ARCHITECTURES[state.kind], beside = page.width >= 700;
  const wanted = columns.length === 2 ? 570 : 320;
  const width = Math.min(wanted, beside ? page.width - 290 : page.width);
  const sizes = mapSizes(width / columns.length), view = { ...viewOf(state), page, state, sizes };
  const stacks = columns.map((column) => stackOf(column, state.norm_position, sizes));
  const height = Math.max(...stacks.map((stack) => stack.tall));
  const placed = stacks.map((stack) => placedStack(stack, stacks.length, width, height, sizes));
  drawBlocks(layer(svg, "blocks"), placed, view);
  drawPaths(layer(svg, "paths"), placed);
  drawBoxes(layer(svg, "boxes"), placed.flatMap(({ boxes }) => boxes), view);
  drawEnds(layer(svg, "ends"), placed, sizes);
  set(svg, { width, height });
  page.picture.classList.add("beside");
  page.card ??= page.picture.appendChild(element("div", { class: "card" }));
  fillCard(page.card, state.part, state.parts[state.part]);
  return mapFacts(view, placed);
}

// Which parts this model has, and which of them come next or are built.
function viewOf({ kind, parts }) {
  const { columns } = ARCHITECTURES[kind];
  const drawn = new Set(["Token embedding", "Positional encoding", "Add & norm",
    "Linear + softmax"]);
  for (const { block } of columns) {
    for (const name of [block, ...SUBLAYERS[block].flat()]) drawn.add(name);
  }
  const own = Object.keys(parts).filter((name) => drawn.has(name) && parts[name].exercises.length);
  const built = own.filter((name) => !parts[name].left.length);
  return { parts, own, built, next: own.find((name) => parts[name].left.length) };
}

function mapSizes(room) {
  const narrow = room < 220;
  const [outer, inner] = narrow ? [28, 12] : [44, 20];
  const wide = Math.min(200, room - outer - inner);
  return { narrow, outer, inner, wide, tall: narrow ? 48 : 38, around: narrow ? 9 : 14, edge: 20 };
}

// The boxes of one column from the bottom to the top, each with the gap below it.
function stackOf(column, position, { tall, edge }) {
  const box = (key, part, gap, more) =>
    ({ key: `${column.side}.${key}`, part, gap, tall, ...more });
  const boxes = [
    box("embedding", "Token embedding", edge + 12),
    box("positions", "Positional encoding", 12, { name: "+ Positional encoding" }),
  ];
  SUBLAYERS[column.block].forEach(([name, inside], i) => {
    const sublayer = box(name, name, 9, inside && { inside, tall: 2 * tall + 4 });
    const add = box(`${name} add`, "Add & norm", 9, { name: "add", tall: 20, round: true });
    const norm = box(`${name} norm`, "Add & norm", 9, { name: "norm", tall: 24 });
    const group = position === "post" ? [sublayer, add, norm] : [norm, sublayer, add];
    group[0] = { ...group[0], gap: i ? 26 : 42, starts: true };
    boxes.push(...group.map((one) => ({ ...one, block: true })));
  });
  const pre = position === "pre";
  if (pre) boxes.push(box("last", "Add & norm", 24, { name: "last norm", tall: 24 }));
  if (column.writes) boxes.push(box("softmax", "Linear + softmax", pre ? 12 : 24));
  const all = boxes.reduce((sum, one) => sum + one.gap + one.tall, 0);
  return { ...column, boxes, tall: all + edge + 16 };
}

// The same with a place for every box.
function placedStack(stack, n, width, height, { wide, outer, inner }) {
  const left = stack.side < 0 ? outer : inner, across = outer + wide + inner;
  const margin = (width - n * across) / 2;
  const x = left + (stack.side < 0 ? margin : width - margin - across);
  let y = height;
  const boxes = stack.boxes.map((box) => {
    y -= box.gap + box.tall;
    return { ...box, side: stack.side, x, y, wide };
  });
  const block = boxes.filter((box) => box.block);
  const top = block.at(-1).y - 12, bottom = block[0].y + block[0].tall + 24;
  return { ...stack, boxes, x, top, bottom, middle: x + wide / 2, floor: height };
}

// What makes a box a button that chooses its part; what is built is painted fuller.
function pressed(name, { page, state, built }, words) {
  const chosen = name === state.part, color = BOX_COLORS[name] ?? "--soft";
  const tint = (percent) => `color-mix(in oklab, var(${color}) ${percent}%, var(--paper))`;
  return {
    ...choosable(words, chosen, () => page.set({ part: name }), slug(name)),
    fill: tint(built.includes(name) ? 34 : BOX_COLORS[name] ? 14 : 5),
    stroke: chosen ? "var(--focus)" : tint(45), "stroke-width": chosen ? 3 : 1,
  };
}

const slug = (name) => name.replace(/\W+/g, "-");

function boxWords({ part, name }, view) {
  const piece = ["add", "norm", "last norm"].includes(name) ? ` (${name})` : "";
  const { lesson, exercises, left } = view.parts[part];
  const built = !exercises.length ? "ready made" : left.length ? "not built yet" : "built";
  return `${part}${piece}, lesson ${lesson}: ${built}${part === view.next ? ", next" : ""}`;
}

// A box's mark, in words and not in color alone.
function markOf(part, { built, next }) {
  return built.includes(part) ? "✓ built" : part === next ? "next" : "";
}

// The frames around what is repeated; their names stand upright beside the residual paths.
function drawBlocks(group, placed, view) {
  const { sizes } = view, key = ({ side }) => side;
  join(layer(group, "frames"), "rect", placed, key, ({ side, block, x, top, bottom }) => ({
    x: x - (side < 0 ? sizes.outer : 8), y: top, width: sizes.wide + sizes.outer + 8,
    height: bottom - top, rx: 14, ...pressed(block, view, boxWords({ part: block }, view)),
  }));
  join(layer(group, "names"), "text", placed, key, ({ side, block, x, top, bottom }) => {
    const at = side < 0 ? x - sizes.outer + 14 : x + sizes.wide + sizes.outer - 5;
    const middle = (top + bottom) / 2, mark = markOf(block, view);
    const text = `N × ${block} · ${view.parts[block].lesson}${mark && ` · ${mark}`}`;
    return { text, x: at, y: middle, transform: `rotate(-90 ${at} ${middle})`,
      class: "small middle", "aria-hidden": "true", "pointer-events": "none" };
  });
}

// The way up each column, the ways around the sub-layers, and the memory's to the decoder.
function drawPaths(group, placed) {
  const paths = [], heads = [];
  for (const { side, boxes, middle, floor, writes, x } of placed) {
    const end = boxes.at(-1).y - (writes ? 12 : 0);
    paths.push({ key: `${side}`, points: [[middle, floor - 18], [middle, end]] });
    for (const box of boxes) {
      if (!box.round) heads.push({ key: box.key, x: middle, y: box.y + box.tall });
      if (box.starts) paths.push(around(boxes, box, middle, side));
    }
    if (writes) heads.push({ key: `${side}.out`, x: middle, y: end });
  }
  if (placed.length === 2) paths.push(memoryPath(placed));
  join(layer(group, "lines"), "path", paths, ({ key }) => key, ({ points }) => ({
    d: rounded(points), fill: "none", stroke: "var(--soft)", "stroke-width": 1.5,
  }));
  join(layer(group, "heads"), "path", heads, ({ key }) => key, ({ x, y }) => ({
    d: `M${x - 4} ${y + 6} L${x} ${y} L${x + 4} ${y + 6} Z`, fill: "var(--soft)",
  }));
}

// A residual path: from below a group of boxes to its sum.
function around(boxes, first, middle, side) {
  const sum = boxes.find((box, i) => box.round && i > boxes.indexOf(first));
  const from = first.y + first.tall + 15, to = sum.y + sum.tall / 2;
  const out = middle + side * (first.wide / 2 + (first.wide < 160 ? 8 : 13));
  const points = [[middle, from], [out, from], [out, to], [middle + side * 10, to]];
  return { key: sum.key, points };
}

function memoryPath([encoder, decoder]) {
  const reader = decoder.boxes.find(({ part }) => part === "Cross-attention");
  const up = encoder.boxes.at(-1).y;
  const x = (encoder.x + reader.wide + decoder.x) / 2, to = reader.y + reader.tall / 2;
  return { key: "memory", points: [[encoder.middle, up], [encoder.middle, up - 26], [x, up - 26],
    [x, to], [reader.x, to]] };
}

// A path along points with round corners.
function rounded(points) {
  const toward = ([x, y], [u, v]) => {
    const far = Math.hypot(u - x, v - y), step = Math.min(7, far / 2) / (far || 1);
    return `${x + (u - x) * step} ${y + (v - y) * step}`;
  };
  const corners = points.slice(1, -1).map((corner, i) =>
    `L${toward(corner, points[i])} Q${corner.join(" ")} ${toward(corner, points[i + 2])}`);
  return `M${points[0].join(" ")} ${corners.join(" ")} L${points.at(-1).join(" ")}`;
}

// The boxes, what stands inside of some, and what is written on them.
function drawBoxes(group, boxes, view) {
  const { sizes } = view, inside = boxes.filter((box) => box.inside).map((box) => ({
    key: `${box.key} inside`, part: box.inside, x: box.x + 6, y: box.y + box.tall - sizes.tall,
    wide: box.wide - 12, tall: sizes.tall - 6,
  }));
  const all = [...boxes.filter(({ round }) => !round), ...inside];
  join(layer(group, "boxes"), "rect", all, ({ key }) => key, (box) => ({
    x: box.x, y: box.y, width: box.wide, height: box.tall, rx: 8,
    ...pressed(box.part, view, boxWords(box, view)),
  }));
  const sums = boxes.filter(({ round }) => round);
  join(layer(group, "sums"), "circle", sums, ({ key }) => key, (box) => ({
    cx: box.x + box.wide / 2, cy: box.y + 10, r: 10,
    ...pressed(box.part, view, boxWords(box, view)),
  }));
  const written = [...all.flatMap((box) => boxTexts(box, view)), ...sums.map((box) => ({
    key: box.key, text: "+", x: box.x + box.wide / 2, y: box.y + 15, class: "middle strong" }))];
  join(layer(group, "texts"), "text", written, ({ key }) => key, ({ key, ...text }) => ({
    ...text, "aria-hidden": "true", "pointer-events": "none",
  }));
}

// A box's name in one or two lines, and below it the lesson and what is built.
function boxTexts({ key, part, name, inside, x, y, wide, tall }, view) {
  const { narrow, tall: whole } = view.sizes, { lesson } = view.parts[part];
  const mark = markOf(part, view), at = { x: x + wide / 2 }, room = wide - 6;
  const status = (narrow ? "" : "lesson ") + lesson + (mark && ` · ${mark}`);
  const small = `small middle${view.built.includes(part) ? " full-ink" : ""}`;
  if (tall === 24) {
    const text = `${name[0].toUpperCase()}${name.slice(1)} · ${lesson} ${mark}`;
    return [{ ...at, key, text: fitted(text, room, 12), y: y + 16, class: small }];
  }
  const size = narrow ? 12 : 14, names = twoLines(name ?? part, room, size);
  const first = y + ((inside ? whole : tall) - 14 * names.length - 13) / 2 + 11;
  return [
    ...names.map((text, i) => ({ ...at, key: `${key} ${i}`, text, y: first + 14 * i,
      class: narrow ? "small middle full-ink" : "middle" })),
    { ...at, key: `${key} lesson`, text: status, y: first + 14 * names.length, class: small },
  ];
}

// A name cut at its last space, or after its hyphen, where it is too wide for one line.
function twoLines(name, room, size) {
  if (textWidth(name, size) <= room) return [name];
  const [first, last] = name.split(name.includes(" ") ? / (?=[^ ]+$)/ : /(?<=-)/);
  return [first, last].map((line) => fitted(line, room, size));
}

// What goes in at the bottom and comes out at the top, and what the encoder hands over.
function drawEnds(group, placed, { wide, inner, narrow }) {
  const room = wide + 2 * inner + (narrow ? 4 : 0);
  const ends = placed.flatMap(({ side, reads, writes, middle, floor, boxes }) => [
    { key: `${side} in`, text: reads, x: middle, y: floor - 4 },
    ...(writes ? [{ key: `${side} out`, text: writes, x: middle, y: boxes.at(-1).y - 18 }] : []),
  ]);
  join(layer(group, "ends"), "text", ends, ({ key }) => key, ({ text, x, y }) => ({
    text: fitted(text, room, 12), x, y, class: "small middle",
  }));
  const memory = placed.length === 2 ? placed.slice(0, 1) : [];
  join(layer(group, "memory"), "text", memory, () => 0, ({ middle, boxes }) => ({
    text: "memory", x: middle - (narrow ? 6 : 10), y: boxes.at(-1).y - 32, class: "strong",
    ...told("memory (batch, source, d_model): every decoder block reads it",
      `${slug("Encoder block")} ${slug("Cross-attention")}`),
  }));
}

// What the chosen part is, with a link to its lesson.
function fillCard(card, name, part) {
  const names = ["h4", "p", "code", "p shapes", "code place", "p built", "a"];
  card.fields ??= Object.fromEntries(names.map((field) =>
    [field, card.appendChild(element(field.split(" ")[0]))]));
  const { fields } = card, [module, last] = part.code.split(/\.(?=\w+$)/);
  set(fields.h4, { text: name });
  set(fields.p, { text: part.what });
  set(fields.code, { text: part.formula });
  set(fields["p shapes"], { text: `Shapes: ${part.shapes}` });
  set(fields["code place"], { text: `from transformer_lesson.${module} import ${last}` });
  set(fields["p built"], { text: builtWords(part) });
  set(fields.a, { text: `Open lesson ${part.lesson}: ${part.title}`, href: lessonPage(part.file),
    onclick: (event) => openLesson(event, part.file) });
}

function builtWords({ exercises, left }) {
  if (!exercises.length) return "It comes ready made: there is nothing to pass.";
  if (!left.length) return `You have built it: ${exercises.join(", ")}.`;
  return `To build it, pass ${left.join(", ")}.`;
}

// A lesson is a page beside the page of another, a notebook beside a notebook.
function lessonPage(file) {
  return `${file}.${/\/\d\d_\w+\.html$/.test(location.pathname) ? "html" : "ipynb"}`;
}

// JupyterLab opens a tab; by itself the link would leave the program.
function openLesson(event, file) {
  const place = /\/lab(?:\/.*)?\/tree\/(.*\/)?[^/]*$/.exec(decodeURIComponent(location.pathname));
  if (!place) return;
  event.preventDefault();
  const link = event.target.getRootNode().host.appendChild(element("a", {
    "data-commandlinker-command": "docmanager:open",
    "data-commandlinker-args": JSON.stringify({ path: `${place[1] ?? ""}${file}.ipynb` }),
  }));
  link.click();
  link.remove();
}

function mapFacts({ state, parts, own, built, next }, placed) {
  const { part, kind, norm_position: position } = state;
  const times = placed.reduce((sum, { block, boxes }) => sum + (block === part) +
    boxes.filter((box) => box.part === part && !box.round).length +
    boxes.filter((box) => box.inside === part).length, 0);
  const often = times > 1 ? `${times} times` : times ? "once" : "not";
  const title = `${kind[0].toUpperCase()}${kind.slice(1)}, ${position}-norm: you have built ` +
    `${built.length} of ${own.length} parts`;
  const then = next ? ` Next comes ${next}, lesson ${parts[next].lesson}.` : " All of it is built.";
  return { title, said: `${part}, lesson ${parts[part].lesson}, is ${often} in this drawing. ` +
    `${builtWords(parts[part])}${then}` };
}
