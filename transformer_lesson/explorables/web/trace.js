// A forward pass as a list of quantities, in the order of computation, and how each number came.
//
//     const flow = trace(model, () => model.decode(ids));
//     explain(flow, flow.steps[5], { head: 0, row: 1, column: 3 });  // {formula, how, terms}

import { softmax } from "./generation.js";
import { Tensor } from "./transformer.js";

const WATCHED = ["embed", "norm", "attention", "project"];
const UNNAMED = /\.(W_O|W_2|W_down)$/; // maps whose results are no named quantities of the package
const IN_STREAM = /(^|[._])(output|after_\w+)$/;

// Runs `pass` and keeps what the package names, and beside it what each norm and each map back into
// the stream gives, by that part's name. A step is {name, value, from}: names of what made it. The
// steps come after those of an `earlier` trace, and `returned` is what the pass returned.
export function trace(model, pass, earlier = { steps: [], calls: [] }) {
  const steps = [...earlier.steps], calls = new Map(earlier.calls), made = { model, steps, calls };
  const methods = Object.getPrototypeOf(model);
  const keep = (name, value) => {
    steps.push({ name, value, from: madeFrom(name, steps, calls) });
    return value;
  };
  for (const method of WATCHED) {
    model[method] = (name, ...given) => {
      const result = methods[method].call(model, name, ...given);
      calls.set(name, { given, result });
      const pre = method === "norm" && given[1].norm_position === "pre";
      return pre || UNNAMED.test(name) ? keep(name, result) : result;
    };
  }
  model.run = keep;
  try {
    made.returned = pass();
  } finally {
    for (const method of WATCHED) delete model[method];
    model.run = (name, value) => value;
  }
  const logits = steps.at(-1);
  if (logits.name === "logits") {
    const shares = Float32Array.from(softmax(logits.value.row(logits.value.rows - 1)));
    keep("probabilities", new Tensor([1, shares.length], shares));
  }
  return { ...made, byName: new Map(steps.map((step) => [step.name, step])) };
}

// Whether a quantity is the stream: what a block adds to, or has added to.
export const isInStream = (name) => IN_STREAM.test(name);
export const lastPart = (name) => name.slice(name.lastIndexOf(".") + 1);
const ownerOf = (name) => name.slice(0, name.lastIndexOf("."));

const PARTS = {
  scores: ["queries", "keys"], weights: ["scores"], heads: ["weights", "values"], W_O: ["heads"],
  W_2: ["hidden"], W_down: ["hidden"], tokens: [] };
const MATRICES = { queries: ["W_Q"], keys: ["W_K"], values: ["W_V"], hidden: ["W_1", "W_gate"],
  logits: ["projection"] };

// The names of the quantities of which this one is made.
function madeFrom(name, steps, calls) {
  const last = lastPart(name), owner = ownerOf(name);
  const stream = steps.findLast((step) => isInStream(step.name))?.name;
  if (PARTS[last]) return PARTS[last].map((part) => `${owner}.${part}`);
  if (owner.endsWith("embedding")) return [`${owner}.tokens`];
  if (last === "probabilities") return ["logits"];
  if (MATRICES[last]) {
    const { input } = mapInto(calls, name);
    return [steps.findLast((step) => step.value === input)?.name ?? stream];
  }
  return isInStream(name) ? [stream, steps.at(-1).name] : [stream];
}

// The linear map that gives a quantity: its name, what went in and what came out.
function mapInto(calls, name) {
  const last = lastPart(name), owner = last === "logits" ? "" : `${ownerOf(name)}.`;
  const names = (MATRICES[last] ?? [last]).map((matrix) => owner + matrix);
  const matrix = names.find((one) => calls.has(one)), { given, result } = calls.get(matrix);
  return { matrix, input: given[0], output: result };
}

// A number with three digits that count.
export const digits = (value) => String(Number(value.toPrecision(3)) || 0);

// How one number came: {formula, how, terms}. `formula` has the names, `how` the numbers, and the
// terms, {words, value}, are what was added up or weighed.
export function explain(flow, step, place) {
  const last = lastPart(step.name), parts = step.from.map((name) => flow.byName.get(name));
  const way = WAYS_MADE[last] ?? (isInStream(step.name) ? added : normalized);
  const embedded = last === "output" && ownerOf(step.name).endsWith("embedding");
  return (embedded ? positioned : way)(flow, step, place, parts);
}

// The number at a place; a tensor without heads has the same rows for all of them.
export function numberAt({ shape, data, width }, { head, row, column }) {
  const n = shape.length === 3 ? head * shape[1] + row : row;
  return data[n * width + column];
}

const configOf = ({ model }, { name }) =>
  /^(source_|encoder)/.test(name) ? model.source : model.config;

