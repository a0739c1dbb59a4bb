// What each stop of the tour says: its title and sentence, its task, and what one saw.

import { countOf, fitted, fixed, textWidth } from "./draw.js";
import { attentionAt, drawStreamsOfAttention } from "./flow_attention.js";
import { drawInside } from "./flow_block.js";
import { drawLikeliest, drawVectors } from "./flow_rows.js";
import { drawStage, meanWeights, percent } from "./flow_stage.js";
import { softmax } from "./generation.js";
import { firstLargest } from "./ranking.js";

const quoted = (word) => `“${fitted(word, 90)}”`;

function wholeTitle({ writes, said, next, n, pending, english }) {
  const who = english ? "A real English → German translator" : `After “${lately(said)}”`;
  if (!writes) return `It reads ${n.words} tokens, and each becomes a vector of ${n.d} numbers`;
  if (pending) return english ? `${who}: which word comes next?` : `${who}, what comes next?`;
  return `${who} ${english ? "writes" : "comes"} “${next.word}” (${percent(next.share)})`;
}

// The last words of a text, as many as fit.
const lately = (said) => {
  const words = said.split(" "), wide = (from) => textWidth(words.slice(from).join(" "), 16, 600);
  const from = words.findIndex((_, i) => wide(i) < 165 || i === words.length - 1);
  return fitted(`${from ? "… " : ""}${words.slice(from).join(" ")}`, 260);
};

function wholeSentence(look) {
  const { writes, lit, n, best, read, written, beats, beat, pending, said } = look;
  if (pending) return `${beat + 1} of ${beats.length}: ${sayBeat(look, beats[beat])}`;
  if (!writes) return `${n.words} tokens in, as many vectors out: each knows of the others.`;
  const looks = lit ? `“${written.at(-1)}” looks most at “${read[lit.j]}”: ` +
    `${lit.share.toFixed(2)} of its attention in the last block, mean of ${lit.heads} heads. ` : "";
  const likely = best.slice(0, 3).map(({ word, share }) => `“${word}” (${percent(share)})`);
  return `${said ? `After “${fitted(said, 330)}”: ` : ""}${looks}Next: ${likely.join(", ")}.`;
}

