// Reads the model and the tokenizer from the bytes of a checkpoint of the package.
//
//     await refuseChanged(bytes);  // a Uint8Array, or a DataView
//     const { model, tokenizer } = readCheckpoint(bytes);
//
// If a file cannot be used, an error says why in one sentence. The contents of a file that was not
// changed are trusted: the package checked them when it wrote it.

import { AttentionOnlyDecoder, Tensor, Transformer } from "./transformer.js";
import { tokenizerFromJson } from "./tokenizers.js";

const LARGEST = 64; // MB: reading more would take seconds
const VERSION = 2; // of the format, as in the package
const MODELS = {
  EncoderOnlyTransformer: Transformer,
  DecoderOnlyTransformer: Transformer,
  EncoderDecoderTransformer: Transformer,
  AttentionOnlyDecoder };

// Returns {model, tokenizer}; the tokenizer is null where the checkpoint has none.
export function readCheckpoint({ buffer, byteOffset, byteLength }) {
  const { entries, numbers } = parts(new Uint8Array(buffer, byteOffset, byteLength));
  const { model, tokenizer } = description(entries.__metadata__);
  const { source_config: source, target_config: target, config } = model.arguments;
  const configs = { source: source ?? config, target: target ?? source ?? config };
  const weights = tied(weightsOf(entries, numbers));
  return { model: new MODELS[model.kind](model.kind, configs, weights),
    tokenizer: tokenizer && tokenizerFromJson(tokenizer) };
}

// Refuses a file that is too large, or that was changed after it was written: the package stores a
// checksum in it. A page served from another machine over plain HTTP cannot compute checksums and
// skips that test.
export async function refuseChanged({ buffer, byteOffset, byteLength }) {
  if (byteLength > LARGEST * 1e6) {
    throw new Error(`The model's file is ${Math.ceil(byteLength / 1e6)} MB, but a page reads at ` +
      `most ${LARGEST} MB: choose a smaller model.`);
  }
  if (!globalThis.crypto?.subtle) return;
  const { entries, numbers } = parts(new Uint8Array(buffer, byteOffset, byteLength));
  const { __metadata__: metadata, ...tensors } = entries, { checksum } = description(metadata);
  const names = Object.keys(tensors).sort();
  const summed = names.flatMap((name) => {
    const { dtype, shape, data_offsets: offsets } = Object(tensors[name]);
    const own = numbers.subarray(...Array.from(Object(offsets)));
    return [`${name} ${inTorch(dtype)} ${tuple(shape)}`, own];
  });
  const all = await new Blob([asciiFacts(metadata), ...summed]).arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", all));
  const computed = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (computed !== checksum) throw unreadable("it was changed after it was written");
}

// The metadata as Python hashed it: without the checksum, which comes last, and in ASCII.
function asciiFacts(metadata) {
  const escaped = (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const text = metadata.transformer_lesson.replace(/, "checksum": "\w*"}$/, "}");
  return text.replace(/[^ -~]/g, escaped);
}

const IN_TORCH = { F: "torch.float", BF: "torch.bfloat", I: "torch.int", U: "torch.uint" };
const inTorch = (dtype) => String(dtype).replace(/^(BF|F|I|U)(?=\d)/, (kind) => IN_TORCH[kind]);

function tuple(shape) {
  const numbers = Array.from(Object(shape));
  return numbers.length === 1 ? `(${numbers[0]},)` : `(${numbers.join(", ")})`;
}

const unreadable = (reason) =>
  new Error(`The model's file cannot be used, ${reason}: write it again with save_checkpoint.`);

// The header's entries (each tensor's dtype, shape and offsets) and the bytes after the header.
function parts(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const length = bytes.length < 8 ? Infinity : Number(view.getBigUint64(0, true));
  if (length > bytes.length - 8) throw unreadable("it is cut off or not a safetensors file");
  const entries = json(new TextDecoder().decode(bytes.subarray(8, 8 + length)), "header");
  return { entries, numbers: bytes.subarray(8 + length) };
}

function json(text, what) {
  try {
    return Object(JSON.parse(text));
  } catch {
    throw unreadable(`its ${what} is not JSON`);
  }
}

function description(metadata) {
  const text = metadata?.transformer_lesson;
  if (text === undefined) throw unreadable("it holds another program's tensors");
  const { version, model, tokenizer, checksum } = json(text, "description");
  if (version !== VERSION) {
    throw unreadable(`it has version ${version} of the format, not ${VERSION}`);
  }
  return { model, tokenizer, checksum };
}

// The value of a half-precision number.
function half(bits) {
  const sign = bits >> 15 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = (bits & 1023) / 1024;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction);
}

// How each dtype becomes float32; a bfloat16 is the upper half of one.
const NUMBERS = {
  F64: (buffer) => Float32Array.from(new Float64Array(buffer)),
  F32: (buffer) => new Float32Array(buffer),
  F16: (buffer) => Float32Array.from(new Uint16Array(buffer), half),
  BF16: (buffer) =>
    new Float32Array(Uint32Array.from(new Uint16Array(buffer), (bits) => bits << 16).buffer) };

// The model's tensors by name, without the training state's.
function weightsOf(entries, numbers) {
  const weights = new Map();
  for (const [name, entry] of Object.entries(entries)) {
    if (!name.startsWith("model.")) continue;
    const { dtype, shape, data_offsets: offsets } = entry;
    const { buffer } = numbers.slice(...offsets); // a copy, which is aligned
    weights.set(name.slice("model.".length), new Tensor(shape, NUMBERS[dtype](buffer)));
  }
  return weights;
}

// Tied matrices are stored once.
function tied(weights) {
  const first = weights.get("embedding.weight") ?? weights.get("source_embedding.weight");
  const target = weights.get("target_embedding.weight") ?? first;
  const projection = weights.get("projection.weight") ?? target;
  return weights.set("target_embedding.weight", target).set("projection.weight", projection);
}
