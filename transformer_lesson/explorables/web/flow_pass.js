// The forward pass over a typed text, up to the token that comes next.

import { remembered } from "./frame.js";
import { generate, likeliest, softmax } from "./generation.js";
import { firstLargest, fromLargest } from "./ranking.js";
import { isInStream, trace } from "./trace.js";
import { Tensor } from "./transformer.js";
import { inOneLine, textToGoOnFrom } from "./typed_sentence.js";

const FLOW = { read: 16, written: 12, rival: 0.05 }; // the most tokens shown; a real chance

// The pass over a page's text and the tokens written so far, or what to change in the text.
export function flowFor({ text: typed, written, chosen = [] }, page, { model, tokenizer }) {
  const vocabulary = new Set(page.model.get("source_words"));
  const text = textToGoOnFrom(typed, vocabulary, model, tokenizer);
  if (typeof text === "string") return text;
  if (text.ids.length > FLOW.read) {
    return `The drawing has room for ${FLOW.read} tokens, and this text has ` +
      `${text.ids.length}: shorten it.`;
  }
  return remembered(page, "flow", [typed, written, chosen], () => {
    const start = remembered(page, "start", [typed, chosen], () => startOf(model, text, chosen));
    const flow = flowOf(model, tokenizer, start, written), { notes, near, tokens, known } = text;
    const struck = (i) => Boolean(tokens && flow.translates && known[i] === false);
    const chips = flow.read.map((word, i) => (struck(i) ? inOneLine(tokens[i]) : word));
    return { ...flow, notes, near, chips, struck };
  });
}

// What does not depend on how many tokens are shown: the input, {ids, translates, encoded}; what
// the model writes after `start`, first the `chosen` tokens, {output}; and the token that ends it,
// if any, {end}.
function startOf(model, { ids, translates }, chosen) {
  const start = translates ? [model.config.bos_id] : ids;
  const encodes = translates || !writes(model);
  const encoded = encodes ? trace(model, () => model.encode(ids)) : undefined;
  if (!writes(model)) return { ids, translates, encoded, start, output: [], end: [], doubts: [] };
  const given = [...chosen], doubts = [], choose = (logits) => {
    doubts.push(doubtOf([...softmax(logits)]));
    const id = given.shift();
    return id < logits.length ? id : likeliest(logits);
  };
  const room = Math.min(FLOW.written, model.config.max_len - start.length);
  const { ids: output, finished } = generate(model, ids, room, { choose });
  const end = finished ? [output.pop()] : [];
  return { ids, translates, encoded, start, output, end, doubts };
}

// The entropy of a distribution, in nats, and its second largest share.
const doubtOf = (shares) => ({ rival: shares[fromLargest(shares, 2)[1]],
  entropy: -shares.reduce((sum, one) => sum + (one && one * Math.log(one)), 0) });

// Where a model hesitates most: {text, written, entropy, rival}, in this text, or if no second word
// has a real chance there, in one of the `others`.
export function mostDoubtful(page, { model, tokenizer }, text, others) {
  const vocabulary = new Set(page.model.get("source_words"));
  const most = (texts) => texts.flatMap((one) =>
    startOf(model, textToGoOnFrom(one, vocabulary, model, tokenizer), []).doubts.map((doubt, i) =>
      ({ text: one, written: i, ...doubt }))).reduce((a, b) => (b.entropy > a.entropy ? b : a));
  const here = most([text]);
  return here.rival < FLOW.rival && others.length ? most(others) : here;
}

const writes = (model) => model.kind !== "EncoderOnlyTransformer";

// Traces the pass that predicts the token after those written so far.
function flowOf(model, tokenizer, begun, written) {
  const { ids, translates, encoded, start, output, end, doubts } = begun;
  const most = output.length, target = [...start, ...output.slice(0, Math.min(written, most))];
  const pass = () => model.decode(target, translates && encoded.returned, ids);
  const token = (id) => inOneLine(tokenizer.token(id)), words = (list) => list.map(token);
  const flow = writes(model) ? trace(model, pass, encoded) : encoded;
  const read = translates ? ids : target;
  return { ...flow, doubts, most, translates, whole: words([...start, ...output, ...end]),
    full: start.length + most, writes: writes(model), sublayers: sublayersOf(flow.steps,
      writes(model)), read: words(read), written: words(target), token,
    ids: { read, written: target }, given: start.length, output, ends: model.config.eos_ids };
}

const SUBLAYER = /^(\w+)\.(\d+)\.(self_attention|cross_attention|feed_forward)\./;

// The sub-layers in the order of computation: {key, kind, stack, block, lane, steps}, where `steps`
// are the indices of their quantities.
function sublayersOf(steps, writes) {
  const sublayers = [];
  let waiting = []; // norms that come before their sub-layer
  steps.forEach(({ name }, i) => {
    if (/\.norm_\d$/.test(name)) return waiting.push(i);
    const key = keyOf(name) ?? sublayers.at(-1).key;
    if (sublayers.at(-1)?.key !== key) sublayers.push({ ...named(key, writes), steps: [] });
    sublayers.at(-1).steps.push(...waiting, i);
    waiting = [];
  });
  return sublayers;
}

// The key of a quantity's sub-layer; null if it is the same as for the quantity before.
function keyOf(name) {
  if (name.includes("embedding.")) return name.split(".")[0];
  if (/^(decoder_norm|logits|probabilities)/.test(name)) return "next";
  return SUBLAYER.exec(name)?.[0].slice(0, -1) ?? null;
}

function named(key, writes) {
  const [, stack, number, kind] = SUBLAYER.exec(`${key}.`) ?? [];
  const reads = /^(source|encoder)/.test(key) || (key === "embedding" && !writes);
  return { key, kind: kind ?? (key === "next" ? "next" : "embedding"), stack,
    block: number === undefined ? null : Number(number), lane: reads ? "read" : "written" };
}

const DOES = { embedding: ["enters"], self_attention: ["looks"], cross_attention: ["reads"],
  feed_forward: ["thinks"], next: ["answers"] };

// What Play and Step show one after the other: the sub-layers in the order of computation.
export const beatsOf = ({ sublayers }) => sublayers.flatMap(({ kind, lane, block }) =>
  [...(kind === "self_attention" && lane === "written" ? ["keys"] : []), ...DOES[kind]]
    .map((does) => ({ does, lane, block, key: `${lane} ${block} ${does}` })));

const HEADINGS = { embedding: "embedding", feed_forward: "thinks", cross_attention: "reads" };

export const headingOf = ({ kind, lane }) =>
  HEADINGS[kind] ?? (lane === "read" ? "looks" : "looks back");

// The stream at one row after a sub-layer.
export const streamBehind = ({ steps }, sublayer, row) =>
  steps[sublayer.steps.findLast((i) => isInStream(steps[i].name))].value.row(row);

// The probabilities of all tokens if the output projection read this state of the stream.
export function sharesRead({ model }, state) {
  const last = model.lastNorm("decoder_norm", new Tensor([1, state.length], state), model.config);
  return [...softmax(model.project("projection", last).row(0))];
}

// The token that would be written from this state.
export function saidBy(flow, state) {
  const shares = sharesRead(flow, state), best = firstLargest(shares);
  return { word: flow.token(best), share: shares[best] };
}