// What happens at a beat of Play.
function sayBeat(look, { does, lane, block }) {
  const word = quoted(look.written.at(-1)), encodes = lane === "read";
  const most = (kind, words) => { // in the mean over the heads
    const shares = meanWeights(look, look.sublayers.find((one) => one.lane === "written" &&
      one.block === block && one.kind === kind).key).at(-1), j = firstLargest(shares);
    return `most at “${words[j]}” (${shares[j].toFixed(2)}).`;
  };
  if (does === "enters") {
    return encodes ? `${look.n.words} words enter the encoder, each as ${look.n.d} numbers.` :
      `${word} enters the decoder as ${look.n.d} numbers.`;
  }
  return `${encodes ? "Encoder" : "Decoder"}, block ${block}: ${{
    keys: () => `${word} makes a query, and every word so far has a key.`,
    looks: () => encodes ? "every word looks at all the others." :
      `${word} looks back, ${most("self_attention", look.written)}`,
    reads: () => `${word} reads the encoder's output, ${most("cross_attention", look.read)}`,
    thinks: () => `the feed-forward network works on ${encodes ? "each word" : word} alone.`,
  }[does]()}`;
}

const looksAt = ({ word, other, weight, head }) => `“${word}” looks most at “${other}” ` +
  `(${weight.toFixed(2)} in head ${head})`;
const YES_NO = ["yes", "no"], yesNo = (is) => YES_NO[is ? 0 : 1];

// What its place adds to the newest word.
function placeAdded({ written, byName, sublayers }) {
  const { key } = sublayers.findLast(({ kind }) => kind === "embedding");
  const row = (name) => byName.get(`${key}.${name}`).value.row(written.length - 1);
  const word = row("tokens");
  return [...row("output")].map((one, d) => one - word[d]);
}

// The step in a block after which the next word's share has risen most: {name, from, to}.
function jumpOf({ rows }) {
  const all = rows.filter(({ best }) => best);
  const i = firstLargest(all.slice(1).map((one, k) => one.share - all[k].share));
  const { name } = rows[rows.indexOf(all[i + 1]) - 1];
  return { name, from: all[i].share, to: all[i + 1].share };
}

const writesOn = (state, before) => state.written !== before.written || state.text !== before.text;

// The tour: each stop's name, title and sentence, the function that draws it, and what it asks for.
export const TOUR = [
  { name: "whole", title: wholeTitle, says: wholeSentence, draw: drawStage },
  { name: "words", draw: drawVectors,
    title: ({ n }) => `Each word becomes ${n.d} numbers, the same wherever it stands`,
    says: () => "A word's id picks a row of a table that training filled. Blue is above 0.",
    asks: () => "Guess, then change a word of the text: which rows are new?",
    guess: () => [["its own", "all"], ({ read, ids }, { ids: before }) =>
      read.every((_, i) => ids.read[i] !== before[i]) ? "all" : "its own"],
    done: (a, b) => a.text !== b.text,
    sees: ({ read, ids, n }, before) => {
      const fresh = read.filter((_, i) => ids.read[i] !== before.ids[i]);
      return `New: ${fresh.map(quoted).join(", ") || "no row"}. The other ${
        n.words - fresh.length} of ${n.words} rows are the same to the last digit.`;
    } },
  { name: "places", draw: drawVectors,
    title: () => "Each place adds a pattern of its own, so that no two rows agree",
    says: () => "Word plus place enters the blocks, unless queries and keys bring the place in.",
    asks: () => "Guess, then Write on: does its place add only numbers from −1 to 1?",
    guess: () => [YES_NO, (look) => yesNo(placeAdded(look).every((one) => Math.abs(one) <= 1))],
    done: writesOn,
    sees: (look) => {
      const { written } = look, place = placeAdded(look);
      return `Place ${written.length - 1} adds numbers from ${fixed(Math.min(...place), 2)} to ${
        fixed(Math.max(...place), 2)} to ${quoted(written.at(-1))}: any word there gets the same.`;
    } },
  { name: "encoder", draw: drawStreamsOfAttention,
    title: (look) => `Encoder: ${looksAt(look)}`,
    says: () => "Each word's query meets every word's key; softmax turns the scores into shares.",
    asks: ({ queries: [a, b = a] }) => `Guess, then press the row of “${
      fitted(b, 150)}”: where does its clearest head look most?`,
    guess: (look, state) => {
      const { other } = attentionAt(look, { ...state, row: 1 });
      const all = [...new Set([other, ...look.keys])].slice(0, 3);
      return [look.keys.filter((key, i) => all.includes(key) && look.keys.indexOf(key) === i),
        () => other];
    },
    done: ({ row }, before) => row !== null && row !== before.row,
    sees: ({ word, other, weight, keys, shares }) => {
      const least = shares.indexOf(Math.min(...shares));
      return `${quoted(word)} looks ${percent(weight)} at ${quoted(other)}, and least at ${
        quoted(keys[least])}: ${percent(shares[least])}.`;
    } },
  { name: "looks back", draw: drawStreamsOfAttention,
    title: (look) => `Looking back, ${looksAt(look)}`,
    says: () => "The mask (×) hides what comes later; softmax shares 1 among the rest.",
    asks: ({ queries: { length: n } }) => `Guess, then press the third state (÷ √): how many of ${
      n * n} scores are crossed out?`,
    guess: ({ queries: { length: n } }) => [[n, (n * (n - 1)) / 2, (n * (n + 1)) / 2].filter(
      (one, i, all) => all.indexOf(one) === i).map(String), () => `${(n * (n - 1)) / 2}`],
    done: ({ stage }) => stage === 2,
    sees: ({ queries: { length: n }, word, row, other, weight }) =>
      `${(n * (n - 1)) / 2} of ${n * n} scores are crossed out: ${quoted(word)} keeps ` +
      `${row + 1}, and gives ${percent(weight)} to ${quoted(other)}.` },
  { name: "reads", draw: drawStreamsOfAttention,
    title: (look) => `The source: ${looksAt(look)}`,
    says: () => "Keys and values are the encoder's output now; the query is the written word's.",
    asks: ({ other }) => `Guess, then press another small square: does that head look most at ${
      quoted(other)}, too?`,
    guess: ({ other }) => [YES_NO, (look) => yesNo(look.other === other)],
    done: ({ head }, before) => head !== before.head,
    sees: ({ head, row, other, weight, weights, queries, keys, word }) => {
      const most = Array.from({ length: weights.shape[0] }, (_, h) =>
        keys[firstLargest([...weights.row(h * queries.length + row)])]);
      return `In head ${head} ${quoted(word)} looks ${percent(weight)} at ${quoted(other)}; ${
        most.filter((one) => one === other).length} of ${most.length} heads look most there.`;
    } },
  { name: "a block", draw: drawInside,
    title: ({ block, word, rows }) => `Inside block ${block}, “${fitted(word, 90)}” is reworked ` +
      `until it says “${rows.at(-1).best}”`,
    says: () => "Each sub-layer adds to the vector, then a norm evens it out. Bars: what the " +
      "model would say if it ended there.",
    asks: () => "Guess, then press Write on: which step lifts the word to come most?",
    guess: ({ rows }) => [rows.filter(({ adds }) => adds).map(({ name }) => name),
      (look) => jumpOf(look).name], done: writesOn,
    sees: (look) => {
      const { name, from, to } = jumpOf(look);
      return `${quoted(look.goal)} rises most at “${name}”: from ${percent(from)} to ${
        percent(to)}.`;
    } },
  { name: "next word", draw: drawLikeliest,
    title: ({ next, temperature, drawn, token, shares, said }) => drawn ?
      `The draw falls on “${token(drawn.id)}”, which has ${percent(shares[drawn.id])}` :
      `${said ? `After “${lately(said)}”, ` : ""}“${next.word}” gets ${percent(next.share)
      } at temperature ${temperature}`,
    says: ({ order, doubts, written, given }) => `${doubts[written.length - given]?.entropy ===
      Math.max(...doubts.map(({ entropy }) => entropy)) ? "Here it hesitates most. " : ""}` +
      `Logit ÷ temperature, cuts, softmax: ${
      countOf(order.length, "word")} share 1. Press a bar to go on with its word.`,
    asks: ({ next }) => `Guess, then set the temperature to 2 and press Draw: does ${
      quoted(next.word)} keep half of its share?`,
    guess: () => [YES_NO, ({ shares, logits, next: { id } }) =>
      yesNo(shares[id] >= softmax(logits)[id] / 2)],
    done: ({ temperature, seed }) => temperature >= 1.9 && seed > 0,
    sees: ({ drawn, token, shares, logits, next }) => `${drawn ?
      `It fell on ${quoted(token(drawn.id))}, ${percent(shares[drawn.id])} likely. ` : ""}${
      quoted(next.word)} has ${percent(next.share)} here, and ${
      percent(softmax(logits)[next.id])} at temperature 1.` }];
