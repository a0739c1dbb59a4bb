// Drives an explorable through the states that a reader can bring it to.

const TYPED_TEXTS = ["the astronaut devours the moussaka .", "Donaudampfschifffahrtsgesellschaft",
  "👩‍👩‍👧 😀", "the old man with the small dog sees the big house .", ""];

// All that one hand can do: {name, act}, each control at its ends, each button, some of many.
function movesOf(root) {
  const some = (list, most) => list.length <= most ? list :
    Array.from({ length: most }, (_, i) => list[Math.round((i * (list.length - 1)) / (most - 1))]);
  const visible = (node) => node.checkVisibility();
  const all = (selector) => [...root.querySelectorAll(selector)].filter(visible);
  const give = (node, value) => () => {
    node.value = value;
    node.dispatchEvent(new Event("input"));
  };
  const moves = [];
  for (const node of all(".controls input[type=range]:enabled")) {
    const { min, max, step } = node, n = Math.round((max - min) / (Number(step) || 1)) + 1;
    const values = some(Array.from({ length: n }, (_, i) => Number(min) + i * (Number(step) || 1)), 7);
    for (const value of values) {
      moves.push({ name: `${node.parentElement.innerText.trim()}=${value}`, act: give(node, value) });
    }
  }
  for (const node of all(".controls :is(input[type=text], textarea)")) {
    for (const text of TYPED_TEXTS) moves.push({ name: `type ${text}`, act: give(node, text) });
  }
  for (const node of all(".controls input[type=checkbox]")) {
    moves.push({ name: `toggle ${node.parentElement.innerText}`, act: () => node.click() });
  }
  for (const node of all("button:not(.play, .save button):enabled")) {
    moves.push({ name: node.innerText, act: () => node.click() });
  }
  for (const node of some(all("svg [role=button]"), 12)) {
    const label = node.getAttribute("aria-label");
    const now = () => [...root.querySelectorAll("svg [role=button]")].find((one) =>
      one.getAttribute("aria-label") === label) ?? node;
    moves.push({ name: label, act: () => now().dispatchEvent(new MouseEvent("click")) });
  }
  return moves;
}

// Plays from where it stands, without waiting for the clock, and calls `see` after each tick.
async function played(root, see, most = 15) {
  const button = [...root.querySelectorAll(".play")].find((node) => node.checkVisibility());
  const timers = [window.setInterval, window.clearInterval];
  let tick = null;
  window.setInterval = (act) => (tick = act) && 1;
  window.clearInterval = () => (tick = null);
  button?.click();
  for (let i = 1; tick && i <= most; i++) {
    tick();
    await see(`tick ${i}`);
  }
  if (tick) button.click();
  [window.setInterval, window.clearInterval] = timers;
}

// What `look` finds in the opening state, after each move from it, and on a long walk.
async function driven(root, rested, model, look) {
  const start = { ...model.values }, found = [];
  const see = async (state) => {
    await rested();
    found.push({ state, ...look(root) });
  };
  const begin = async () => {
    for (const [name, value] of Object.entries(start)) model.set(name, value);
    await rested();
  };
  await see("opening");
  await played(root, see);
  const moves = movesOf(root);
  for (const { name, act } of moves) {
    await begin();
    act();
    await see(name);
  }
  let seed = 1;
  const random = (n) => {
    seed = (seed * 48271) % 2147483647;
    return seed % n;
  };
  await begin();
  const path = [];
  for (let i = 0; i < 25; i++) {
    const options = movesOf(root), { name, act } = options[random(options.length)];
    act();
    path.push(name);
    await see(path.join(" → "));
  }
  await begin();
  return found;
}
