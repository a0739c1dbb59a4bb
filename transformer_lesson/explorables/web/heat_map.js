// Tensors as small pictures, one pixel a number: blue above zero, orange below, faint near it. The
// paper shows through, so that they serve in both themes.

const ABOVE = [32, 118, 196], UNDER = [214, 108, 28];
const knownHrefs = new WeakMap(); // of tensors' pictures, which are made once

// Rows below each other; heads, if any, side by side.
export function tensorHref(tensor) {
  const { shape, width } = tensor, [heads, n] = shape.length === 3 ? shape : [1, shape[0]];
  return known(tensor, "whole", () => painted(heads * width, n, (paint) => {
    for (let h = 0; h < heads; h++) paintHead(paint, tensor, { h, n, x: h * width, y: 0 });
  }, largestOf(tensor)));
}

// A map for each head, so many side by side, with a gap of a pixel.
export function mapsHref(tensor, across) {
  const [heads, n, width] = tensor.shape, down = Math.ceil(heads / across);
  return known(tensor, "maps", () => {
    return painted(across * (width + 1) - 1, down * (n + 1) - 1, (paint) => {
      for (let h = 0; h < heads; h++) {
        const x = (h % across) * (width + 1), y = Math.floor(h / across) * (n + 1);
        paintHead(paint, tensor, { h, n, x, y });
      }
    }, largestOf(tensor));
  });
}

// One head alone.
export function headHref(tensor, h) {
  const n = tensor.shape.at(-2);
  return known(tensor, h, () => painted(tensor.width, n, (paint) => {
    paintHead(paint, tensor, { h, n, x: 0, y: 0 });
  }, largestOf(tensor)));
}

function known(tensor, name, make) {
  if (!knownHrefs.has(tensor)) knownHrefs.set(tensor, new Map());
  const all = knownHrefs.get(tensor);
  if (!all.has(name)) all.set(name, make());
  return all.get(name);
}

export function largestOf({ data }) {
  return data.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
}

function paintHead(paint, tensor, { h, n, x, y }) {
  for (let i = 0; i < n; i++) {
    tensor.row(h * n + i).forEach((value, k) => paint(x + k, y + i, value));
  }
}

function painted(width, height, paintAll, largest) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d"), image = context.createImageData(width, height);
  paintAll((x, y, value) => {
    const [red, green, blue] = value < 0 ? UNDER : ABOVE;
    const alpha = 255 * Math.sqrt(Math.min(1, Math.abs(value) / largest));
    image.data.set([red, green, blue, alpha], 4 * (y * width + x));
  });
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}
