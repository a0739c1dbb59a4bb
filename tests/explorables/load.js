// What each file's weights are, as stored numbers, or the sentence that says why it cannot be used.

async function answers(cases, load, store) {
  const made = [];
  for (const name of cases) {
    try {
      await refuseChanged(load(name));
      const { model, tokenizer } = readCheckpoint(load(name));
      for (const { data } of model.weights.values()) store(data);
      made.push([[...model.weights.keys()], tokenizer?.texts ?? null]);
    } catch (error) {
      made.push(error.message);
    }
  }
  return made;
}
