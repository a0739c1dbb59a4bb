// What generation.js makes of each case: a source to translate, or logits and knobs to sample with.

function answers(cases, load, store) {
  const { model } = readCheckpoint(load("translator.safetensors"));
  const { longest, width } = cases;
  const written = cases.sources.map((source) => {
    const { ids, finished } = generate(model, source, longest);
    return { ids, finished };
  });
  const few = cases.sources.slice(0, Math.min(50, cases.searched.length)), ids = (i) => written[i % few.length].ids;
  const drafts = (i) => {
    const own = ids(i), wrong = own.map((id, k) => (k === i % own.length ? id - 1 : id));
    return [own.slice(0, -1), wrong, own.slice(0, 2), [...own, ...own], ids(i + 1)];
  };
  const drafted = few.map((source, i) => drafts(i).map((draft) => {
    const { ids, foreseen } = generate(model, source, longest, { draft });
    return { ids, foreseen };
  }));
  const searched = cases.searched.map((source) => beamSearch(model, source, longest, { width }));
  for (const { logits, knobs } of cases.samples) {
    store(Float32Array.from(sampleProbabilities(logits, knobs)));
  }
  const drawn = cases.draws.map(([probabilities, uniform]) => draw(probabilities, uniform));
  const largest = cases.rankings.map(([values, count]) => fromLargest(values, count));
  return { written, drafted, searched, drawn, largest };
}
