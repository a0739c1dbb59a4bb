// Generation in the page, as in the package's `generation`, for one text at a time, with a cache.
//
//     const { ids, logits } = generate(model, source, 20);             // greedy
//     generate(model, source, 20, { draft: ids });                     // the same, faster
//     const { ids, tree } = beamSearch(model, source, 20, { width: 3 });
//     const probabilities = sampleProbabilities(logits[0], { temperature: 0.5, topK: 10 });

import { Cache } from "./transformer.js";

// The generation of one text: gives the logits for the token after the ids so far.
class DecodingSession {
  constructor(model, promptOrSource, maxNewTokens, draft = []) {
    const translates = model.kind === "EncoderDecoderTransformer";
    this.model = model;
    this.ends = model.config.eos_ids;
    this.start = translates ? [model.config.bos_id] : promptOrSource;
    this.source = promptOrSource;
    this.memory = translates ? model.encode(promptOrSource) : null;
    this.never = model.config.pad_id ?? model.source.pad_id; // <pad> is never written
    this.draft = draft.length ? [...this.start, ...draft.slice(0, maxNewTokens)] : [];
    this.ahead = draft.length ? this.read(this.draft, new Cache()) : null;
    this.foreseen = draft.length > 0; // as long as the text agrees with the draft
  }

  read(ids, cache) {
    return this.model.decode(ids, this.memory, this.source, cache);
  }

  // Logits for the token after ids: from the draft's pass, or else by reading what the cache lacks.
  nextLogits(ids, cache) {
    this.foreseen &&= ids.every((id, i) => id === this.draft[i]);
    const logits = this.foreseen ? this.ahead : this.read(ids.slice(cache.ids.length), cache);
    const last = logits.row(this.foreseen ? ids.length - 1 : logits.rows - 1).slice();
    if (this.never !== null) last[this.never] = -Infinity;
    return last;
  }
}

// Appends the tokens that `choose` picks from the logits until one ends the text, or there are
// maxNewTokens. Returns the new ids and the logits from which each was chosen. A draft of the new
// ids is read in one pass, whose logits are used as long as the chosen tokens agree with the draft;
// `foreseen` says whether that pass read the whole text.
export function generate(
  model, promptOrSource, maxNewTokens, { choose = likeliest, draft = [] } = {}) {
  const session = new DecodingSession(model, promptOrSource, maxNewTokens, draft);
  const ids = [...session.start], logits = [], cache = new Cache();
  let finished = false;
  while (logits.length < maxNewTokens && !finished) {
    logits.push(session.nextLogits(ids, cache));
    ids.push(choose(logits.at(-1)));
    finished = session.ends.includes(ids.at(-1));
  }
  const read = ids.length - Number(finished); // the token that ends a text is not read
  const foreseen = session.foreseen && read === session.draft.length;
  return { ids: ids.slice(session.start.length), logits, finished, foreseen };
}

export const likeliest = (logits) => logits.indexOf(logits.reduce((a, b) => Math.max(a, b)));

// Translates a sentence greedily, up to the model's maximal length.
export function translate(model, tokenizer, sentence) {
  const source = [...tokenizer.encode(sentence), tokenizer.eosId];
  const written = generate(model, source, model.config.max_len - 1);
  return { ...written, source, text: tokenizer.decode(written.ids) };
}

