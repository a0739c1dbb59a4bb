// Curves that grow while a model trains: the losses, and below them whatever else was measured.

import { curveNumber, curveStep, drawCurves } from "./curves.js";
import { fitted, layer, set } from "./draw.js";
import { frame } from "./frame.js";

const LOSS_NAMES = ["training", "validation"];

export function LiveCurves(view) {
  return frame(view, {
    name: "Live curves",
    traits: ["title", "logarithmic", "series"],
    controls: (make) => [
      make.choice("Loss axis", "logarithmic",
        () => [[false, "linear"], [true, "logarithmic"]]),
    ],
    draw: drawLiveCurves,
  });
}

function drawLiveCurves({ title, logarithmic: log, series }, { svg, width }) {
  const curves = series.map(([name, points], look) => ({ name, points, look }))
    .filter(({ points }) => points.length);
  const losses = curves.filter(({ name }) => LOSS_NAMES.includes(name));
  const others = curves.filter(({ name }) => !LOSS_NAMES.includes(name));
  const frames = [];
  if (losses.length || !others.length) {
    const high = others.length ? 180 : 210;
    frames.push({ heading: "loss, nats per token", log, high, curves: losses });
  }
  if (others.length) frames.push({ heading: "measured", log: false, high: 110, curves: others });
  const height = drawCurves(layer(svg, "curves"), frames, { x: 0, y: 0, width });
  set(svg, { width, height });
  return liveFacts(fitted(title, 600), frames[0].curves, curves);
}

function liveFacts(title, first, curves) {
  if (!curves.length) {
    return { title, said: "No step so far: the curves grow here while the model trains." };
  }
  const last = curves.flatMap(({ points }) => points).reduce((a, [step]) => Math.max(a, step), 0);
  const ends = first.map(({ name, points }) => `${name} ${curveNumber(points.at(-1)[1])}`);
  return {
    title: `${title}: ${ends.join(", ")}`,
    said: `Up to step ${curveStep(last)}: ${curves.map(courseOf).join("; ")}.`,
  };
}

// Where a curve began and ended, and for a loss where it was lowest.
function courseOf({ name, points }) {
  const [first, last] = [points[0], points.at(-1)].map(([, value]) => curveNumber(value));
  const numbers = points.filter(([, value]) => typeof value === "number");
  if (points.length === 1) return `${name} ${last}`;
  const course = `${name} from ${first} to ${last}`;
  if (!LOSS_NAMES.includes(name) || !numbers.length) return course;
  const [step, lowest] = numbers.reduce((a, b) => (b[1] < a[1] ? b : a));
  return `${course}, lowest ${curveNumber(lowest)} at step ${curveStep(step)}`;
}
