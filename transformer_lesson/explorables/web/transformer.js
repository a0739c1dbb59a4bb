// The forward pass of the package's models in the page: the same names and hook points as in
// `transformer_lesson.model`, for one sentence at a time, on Float32Array.
//
//     const { model } = readCheckpoint(bytes);              // a .safetensors file of the package
//     const memory = model.encode(source);                  // (source, d_model)
//     const logits = model.decode(target, memory, source);  // (target, vocab_size)
//
// Every named quantity passes through a hook: `model.run = record(seen)` keeps them all.

export class Tensor {
  // `data` holds the numbers in row-major order.
  constructor(shape, data = new Float32Array(shape.reduce((a, b) => a * b, 1))) {
    this.shape = shape;
    this.data = data;
  }

  get width() {
    return this.shape[this.shape.length - 1];
  }

  get rows() {
    return this.data.length / this.width;
  }

  row(i) {
    return this.data.subarray(i * this.width, (i + 1) * this.width);
  }

  map(f) {
    return new Tensor(this.shape, this.data.map(f));
  }
}

export const add = (a, b) => a.map((value, i) => value + b.data[i]);

// x (n, in) times the transpose of weight (out, in), plus bias: PyTorch's `nn.Linear`. A pass
// spends most of its time here, so it computes four outputs for each number of x that it reads.
export function linear(x, { weight, bias }) {
  const [out, width] = weight.shape, y = new Tensor([...x.shape.slice(0, -1), out]);
  const w = weight.data;
  for (let i = 0; i < x.rows; i++) {
    const from = x.row(i), to = y.row(i);
    let j = 0;
    for (; j + 3 < out; j += 4) {
      let a = 0, b = 0, c = 0, d = 0;
      for (let k = 0, at = j * width; k < width; k++, at++) {
        a += from[k] * w[at];
        b += from[k] * w[at + width];
        c += from[k] * w[at + 2 * width];
        d += from[k] * w[at + 3 * width];
      }
      to.set([a, b, c, d], j);
    }
    for (; j < out; j++) to[j] = dot(from, weight.row(j));
    for (j = 0; bias && j < out; j++) to[j] += bias.data[j];
  }
  return y;
}

// `norm` is "layer", or "rms", which subtracts no mean and has no bias.
export function normalize(x, { weight, bias }, { norm, norm_epsilon: epsilon }) {
  const y = new Tensor(x.shape), { width } = x;
  for (let i = 0; i < x.rows; i++) {
    const row = x.row(i), out = y.row(i);
    let mean = 0, variance = 0;
    if (norm !== "rms") for (const value of row) mean += value / width;
    for (const value of row) variance += (value - mean) ** 2 / width;
    const scale = 1 / Math.sqrt(variance + epsilon);
    for (let k = 0; k < width; k++) {
      out[k] = (row[k] - mean) * scale * weight.data[k] + (bias ? bias.data[k] : 0);
    }
  }
  return y;
}

// The error function by a series whose terms are all positive.
function erf(x) {
  const z = Math.abs(x);
  if (z > 6) return Math.sign(x);
  let term = z, total = z;
  for (let n = 1; term > 1e-12 * total; n++) total += term *= (2 * z * z) / (2 * n + 1);
  return (Math.sign(x) * 2 * Math.exp(-z * z) * total) / Math.sqrt(Math.PI);
}

const swish = (x) => x / (1 + Math.exp(-x));
const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => (x / 2) * (1 + erf(x / Math.SQRT2)),
  gelu_tanh: (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  swish };

// (n, heads * d_head) to (head, n, d_head)
export function splitHeads(x, nHeads) {
  const [n, width] = x.shape, dHead = width / nHeads;
  const y = new Tensor([nHeads, n, dHead]);
  for (let h = 0; h < nHeads; h++) {
    for (let i = 0; i < n; i++) {
      y.data.set(x.row(i).subarray(h * dHead, (h + 1) * dHead), (h * n + i) * dHead);
    }
  }
  return y;
}

// (head, n, d_head) to (n, heads * d_head)
export function mergeHeads(x) {
  const [nHeads, n, dHead] = x.shape;
  const y = new Tensor([n, nHeads * dHead]);
  for (let h = 0; h < nHeads; h++) {
    for (let i = 0; i < n; i++) y.row(i).set(x.row(h * n + i), h * dHead);
  }
  return y;
}

