// The frame of every explorable: a task, controls, a title that states what the picture shows, a
// button that saves the picture, the picture itself, and one sentence with its numbers.

import { element, set, textWidth } from "./draw.js";
import { markGerman } from "./german.js";
import { leaveButtons, takeState } from "./leave.js";
import { STYLE } from "./style.js";

const QUICK_MILLISECONDS = 300; // slightly longer than a CSS transition
const SCREEN = { from: 700, high: 620 }; // pixels: a picture at least `from` wide fits into `high`
const BORDER = 4; // pixels of padding, for the borders of elements at the picture's edge

// Renders an explorable into `el`, as anywidget expects, and returns the cleanup function.
//
//   name      what a screen reader calls it
//   traits    names of the model's values that the picture depends on
//   controls  (make, page) => elements, created with `make.slider`, `make.choice` and so on
//   load      (model) => a promise of anything the picture must wait for, such as weights
//   draw      (state, page, loaded) => {title, said, height, longest}, or a sentence saying what
//             is missing; `longest`, optional, lists {title, said} of every state that Play
//             passes, so that there is room for the tallest from the start
export function frame(view, { name, traits, controls, load, draw }) {
  const { model, el } = view, memory = new Map();
  takeState(view);
  const page = { el, model, memory, preview: null, updates: [], ...elementsOf(view, name) };
  const present = (state) => (page.waits ? page.waits : draw(state, page, page.loaded));
  page.redraw = () => {
    page.asked ||= requestAnimationFrame(() => {
      page.asked = 0;
      const room = page.picture.clientWidth - 2 * BORDER;
      if (room < 0) return; // in a closed fold: the ResizeObserver redraws once it opens
      page.width = Math.max(240, room);
      const state = Object.fromEntries(traits.map((trait) => [trait, model.get(trait)]));
      fitScreen(page, () => show(page, present(state)));
    });
  };
  const moved = () => {
    if (!page.asked) followTheHand(page);
    page.redraw();
  };
  page.set = (changes) => {
    for (const [trait, value] of Object.entries(changes)) model.set(trait, value);
    model.save_changes();
  };
  page.controls.append(...controls(makers(page), page));
  giveTask(page, model.get("task") ?? {});
  if (load) wait(page, load(model));
  for (const trait of traits) model.on(`change:${trait}`, moved);
  const size = new ResizeObserver(page.redraw), leaveTheme = followTheme(page.host);
  const hush = ({ key }) => key === "Escape" && tell(page, null); // also where the focus is elsewhere
  document.addEventListener("keydown", hush);
  size.observe(page.section);
  reach(page);
  page.redraw();
  return () => {
    for (const trait of traits) model.off(`change:${trait}`, moved);
    document.removeEventListener("keydown", hush);
    size.disconnect();
    leaveTheme();
  };
}

// Draws, and draws again if the picture came out taller than `page.high`, the height that a screen
// leaves for it, or could be taller. A picture that is still too tall is scaled down.
function fitScreen(page, drawAndShow) {
  const { section, svg, picture } = page, tall = () => svg.height.baseVal.value;
  const left = () => page.width < SCREEN.from ? Infinity :
    SCREEN.high - section.offsetHeight + picture.offsetHeight - 2 * BORDER - 1; // rounding
  for (const side of ["width", "height"]) svg.style[side] = "";
  const before = page.high ??= left();
  drawAndShow();
  page.high = left();
  if (tall() > page.high || (page.high > before && tall() >= before)) drawAndShow();
  const [w, h] = [svg.width.baseVal.value, tall()], small = Math.min(1, page.high / h);
  set(svg, { viewBox: w && h ? `0 0 ${w} ${h}` : null });
  const kept = Math.min(parseFloat(picture.style.minHeight), page.high + 2 * BORDER);
  if (kept < Infinity) picture.style.minHeight = `${kept}px`;
  if (small < 1) [svg.style.width, svg.style.height] = [`${w * small}px`, `${h * small}px`];
}

