// Where one head looks, as a small map: queries downward, keys to the right.

import { shade } from "./draw.js";

// The cells of the map, one path for all of about the same weight; `rows` has a row per query.
export function mapShades(name, rows, [x, y], side) {
  const paths = new Map(), wide = (side - 8) / rows[0].length, high = (side - 8) / rows.length;
  rows.forEach((row, i) => row.forEach((weight, j) => {
    const level = Math.ceil(Math.min(1, weight) * 6 - 0.12) / 6;
    const cell = `M${x + 4 + j * wide} ${y + 4 + i * high}h${wide}v${high}h${-wide}z`;
    if (level > 0) paths.set(level, (paths.get(level) ?? "") + cell);
  }));
  return [...paths].map(([level, d]) =>
    ({ key: `${name}.${level}`, d, fill: shade(level), class: "still" }));
}

export const headRows = (weights, head) => Array.from({ length: weights.shape[1] }, (_, i) =>
  weights.row(head * weights.shape[1] + i));
