// The folded map: a model's parts as one line of stations, in the order of the lessons, and where
// this lesson is.

import { inkOn, layer, put, set, textWidth, told } from "./draw.js";
import { boxWords, lessonOf, pressed } from "./map_plan.js";

const STATION = { tall: 50, gap: 8, below: 8, edge: { 13: 10, 12: 7 } }; // by size of the words

export function drawStrip(svg, view) {
  const { page } = view, roomy = stationsOf(view, 13);
  const size = rowsOfStations(roomy, page.width).length === 1 ? 13 : 12;
  const rows = rowsOfStations(size === 13 ? roomy : stationsOf(view, 12), page.width);
  const stations = rows.flatMap((row, i) => placedRow(row, i, rows.length === 1, page.width));
  drawTrack(layer(svg, "track"), stations);
  put.rect(svg, "stations", stations, (station) => ({
    x: station.x, y: station.y, width: station.wide, height: STATION.tall, rx: 9,
    ...buttonOf(station, view), ...(station.here ? { fill: "var(--ink)" } : {}) }), "part");
  const written = stations.flatMap((station) => stationTexts(station, view, size));
  put.label(svg, "texts", written);
  const height = rows.length * (STATION.tall + STATION.below) - STATION.below + 4;
  set(svg, { width: page.width, height });
}

// A part is chosen by its station; a lesson that builds none only says that you are there.
function buttonOf({ part, lesson, lines }, view) {
  if (part in view.parts) return pressed(part, view, boxWords({ part }, view));
  return told(`lesson ${lesson.slice(-2)}, ${lines.join(" ")}: you are here`);
}

// Each part, and at the end a lesson that builds none, with its words and the room that they need.
function stationsOf({ names, parts, built, state }, size) {
  const own = state.here && !(state.here in parts) ? [state.here] : [];
  return [...names, ...own].map((part) => {
    const [number, name] = own.includes(part) ? [part.slice(0, 2), part.slice(3)]
      : [lessonOf(part, { parts, built }), part];
    const here = part === state.here, lines = nameLines(name);
    const lesson = (here ? "here · " : "") + number;
    const needed = lines.map((line) => textWidth(line, size, here ? 600 : 400));
    const wide = Math.max(textWidth(lesson, 12), ...needed) + STATION.edge[size];
    return { part, here, lines, lesson, wide };
  });
}

// The stations in as few rows as they need, about equally long: none is alone in the last one.
function rowsOfStations(stations, width) {
  const all = filledRows(stations, width), widest = Math.max(...stations.map(({ wide }) => wide));
  for (let even = widest + 4; even < width; even += 8) {
    const rows = filledRows(stations, even);
    if (rows.length === all.length) return rows;
  }
  return all;
}

function filledRows(stations, width) {
  const rows = [];
  let used = Infinity;
  for (const station of stations) {
    if (used + station.wide > width - 2) {
      rows.push([]);
      used = 2;
    }
    rows.at(-1).push(station);
    used += station.wide + STATION.gap;
  }
  return rows;
}

// The same with a place for every station; one row shares out what room is left.
function placedRow(row, i, only, width) {
  const used = row.reduce((sum, { wide }) => sum + wide + STATION.gap, 4 - STATION.gap);
  const more = Math.min(only ? 24 : 0, (width - used) / row.length);
  let x = 2;
  return row.map((station) => {
    const at = x, wide = station.wide + more;
    x += wide + STATION.gap;
    return { ...station, x: at, y: i * (STATION.tall + STATION.below) + 2, wide };
  });
}

function drawTrack(group, stations) {
  const ends = stations.filter(({ y }, i) => y !== stations[i + 1]?.y);
  put.path(group, "paths", ends, ({ x, y, wide }) => ({
    d: `M9 ${y + STATION.tall / 2}H${x + wide - 9}`, stroke: "var(--soft)", "stroke-width": 3,
  }), "y");
}

function stationTexts({ part, here, lines, lesson, x, y, wide }, view, size) {
  const at = x + wide / 2, fill = inkOn(here ? "var(--ink)" : "var(--card)");
  const first = y + 31 + (lines.length === 1 ? 7 : 0);
  return [
    { key: `${part} lesson`, text: lesson, x: at, y: y + 14, fill,
      class: "small middle" },
    ...lines.map((text, i) => ({ key: `${part} ${i}`, text, x: at, y: first + 14 * i, fill,
      class: `size-${size} middle${here ? " strong" : ""}` }))];
}

// A name in two lines: cut at its last space, or after its hyphen.
export const nameLines = (name) => name.split(name.includes(" ") ? / (?=[^ ]+$)/ : /(?<=-)/);