// Animates a single change, but not changes in quick succession, as when a slider is dragged.
function followTheHand(page) {
  const now = performance.now();
  for (const group of page.svg.querySelectorAll(":scope > g:not(.still)")) {
    group.classList.toggle("quick", now - page.moved < QUICK_MILLISECONDS);
  }
  page.moved = now;
}

// Memoizes `make` on the page, under `name`, for as long as the key stays equal.
export function remembered(page, name, key, make) {
  const text = JSON.stringify(key), known = page.memory.get(name);
  if (known?.text === text) return known.value;
  const value = make();
  page.memory.set(name, { text, value });
  return value;
}

// Shows a sentence until the promise resolves; if it is rejected, the error's message stays.
function wait(page, promise) {
  page.waits = "The model is on its way.";
  const arrive = (loaded) => Object.assign(page, { loaded, waits: "" });
  const fail = (error) => Object.assign(page, { waits: error.message });
  promise.then(arrive, fail).then(() => {
    page.came = true;
    page.picture.classList.remove("hide");
    page.redraw();
  });
}

function elementsOf(view, name) {
  const host = element("div", { "data-lm-suppress-shortcuts": "true" });
  const root = host.attachShadow({ mode: "open" });
  const style = new CSSStyleSheet();
  style.replaceSync(STYLE);
  root.adoptedStyleSheets = [style];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  set(svg, { role: "group", width: 0, height: 0, "aria-describedby": "keys" });
  const parts = {
    host, root, svg,
    title: element("h3"),
    task: element("p", { class: "task hide" }),
    controls: element("div", { class: "controls" }),
    picture: element("div", { class: "picture" }),
    tip: element("div", { class: "tip", "aria-hidden": "true" }),
    said: element("p", { class: "said", role: "status" }),
    keys: element("p", { id: "keys", text: "Arrow keys move in the picture, Enter chooses." }) };
  parts.picture.append(svg);
  const save = element("div", { class: "save" }, ...leaveButtons(view, parts, name));
  const section = element("section", { "aria-label": name, "aria-busy": "true" }, parts.task,
    parts.controls, element("div", { class: "head" }, parts.title, save), parts.picture, parts.said,
    parts.keys, parts.tip);
  root.append(section);
  view.el.append(host);
  return { ...parts, save, section };
}

// Shows a task with buttons that try values, and a check mark that stays once the task is solved.
function giveTask(page, { say, shows, when, tries = [] }) {
  if (!say) return;
  const mark = element("b", { class: "mark", role: "status" });
  const buttons = tries.map(([text, values]) =>
    element("button", { type: "button", text, onclick: () => page.set(values) }));
  page.task.append(mark, say, ...buttons);
  page.task.classList.remove("hide");
  const named = Object.entries(when), pattern = shows && new RegExp(shows, "u");
  const has = ([trait, wanted]) => [wanted].flat().includes(page.model.get(trait));
  let done = false;
  page.updates.push(() => {
    const text = `${page.title.textContent} ${page.said.textContent}`;
    const agrees = named.every(has) && (!pattern || pattern.test(text));
    done ||= !page.waits && !page.picture.inert && agrees;
    set(mark, { text: done ? "✓" : "○", "aria-label": done ? "done" : "to do" });
    set(page.task, { "data-done": done ? "" : null });
  });
}

// Shows what `draw` returned: a title and a sentence, or only a sentence that says what is missing;
// in that case the last picture and its title stay, grayed out.
function show(page, drawn) {
  const none = typeof drawn === "string", { picture, save } = page;
  const { title, said, height, longest = [] } =
    none ? { title: page.title.textContent, said: drawn } : drawn;
  if (height) set(page.svg, { width: page.width, height });
  save.classList.toggle("hide", none);
  for (const part of [page.title, picture]) part.inert = none;
  set(page.title, { text: title });
  set(page.said, { text: said });
  for (const update of page.updates) update();
  markGerman(page);
  if (page.waits && !page.came) keepRoom(page);
  else keepHigh(page, longest);
  set(page.svg, { "aria-label": title });
  set(page.section, { "aria-busy": (page.waits && !page.came) || page.work ? "true" : null });
  const stop = page.svg.querySelector('[tabindex="0"]') ?? page.svg.querySelector("[tabindex]");
  if (stop) stop.tabIndex = 0;
  tell(page, page.told?.isConnected ? page.told : null); // its words may have changed
}

