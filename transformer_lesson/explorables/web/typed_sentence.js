// Reads typed text: the words that a model knows, and what to say about the rest.

import { words } from "./tokenizers.js";

const MOST_OFFERS = 2; // unknown words that are named; the rest are counted

// The words of a sentence as the vocabulary (a Set) spells them: "The" is read as "the", "doesn't"
// as "does not". Returns {tokens, known, changes, offers}: `known` says for each token whether the
// vocabulary has it; `changes` and `offers` are sentences that tell what was changed and which
// words are similar to unknown ones.
export function readSentence(text, vocabulary, closing) {
  const read = words(text.replace(/\p{C}/gu, (one) => (/\s/.test(one) ? one : "")));
  const spelled = read.map((word) => [word, spelledAs(word, vocabulary)]);
  const tokens = spelled.flatMap(([word, forms]) => (forms.length ? forms : [word]));
  const respelled = spelled.filter(([word, forms]) => forms.length && forms.join(" ") !== word);
  const changes = respelled.length ? [`Read ${respellings(respelled)}.`] : [];
  if (closing && tokens.length && /[\p{L}\p{N}]$/u.test(tokens.at(-1))) {
    tokens.push(closing);
    changes.push(`A “${closing}” was added: every sentence of the corpus ends with one.`);
  }
  const unknown = spelled.filter(([, forms]) => !forms.length).map(([word]) => word);
  return { tokens, known: tokens.map((token) => vocabulary.has(token)), changes,
    offers: offersFor(unknown, vocabulary), near: nearestTo(unknown, vocabulary) };
}

// The first unknown words, each with similar ones, or else the nearest: [word, [known, …]].
const nearestTo = (unknown, vocabulary) => [...new Set(unknown)].slice(0, MOST_OFFERS)
  .filter((word) => /[\p{L}\p{N}]/u.test(word))
  .map((word) => [word, [undefined, 30].map((most) =>
    similarWords(word.slice(0, 30), vocabulary, most)).find(({ length }) => length) ?? []]);

// Notes for below a picture, on words that were respelled or are unknown.
export function notesOn({ changes, offers }) {
  const guess = "For a word that it does not know the model reads <unk>: it can only guess.";
  return [...changes, ...offers, ...(offers.length ? [guess] : [])];
}

function offersFor(unknown, vocabulary) {
  const all = [...new Set(unknown)], more = all.length - MOST_OFFERS;
  const offers = all.slice(0, MOST_OFFERS).map((word) => offerFor(word, vocabulary));
  return more > 0 ? [...offers, more > 1 ? `Nor are ${more} more.` : "Nor is one more."] : offers;
}

// The word as the vocabulary spells it, in one or two tokens; none if it is unknown.
function spelledAs(word, vocabulary) {
  const lower = word.toLowerCase(), capital = lower.replace(/^./u, (one) => one.toUpperCase());
  const form = [word, lower, capital].find((one) => vocabulary.has(one));
  if (form) return [form];
  const stem = lower.replace("’", "'").replace(/n't$/, "");
  return vocabulary.has(stem) && vocabulary.has("not") ? [stem, "not"] : [];
}

function respellings(pairs) {
  const listed = pairs.slice(0, 6).map(([word, forms]) => `“${word}” as “${forms.join(" ")}”`);
  return listed.join(", ") + (pairs.length > 6 ? " and others" : "");
}

function offerFor(word, vocabulary) {
  const short = [...word].slice(0, 30).join(""), isWord = /[\p{L}\p{N}]/u.test(short);
  const near = isWord ? similarWords(short, vocabulary) : [];
  const offered = near.length ? `; similar words that are: ${near.join(", ")}` : "";
  return `“${short}” is not in the vocabulary${offered}.`;
}

// Up to three known words that are a few edits away, nearest first, ties in alphabetical order.
function similarWords(word, vocabulary, most = Math.max(1, Math.floor(word.length / 3))) {
  const lower = word.toLowerCase();
  const all = [...vocabulary].sort().map((known) => [letterEdits(lower, known), known]);
  const close = all.filter(([edits]) => edits <= most).sort(([a], [b]) => a - b);
  return close.slice(0, 3).map(([, known]) => known);
}

// The Levenshtein distance.
function letterEdits(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      next.push(Math.min(next[j] + 1, row[j + 1] + 1, row[j] + (a[i] === b[j] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length];
}

// The ids that the encoder reads: <unk> for unknown words, <eos> at the end.
export function sourceIds(tokenizer, { tokens, known }) {
  const ids = tokens.map((token, i) =>
    known[i] ? tokenizer.vocabulary.get(token) : tokenizer.unkId);
  return [...ids, tokenizer.eosId];
}

const MOST_LETTERS = 1000; // of a text: merging the byte pairs of a long word is slow

// The ids that a model translates or continues, with notes on them, {ids, translates, notes}, or
// what to change in the text. If the vocabulary is not empty, the text is read as a sentence, and
// the result also has its {tokens, known, near}.
export function textToGoOnFrom(typed, vocabulary, model, tokenizer) {
  const text = typed.replace(/\p{Surrogate}/gu, "?"), letters = [...text].length;
  if (letters > MOST_LETTERS) {
    return `The text has ${letters} characters, but there is room for ${MOST_LETTERS}: shorten it.`;
  }
  const translates = model.kind === "EncoderDecoderTransformer";
  const plain = () => [...tokenizer.encode(text), ...(translates ? [tokenizer.eosId] : [])];
  const reading = vocabulary.size ? readSentence(text, vocabulary, ".") :
    readPlain(text, tokenizer);
  const ids = vocabulary.size ? sourceIds(tokenizer, reading) : plain();
  if (ids.length === Number(translates)) return "There is no text to begin with: type some.";
  const writes = model.kind !== "EncoderOnlyTransformer" && !translates;
  const room = model.source.max_len - Number(writes);
  const { tokens, known, near = [] } = reading;
  if (ids.length <= room) return { ids, translates, notes: notesOn(reading), tokens, known, near };
  return `The text has ${ids.length} tokens, but the model has room for ${room}: shorten it.`;
}

// Changes and offers for a text that is read as it is. Only word and character tokenizers have a
// vocabulary; byte pairs can spell any text.
function readPlain(text, { vocabulary, split }) {
  const unknown = vocabulary ? split(text).filter((piece) => !vocabulary.has(piece)) : [];
  const known = unknown.length ? new Set(vocabulary.keys()) : null;
  return { changes: [], offers: known ? offersFor(unknown, known) : [] };
}

// The text in one line; control characters, which an SVG file may not contain, are replaced.
export const inOneLine = (text) => text.replace(/\s+/g, " ").replace(/\p{C}/gu, "�");
