// Forward passes as lists of quantities. A case is {model, source, target}.

function answers(cases, load, store) {
  return cases.map((one) => {
    const { model } = readCheckpoint(load(one.model));
    return trace(model, () => forward(model, one)).steps.map(({ name, value }) => {
      store(value.data);
      return { name, shape: value.shape };
    });
  });
}