// Until the picture is there, the title takes the room that the page has reserved, so that nothing
// below moves when the picture appears.
function keepRoom({ el, section, title, picture }) {
  picture.classList.add("hide");
  const free = el.clientHeight - section.offsetHeight;
  if (free > 0) title.style.minHeight = `${title.offsetHeight + free}px`;
}

// Keeps title, picture and sentence as tall as they have ever been, or will be according to
// `longest`, so that what is below does not jump.
function keepHigh(page, longest) {
  const { el, title, picture, said, width } = page, parts = [title, picture, said];
  el.style.minHeight = "0"; // the page had reserved some
  if (page.kept !== width) for (const part of parts) part.style.minHeight = "";
  page.kept = width;
  const room = remembered(page, "room", [width, longest], () => ({
    title: tallest(title, longest.map((one) => one.title)),
    said: tallest(said, longest.map((one) => one.said)) }));
  title.style.minHeight = `${Math.max(title.offsetHeight, room.title)}px`;
  said.style.minHeight = `${Math.max(said.offsetHeight, room.said)}px`;
  picture.style.minHeight = `${picture.offsetHeight}px`;
}

// How tall a part would be with the tallest of these texts, measured on top of each other.
function tallest(part, texts) {
  const ruler = part.cloneNode();
  ruler.classList.add("ruler");
  ruler.style.cssText = `width: ${part.getBoundingClientRect().width}px`; // and no min-height
  ruler.append(...texts.map((text) => element("span", { text })));
  part.after(ruler);
  const high = ruler.offsetHeight;
  ruler.remove();
  return high;
}

function makers(page) {
  const all = { text: textField, number: numberField, slider: rangeSlider, toggle: checkBox,
    choice: buttonChoice, play: playButton, button: actionButton };
  const bound = ([name, make]) => [name, (...parts) => make(page, ...parts)];
  return Object.fromEntries(Object.entries(all).map(bound));
}

// Calls `update` whenever the picture is drawn; returns the control.
function updated(page, node, update) {
  page.updates.push(update);
  return node;
}

// Shows a control only while the trait has this value, or one of these.
export function shownWhile(page, trait, values, node) {
  const hidden = () => ![values].flat().includes(page.model.get(trait));
  return updated(page, node, () => node.classList.toggle("hide", hidden()));
}

function textField(page, label, trait, attributes = {}) {
  const { size, rows = 1 } = attributes, quiet = { autocomplete: "off", spellcheck: "false" };
  const field = element("textarea", { ...quiet, rows });
  if (size) field.style.width = `${size}ch`;
  field.oninput = () => page.set({ [trait]: field.value });
  field.onkeydown = (event) => {
    if (event.key === "Enter" && rows === 1) event.preventDefault();
  };
  return updated(page, element("label", {}, label, field), () => {
    const value = page.model.get(trait);
    if (field.value !== value) field.value = value;
  });
}

// `ends` is [min, max] or [min, max, step], or a function that returns one of them.
function endsOf(ends) {
  const [min, max, step = 1] = typeof ends === "function" ? ends() : ends;
  return { min, max, step };
}

// `format` turns a value into text. A value outside of the ends is shown as the nearest end.
function rangeSlider(page, label, trait, ends, format = String) {
  const input = element("input", { type: "range", autocomplete: "off" });
  const output = element("output");
  input.oninput = () => page.set({ [trait]: Number(input.value) });
  return updated(page, element("label", {}, label, input, output), () => {
    const { min, max, step } = endsOf(ends);
    const value = Math.max(min, Math.min(max, page.model.get(trait)));
    keepWide(output, [min, max, step, value], format);
    set(input, { min, max, step, disabled: min === max, "aria-valuetext": format(value) });
    if (Number(input.value) !== value) input.value = value;
    set(output, { text: format(value) });
  });
}