const term = (words, value) => ({ words: `${words} = ${digits(value)}`, value });
const product = (label, a, b) => term(`${label}: ${digits(a)} × ${digits(b)}`, a * b);

function lookedUp(flow, step, { row, column }) {
  const name = ownerOf(step.name), id = flow.calls.get(name).given[0][row];
  const { scale_embedding: scales, d_model: d } = configOf(flow, step);
  const own = flow.model.weights.get(`${name}.weight`).row(id)[column];
  return {
    formula: scales ? "E[id] · √d_model" : "E[id]",
    how: scales ? `row ${id} of the table, ${digits(own)}, times √${d}` : `row ${id} of the table`,
    terms: [scales ? product("table × √d_model", own, Math.sqrt(d)) : term("table", own)] };
}

function positioned(flow, step, { row, column }, [tokens]) {
  const { positions, d_model: d } = configOf(flow, step), token = tokens.value.row(row)[column];
  const place = step.value.row(row)[column] - token, pair = column - (column % 2);
  const wave = `${column % 2 ? "cos" : "sin"}(position / 10000^(${pair}/${d}))`;
  if (step.value === tokens.value) {
    return { formula: "token", how: "positions reach queries and keys instead",
      terms: [term("token", token)] };
  }
  return {
    formula: positions === "learned" ? "token + P[position]" : `token + ${wave}`,
    how: `the token's ${digits(token)}, the position's ${digits(place)}`,
    terms: [term("token", token), term("position", place)] };
}

// What went into a norm, and mean, spread and result for one row.
function normOf(flow, name, row, column) {
  const [x, { norm, norm_epsilon: epsilon }] = flow.calls.get(name).given, numbers = x.row(row);
  const n = numbers.length, { weight, bias } = flow.model.part(name);
  const mean = norm === "rms" ? 0 : numbers.reduce((a, b) => a + b) / n;
  const variance = numbers.reduce((sum, value) => sum + (value - mean) ** 2, 0) / n;
  const scale = Math.sqrt(variance + epsilon), gain = `γ ${digits(weight.data[column])}`;
  const own = digits(numbers[column]), terms = [...numbers].map((value, i) => term(`x${i}`, value));
  if (norm === "rms") {
    return { formula: "x / √(mean of x² + ε) · γ", how: `${own} / ${digits(scale)} × ${gain}`,
      terms };
  }
  return {
    formula: "(x − mean) / √(variance + ε) · γ + β",
    how: `(${own} − mean ${digits(mean)}) / ${digits(scale)} × ${gain} + ` +
      `β ${digits(bias.data[column])}`,
    terms };
}

const normalized = (flow, step, { row, column }) => normOf(flow, step.name, row, column);

// A branch joins the stream; post-norm models normalize the sum.
function added(flow, step, { row, column }, [stream, branch]) {
  const x = stream.value.row(row)[column], more = branch.value.row(row)[column];
  const config = configOf(flow, step), part = lastPart(branch.name);
  const sum = { formula: `x + ${part}`, how: `the stream's ${digits(x)}, ${part}'s ${digits(more)}`,
    terms: [term("stream", x), term(part, more)] };
  const norm = `${ownerOf(step.name)}.${normAfter(step.name, flow)}`;
  if (config.norm_position !== "post" || !flow.calls.has(norm)) return sum;
  const own = normOf(flow, norm, row, column);
  return { formula: `x + ${part}, then ${own.formula}`, how: `${sum.how}; ${own.how}`,
    terms: sum.terms };
}

function normAfter(name, { model }) {
  const crossing = model.kind === "EncoderDecoderTransformer" && name.startsWith("decoder");
  if (!/output$/.test(name)) return /cross/.test(name) ? "norm_2" : "norm_1";
  return crossing ? "norm_3" : "norm_2";
}

// Sums of products: x times a row of the matrix, and its bias.
function mapped(flow, name, row, out) {
  const { matrix, input } = mapInto(flow.calls, name), { weight, bias } = flow.model.part(matrix);
  const x = input.row(row), w = weight.row(out), own = bias ? bias.data[out] : 0;
  const terms = [...x].map((value, i) => product(`x${i} × w${i}`, value, w[i]));
  const sum = terms.reduce((total, { value }) => total + value, 0) + own;
  const rest = bias ? ` and the bias ${digits(own)}` : "";
  return { terms, sum, product: `${lastPart(matrix)}${bias ? " + b" : ""}`,
    how: `the sum of ${x.length} products${rest}` };
}

function intoHeads(flow, step, place) {
  const { head, row, column } = place, width = step.value.width, config = configOf(flow, step);
  const turned = config.positions === "rotary" && !step.name.endsWith("values") &&
    step.name.includes("self_attention") && flow.model.kind !== "AttentionOnlyDecoder";
  if (turned) return rotatedPair(flow, step, place);
  const { product, how, terms } = mapped(flow, step.name, row, head * width + column);
  return { formula: `x ${product}, cut into heads`, how, terms };
}

