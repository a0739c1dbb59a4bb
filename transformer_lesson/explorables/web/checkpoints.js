// The model and the tokenizer in a checkpoint of the package, from the file's bytes.
//
//     const { model, tokenizer } = readCheckpoint(bytes);  // a Uint8Array, or a DataView
//     await refuseChanged(bytes);
//
// What is wrong with a file is said in one sentence, the message of an error.

import { AttentionOnlyDecoder, Tensor, Transformer } from "./transformer.js";
import { tokenizerFromJson } from "./tokenizers.js";

const LARGEST = 64; // MB: more would keep a page waiting for seconds
const VERSION = 2; // of the format, as in the package
const MODELS = {
  EncoderOnlyTransformer: Transformer,
  DecoderOnlyTransformer: Transformer,
  EncoderDecoderTransformer: Transformer,
  AttentionOnlyDecoder,
};
const SIZES = ["vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len"];

// Returns {model, tokenizer}; the tokenizer is null where the checkpoint has none.
export function readCheckpoint({ buffer, byteOffset, byteLength }) {
  if (byteLength > LARGEST * 1e6) {
    throw new Error(
      `The model's file has ${Math.ceil(byteLength / 1e6)} MB, but a page reads at most ` +
        `${LARGEST} MB: choose a smaller model.`,
    );
  }
  const { entries, numbers } = parts(new Uint8Array(buffer, byteOffset, byteLength));
  const { model, tokenizer } = description(entries.__metadata__);
  const { source_config: source, target_config: target, config } = model.arguments;
  const configs = { source: source ?? config, target: target ?? source ?? config };
  Object.values(configs).forEach(checkConfig);
  const weights = tied(weightsOf(entries, numbers));
  checkWeights(weights, expectedShapes(model.kind, configs));
  return {
    model: new MODELS[model.kind](model.kind, configs, weights),
    tokenizer: tokenizer && tokenizerFromJson(tokenizer),
  };
}

// Refuses a file that was changed after it was written: the package stores a sum of what is in it.
// A page that comes from another machine without https cannot compute one, and asks nothing.
export async function refuseChanged({ buffer, byteOffset, byteLength }) {
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
  const found = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found !== checksum) throw unreadable("it was changed after it was written");
}

// The facts as Python summed them: without the sum, which is the last, and in ASCII.
function asciiFacts(metadata) {
  const escaped = (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const text = metadata.transformer_lesson.replace(/, "checksum": "\w*"}$/, "}");
  return text.replace(/[^ -~]/g, escaped);
}

const IN_TORCH = { F: "torch.float", BF: "torch.bfloat", I: "torch.int", U: "torch.uint" };

function inTorch(dtype) {
  return String(dtype).replace(/^(BF|F|I|U)(?=\d)/, (kind) => IN_TORCH[kind]);
}

function tuple(shape) {
  const numbers = Array.from(Object(shape));
  return numbers.length === 1 ? `(${numbers[0]},)` : `(${numbers.join(", ")})`;
}

function unreadable(reason) {
  return new Error(
    `The model's file cannot be used, ${reason}: write it again with save_checkpoint.`,
  );
}

// The tensors' names, kinds, shapes and places, and the bytes in which they lie.
function parts(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const length = bytes.length < 8 ? Infinity : Number(view.getBigUint64(0, true));
  if (length > bytes.length - 8) throw unreadable("it is cut off or no safetensors file");
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
  if (!model?.kind || !model.arguments) throw unreadable("it describes no model");
  if (!Object.hasOwn(MODELS, model.kind)) {
    const kinds = Object.keys(MODELS).join(", ");
    throw unreadable(`its model is a ${model.kind}, not one of ${kinds}`);
  }
  return { model, tokenizer, checksum };
}

function checkConfig(config) {
  const wrong = SIZES.find((name) => !(Number.isInteger(config?.[name]) && config[name] > 0));
  if (wrong) throw unreadable(`its ${wrong} is ${config?.[wrong]}, not a whole number above 0`);
}

// A number of 16 bits: sign, exponent and fraction.
function half(bits) {
  const sign = bits >> 15 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = (bits & 1023) / 1024;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction);
}

// How each kind of number becomes 32 bits; bfloat16 is the first half of them.
const NUMBERS = {
  F64: { size: 8, read: (buffer) => Float32Array.from(new Float64Array(buffer)) },
  F32: { size: 4, read: (buffer) => new Float32Array(buffer) },
  F16: { size: 2, read: (buffer) => Float32Array.from(new Uint16Array(buffer), half) },
  BF16: {
    size: 2,
    read: (buffer) => {
      return new Float32Array(Uint32Array.from(new Uint16Array(buffer), (b) => b << 16).buffer);
    },
  },
};

