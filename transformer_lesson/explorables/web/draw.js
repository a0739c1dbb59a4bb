// Persistent SVG elements: each change describes the whole picture again, and elements that exist
// already move to their new places.

const SVG = "http://www.w3.org/2000/svg";

// The attribute `text` is the element's text; names that begin with "on" are event handlers.
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  set(node, attributes);
  node.append(...children);
  return node;
}

export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") {
      if (node.textContent !== String(value)) node.textContent = value;
    } else if (name.startsWith("on")) {
      node[name] = value;
    } else if (value === null || value === undefined || value === false) {
      node.removeAttribute(name);
    } else if (node.getAttribute(name) !== String(value)) {
      node.setAttribute(name, value);
    }
  }
}

// The group with this name in `parent`, created on first use.
export function layer(parent, name, attributes = {}) {
  parent.layers ??= new Map();
  if (!parent.layers.has(name)) {
    parent.layers.set(name, parent.appendChild(document.createElementNS(SVG, "g")));
  }
  const group = parent.layers.get(name);
  set(group, attributes);
  return group;
}

// Keeps one element for each item of `data`, in order, in the layer called `name`. `describe(item,
// i)` returns the element's attributes, for a text also as [text, x, y, class, others]. `key`, a
// property name or a function, identifies the element at the next change; the default is the item's
// own `key`, or else its index.
//
//     put.rect(group, "bars", losses, (loss, i) => ({ x: 20 * i, width: 18, height: loss }));
//     put.label(group, "numbers", losses, (loss, i) => [loss, 20 * i, 12, "small"]);
export const put = {
  ...Object.fromEntries(["circle", "g", "image", "path", "rect"].map((tag) =>
    [tag, (...all) => join(tag, (one) => one, ...all)])),
  text: (...all) => join("text", written, ...all),
  label: (...all) => join("text", (one) => ({ ...written(one), "aria-hidden": "true" }), ...all),
  box: putBoxes };

// Rects, each with a `word` in its middle; `font` is the word's class.
function putBoxes(group, name, data, describe, key) {
  put.rect(group, name, data, (one, i) => {
    const { word, font, ...box } = describe(one, i);
    return { class: "box", ...box };
  }, key);
  put.label(group, `${name} words`, data, (one, i) => {
    const { x, y, width, height, word, font } = describe(one, i), middle = y + height / 2;
    return [word, x + width / 2, middle + (font ? 4.5 : 5), font ? `middle ${font}` : "middle"];
  }, key);
}

function written(one) {
  if (!Array.isArray(one)) return one;
  const [text, x, y, style, others] = one;
  return { text, x, y, class: style, ...others };
}

function join(tag, attributes, parent, name, data, describe = (one) => one, key = keyOrPlace) {
  const group = layer(parent, name), known = (group.known ??= new Map());
  const keyOf = typeof key === "string" ? (one) => one[key] : key;
  const names = data.map((one, i) => String(keyOf(one, i))), wanted = new Set(names);
  const focused = group.getRootNode().activeElement, tells = group.closest("[tabindex]");
  for (const [name, node] of known) {
    if (!wanted.has(name)) {
      node.remove();
      known.delete(name);
    }
  }
  names.forEach((name, i) => {
    if (!known.has(name)) known.set(name, document.createElementNS(SVG, tag));
    const node = known.get(name), here = group.children[i] ?? null;
    if (node !== here) group.insertBefore(node, here);
    const { key: _, ...given } = attributes(describe(data[i], i));
    const reached = REACHED.some((one) => one in given);
    set(node, { "pointer-events": tells || reached ? null : "none", ...given });
  });
  if (focused && focused !== group.getRootNode().activeElement) focused.focus();
}

const keyOrPlace = (one, i) => one?.key ?? i;

const REACHED = ["aria-label", "data-of", "onclick"]; // the pointer goes through everything else

// Attributes of a line that is not filled.
export const pen = (color, width = 1, dashes = null) =>
  ({ fill: "none", stroke: `var(${color})`, "stroke-width": width, "stroke-dasharray": dashes });

// Attributes that give an element a label, for pointer, keyboard and screen reader. Elements with
// a link in common light up together.
export const told = (words, links = "") =>
  ({ "aria-label": words, role: "img", tabindex: -1, "data-links": links });

// The same for an element that is a button.
export function choosable(words, chosen, choose, links = "") {
  const common = { "aria-label": words, tabindex: -1, "data-links": links };
  return { ...common, role: "button", "aria-pressed": Boolean(chosen) + "", onclick: choose };
}

const ruler = document.createElement("canvas").getContext("2d");
const FONT = 'system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif';

