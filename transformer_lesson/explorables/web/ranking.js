// Which number is the largest, by the package's rule for ties: values that agree to within CLOSE
// are equal, and of equals the first is named. So rounding cannot overturn what a picture says.

const CLOSE = 1e-4; // relative to the largest

export function firstLargest(values) {
  const top = values.reduce((a, b) => Math.max(a, b));
  return values.findIndex((value) => value >= top * (1 - CLOSE * Math.sign(top)));
}

// The indices of the `count` largest values, largest first, equals in their order.
export function fromLargest(values, count) {
  const left = values.slice(), order = [];
  while (order.length < Math.min(count, values.length)) {
    order.push(firstLargest(left));
    left[order.at(-1)] = -Infinity;
  }
  return order;
}