// Q K^T / sqrt(d_head), shape (head, query, key); groups of heads of Q share a head of K.
export function attentionScores(Q, K) {
  const [nHeads, n, dHead] = Q.shape, keys = K.shape[1], group = nHeads / K.shape[0];
  const scores = new Tensor([nHeads, n, keys]), root = Math.sqrt(dHead);
  for (let h = 0; h < nHeads; h++) {
    const first = Math.floor(h / group) * keys * dHead;
    for (let i = 0; i < n; i++) {
      const q = Q.row(h * n + i), out = scores.row(h * n + i);
      for (let j = 0, at = first; j < keys; j++, at += dHead) {
        let total = 0;
        for (let k = 0; k < dHead; k++) total += q[k] * K.data[at + k];
        out[j] = total / root;
      }
    }
  }
  return scores;
}

function dot(a, b) {
  let total = 0;
  for (let k = 0; k < a.length; k++) total += a[k] * b[k];
  return total;
}

// Weights that sum to 1 over the keys that `sees(query, key)` allows; zeros where it allows none.
export function maskedSoftmax(scores, sees) {
  const [nHeads, n, keys] = scores.shape, weights = new Tensor(scores.shape);
  for (let h = 0; h < nHeads; h++) {
    for (let i = 0; i < n; i++) {
      const row = scores.row(h * n + i), out = weights.row(h * n + i);
      let largest = -Infinity;
      for (let j = 0; j < keys; j++) if (sees(i, j)) largest = Math.max(largest, row[j]);
      let total = 0;
      for (let j = 0; j < keys; j++) {
        out[j] = sees(i, j) ? Math.exp(row[j] - largest) : 0;
        total += out[j];
      }
      for (let j = 0; total && j < keys; j++) out[j] /= total;
    }
  }
  return weights;
}

export function weightedValues(weights, V) {
  const [nHeads, n, keys] = weights.shape, group = nHeads / V.shape[0];
  const heads = new Tensor([nHeads, n, V.width]), { width } = V;
  for (let h = 0; h < nHeads; h++) {
    const first = Math.floor(h / group) * keys * width;
    for (let i = 0; i < n; i++) {
      const out = heads.row(h * n + i), row = weights.row(h * n + i);
      for (let j = 0, at = first; j < keys; j++, at += width) {
        if (row[j] === 0) continue; // masked
        for (let k = 0; k < width; k++) out[k] += row[j] * V.data[at + k];
      }
    }
  }
  return heads;
}

export function sinusoid(position, dModel, base = 10000) {
  const row = new Float32Array(dModel);
  for (let k = 0; k < dModel; k += 2) {
    const angle = position * Math.exp((-Math.log(base) * k) / dModel);
    row[k] = Math.sin(angle);
    row[k + 1] = Math.cos(angle);
  }
  return row;
}

// The radians per token by which rotary positions turn each pair of numbers.
export function rotaryFrequencies(dHead, base) {
  const half = dHead / 2;
  return Array.from({ length: half }, (_, j) => Math.exp((-Math.log(base) * j) / half));
}

// Turns numbers j and j + d_head / 2 of each row as a pair, by its frequency times the position.
export function rotate(x, start, frequencies) {
  const [, n] = x.shape, half = frequencies.length, y = new Tensor(x.shape);
  for (let i = 0; i < x.rows; i++) {
    const row = x.row(i), out = y.row(i), position = start + (i % n);
    for (let j = 0; j < half; j++) {
      const angle = position * frequencies[j];
      const cos = Math.cos(angle), sin = Math.sin(angle);
      out[j] = row[j] * cos - row[j + half] * sin;
      out[j + half] = row[j + half] * cos + row[j] * sin;
    }
  }
  return y;
}

// The ids that a decoder has read so far, and its keys and values, by the attention's name.
export class Cache {
  constructor() {
    this.ids = [];
    this.layers = new Map();
  }

  extend(name, K, V) {
    const old = this.layers.get(name);
    const both = old ? [joined(old[0], K), joined(old[1], V)] : [K, V];
    this.layers.set(name, both);
    return both;
  }

  // A copy that grows independently; tensors can be shared because they are never changed.
  fork() {
    const other = new Cache();
    other.ids = this.ids;
    other.layers = new Map(this.layers);
    return other;
  }
}

