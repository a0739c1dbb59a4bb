// The forward pass of an attention-only decoder in which each path from one part to another can be
// cut: `interpretability.circuits.EdgeGraph` in the page, for one row at a time.

import { attentionScores, linear, maskedSoftmax, sinusoid, Tensor,
  weightedValues, } from "../../explorables/web/transformer.js";

// A model as its heads by name, and for each receiver the senders whose edges lead there.
export function circuitOf(model, edges) {
  const { n_layers: layers, n_heads: count } = model.config, heads = new Map(), into = new Map();
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < count; head++) {
      heads.set(`${layer}.${head}`, ownMatrices(model, `decoder.${layer}.self_attention`, head));
    }
  }
  for (const [sender, receiver] of edges) {
    into.set(receiver, [...(into.get(receiver) ?? []), sender]);
  }
  return { model, heads, into };
}

// One head's part of the four matrices, as `linear` takes them.
function ownMatrices(model, attention, head) {
  const { d_model: width, n_heads: count } = model.config, own = width / count;
  const [W_Q, W_K, W_V] = ["W_Q", "W_K", "W_V"].map((name) => {
    const { weight } = model.part(`${attention}.${name}`), first = head * own * width;
    return { weight: new Tensor([own, width], weight.data.subarray(first, first + own * width)) };
  });
  const whole = model.part(`${attention}.W_O`).weight, W_O = new Tensor([width, own]);
  for (let i = 0; i < width; i++) {
    W_O.row(i).set(whole.row(i).subarray(head * own, (head + 1) * own));
  }
  return { W_Q, W_K, W_V, W_O: { weight: W_O } };
}

export const edgeName = ([sender, receiver]) => `${sender} ${receiver}`;

// Reads one row with these edges cut: their receivers read the senders' means instead. Returns the
// logits and what each sender sends. A head whose key is in `known` is not computed again; the key
// names everything that leads to the head.
export function readCut({ model, heads, into }, ids, cut, means, known = new Map()) {
  const gone = new Set(cut.map(edgeName)), sent = new Map(), n = ids.length;
  const width = model.config.d_model;
  const isCut = (sender, receiver) => gone.has(edgeName([sender, receiver]));
  const read = (receiver, places = null) => {
    const total = new Tensor([n, width]), { data } = total;
    for (const sender of into.get(receiver)) {
      const x = isCut(sender, receiver) ? means.get(sender) : sent.get(sender).x.data;
      for (let i = 0; i < data.length; i++) data[i] += x[i];
    }
    for (let i = 0; places && i < data.length; i++) data[i] += places[i];
    return total;
  };
  const keyOf = (name) => ["q", "k", "v"].flatMap((part) => into.get(`${name}.${part}`)
    .filter((sender) => !isCut(sender, `${name}.${part}`))
    .map((sender) => part + sent.get(sender).key)).join();
  sent.set("embedding", { key: "e", x: model.embed("embedding", ids, 0, model.config) });
  for (const [name, matrices] of heads) {
    const key = `${name}(${keyOf(name)})`;
    sent.set(name, known.get(key) ?? { key, ...readHead(name, matrices, read) });
  }
  return { sent, logits: model.project("projection", read("logits")) };
}

// What a head sends, and its weights, shape (1, query, key). Positions reach queries and keys only.
function readHead(name, { W_Q, W_K, W_V, W_O }, read) {
  const values = linear(read(`${name}.v`), W_V), [n, own] = values.shape;
  const places = sinusoidsOf(n, W_O.weight.shape[0]);
  const [Q, K] = [["q", W_Q], ["k", W_K]].map(([part, matrix]) =>
    new Tensor([1, n, own], linear(read(`${name}.${part}`, places), matrix).data));
  const weights = maskedSoftmax(attentionScores(Q, K), (query, key) => key <= query);
  const V = new Tensor([1, n, own], values.data);
  const mixed = new Tensor([n, own], weightedValues(weights, V).data);
  return { x: linear(mixed, W_O), weights };
}

const knownPlaces = new Map(); // sinusoids by length and width

function sinusoidsOf(n, width) {
  const name = `${n} ${width}`;
  if (!knownPlaces.has(name)) {
    const rows = Array.from({ length: n }, (_, i) => [...sinusoid(i, width)]);
    knownPlaces.set(name, Float32Array.from(rows.flat()));
  }
  return knownPlaces.get(name);
}
