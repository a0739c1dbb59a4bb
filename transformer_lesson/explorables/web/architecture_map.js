// The Transformer of the paper's figure 1: every part links to its lesson.

import { element, set } from "./draw.js";
import { frame } from "./frame.js";
import { drawWhole, ROOM_BESIDE } from "./map_drawing.js";
import { ARCHITECTURES, viewOf } from "./map_plan.js";

export const ArchitectureMap = (view) => frame(view, {
  name: "Architecture map",
  traits: ["part", "kind", "norm_position", "parts"],
  controls: (make, page) => {
    addCard(page);
    return [
      make.choice("Model", "kind", () =>
        Object.keys(ARCHITECTURES).map((kind) => [kind, ARCHITECTURES[kind].word])),
      make.choice("Norm", "norm_position", () => [["post", "post (paper)"], ["pre", "pre"]])];
  },
  draw: drawMap });

// The card of the chosen part: what it does, and behind a button how it is computed.
function addCard(page) {
  page.link = element("a");
  page.deeper = element("div");
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
  page.picture.classList.add("beside");
}

function drawMap(state, page) {
  const { svg, card, more, link, deeper } = page, { part, parts } = state;
  const view = viewOf(state, page), narrow = page.width < ROOM_BESIDE;
  fillCard(page, part, parts[part]);
  fillLink(link, parts[part]);
  fillDeeper(deeper, parts[part].deeper);
  place(card, page.said, link, deeper);
  place(page.picture, ...(narrow ? [card, svg, more] : [svg, card]));
  if (!narrow) page.said.before(more);
  return { title: whereItStands(view), said: wholeWords(view, drawWhole(svg, view)) };
}

// Appends nodes to a parent, in this order, unless they are its last children already.
function place(parent, ...nodes) {
  const last = [...parent.children].slice(-nodes.length);
  if (nodes.some((node, i) => node !== last[i])) parent.append(...nodes);
}

function whereItStands({ state: { part, kind }, names }) {
  if (names.includes(part)) return `${part}, highlighted in the whole model`;
  return `${kind[0] === "e" ? "An" : "A"} ${kind} model has no ${part}`;
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

// The link to the lesson that builds the part; hidden in that lesson itself.
function fillLink(link, { lesson, title, file }) {
  const own = decodeURIComponent(location.pathname).includes(`${file}.`);
  set(link, { text: `Open lesson ${lesson}: ${title}`, href: lessonPage(file),
    class: own ? "hide" : null, onclick: (event) => openLesson(event, file) });
}

// Links to the notebooks that go deeper than that lesson.
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

// On the site lessons are pages side by side, elsewhere notebooks side by side.
const lessonPage = (file) =>
  `${file}.${/\/\d\d_\w+\.html$/.test(location.pathname) ? "html" : "ipynb"}`;

// In JupyterLab, opens the lesson in a tab; the link itself would leave JupyterLab.
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
