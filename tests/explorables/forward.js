// What passes through every hook point of a model: names and shapes as answers, numbers stored.
// A case is {model, source, target, cached}; where it asks for "cached", that is the result of
// reading the target token by token.

function tokenByToken(model, { source, target }) {
  const memory = source && model.encode(source), cache = new Cache();
  const logits = new Tensor([target.length, model.config.vocab_size]);
  target.forEach((id, i) => logits.row(i).set(model.decode([id], memory, source, cache).data));
  return logits;
}

function answers(cases, load, store) {
  const models = new Map();
  return cases.map((one) => {
    if (!models.has(one.model)) models.set(one.model, readCheckpoint(load(one.model)).model);
    const model = models.get(one.model), points = new Map();
    model.run = record(points);
    points.set("result", forward(model, one));
    model.run = (name, value) => value;
    if (one.cached) points.set("cached", tokenByToken(model, one));
    for (const { data } of points.values()) store(data);
    return [...points].map(([name, { shape }]) => [name, shape]);
  });
}
