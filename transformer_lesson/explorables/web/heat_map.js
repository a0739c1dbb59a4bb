// Tensors as small images, one pixel per number: blue above zero, orange below, and transparent
// near zero, so that they suit both themes.

const ABOVE = [32, 118, 196], UNDER = [214, 108, 28];
const easel = document.createElement("canvas");
const brush = easel.getContext("2d", { willReadFrequently: true });
const knownHrefs = new WeakMap(); // by tensor

// A tensor's image: rows below each other; heads, if any, side by side.
export function tensorHref(tensor) {
  const { shape, width } = tensor, [heads, n] = shape.length === 3 ? shape : [1, shape[0]];
  const place = (h) => ({ h, x: h * width, y: 0 });
  return known(tensor, "whole", () => painted(tensor, heads * width, n, range(heads).map(place)));
}

const range = (n) => Array.from({ length: n }, (_, i) => i);

function known(tensor, name, make) {
  if (!knownHrefs.has(tensor)) knownHrefs.set(tensor, new Map());
  const all = knownHrefs.get(tensor);
  if (!all.has(name)) all.set(name, make());
  return all.get(name);
}

export const largestOf = ({ data }) =>
  data.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;

// An image of this size, with each head at its place.
function painted(tensor, width, height, places) {
  const image = new ImageData(width, height), largest = largestOf(tensor), n = tensor.shape.at(-2);
  for (const { h, x, y } of places) {
    for (let i = 0; i < n; i++) {
      tensor.row(h * n + i).forEach((value, k) => {
        const color = value < 0 ? UNDER : ABOVE, at = 4 * ((y + i) * width + x + k);
        for (let c = 0; c < 3; c++) image.data[at + c] = color[c];
        image.data[at + 3] = 255 * Math.sqrt(Math.min(1, Math.abs(value) / largest));
      });
    }
  }
  [easel.width, easel.height] = [width, height];
  brush.putImageData(image, 0, 0);
  return easel.toDataURL();
}