// For typing one of many whole numbers; `now` returns the one to show. Invalid input is ignored.
function numberField(page, label, trait, ends, now) {
  const input = element("input", { type: "number", autocomplete: "off" });
  input.oninput = () => {
    if (input.value && input.checkValidity()) page.set({ [trait]: Number(input.value) });
  };
  return updated(page, element("label", {}, label, input), () => {
    const { min, max, step } = endsOf(ends);
    set(input, { min, max, step });
    if (!input.matches(":focus") || Number(input.value) !== now()) input.value = now();
  });
}

// Reserves room for a slider's widest text, so that what follows does not move.
function keepWide(output, [min, max, step, now], format) {
  const key = [min, max, step].join(), count = Math.round((max - min) / (step || 1));
  const n = Math.min(99, count);
  const one = (i) => min + Math.round((i * count) / (n || 1)) * (step || 1);
  if (output.sized === key) return;
  output.sized = key;
  const all = Array.from({ length: n + 1 }, (_, i) => format(Number(one(i).toPrecision(8))));
  const width = Math.max(...[...all, format(now)].map((word) => textWidth(word, 15)));
  output.style.minWidth = `max(2em, ${Math.ceil(width) + 2}px)`;
}

function checkBox(page, label, trait) {
  const input = element("input", { type: "checkbox", autocomplete: "off" });
  input.onchange = () => page.set({ [trait]: input.checked });
  return updated(page, element("label", {}, input, label), () => {
    input.checked = page.model.get(trait);
  });
}

// `options` are [value, label] pairs or plain values, or a function that returns them. A number
// above the largest option selects that option.
function buttonChoice(page, label, trait, options) {
  const group = element("fieldset", {}, element("legend", { text: label })), buttons = [];
  return updated(page, group, () => {
    const all = (typeof options === "function" ? options() : options)
      .map((one) => (Array.isArray(one) ? one : [one, String(one)]));
    const values = all.map(([value]) => value), given = page.model.get(trait);
    const last = typeof given === "number" ? Math.max(...values) : given; // options may be unsorted
    const now = given > last ? last : given;
    all.forEach(([value, word], i) => {
      buttons[i] ??= group.appendChild(element("button", { type: "button" }));
      const chosen = now === value, choose = () => page.set({ [trait]: value });
      set(buttons[i], { text: word, "aria-pressed": String(chosen), onclick: choose });
    });
    for (const button of buttons.splice(all.length)) button.remove();
  });
}

// A click sets the values that `changes` returns; `state` returns attributes, such as `disabled`.
function actionButton(page, text, changes, state) {
  const onclick = () => page.set(changes());
  const button = element("button", { type: "button", text, onclick });
  return updated(page, button, () => set(button, state()));
}

// Counts a trait up to its maximum, unless pressed again; at the maximum it starts over.
function playButton(page, trait, ends, milliseconds = 700, name = "Play") {
  let timer = 0;
  const button = element("button", { type: "button", class: "play" });
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    page.plays = false;
    page.redraw();
  };
  const step = () => {
    const now = page.model.get(trait);
    if (!button.isConnected || now >= endsOf(ends).max) stop();
    else page.set({ [trait]: now + 1 });
  };
  button.onclick = () => {
    if (timer) return stop();
    page.plays = true;
    if (page.model.get(trait) >= endsOf(ends).max) page.set({ [trait]: endsOf(ends).min });
    timer = setInterval(step, milliseconds);
    page.redraw();
  };
  return updated(page, button, () => set(button, { text: timer ? "❚❚ Pause" : `▶ ${name}` }));
}

