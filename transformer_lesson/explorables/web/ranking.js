// Which number is the largest, by the package's rule for ties: values within CLOSE of each other
// are equal, and the first of equals wins. So rounding cannot change what a picture says.

const CLOSE = 1e-4; // relative to the largest

export function firstLargest(values) {
  const top = values.reduce((a, b) => Math.max(a, b));
  return values.findIndex((value) => value >= top * (1 - CLOSE * Math.sign(top)));
}

// The indices of the `count` largest values, largest first; ties keep their order.
export function fromLargest(values, count) {
  const left = values.slice(), order = [];
  while (order.length < Math.min(count, values.length)) {
    order.push(firstLargest(left));
    left[order.at(-1)] = -Infinity;
  }
  return order;
}