// Keeps the `width` likeliest texts at every step; see the package's `beam_search`. The search ends
// when no running text could win, even if all its tokens up to the last step had probability 1.
//
// `tree` has each step's candidates, best first: {parent, token, logProbability, kept, finished},
// where `parent` is the index of the candidate of the step before that is extended.
export function beamSearch(
  model, promptOrSource, maxNewTokens, { width = 4, lengthPenalty = 0.6 } = {}) {
  const session = new DecodingSession(model, promptOrSource, maxNewTokens), tree = [];
  const score = (beam, n) => lengthNormalized(beam.logProbability, n, lengthPenalty);
  let beams = [{ ids: session.start, logProbability: 0, cache: new Cache() }], running = beams;
  let best = null;
  for (let n = 1; n <= maxNewTokens && running.length; n++) {
    tree.push(candidates(session, beams, width));
    beams = tree.at(-1).slice(0, width).map(({ parent, token, logProbability, finished }) => {
      const { ids, cache } = beams[parent];
      return { ids: [...ids, token], logProbability, finished, cache: cache.fork() };
    });
    running = beams.filter((beam) => !beam.finished);
    for (const beam of beams) {
      const better = beam.finished && !(best?.score >= score(beam, n));
      if (better) best = { ...beam, score: score(beam, n) };
    }
    if (running.length && best?.score >= score(running[0], maxNewTokens)) break;
  }
  const { ids, logProbability, finished } = best ?? running[0];
  return { ids: ids.slice(session.start.length), logProbability, finished, tree };
}

// Extends each running beam by its `width` best tokens: no others can be among the best overall.
function candidates(session, beams, width) {
  const extended = beams.flatMap((beam, parent) => {
    if (beam.finished) return [];
    const logProbabilities = logSoftmax(session.nextLogits(beam.ids, beam.cache));
    const tokens = ranked(logProbabilities, width);
    const possible = tokens.filter((token) => logProbabilities[token] > -Infinity);
    return possible.map((token) =>
      ({ parent, token, logProbability: beam.logProbability + logProbabilities[token] }));
  });
  extended.sort((a, b) => b.logProbability - a.logProbability);
  return extended.map((one, i) => {
    const kept = i < width;
    return { ...one, kept, finished: kept && session.ends.includes(one.token) };
  });
}

// Makes texts of different lengths comparable: log P / ((5 + length) / 6)^penalty.
export const lengthNormalized = (logProbability, length, lengthPenalty) =>
  logProbability / ((5 + length) / 6) ** lengthPenalty;

// The ids of the tokens with the highest logits, highest first; ties in order of id.
function ranked(logits, count = logits.length) {
  const least = new Float64Array(logits).sort()[Math.max(0, logits.length - count)];
  const best = [...logits.keys()].filter((id) => logits[id] >= least);
  return best.sort((a, b) => logits[b] - logits[a] || a - b).slice(0, count);
}

export const softmax = (logits) => logSoftmax(logits).map(Math.exp);

export function logSoftmax(logits) {
  const largest = logits.reduce((a, b) => Math.max(a, b));
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit - largest), 0);
  const shift = largest + Math.log(total);
  return new Float64Array(logits).map((logit) => logit - shift);
}

// Keeps the logits of these tokens and sets the others to -Infinity: softmax gives them 0.
function only(logits, tokens) {
  const kept = new Float64Array(logits.length).fill(-Infinity);
  for (const token of tokens) kept[token] = logits[token];
  return kept;
}

export const topKFilter = (logits, k) => only(logits, ranked(logits, k));

// Keeps the fewest tokens, from the likeliest down, whose probabilities add up to p or more.
export function topPFilter(logits, p) {
  const probabilities = softmax(logits);
  let before = 0;
  const kept = ranked(logits).filter((token) => {
    before += probabilities[token];
    return p === 1 || before - probabilities[token] < p;
  });
  return only(logits, kept);
}

const COLDEST = 1e-30; // a lower temperature counts as this one

// The distribution to draw from, after temperature, topK and topP, in this order.
export function sampleProbabilities(logits, { temperature = 1, topK = null, topP = null }) {
  const largest = logits.reduce((a, b) => Math.max(a, b));
  const degrees = Math.max(temperature, COLDEST);
  let kept = new Float64Array(logits).map((logit) => (logit - largest) / degrees);
  if (topK !== null) kept = topKFilter(kept, topK);
  if (topP !== null) kept = topPFilter(kept, topP);
  return softmax(kept);
}

// The token at which the running sum of probabilities passes `uniform`, a number in [0, 1).
export function draw(probabilities, uniform) {
  const total = probabilities.reduce((a, b) => a + b);
  let sum = 0;
  return probabilities.findIndex((probability) => (sum += probability) > uniform * total);
}
