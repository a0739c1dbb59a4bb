// A forward pass as a list of quantities, in the order of computation.
//
//     const flow = trace(model, () => model.decode(ids));
//     flow.byName.get("decoder.0.self_attention.weights").value;

import { softmax } from "./generation.js";
import { Tensor } from "./transformer.js";

const UNNAMED = /\.(W_O|W_2|W_down)$/; // projections whose results have no name in the package
const IN_STREAM = /(^|[._])(output|after_\w+)$/;

// Runs `pass` and keeps every quantity that the package names, and, named after their parts, the
// results of pre-norms and of projections back into the stream; logits are followed by the next
// token's probabilities. A step is {name, value}. The steps come after those of an `earlier` trace;
// `returned` is what the pass returned, and `inputs` what each attention makes queries, keys and
// values from.
export function trace(model, pass, earlier = { steps: [] }) {
  const steps = [...earlier.steps], inputs = new Map(earlier.inputs);
  const flow = { model, steps, inputs };
  const methods = Object.getPrototypeOf(model);
  const keep = (name, value) => {
    steps.push({ name, value });
    return value;
  };
  for (const method of ["norm", "project"]) {
    model[method] = (name, ...given) => {
      const result = methods[method].call(model, name, ...given);
      const pre = method === "norm" && given[1].norm_position === "pre";
      return pre || UNNAMED.test(name) ? keep(name, result) : result;
    };
  }
  model.attention = (name, ...given) => {
    inputs.set(name, given);
    return methods.attention.call(model, name, ...given);
  };
  model.run = keep;
  try {
    flow.returned = pass();
  } finally {
    for (const method of ["norm", "project", "attention"]) delete model[method];
    model.run = (name, value) => value;
  }
  const logits = steps.at(-1);
  if (logits.name === "logits") {
    const shares = Float32Array.from(softmax(logits.value.row(logits.value.rows - 1)));
    keep("probabilities", new Tensor([1, shares.length], shares));
  }
  return { ...flow, byName: new Map(steps.map((step) => [step.name, step])) };
}

// Whether a quantity is the residual stream itself, not something computed from it.
export const isInStream = (name) => IN_STREAM.test(name);
