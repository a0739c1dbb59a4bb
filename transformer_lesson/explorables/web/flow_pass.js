// The forward pass of a typed text, up to the token that comes next.

import { sublayersOf } from "./flow_plan.js";
import { remembered } from "./frame.js";
import { generate } from "./generation.js";
import { fromLargest } from "./ranking.js";
import { trace } from "./trace.js";
import { inOneLine, textToGoOnFrom } from "./typed_sentence.js";

const FLOW = { read: 16, written: 12, next: 6 }; // the most tokens that are shown

// The pass that a page's text and number of written tokens ask for, or what to change in the text.
export function flowFor({ text: typed, written }, page, { model, tokenizer }) {
  const vocabulary = new Set(page.model.get("source_words"));
  const text = textToGoOnFrom(typed, vocabulary, model, tokenizer);
  if (typeof text === "string") return text;
  if (text.ids.length > FLOW.read) {
    return `The drawing has room for ${FLOW.read} tokens, and this text has ` +
      `${text.ids.length}: shorten it.`;
  }
  return remembered(page, "flow", [typed, written], () => {
    const start = remembered(page, "start", typed, () => startOf(model, text));
    return { ...flowOf(model, tokenizer, start, written), notes: text.notes };
  });
}

// What stays the same however much is written: what is read and how, {ids, translates, encoded},
// and what the model goes on to write, {start, made}, and {end}, the token that ends it, if one
// does.
function startOf(model, { ids, translates }) {
  const start = translates ? [model.config.bos_id] : ids;
  const encodes = translates || !writes(model);
  const encoded = encodes ? trace(model, () => model.encode(ids)) : undefined;
  if (!writes(model)) return { ids, translates, encoded, start, made: [], end: [] };
  const room = Math.min(FLOW.written, model.config.max_len - start.length);
  const { ids: made, finished } = generate(model, ids, room);
  const end = finished ? [made.pop()] : [];
  return { ids, translates, encoded, start, made, end };
}

const writes = (model) => model.kind !== "EncoderOnlyTransformer";

// Follows the pass that gives the token after those that are written.
function flowOf(model, tokenizer, { ids, translates, encoded, start, made, end }, written) {
  const most = made.length, target = [...start, ...made.slice(0, Math.min(written, most))];
  const pass = () => model.decode(target, translates && encoded.returned, ids);
  const words = (list) => list.map((id) => inOneLine(tokenizer.token(id)));
  const flow = writes(model) ? trace(model, pass, encoded) : encoded;
  return { ...flow, most, full: start.length + most, whole: words([...start, ...made, ...end]),
    writes: writes(model), next: writes(model) ? nextTokens(flow) : [],
    sublayers: sublayersOf(flow.steps, writes(model)), read: words(translates ? ids : target),
    written: words(target), token: (id) => inOneLine(tokenizer.token(id)) };
}

function nextTokens({ steps }) {
  const shares = steps.at(-1).value.row(0);
  return fromLargest([...shares], FLOW.next).map((id) => [id, shares[id]]);
}
