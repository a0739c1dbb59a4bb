// The package's tokenizers, from the JSON in a checkpoint: the same ids, the same text.
//
//     const tokenizer = tokenizerFromJson(json);
//     const ids = tokenizer.encode("the child opens the window .");
//     const text = tokenizer.decode(ids);

const SPECIAL_TOKENS = ["<pad>", "<bos>", "<eos>", "<unk>"];

// Python's \w and \s: letters, numbers and "_", but no combining marks
const WORD = /[\p{L}\p{N}_]+(?:['’][\p{L}\p{N}_]+)*|[^\p{L}\p{N}_\p{White_Space}\x1c-\x1f]/gu;

// Splits a text into words and punctuation marks; only white space is dropped.
export const words = (text) => text.match(WORD) ?? [];

// A character that a figure cannot show, as Python writes it: "\n", "\x1b", "\u200b".
function escaped(character) {
  const short = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[character];
  const code = character.codePointAt(0).toString(16);
  const [letter, digits] = code.length < 3 ? ["x", 2] : code.length < 5 ? ["u", 4] : ["U", 8];
  return short ?? `\\${letter}${code.padStart(digits, "0")}`;
}

// A text as a figure shows it: a space as "␣", a line break as "\n".
export const visible = (text) => text.replaceAll(" ", "␣").replace(/[\p{C}\p{Z}]/gu, escaped);

// The base of the three tokenizers, which add encode(text) and toText(ids). `texts` holds each
// token's text, in order of id.
class Tokenizer {
  padId = 0;
  bosId = 1;
  eosId = 2;
  unkId = 3;

  constructor(texts) {
    this.texts = texts;
  }

  get vocabSize() {
    return this.texts.length;
  }

  decode(ids) {
    const silent = [this.padId, this.bosId, this.eosId];
    return this.toText(ids.filter((id) => !silent.includes(id)));
  }

  token(id) {
    return visible(this.texts[id]);
  }
}

export class WordTokenizer extends Tokenizer {
  separator = " ";

  constructor(texts) {
    super(texts);
    this.vocabulary = new Map(texts.map((text, id) => [text, id]));
  }

  split(text) {
    return words(text);
  }

  encode(text) {
    return this.split(text).map((token) => this.vocabulary.get(token) ?? this.unkId);
  }

  toText(ids) {
    return ids.map((id) => this.texts[id]).join(this.separator);
  }
}

export class CharacterTokenizer extends WordTokenizer {
  separator = "";

  split(text) {
    return [...text];
  }
}

// The printable character that stands for each of the 256 bytes in GPT-2's byte-level BPE.
const CHARACTER_OF_BYTE = new Map();
const isPlain = (byte) => (byte > 160 ? byte !== 173 : byte > 32 && byte < 127);
for (let byte = 0; byte < 256; byte++) {
  if (isPlain(byte)) CHARACTER_OF_BYTE.set(byte, String.fromCharCode(byte));
}
for (let byte = 0, next = 256; byte < 256; byte++) {
  if (!isPlain(byte)) CHARACTER_OF_BYTE.set(byte, String.fromCharCode(next++));
}
const BYTE_OF_CHARACTER = new Map([...CHARACTER_OF_BYTE].map(([byte, one]) => [one, byte]));
const bytesOf = (piece) => Uint8Array.from(piece, (one) => BYTE_OF_CHARACTER.get(one));
const WHOLE_CHARACTERS = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

// The bytes decoded as UTF-8, or null if they are invalid.
function characterOf(bytes) {
  try {
    return WHOLE_CHARACTERS.decode(bytes);
  } catch {
    return null;
  }
}

// The bytes decoded as UTF-8; one that belongs to no whole character is written like "\xc3".
function readable(bytes) {
  let text = "";
  for (let i = 0, n; i < bytes.length; i += n ?? 1) {
    n = [1, 2, 3, 4].find((length) => characterOf(bytes.subarray(i, i + length)) !== null);
    text += n ? characterOf(bytes.subarray(i, i + n)) : `\\x${bytes[i].toString(16)}`;
  }
  return text;
}

// GPT-2's pieces: endings like "'s", words, numbers and punctuation, with the space before them.
const PIECE = new RegExp(
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\p{White_Space}\\p{L}\\p{N}]+" +
    "|\\p{White_Space}+(?!\\P{White_Space})|\\p{White_Space}+",
  "gu");

export class BytePairTokenizer extends Tokenizer {
  constructor(merges) {
    const joined = merges.map((merge) => merge.replace(" ", ""));
    const pieces = [...new Set([...SPECIAL_TOKENS, ...CHARACTER_OF_BYTE.values(), ...joined])];
    super(pieces.map((piece) => readable(bytesOf(piece))));
    this.pieces = pieces;
    this.ids = new Map(pieces.map((piece, id) => [piece, id]));
    this.ranks = new Map(merges.map((merge, rank) => [merge, rank]));
  }

  encode(text) {
    const parts = this.split(text).flatMap((piece) => this.merged(piece));
    return parts.map((part) => this.ids.get(part));
  }

  // Merges never cross pieces; each is a list of its bytes, one character per byte.
  split(text) {
    const encoder = new TextEncoder();
    return (text.match(PIECE) ?? []).map((piece) =>
      Array.from(encoder.encode(piece), (byte) => CHARACTER_OF_BYTE.get(byte)));
  }

  // Repeatedly merges the adjacent pair that was learned first, the leftmost of equals.
  merged(parts) {
    const rank = (i) => this.ranks.get(`${parts[i]} ${parts[i + 1]}`) ?? Infinity;
    const ranks = parts.slice(1).map((_, i) => rank(i));
    for (;;) {
      let best = 0;
      for (let i = 1; i < ranks.length; i++) if (ranks[i] < ranks[best]) best = i;
      if (ranks.length === 0 || ranks[best] === Infinity) return parts;
      parts.splice(best, 2, parts[best] + parts[best + 1]);
      ranks.splice(best, 1);
      if (best > 0) ranks[best - 1] = rank(best - 1);
      if (best < ranks.length) ranks[best] = rank(best);
    }
  }

  toText(ids) {
    const bytes = ids.flatMap((id) => [...bytesOf(this.pieces[id])]);
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
  }
}

const TOKENIZERS = { WordTokenizer, CharacterTokenizer, BytePairTokenizer };

// Returns the tokenizer that wrote this text with `to_json`.
export function tokenizerFromJson(text) {
  const { kind, learned } = JSON.parse(text);
  return new TOKENIZERS[kind](learned);
}