export function textWidth(text, size = 14, weight = 400) {
  ruler.font = `${weight} ${size}px ${FONT}`;
  return ruler.measureText(text).width;
}

// The text, cut off with "…" if it is wider than `width` pixels.
export function fitted(text, width, size = 14, weight = 400) {
  const letters = [...text.slice(0, 400)]; // no picture has room for more
  if (text.length <= 400 && textWidth(text, size, weight) <= width) return text;
  let [low, high] = [0, letters.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const fits = textWidth(letters.slice(0, middle).join("") + "…", size, weight) <= width;
    if (fits) low = middle;
    else high = middle - 1;
  }
  return letters.slice(0, low).join("") + "…";
}

// The text in lines of at most `width` pixels, broken only at spaces.
export function textLines(text, width, size = 14, weight = 400) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (textWidth(longer, size, weight) <= width || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

// Lays out boxes of these widths in as many lines as they need; returns their places and where the
// last line ends. `ends` lists the indices of boxes after which a new line starts anyway.
export function wrapped(widths, { x, y, width, high, gap = 4, between = gap, ends = [] }) {
  let left = 0, top = y;
  const places = widths.map((wide, i) => {
    const full = left + wide > width || ends.includes(i - 1);
    if (left && full) [left, top] = [0, top + high + between];
    left += wide + gap;
    return { x: x + left - wide - gap, y: top, width: wide, height: high };
  });
  return { places, bottom: top + high };
}

// Horizontal grid lines at these values, with numbers on the left.
export function grid(group, { left, right }, up, values, words = String) {
  put.path(group, "grid", values, (value) =>
    ({ d: `M${left} ${up(value)}H${right}`, class: "axis" }), words);
  put.label(group, "grid numbers", values, (value) =>
    [words(value), left - 7, up(value) + 4, "small end"], words);
}

// The path of an arc around a point; angles are measured clockwise from the top.
export function arc(x, y, radius, from, to) {
  const at = (angle) => `${x + radius * Math.sin(angle)} ${y - radius * Math.cos(angle)}`;
  return `M${at(from)}A${radius} ${radius} 0 ${to - from > Math.PI ? 1 : 0} 1 ${at(to)}`;
}

export const countOf = (n, noun) => `${n.toLocaleString("en-US")} ${noun}${n === 1 ? "" : "s"}`;

// The color of a weight from 0 to 1.
export const shade = (weight) =>
  `color-mix(in oklab, var(--full) ${(100 * Math.sqrt(weight)).toFixed(1)}%, var(--none))`;

// The color of a signed number: blue above zero, orange below, strongest at `largest`.
export function signed(value, largest) {
  const part = (100 * Math.min(1, Math.abs(value) / (largest || 1))).toFixed(1);
  return `color-mix(in oklab, var(${value < 0 ? "--minus" : "--plus"}) ${part}%, var(--none))`;
}

// The text color on a fill: black if the fill is light, else white. At L* = 49.4 both have a
// contrast of 4.58:1.
export const inkOn = (fill) => `lab(from ${fill} calc((49.4 - l) * 1e6) 0 0)`;

const KEPT = ["fill", "stroke", "stroke-width", "stroke-linecap", "stroke-dasharray", "opacity",
  "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline", "visibility",
  "paint-order"];

// The picture as a self-contained SVG file.
export function asFile(svg, title, said) {
  const copy = svg.cloneNode(true), page = getComputedStyle(svg.closest("section"));
  const nodes = copy.querySelectorAll("*");
  svg.querySelectorAll("*").forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of KEPT) nodes[i].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "tabindex", "data-links"]) nodes[i].removeAttribute(name);
  });
  const width = svg.width.baseVal.value + 8, height = svg.height.baseVal.value + 50;
  set(copy, { xmlns: SVG, viewBox: `-4 -40 ${width} ${height}`, width, height, style: null });
  const font = { "font-family": FONT, "font-size": 17, "font-weight": 600 };
  const added = [
    ["title", { text: title }],
    ["desc", { text: said }],
    ["rect", { x: -4, y: -40, width, height, fill: page.backgroundColor }],
    ["text", { y: -14, fill: page.color, ...font, text: title }]];
  copy.prepend(...added.map(([tag, attributes]) => {
    const node = document.createElementNS(SVG, tag);
    set(node, attributes);
    return node;
  }));
  return new XMLSerializer().serializeToString(copy);
}

// Like `toFixed`, but without "-" for what rounds to zero.
export const fixed = (value, digits) => value.toFixed(digits).replace(/^-(?=[0.]+$)/, "");
