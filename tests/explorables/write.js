// What generation.js makes of each case: a source to translate, or logits and knobs to sample with.

function answers(cases, load, store) {
  const { model } = readCheckpoint(load("translator.safetensors"));
  const written = cases.sources.map((source) => {
    const { ids, finished } = generate(model, source, cases.longest);
    return { ids, finished, beam: beamSearch(model, source, cases.longest, { width: cases.width }) };
  });
  for (const { logits, knobs } of cases.samples) {
    store(Float32Array.from(sampleProbabilities(logits, knobs)));
  }
  const drawn = cases.draws.map(([probabilities, uniform]) => draw(probabilities, uniform));
  const largest = cases.rankings.map(([values, count]) => fromLargest(values, count));
  return { written, drawn, largest };
}