// Lets pointer, finger and keyboard reach the elements of the picture. An element that is reached
// shows its label and highlights what is linked with it; one with `data-of` stands for the element
// with that link. The whole picture is one tab stop; arrow keys move inside it.
function reach(page) {
  const { picture, svg } = page;
  const of = ({ of: link }) => link && svg.querySelector(`[tabindex][data-links="${link}"]`);
  const at = ({ target }) => target.closest?.("[aria-label][tabindex]") ?? of(target.dataset);
  let last = "";
  picture.onpointermove = (event) => {
    const place = `${event.screenX} ${event.screenY}`; // elements also move under a resting pointer
    if (place !== last) tell(page, at(event));
    last = place;
  };
  picture.onpointerleave = ({ pointerType: by }) => by !== "touch" && tell(page, null);
  picture.onpointerdown = (event) => at(event)?.focus({ preventScroll: true });
  picture.addEventListener("focusin", (event) => {
    if (!at(event)) return; // a link beside the picture
    for (const node of svg.querySelectorAll('[tabindex="0"]')) node.tabIndex = -1;
    event.target.tabIndex = 0;
    tell(page, at(event));
  });
  picture.addEventListener("focusout", () => tell(page, null));
  picture.onkeydown = (event) => {
    const node = at(event), way = WAYS[event.key];
    if (!node) return;
    if (event.key === "Enter" || event.key === " ") node.dispatchEvent(new MouseEvent("click"));
    else if (way) neighbor(node, svg, way)?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
}

// Shows an element's label, highlights what is linked with it, and redraws if the preview changes.
function tell(page, node) {
  const links = node?.dataset.links?.split(" ").filter(Boolean) ?? [];
  for (const lit of page.svg.querySelectorAll("[data-lit]")) delete lit.dataset.lit;
  for (const link of links) {
    for (const other of page.svg.querySelectorAll(`[data-links~="${CSS.escape(link)}"]`)) {
      other.dataset.lit = "";
    }
  }
  tellTip(page, node);
  page.told = node;
  const preview = node?.dataset.preview ?? null;
  if (preview !== page.preview) page.redraw();
  page.preview = preview;
}

const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// The nearest element in a direction; sideways distance counts four times. Elements at the same
// place follow each other in document order.
function neighbor(node, svg, [dx, dy]) {
  const places = [...svg.querySelectorAll("[tabindex]")], own = places.indexOf(node);
  const [x, y] = middleOf(node);
  const cost = (other, i) => {
    const [u, v] = middleOf(other), ahead = (u - x) * dx + (v - y) * dy;
    const aside = Math.abs((u - x) * dy) + Math.abs((v - y) * dx);
    if (Math.abs(ahead) <= 1 && aside <= 1) return (i - own) * (dx + dy) > 0 ? 0 : Infinity;
    return ahead > 1 ? ahead + 4 * aside : Infinity;
  };
  const costs = places.map(cost), least = Math.min(...costs);
  return least < Infinity ? places[costs.indexOf(least)] : null;
}

function middleOf(node) {
  const { left, top, width, height } = node.getBoundingClientRect();
  return [left + width / 2, top + height / 2];
}

function tellTip({ section, tip }, node) {
  tip.style.visibility = node && !("quiet" in node.dataset) ? "visible" : "hidden";
  if (!node) return;
  set(tip, { text: node.getAttribute("aria-label") });
  const box = node.getBoundingClientRect(), frame = section.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = tip;
  const left = box.left + box.width / 2 - frame.left - width / 2;
  const above = box.top - frame.top - height - 8;
  tip.style.left = `${Math.max(4, Math.min(left, frame.width - width - 6))}px`;
  tip.style.top = `${above > 0 ? above : box.bottom - frame.top + 8}px`;
}

// Follows the theme of the surrounding page; returns a function that stops it.
function followTheme(host) {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const look = () => {
    host.dataset.theme = isDark(host, query) ? "dark" : "light";
  };
  const changed = new MutationObserver(look);
  for (const node of [document.documentElement, document.body]) {
    changed.observe(node, { attributes: true });
  }
  query.addEventListener("change", look);
  requestAnimationFrame(look);
  return () => {
    changed.disconnect();
    query.removeEventListener("change", look);
  };
}

function isDark(host, query) {
  for (let node = host; node; node = node.parentElement) {
    const color = getComputedStyle(node).backgroundColor.match(/[\d.]+/g) ?? [];
    const [red, green, blue, alpha = 1] = color.map(Number);
    if (color.length && alpha > 0.5) return 0.3 * red + 0.6 * green + 0.1 * blue < 128;
  }
  return query.matches;
}
