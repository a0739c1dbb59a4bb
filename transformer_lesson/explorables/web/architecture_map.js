// The Transformer of the paper's figure 1: folded one line of its parts, unfolded the whole
// drawing; every part opens its lesson.

import { clear, element, set } from "./draw.js";
import { frame } from "./frame.js";
import { drawWhole, ROOM_BESIDE } from "./map_drawing.js";
import { ARCHITECTURES, viewOf } from "./map_plan.js";
import { drawStrip } from "./map_strip.js";

export const ArchitectureMap = (view) => frame(view, {
  name: "Architecture map",
  traits: ["part", "kind", "norm_position", "unfolded", "parts", "here"],
  controls: (make, page) => {
    addFold(page);
    return [
      make.choice("Model", "kind", () =>
        Object.keys(ARCHITECTURES).map((kind) => [kind, ARCHITECTURES[kind].word])),
      make.choice("Norm", "norm_position", () => [["post", "post (paper)"], ["pre", "pre"]])];
  },
  draw: drawMap });

// The button beside the title that unfolds the map, and the card of the chosen part: what it does
// comes first, how it is written after another button.
function addFold(page) {
  const toggle = () => page.set({ unfolded: !page.model.get("unfolded") });
  page.fold = element("button", { type: "button", class: "fold", onclick: toggle });
  page.title.after(page.fold);
  page.link = element("a");
  page.deeper = element("div");
  page.foot = element("div", { class: "foot" });
  page.said.before(page.foot);
  page.card = page.picture.appendChild(element("div", { class: "card" }));
  page.formula = element("div", { class: "hide" });
  const how = element("button", { type: "button", class: "fold", text: "How it is computed",
    "aria-expanded": "false" });
  how.onclick = () => {
    const open = !page.formula.classList.toggle("hide");
    page.deeper.hidden = open; // one screen has no room for both
    set(how, { "aria-expanded": String(open) });
  };
  page.more = element("div", { class: "more" }, how, page.formula);
  page.section.classList.add("map");
}

function drawMap(state, page) {
  const { svg, card, more, link } = page, { part, parts, unfolded } = state;
  if (page.shape !== unfolded) {
    clear(svg);
    set(page.fold, { text: unfolded ? "Fold it" : "Unfold the map",
      "aria-expanded": String(unfolded) });
    page.section.classList.toggle("strip", !unfolded);
    page.picture.classList.toggle("beside", unfolded);
    page.shape = unfolded;
    page.kept = 0; // folded it has less height
  }
  const view = viewOf(state, page), title = whereItStands(view), narrow = page.width < ROOM_BESIDE;
  fillCard(page, part, parts[part]);
  fillLink(link, parts[part], parts[state.here]?.lesson, unfolded);
  fillDeeper(page.deeper, parts[part].deeper);
  place(unfolded ? card : page.foot, page.said, link, ...(unfolded ? [page.deeper] : []));
  if (!unfolded) {
    drawStrip(svg, view);
    return { title, said: parts[part].what };
  }
  place(page.picture, ...(narrow ? [card, svg, more] : [svg, card]));
  if (!narrow) page.said.before(more);
  return { title, said: wholeWords(view, drawWhole(svg, view)) };
}

// Appends nodes to a parent, in this order, unless they are there already.
function place(parent, ...nodes) {
  const last = [...parent.children].slice(-nodes.length);
  if (nodes.some((node, i) => node !== last[i])) parent.append(...nodes);
}

// Which parts come before and after the chosen one, in the order of the lessons; the whole model
// shows it itself.
function whereItStands({ state: { part, kind, unfolded }, names }) {
  const i = names.indexOf(part), before = names[i - 1], after = names[i + 1];
  if (i < 0) return `${kind[0] === "e" ? "An" : "A"} ${kind} model has no ${part}`;
  if (unfolded) return `${part}, highlighted in the whole model`;
  if (!before) return `${part} is built first, before ${after}`;
  if (!after) return `${part} is built last, after ${before}`;
  return `${part}, between ${before} and ${after}`;
}

function wholeWords({ state: { part, parts }, own, built }, times) {
  const often = ["is not", "appears once", "appears twice"][times] ?? `appears ${times} times`;
  const progress = built.length ? ` You have built ${built.length} of ${own.length} parts.` : "";
  return `${part} (lesson ${parts[part].lesson}) ${often} in this picture.${progress}`;
}

function fillCard({ card, formula }, name, part) {
  const names = ["h4", "p", "code", "p shapes", "code place", "p built"];
  card.fields ??= Object.fromEntries(names.map((field, i) =>
    [field, (i < 2 ? card : formula).appendChild(element(field.split(" ")[0]))]));
  const { fields } = card, [module, last] = part.code.split(/\.(?=\w+$)/);
  set(fields.h4, { text: name });
  set(fields.p, { text: part.what });
  set(fields.code, { text: part.formula });
  set(fields["p shapes"], { text: `Shapes: ${part.shapes}` });
  set(fields["code place"], { text: `from transformer_lesson.${module} import ${last}` });
  set(fields["p built"], { text: builtWords(part) });
}

// The way to the lesson that builds it; there is none in that lesson itself.
function fillLink(link, { lesson, title, file }, here, whole) {
  const own = lesson === here || decodeURIComponent(location.pathname).includes(`${file}.`);
  set(link, { text: `Open lesson ${lesson}${whole ? `: ${title}` : ""}`, href: lessonPage(file),
    class: own ? "hide" : null, onclick: (event) => openLesson(event, file) });
}

// What may follow that lesson, a link each.
function fillDeeper(node, notebooks) {
  const links = notebooks.map(({ title, file }) => element("a", {
    text: title, href: lessonPage(file), onclick: (event) => openLesson(event, file) }));
  node.replaceChildren(...links.flatMap((link, i) => [i ? ", " : "Deeper: ", link]));
}

function builtWords({ exercises, left }) {
  if (!exercises.length) return "It comes ready made: there is nothing to pass.";
  if (!left.length) return `You have built it: ${exercises.join(", ")}.`;
  return `To build it, pass ${left.join(", ")}.`;
}

// A lesson is a page beside the page of another, a notebook beside a notebook.
const lessonPage = (file) =>
  `${file}.${/\/\d\d_\w+\.html$/.test(location.pathname) ? "html" : "ipynb"}`;

// JupyterLab opens a tab; by itself the link would leave the program.
function openLesson(event, file) {
  const place = /\/lab(?:\/.*)?\/tree\/(.*\/)?[^/]*$/.exec(decodeURIComponent(location.pathname));
  if (!place) return;
  event.preventDefault();
  const link = event.target.getRootNode().host.appendChild(element("a", {
    "data-commandlinker-command": "docmanager:open",
    "data-commandlinker-args": JSON.stringify({ path: `${place[1] ?? ""}${file}.ipynb` }) }));
  link.click();
  link.remove();
}