// (head, old, d_head) and (head, new, d_head) to (head, old + new, d_head)
function joined(old, more) {
  const [nHeads, n, dHead] = old.shape, m = more.shape[1];
  const y = new Tensor([nHeads, n + m, dHead]);
  for (let h = 0; h < nHeads; h++) {
    y.data.set(old.data.subarray(h * n * dHead, (h + 1) * n * dHead), h * (n + m) * dHead);
    y.data.set(more.data.subarray(h * m * dHead, (h + 1) * m * dHead), (h * (n + m) + n) * dHead);
  }
  return y;
}

export class Transformer {
  // kind: the Python class; configs: {source, target}; weights: a Map from names to Tensors.
  constructor(kind, configs, weights) {
    this.kind = kind;
    this.source = configs.source;
    this.config = configs.target;
    this.weights = weights;
    this.run = (name, value) => value;
    this.known = new Map(); // outputs of layers that need not be computed, by layer name
    this.first = 0; // the first token's position if sinusoidal; null: no positions are added
  }

  encode(ids) {
    const prefix = this.kind === "EncoderDecoderTransformer" ? "source_embedding" : "embedding";
    let x = this.embed(prefix, ids, 0, this.source);
    const sees = (query, key) => isReal(ids[key], this.source);
    const pass = { config: this.source, sees, start: 0 };
    for (let i = 0; i < this.source.n_layers; i++) x = this.layer(`encoder.${i}`, x, pass);
    return this.lastNorm("encoder_norm", x, this.source);
  }

  // Logits at each new position, (new, vocab_size); with a cache, `ids` are only the new ones.
  decode(ids, memory, sourceIds, cache = new Cache()) {
    const both = this.kind === "EncoderDecoderTransformer";
    const start = cache.ids.length, all = [...cache.ids, ...ids], { config } = this;
    const window = config.attention_window ?? all.length;
    const sees = (query, key) =>
      key <= start + query && key > start + query - window && isReal(all[key], config);
    const seesSource = (query, key) => isReal(sourceIds[key], this.source);
    const pass = { config, sees, cache, start };
    const crossing = both && { memory, config, sees: seesSource, cache };
    let y = this.embed(both ? "target_embedding" : "embedding", all, start, config);
    for (let i = 0; i < config.n_layers; i++) y = this.layer(`decoder.${i}`, y, pass, crossing);
    cache.ids = all;
    const logits = this.project("projection", this.lastNorm("decoder_norm", y, config));
    return this.run("logits", logits);
  }

  layer(name, ...inputs) {
    return this.known.get(name) ?? this.block(name, ...inputs);
  }

  part(name) {
    return { weight: this.weights.get(`${name}.weight`), bias: this.weights.get(`${name}.bias`) };
  }

  project(name, x) {
    return linear(x, this.part(name));
  }

  embed(name, ids, start, config) {
    const table = this.weights.get(`${name}.weight`);
    const scale = config.scale_embedding ? Math.sqrt(config.d_model) : 1;
    const x = new Tensor([ids.length - start, config.d_model]);
    for (let i = 0; i < x.rows; i++) x.row(i).set(table.row(ids[start + i]));
    const tokens = this.run(`${name}.tokens`, x.map((value) => value * scale));
    return this.run(`${name}.output`, this.placed(name, tokens, ids, start, config));
  }

  // Adds positions to the tokens' vectors, except rotary ones, which act inside attention.
  placed(name, tokens, ids, start, config) {
    if (config.positions === "rotary" || this.first === null) return tokens;
    const learned = this.weights.get(`${name}.positions.weight`);
    const places = positions(ids, config).slice(start), added = new Tensor(tokens.shape);
    places.forEach((place, i) => {
      const sines = () => sinusoid(this.first + place, config.d_model);
      added.row(i).set(learned ? learned.row(place) : sines());
    });
    return add(tokens, added);
  }

  // `pass` is {config, sees, cache, start}; `crossing`, for cross-attention, has the memory, too.
  block(name, x, pass, crossing = null) {
    const attend = (h) => this.attention(`${name}.self_attention`, h, h, h, pass);
    const cross = (h) =>
      this.attention(`${name}.cross_attention`, h, crossing.memory, crossing.memory, crossing);
    const feed = (h) => this.feedForward(`${name}.feed_forward`, h, pass.config);
    const branch = (point, h, sublayer, norm) =>
      this.run(`${name}.${point}`, this.branch(h, sublayer, `${name}.${norm}`, pass.config));
    if (!crossing) {
      const after = branch("after_attention", x, attend, "norm_1");
      return branch("output", after, feed, "norm_2");
    }
    const own = branch("after_self_attention", x, attend, "norm_1");
    const both = branch("after_cross_attention", own, cross, "norm_2");
    return branch("output", both, feed, "norm_3");
  }

