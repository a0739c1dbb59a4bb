// What generation.js makes of each case: a source to translate, or logits and knobs to sample with.

function answers(cases, load, store) {
  const { model } = readCheckpoint(load("translator.safetensors"));
  const { longest, width } = cases;
  const written = cases.sources.map((source) => {
    const { ids, finished } = generate(model, source, longest);
    return { ids, finished };
  });
  const searched = cases.searched.map((source) => beamSearch(model, source, longest, { width }));
  for (const { logits, knobs } of cases.samples) {
    store(Float32Array.from(sampleProbabilities(logits, knobs)));
  }
  const drawn = cases.draws.map(([probabilities, uniform]) => draw(probabilities, uniform));
  const largest = cases.rankings.map(([values, count]) => fromLargest(values, count));
  return { written, searched, drawn, largest };
}