// The model's tensors by name; those of its training stay where they are.
function weightsOf(entries, numbers) {
  const weights = new Map();
  for (const [name, entry] of Object.entries(entries)) {
    if (!name.startsWith("model.")) continue;
    const { dtype, shape, data_offsets: offsets } = Object(entry);
    if (!Object.hasOwn(NUMBERS, dtype)) throw unreadable(`${name} is of the kind ${dtype}`);
    if (!Array.isArray(shape) || !Array.isArray(offsets)) throw unreadable(`${name} has no place`);
    const { size, read } = NUMBERS[dtype];
    const own = numbers.slice(...offsets); // a copy: it begins where numbers may begin
    const n = shape.reduce((a, b) => a * b, 1);
    if (own.length !== n * size) {
      throw unreadable(`${name} has ${own.length} bytes instead of ${n * size}`);
    }
    weights.set(name.slice("model.".length), new Tensor(shape, read(own.buffer)));
  }
  return weights;
}

// A matrix that serves in several places is stored once.
function tied(weights) {
  const first = weights.get("embedding.weight") ?? weights.get("source_embedding.weight");
  const target = weights.get("target_embedding.weight") ?? first;
  const projection = weights.get("projection.weight") ?? target;
  return weights.set("target_embedding.weight", target).set("projection.weight", projection);
}

function checkWeights(weights, expected) {
  for (const [name, shape] of expected) {
    const found = weights.get(name)?.shape;
    if (`${found}` !== `${shape}`) {
      throw unreadable(
        found ? `${name} has the shape ${found} instead of ${shape}` : `it lacks ${name}`,
      );
    }
  }
}

// Name and shape of each weight that the forward pass reads.
function* expectedShapes(kind, { source, target }) {
  const both = kind === "EncoderDecoderTransformer", alone = kind === "AttentionOnlyDecoder";
  const reads = both || kind === "EncoderOnlyTransformer";
  if (reads) yield* stackShapes(both ? "source_embedding" : "embedding", "encoder", source, ONE);
  if (reads && !both) return;
  const layer = alone ? ATTENTION_ALONE : both ? TWO : ONE;
  yield* stackShapes(both ? "target_embedding" : "embedding", "decoder", target, layer);
  yield ["projection.weight", [target.vocab_size, target.d_model]];
}

// What a layer has: its attentions, and how many norms.
const ONE = { attentions: ["self_attention"], norms: ["norm_1", "norm_2"] };
const TWO = {
  attentions: ["self_attention", "cross_attention"],
  norms: ["norm_1", "norm_2", "norm_3"],
};
const ATTENTION_ALONE = { attentions: ["self_attention"], norms: [] };

function* stackShapes(embedding, stack, config, layer) {
  const { vocab_size: n, d_model: d, max_len: maxLen } = config, more = layer.norms.length > 0;
  yield [`${embedding}.weight`, [n, d]];
  if (more && config.positions === "learned") yield [`${embedding}.positions.weight`, [maxLen, d]];
  for (let i = 0; i < config.n_layers; i++) {
    for (const name of layer.attentions) yield* attentionShapes(`${stack}.${i}.${name}`, config);
    if (more) yield* feedForwardShapes(`${stack}.${i}.feed_forward`, config);
    for (const name of layer.norms) yield* normShapes(`${stack}.${i}.${name}`, config);
  }
  if (more && config.norm_position === "pre") yield* normShapes(`${stack}_norm`, config);
}

function* attentionShapes(name, { d_model: d, n_heads: heads, n_kv_heads: kvHeads, bias }) {
  const keys = (d / heads) * (kvHeads ?? heads);
  for (const [matrix, out] of Object.entries({ W_Q: d, W_K: keys, W_V: keys, W_O: d })) {
    yield* linearShapes(`${name}.${matrix}`, out, d, bias);
  }
}

function* feedForwardShapes(name, { d_model: d, d_ff: wide, activation }) {
  const gated = activation === "swiglu";
  const [into, out] = gated ? [["W_gate", "W_up"], "W_down"] : [["W_1"], "W_2"];
  for (const matrix of into) yield* linearShapes(`${name}.${matrix}`, wide, d, !gated);
  yield* linearShapes(`${name}.${out}`, d, wide, !gated);
}

function* normShapes(name, { d_model: d, norm }) {
  yield [`${name}.weight`, [d]];
  if (norm === "layer") yield [`${name}.bias`, [d]];
}

function* linearShapes(name, out, width, bias) {
  yield [`${name}.weight`, [out, width]];
  if (bias) yield [`${name}.bias`, [out]];
}
