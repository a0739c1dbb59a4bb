// What the axes of each quantity of a forward pass are, and what happened there.

import { lastPart } from "./trace.js";

const AXES = {
  queries: ["head", "query", "d_head"], keys: ["head", "key", "d_head"],
  values: ["head", "key", "d_head"], scores: ["head", "query", "key"],
  weights: ["head", "query", "key"], heads: ["head", "query", "d_head"],
  hidden: ["token", "d_ff"], logits: ["token", "vocab_size"],
  probabilities: ["last token", "vocab_size"] };

export const axesOf = ({ name }) => AXES[lastPart(name)] ?? ["token", "d_model"];

const WHAT = {
  tokens: "Each id became its row of the embedding table.",
  queries: "What each token asks for, cut into heads.",
  keys: "What each token offers to be found by, cut into heads.",
  values: "What each token hands over where it is looked at, cut into heads.",
  scores: "Each query meets each key; the numbers of a head are summed away.",
  weights: "The scores become shares of 1, for each query by itself.",
  heads: "Each query collects the values by its weights.",
  W_O: "The heads are joined and mapped back to the stream's width.",
  hidden: "Each token by itself is widened and activated.",
  W_2: "The hidden layer is mapped back to the stream's width.",
  W_down: "The hidden layer is mapped back to the stream's width.",
  logits: "One number for each token of the vocabulary, at each position.",
  probabilities: "The last row of logits, as shares of 1: by them the next token is chosen." };

export function whatOf({ name }) {
  const last = lastPart(name);
  if (WHAT[last]) return WHAT[last];
  if (last === "output" && name.includes("embedding")) return "Each place was added to its token.";
  if (last === "output" || last.startsWith("after_")) return "What was found joins the stream.";
  return "Each token's numbers are shifted and scaled to a common size.";
}
