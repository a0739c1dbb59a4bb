// How much memory keys and values take: a bar of memory for each way to keep them, with the weights
// and then a block for each text that fits.

import { countOf, layer, put, textWidth, told } from "../../explorables/web/draw.js";
import { frame } from "../../explorables/web/frame.js";

const GIB = 2 ** 30, KIB = 2 ** 10;
const MOST_BLOCKS = 80; // more texts than this are drawn as one block

export function CacheCalculator(view) {
  const sizes = ["n_layers", "n_heads", "n_kv_heads", "d_head", "d_latent", "parameters",
    "local_window"];
  return frame(view, {
    name: "Cache calculator",
    traits: ["tokens", "memory", "bits", "every", ...sizes],
    controls: (make) => [
      make.choice("Tokens of a text", "tokens", [[1024, "1k"], [8192, "8k"],
        [32768, "32k"], [131072, "128k"], [1048576, "1M"]]),
      make.choice("Memory, GiB", "memory", [8, 24, 80, 640]),
      make.choice("Bits a number", "bits", [16, 8, 4]),
      make.choice("Layers that see all", "every", () =>
        [1, 2, 4, 6].map((every) => [every, every > 1 ? `1 in ${every}` : "all"]))],
    draw: drawCaches });
}

// The ways to keep keys and values, and how many numbers a layer keeps per token.
function waysToKeep({ n_heads: heads, n_kv_heads: groups, d_head: dHead, d_latent: dLatent }) {
  const shared = (n) => 2 * n * dHead; // keys and values
  return [
    { name: "all heads", why: `${heads} of keys, ${heads} of values`, numbers: shared(heads) },
    { name: "groups", why: `${groups}, each for ${heads / groups} of queries`,
      numbers: shared(groups) },
    { name: "one head", why: `one for all ${heads} of queries`, numbers: shared(1) },
    { name: "latent", why: `${dLatent} numbers for all`, numbers: dLatent }];
}

// How many bytes a text takes, and how many texts fit beside the weights.
function cacheSizes(state) {
  const { tokens, memory, bits, every, n_layers: layers, parameters } = state;
  const far = Math.ceil(layers / every), near = layers - far;
  const places = far * tokens + near * Math.min(tokens, state.local_window);
  const weights = 2 * parameters, room = memory * GIB - weights;
  const ways = waysToKeep(state).map((way) => {
    const bytes = (places * way.numbers * bits) / 8;
    const texts = room < 0 ? 0 : Math.floor(room / bytes);
    return { ...way, bytes, texts, token: (layers * way.numbers * bits) / 8 };
  });
  return { ways, weights, room };
}

