// Forward passes as lists of quantities. A case is {model, source, target, draws}: numbers in [0, 1)
// that say of which head, row and number each quantity is explained.

function answers(cases, load, store) {
  return cases.map((one) => {
    const { model } = readCheckpoint(load(one.model));
    const flow = trace(model, () => forward(model, one));
    return flow.steps.map((step, i) => {
      const { shape, data } = step.value, three = shape.length === 3 ? shape : [1, ...shape];
      const [head, row, column] = three.map((n, k) => Math.floor(n * one.draws[(3 * i + k) % 97]));
      store(data);
      const { name, from } = step, place = { head, row, column };
      return { name, from, shape, place, ...explain(flow, step, place) };
    });
  });
}
