// How an explorable leaves the page: its picture as SVG, its numbers as CSV, its state as a link
// (on a page without a kernel) or as a line of Python (in a notebook).

import { asFile, element } from "./draw.js";

const IN_LINK = /^#state=(\d+)\.(.*)$/;
const TOLD_NUMBERS = /[-−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?/g;

// The buttons that let it leave; `free` names the values that a reader sets.
export function leaveButtons({ model, free = [] }, parts, name) {
  const { svg, title, said } = parts;
  const button = (text, onclick) => element("button", { type: "button", text, onclick });
  const done = element("span", { role: "status" }), isOnPage = () => model.place !== undefined;
  const copy = () => {
    const text = isOnPage() ? toLink(model, free) : toPython(model, free);
    const copied = navigator.clipboard?.writeText(text) ?? Promise.reject();
    copied.then(() => "copied", () => text).then((word) => { done.textContent = word; });
  };
  return [
    "save:",
    button("SVG", () => download(name, "svg", asFile(svg, title.textContent, said.textContent))),
    button("CSV", () => download(name, "csv", asTable(svg))),
    "copy:", button(isOnPage() ? "link" : "Python", copy), done];
}

function download(name, kind, text) {
  const href = `data:text/${kind};charset=utf-8,${encodeURIComponent(text)}`;
  const file = `${name.replaceAll(" ", "-").toLowerCase()}.${kind}`;
  element("a", { download: file, href }).click();
}

// A row for each place of the picture: what it tells, and the numbers in it.
function asTable(svg) {
  const rows = [...svg.querySelectorAll("[tabindex][aria-label]")].map((node) => {
    const words = node.getAttribute("aria-label");
    const numbers = (words.match(TOLD_NUMBERS) ?? []).map((one) => one.replaceAll(",", "").replace("−", "-"));
    return [/^[=+@-]/.test(words) ? `'${words}` : words, ...numbers]; // no spreadsheet's formula
  });
  const most = Math.max(0, ...rows.map((row) => row.length - 1));
  const head = ["what", ...Array.from({ length: most }, (_, i) => `number ${i + 1}`)];
  const quoted = (one) => `"${one.replaceAll('"', '""')}"`;
  return [head, ...rows].map(([words, ...numbers]) =>
    [quoted(words), ...numbers].join(",")).join("\r\n") + "\r\n";
}

// The address of this page with what differs from how it opened; the address bar has it, too.
function toLink(model, free) {
  const differs = free.filter((name) =>
    JSON.stringify(model.get(name)) !== JSON.stringify(model.opening[name]));
  const state = Object.fromEntries(differs.map((name) => [name, model.get(name)]));
  const link = `#state=${model.place}.${encodeURIComponent(JSON.stringify(state))}`;
  history.replaceState(null, "", link);
  return location.href;
}

function toPython(model, free) {
  const kind = model.get("_anywidget_id").split(".").at(-1);
  return `${kind}(${free.map((name) => `${name}=${asPython(model.get(name))}`).join(", ")})`;
}

function asPython(value) {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(asPython).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const pairs = Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${asPython(one)}`);
  return `{${pairs.join(", ")}}`;
}

// Sets what the page's link says of this explorable; what does not fit a value is left out.
export function takeState({ model, el, free = [] }) {
  const [, place, text] = IN_LINK.exec(location.hash) ?? [];
  if (place === undefined || Number(place) !== model.place) return;
  const given = parsed(text);
  for (const name of free) {
    if (Object.hasOwn(given, name) && fits(given[name], model.get(name))) model.set(name, given[name]);
  }
  requestAnimationFrame(() => el.scrollIntoView({ block: "center" }));
}

function parsed(text) {
  try {
    return Object(JSON.parse(decodeURIComponent(text)));
  } catch {
    return {}; // a link that was cut off
  }
}

const kindOf = (value) => Array.isArray(value) ? "list" : value === null ? "nothing" : typeof value;

function fits(value, now) {
  if (typeof value === "number" && !Number.isFinite(value)) return false;
  const allowed = now === null ? ["number", "string"] : [kindOf(now)]; // null: nothing chosen so far
  return allowed.includes(kindOf(value));
}