function bytesWords(bytes) {
  const [unit, name] = bytes >= GIB ? [GIB, "GiB"] : bytes >= KIB ** 2 ? [KIB ** 2, "MiB"] :
    [KIB, "KiB"];
  const value = bytes / unit, digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${Number(value.toFixed(digits)).toLocaleString("en-US")} ${name}`;
}

function drawCaches(state, page) {
  const { svg, width } = page, sizes = cacheSizes(state), beside = width >= 640;
  const label = beside ? 190 : 0, high = beside ? 74 : 104, tall = 34, end = beside ? 108 : 0;
  const place = { beside, label, high, tall, left: label, right: width - end, width };
  place.top = (i) => 26 + i * high + (beside ? 0 : 40);
  place.across = (bytes) =>
    place.left + Math.min(1, bytes / (state.memory * GIB)) * (place.right - place.left);
  drawCacheNames(layer(svg, "names"), sizes, place);
  drawMemory(layer(svg, "memory"), sizes, state, place);
  drawTexts(layer(svg, "texts"), sizes, place);
  return { ...cacheFacts(sizes, state), height: place.top(3) + tall + 26 };
}

function drawCacheNames(group, { ways }, place) {
  const { beside, right, width, tall, top } = place;
  const y = (i) => (beside ? top(i) + 13 : top(i) - 26);
  const lines = ways.flatMap((way, i) => [
    { text: way.name, class: "strong", x: 0, y: y(i) },
    { text: way.why, class: "small", x: beside ? 0 : textWidth(way.name, 14, 600) + 10,
      y: y(i) + (beside ? 17 : 0) },
    { text: `${bytesWords(way.token)} a token`, class: "small", x: 0,
      y: y(i) + (beside ? 33 : 17) }]);
  put.text(group, "lines", lines);
  put.text(group, "counts", ways, ({ texts }, i) => [
    countOf(texts, "text"), beside ? right + 12 : width, beside ? top(i) + tall / 2 + 5 : y(i) + 17,
    beside ? "strong" : "strong end"]);
}

function drawMemory(group, { ways, weights, room }, { memory }, place) {
  const { left, right, tall, top, across } = place;
  put.rect(group, "whole", ways, (_, i) =>
    ({ x: left, y: top(i), width: right - left, height: tall, class: "box" }));
  const words = room < 0 ? "the weights alone do not fit" : `the weights: ${bytesWords(weights)}`;
  put.rect(group, "weights", ways, (_, i) => ({
    x: left, y: top(i), width: across(weights) - left, height: tall, fill: "var(--hidden)",
    ...told(`${words} of ${memory} GiB`, "weights") }));
  const ticks = [["weights", left + 2, "small"], [`${memory} GiB`, right, "small end"]];
  put.text(group, "ticks", ticks, ([text, x, look]) => [text, x, top(3) + tall + 16, look]);
}

function drawTexts(group, { ways, weights, room }, { left, right, tall, top, across }) {
  const start = across(weights), scale = (right - left - (start - left)) / Math.max(1, room);
  const blocks = ways.flatMap(({ name, bytes, texts }, i) => {
    const count = texts > MOST_BLOCKS ? 1 : texts;
    const wide = (texts > MOST_BLOCKS ? texts * bytes : bytes) * scale;
    return Array.from({ length: count }, (_, n) => ({ name, i, n, bytes, texts, wide, count }));
  });
  put.rect(group, "blocks", blocks, (one) => ({
    x: start + one.n * one.wide + 1, y: top(one.i) + 2, width: Math.max(0.5, one.wide - 1.5),
    height: tall - 4, rx: Math.min(3, one.wide / 4), fill: "var(--key)",
    ...told(blockWords(one), `way${one.i}`) }), ({ i, n }) => `${i}-${n}`);
  const none = ways.map((way, i) => ({ ...way, i })).filter(({ texts }) => !texts);
  put.text(group, "none", none, ({ i, bytes }) => [
    room < 0 ? "the weights alone do not fit" : `one text would take ${bytesWords(bytes)}`,
    (left + right) / 2, top(i) + tall / 2 + 4, "small middle", { fill: "var(--ink)" }], "i");
}

function blockWords({ name, n, bytes, texts, count }) {
  const which = count < texts ? countOf(texts, "text") : `text ${n + 1} of ${texts}`;
  return `${name}: ${which}, ${bytesWords(bytes)} each`;
}

function cacheFacts({ ways, weights }, { tokens, memory, every }) {
  const counts = ways.map(({ texts }) => texts.toLocaleString("en-US"));
  const title = `${counts.slice(0, 3).join(", ")} and ${counts[3]} texts of ` +
    `${tokens.toLocaleString("en-US")} tokens fit beside the weights`;
  const [all, groups, one, latent] = ways.map(({ bytes }) => bytesWords(bytes));
  const layers = every > 1 ? `With one layer in ${every} that sees all, a text` : "A text";
  const said = `${layers} takes ${all} with all heads, ${groups} in groups, ${one} with one head ` +
    `and ${latent} as a latent vector. The weights take ${bytesWords(weights)} of ${memory} GiB.`;
  return { title, said };
}