  branch(x, sublayer, norm, config) {
    if (config.norm_position === "post") return this.norm(norm, add(x, sublayer(x)), config);
    return add(x, sublayer(this.norm(norm, x, config)));
  }

  norm(name, x, config) {
    return normalize(x, this.part(name), config);
  }

  lastNorm(name, x, config) {
    return config.norm_position === "pre" ? this.norm(name, x, config) : x;
  }

  attention(name, query, key, value, pass) {
    const queries = this.turned(name, this.heads(`${name}.W_Q`, query, pass), pass);
    const Q = this.run(`${name}.queries`, queries);
    const known = name.endsWith("cross_attention") && pass.cache.layers.get(name);
    const [K, V] = known || this.keysAndValues(name, key, value, pass);
    const scores = this.run(`${name}.scores`, attentionScores(Q, K));
    const weights = this.run(`${name}.weights`, maskedSoftmax(scores, pass.sees));
    const collected = this.run(`${name}.heads`, weightedValues(weights, V));
    return this.project(`${name}.W_O`, mergeHeads(collected));
  }

  keysAndValues(name, key, value, pass) {
    const keys = this.turned(name, this.heads(`${name}.W_K`, key, pass), pass);
    const K = this.run(`${name}.keys`, keys);
    const V = this.run(`${name}.values`, this.heads(`${name}.W_V`, value, pass));
    return pass.cache ? pass.cache.extend(name, K, V) : [K, V];
  }

  heads(matrix, x, { config }) {
    const projected = this.project(matrix, x);
    return splitHeads(projected, (projected.width / config.d_model) * config.n_heads);
  }

  turned(name, x, { config, start }) {
    const turns = config.positions === "rotary" && name.endsWith("self_attention");
    return turns ? rotate(x, start, rotaryFrequencies(x.width, config.rotary_base)) : x;
  }

  feedForward(name, x, config) {
    if (config.activation === "swiglu") {
      const up = this.project(`${name}.W_up`, x);
      const gate = this.project(`${name}.W_gate`, x);
      const hidden = this.run(`${name}.hidden`, gate.map((value, i) => swish(value) * up.data[i]));
      return this.project(`${name}.W_down`, hidden);
    }
    const wide = this.project(`${name}.W_1`, x).map(ACTIVATIONS[config.activation]);
    return this.project(`${name}.W_2`, this.run(`${name}.hidden`, wide));
  }
}

// The model of the lesson on induction: attention only, without norms and feed-forward networks.
// Positions are added to what queries and keys read in every layer, not to the residual stream.
export class AttentionOnlyDecoder extends Transformer {
  placed(name, tokens) {
    return tokens;
  }

  block(name, x, pass) {
    const places = new Tensor(x.shape);
    for (let i = 0; i < x.rows; i++) places.row(i).set(sinusoid(pass.start + i, x.width));
    const placed = add(x, places);
    const attended = this.attention(`${name}.self_attention`, placed, placed, x, pass);
    return this.run(`${name}.output`, add(x, attended));
  }

  turned(name, x) {
    return x;
  }

  lastNorm(name, x) {
    return x;
  }
}

const isReal = (id, config) => config.pad_id === null || id !== config.pad_id;

// Padding takes up no position: the first real token is at 0.
function positions(ids, config) {
  let real = 0;
  return ids.map((id) => Math.max(0, (real += isReal(id, config) ? 1 : 0) - 1));
}

// Runs `read` while quantities are kept in `seen` and replaced, `known` layers are skipped, and
// positions are counted from `first`; returns what `read` returns.
export function watched(
  model, { seen = new Map(), replace = {}, known = new Map(), first = 0 }, read) {
  [model.run, model.known, model.first] = [record(seen, replace), known, first];
  try {
    return read();
  } finally {
    [model.run, model.known, model.first] = [(name, value) => value, new Map(), 0];
  }
}

// A hook that keeps every named quantity in the Map `seen`. If `replace` has a function of that
// name, its result takes the quantity's place.
export function record(seen, replace = {}) {
  return (name, value) => {
    const now = replace[name] ? replace[name](value) : value;
    seen.set(name, now);
    return now;
  };
}
