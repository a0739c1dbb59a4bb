// Runs transformer.js on each case of a folder and writes what passed through every hook point.
//
//     node forward.mjs transformer.js folder
//
// The folder has cases.json, a list of {model, source, target}; numbers go out beside it.

import { readFileSync, writeFileSync } from "node:fs";

const [file, folder] = process.argv.slice(2);
const source = readFileSync(file).toString("base64");
const { Cache, fromCheckpoint, record } = await import(`data:text/javascript;base64,${source}`);

const models = new Map();
const load = (name) => {
  if (!models.has(name)) models.set(name, fromCheckpoint(readFileSync(`${folder}/${name}`)));
  return models.get(name);
};

function forward(model, one) {
  if (model.kind === "EncoderOnlyTransformer") return model.encode(one.source);
  const memory = one.source && model.encode(one.source);
  return model.decode(one.target, memory, one.source);
}

// The same target, read one token at a time.
function cached(model, one) {
  const memory = one.source && model.encode(one.source), cache = new Cache();
  return one.target.map((id) => [...model.decode([id], memory, one.source, cache).data]);
}

const seen = JSON.parse(readFileSync(`${folder}/cases.json`)).map((one) => {
  const model = load(one.model), points = new Map();
  model.run = record(points);
  points.set("result", forward(model, one));
  model.run = (name, value) => value;
  const step = one.target ? cached(model, one) : null;
  const numbers = [...points].map(([name, { shape, data }]) => [name, { shape, data: [...data] }]);
  return { points: Object.fromEntries(numbers), step };
});
writeFileSync(`${folder}/seen.json`, JSON.stringify(seen));
