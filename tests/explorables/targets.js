// The places that take a press, where `root` is an explorable's own, and which of them are small.

// Every target {node, names, box}: a control with its label, a button of the picture.
function targetsOf(root) {
  const all = root.querySelectorAll("button, input, textarea, a, svg [role=button]");
  return [...all].filter((node) => node.checkVisibility({ visibilityProperty: true }) &&
    !node.disabled && !node.closest("[inert]")).map((node) => {
    const whole = node.labels?.[0] ?? node;
    const legend = node.closest("fieldset")?.querySelector("legend");
    return { node, names: [whole, legend].filter(Boolean).map((one) =>
      (one.getAttribute("aria-label") ?? one.textContent).trim()),
    box: whole.getBoundingClientRect() };
  });
}

const LEAST = 24 - 0.01; // pixels, but for rounding

const isSmall = ({ box }) => box.width < LEAST || box.height < LEAST;

// Whether a circle of 24 pixels around a small target's middle reaches another target, or the
// circle of another small one.
function isTight(one, other) {
  const [x, y] = [one.box.left + one.box.width / 2, one.box.top + one.box.height / 2];
  const { left, right, top, bottom } = other.box;
  const away = Math.hypot(Math.max(left - x, 0, x - right), Math.max(top - y, 0, y - bottom));
  const apart = Math.hypot((left + right) / 2 - x, (top + bottom) / 2 - y);
  return away < LEAST / 2 || (isSmall(other) && apart < LEAST);
}

// The targets that are neither 24 pixels large nor have the room of that size around them.
const tightOf = (targets) => targets.filter((one) => isSmall(one) && targets.some((other) =>
  other !== one && !one.node.contains(other.node) && !other.node.contains(one.node) &&
  isTight(one, other)));

// What each tight target is and which values a press sets, and the names of all that are not.
function targetFacts(root, model) {
  const targets = targetsOf(root), tight = tightOf(targets), start = { ...model.values };
  const sets = tight.map(({ node }) => {
    node.dispatchEvent(new MouseEvent("click"));
    const changed = Object.keys(start).filter((name) => model.values[name] !== start[name]);
    for (const [name, value] of Object.entries(start)) model.set(name, value);
    return changed;
  });
  return { tight: tight.map(({ names: [name] }, i) => ({ name, sets: sets[i] })),
    large: targets.filter((one) => !tight.includes(one)).flatMap(({ names }) => names) };
}
