// Curves that grow while a model trains: the losses, and below them whatever else was measured.

import { curveNumber, curveStep, drawCurves } from "./curves.js";
import { fitted, layer, set } from "./draw.js";
import { frame } from "./frame.js";

const LOSS_NAMES = ["training", "validation"];

export const LiveCurves = (view) => frame(view, {
  name: "Live curves",
  traits: ["title", "logarithmic", "step", "series", "levels"],
  controls: (make, { model }) => [
    make.choice("Loss axis", "logarithmic",
      [[false, "linear"], [true, "logarithmic"]]),
    make.number("Step", "step", () => [1, Math.max(1, ...measuredSteps(model.get("series")))],
      () => model.get("step") ?? "")],
  draw: drawLiveCurves });

function drawLiveCurves({ title, logarithmic: log, step, series, levels = [] }, page) {
  const { svg, width } = page;
  const curves = series.map(([name, points], look) => ({ name, points, look }))
    .filter(({ points }) => points.length);
  const losses = curves.filter(({ name }) => LOSS_NAMES.includes(name));
  const others = curves.filter(({ name }) => !LOSS_NAMES.includes(name));
  const frames = [];
  if (losses.length || !others.length) {
    const high = others.length ? 180 : 210;
    frames.push({ heading: "loss, nats per token", log, high, curves: losses, levels });
  }
  if (others.length) frames.push({ heading: "measured", log: false, high: 110, curves: others });
  const chosen = step === null ? null : nearestStep(series, step);
  const choose = (at) => page.set({ step: at === chosen ? null : at });
  const place = { x: 0, y: 0, width, chosen, choose };
  set(svg, { width, height: drawCurves(layer(svg, "curves"), frames, place) });
  return liveFacts(fitted(title, 600), { first: frames[0].curves, curves, chosen, levels });
}

const measuredSteps = (series) => series.flatMap(([, points]) => points.map(([step]) => step));

// Of the measured steps the one next to a typed number; of two the first.
const nearestStep = (series, typed) => measuredSteps(series).reduce((best, step) =>
  best === null || Math.abs(step - typed) < Math.abs(best - typed) ? step : best, null);

const valueAt = ({ points }, step) => points.find(([at]) => at === step)?.[1];

function liveFacts(title, { first, curves, chosen, levels }) {
  if (!curves.length) {
    return { title, said: "No step so far: the curves grow here while the model trains." };
  }
  const last = curves.flatMap(({ points }) => points).reduce((a, [step]) => Math.max(a, step), 0);
  const ends = first.map(({ name, points }) => `${name} ${curveNumber(points.at(-1)[1])}`);
  return {
    title: chosen === null ? `${title}: ${ends.join(", ")}` : chosenStep(title, curves, chosen),
    said: `Up to step ${curveStep(last)}: ${curves.map(courseOf).join("; ")}.` +
      levels.map(([name, value]) => ` Dashed: ${name} ${curveNumber(value)}.`).join("") };
}

function chosenStep(title, curves, step) {
  const there = curves.filter((curve) => valueAt(curve, step) !== undefined).map((curve) => {
    const least = lowestLoss(curve)?.[0] === step ? ", its lowest" : "";
    return `${curve.name} ${curveNumber(valueAt(curve, step))}${least}`;
  });
  return `${title}, step ${curveStep(step)}: ${there.join("; ")}`;
}

// The first point at which a loss is lowest; undefined for other curves.
function lowestLoss({ name, points }) {
  const numbers = points.filter(([, value]) => typeof value === "number");
  if (!LOSS_NAMES.includes(name) || !numbers.length) return undefined;
  return numbers.reduce((a, b) => (b[1] < a[1] ? b : a));
}

// Where a curve began and ended, and for a loss where it was lowest.
function courseOf({ name, points }) {
  const [first, last] = [points[0], points.at(-1)].map(([, value]) => curveNumber(value));
  if (points.length === 1) return `${name} ${last}`;
  const course = `${name} from ${first} to ${last}`, least = lowestLoss({ name, points });
  if (!least) return course;
  const [step, lowest] = least;
  return `${course}, lowest ${curveNumber(lowest)} at step ${curveStep(step)}`;
}
