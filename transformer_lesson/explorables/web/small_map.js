// Where one head looks, as a small map: queries downward, keys to the right.

// The cells of the map, those of about the same weight as one path. `head` is [layer, number],
// `weights` are those of its whole layer.
export function mapShades(head, weights, [x, y], side) {
  const [, queries, keys] = weights.shape, number = head.at(-1);
  const paths = new Map(), wide = (side - 8) / keys, high = (side - 8) / queries;
  for (let i = 0; i < queries; i++) {
    weights.row(number * queries + i).forEach((weight, j) => {
      const level = Math.ceil(weight * 6 - 0.12) / 6;
      const cell = `M${x + 4 + j * wide} ${y + 4 + i * high}h${wide}v${high}h${-wide}z`;
      if (level > 0) paths.set(level, (paths.get(level) ?? "") + cell);
    });
  }
  return [...paths].map(([level, d]) => ({ name: `${head}.${level}`, level, d }));
}
