// What each file's weights are, as stored numbers, or the sentence that says why it cannot be used.

function answers(cases, load, store) {
  return cases.map((name) => {
    try {
      const { model, tokenizer } = readCheckpoint(load(name));
      for (const { data } of model.weights.values()) store(data);
      return [[...model.weights.keys()], tokenizer?.texts ?? null];
    } catch (error) {
      return error.message;
    }
  });
}