// Rotary positions turn number j of a row together with number j + d_head / 2.
function rotatedPair(flow, step, { head, row, column }) {
  const { width } = step.value, half = width / 2, j = column % half, late = column >= half;
  const { output } = mapInto(flow.calls, step.name), x = output.row(row).subarray(head * width);
  const angle = row * configOf(flow, step).rotary_base ** (-j / half);
  const [own, other] = [x[column], x[late ? j : j + half]];
  const sine = (late ? 1 : -1) * Math.sin(angle);
  const terms = [product("x × cos", own, Math.cos(angle)), product("its pair × sin", other, sine)];
  const matrix = lastPart(mapInto(flow.calls, step.name).matrix);
  return { formula: `x ${matrix}, cut into heads, each pair turned by its position`,
    how: `position ${row} turns the pair by ${digits(angle)}`, terms };
}

// The row of keys or values that a head of queries uses: groups of heads may share them.
function sharedRow({ value }, weights, head, row) {
  const group = weights.shape[0] / value.shape[0];
  return value.row(Math.floor(head / group) * value.shape[1] + row);
}

function dotProduct(flow, step, { head, row, column }, [queries, keys]) {
  const q = queries.value.row(head * step.value.shape[1] + row);
  const k = sharedRow(keys, step.value, head, column);
  const terms = [...q].map((value, i) => product(`q${i} × k${i}`, value, k[i]));
  const sum = terms.reduce((total, { value }) => total + value, 0);
  return { formula: "q · k / √d_head", terms,
    how: `the sum of ${q.length} products, ${digits(sum)}, divided by √${q.length}` };
}

function shared(flow, step, { head, row, column }, [scores]) {
  const sees = flow.calls.get(ownerOf(step.name)).given[3].sees;
  const own = scores.value.row(head * step.value.shape[1] + row);
  const open = [...own.keys()].filter((key) => sees(row, key));
  const { powers, total } = powersOf(open.map((key) => own[key]));
  return {
    formula: "e^(score − largest) / their sum", terms: open.map((key, i) => {
      return term(`key ${key}: e^(${digits(own[key])} − largest)`, powers[i]);
    }),
    how: sees(row, column) ? `${digits(powers[open.indexOf(column)])} of ${digits(total)}` :
      "the mask hides this key" };
}

function powersOf(scores) {
  const largest = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const powers = scores.map((score) => Math.exp(score - largest));
  return { powers, total: powers.reduce((a, b) => a + b, 0) };
}

function weighted(flow, step, { head, row, column }, [weights, values]) {
  const shares = weights.value.row(head * step.value.shape[1] + row);
  const terms = [...shares].map((share, key) => {
    const own = sharedRow(values, weights.value, head, key)[column];
    return product(`key ${key}: weight × value`, share, own);
  });
  return { formula: "sum of weight · value", terms, how: `the sum over ${shares.length} keys` };
}

function mappedBack(flow, step, { row, column }) {
  const { product, how, terms } = mapped(flow, step.name, row, column);
  const input = { W_O: "heads, joined, times", logits: "x times" }[lastPart(step.name)];
  return { formula: `${input ?? "hidden times"} ${product}`, how, terms };
}

function activated(flow, step, { row, column }) {
  const { activation } = configOf(flow, step), own = ownerOf(step.name);
  const { sum, product, how, terms } = mapped(flow, step.name, row, column);
  if (activation !== "swiglu") {
    return { formula: `${activation}(x ${product})`, terms,
      how: `${activation} of ${digits(sum)}, ${how}` };
  }
  const up = flow.calls.get(`${own}.W_up`).result.row(row)[column];
  return { formula: `swish(x ${product}) · (x W_up)`, terms,
    how: `swish of ${digits(sum)}, ${how}, times ${digits(up)} from W_up` };
}

function likely(flow, step, { column }) {
  const logits = flow.byName.get("logits").value, own = logits.row(logits.rows - 1);
  const { powers, total } = powersOf([...own]);
  return { formula: "e^(logit − largest) / their sum",
    how: `${digits(powers[column])} of ${digits(total)}`,
    terms: [term(`e^(${digits(own[column])} − largest)`, powers[column])] };
}

const WAYS_MADE = {
  tokens: lookedUp, queries: intoHeads, keys: intoHeads, values: intoHeads, scores: dotProduct,
  weights: shared, heads: weighted, W_O: mappedBack, W_2: mappedBack, W_down: mappedBack,
  hidden: activated, logits: mappedBack, probabilities: likely };
