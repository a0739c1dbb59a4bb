// What a reader sees of an explorable, measured in the page: how tall it is, and which texts are cut,
// overprinted or pale. It is joined with nothing, and run where `root` is the explorable's own.

function looksOf(root) {
  const seeThrough = new CSSStyleSheet(); // points hit what the pointer does not
  seeThrough.replaceSync("* { pointer-events: all !important; }");
  const brush = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const colors = new Map(), picture = root.querySelector(".picture");

  // Red, green, blue from 0 to 255 and alpha from 0 to 1, as the screen has a CSS color.
  function rgba(color) {
    if (!colors.has(color)) {
      brush.clearRect(0, 0, 1, 1);
      brush.fillStyle = color;
      brush.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = brush.getImageData(0, 0, 1, 1).data;
      colors.set(color, [r, g, b, a / 255]);
    }
    return colors.get(color);
  }

  const over = ([r, g, b, a], back) => [r, g, b].map((one, i) => one * a + back[i] * (1 - a));

  function luminance(color) {
    const [r, g, b] = color.map((one) => one / 255).map((one) =>
      one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }

  function contrast(one, other) {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }

  const isDrawn = (node) => node instanceof SVGElement;

  function opacityOf(node) {
    let all = 1;
    for (let one = node; one && one !== root; one = one.parentNode) {
      all *= Number(getComputedStyle(one).opacity);
    }
    return all;
  }

  // What a node paints at a point, or null.
  function paintOf(node, [x, y]) {
    const style = getComputedStyle(node);
    if (!isDrawn(node)) return rgba(style.backgroundColor);
    if (!(node instanceof SVGGeometryElement)) return null;
    const point = new DOMPoint(x, y).matrixTransform(node.getScreenCTM().inverse());
    const within = style.fill !== "none" && node.isPointInFill(point);
    const [r, g, b, a] = within ? rgba(style.fill) : [0, 0, 0, 0];
    return [r, g, b, a * Number(style.fillOpacity) * opacityOf(node)];
  }

  // The places of all words and numbers, {node, text, left, right, top, bottom}, as far as there is
  // ink; what scrolls by itself is left out.
  function writings() {
    const found = [];
    const note = (node, text, box) => {
      if (!text.trim() || !box.width) return;
      const shrink = box.height * 0.2;
      found.push({ node, text, left: box.left, right: box.right, top: box.top + shrink,
        bottom: box.bottom - shrink });
    };
    for (const node of root.querySelectorAll("svg text")) {
      if (!node.checkVisibility({ visibilityProperty: true }) || opacityOf(node) < 0.05) continue;
      note(node, node.textContent, node.getBoundingClientRect());
    }
    const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const parent = walk.currentNode.parentElement;
      if (isDrawn(parent) || !parent.checkVisibility({ visibilityProperty: true })) continue;
      if (parent.closest("style, script, .tip, textarea, .dense")) continue;
      const range = document.createRange();
      range.selectNodeContents(walk.currentNode);
      for (const box of range.getClientRects()) note(parent, walk.currentNode.data, box);
    }
    return found;
  }

  function cut(all) {
    const paper = picture.getBoundingClientRect();
    const own = root.querySelector("section").getBoundingClientRect();
    const isCut = ({ node, left, right, top, bottom }) => {
      const box = isDrawn(node) && picture.contains(node) ? paper : own;
      return left < box.left - 0.5 || right > box.right + 0.5 || top < box.top - 0.5 ||
        bottom > box.bottom + 0.5;
    };
    const isShort = (node) => node.scrollWidth > node.clientWidth ||
      node.scrollHeight > node.clientHeight + 1;
    const fields = [...root.querySelectorAll("input[type=text], textarea")]
      .filter((node) => node.checkVisibility() && isShort(node));
    return [...all.filter(isCut).map(({ text }) => text), ...fields.map((node) => `[${node.value}]`)];
  }

  const isLevel = ({ node }) => Math.abs(node.getScreenCTM().b) < 0.01; // a turned one's box is large

  function overlapping(all) {
    const pairs = [];
    const sorted = all.filter(isLevel).sort((a, b) => a.top - b.top);
    sorted.forEach((one, i) => {
      for (let j = i + 1; j < sorted.length && sorted[j].top < one.bottom - 0.5; j++) {
        const other = sorted[j];
        const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
        if (across > 1) pairs.push(`${one.text} | ${other.text}`);
      }
    });
    return pairs;
  }

  // Texts under a shape, and those whose contrast with what is behind them is too low.
  function paleAndCovered(all) {
    const pale = [], covered = [], { theme } = root.host.dataset;
    for (const { node, text, left, right, top, bottom } of all) {
      if (node.closest("[inert], :disabled")) continue;
      const style = getComputedStyle(node), y = (top + bottom) / 2;
      let lowest = Infinity, hidden = false;
      for (const x of [left + 1, (left + right) / 2, right - 1]) {
        const stack = root.elementsFromPoint(x, y), at = stack.indexOf(node);
        if (at < 0) continue;
        hidden ||= stack.slice(0, at).some((one) => !one.contains(node) && !node.contains(one) &&
          isDrawn(one) && one.tagName !== "text" && (paintOf(one, [x, y])?.[3] ?? 0) > 0.3);
        const layers = [], behind = stack.slice(isDrawn(node) ? at + 1 : at);
        for (const one of behind) {
          const paint = paintOf(one, [x, y]);
          if (paint?.[3]) layers.push(paint);
          if (paint?.[3] > 0.99) break;
        }
        let back = layers.reduceRight((below, paint) => over(paint, below), [255, 255, 255]);
        const halo = style.paintOrder.includes("stroke") && parseFloat(style.strokeWidth) >= 3;
        if (halo && isDrawn(node)) back = over(rgba(style.stroke), back);
        const [r, g, b, a] = rgba(isDrawn(node) ? style.fill : style.color);
        lowest = Math.min(lowest, contrast(over([r, g, b, a * opacityOf(node)], back), back));
      }
      if (hidden) covered.push(text);
      if (lowest < 4.5) pale.push(`${text}: ${lowest.toFixed(2)}, ${theme}`);
    }
    return { pale, covered };
  }

  const saved = root.adoptedStyleSheets;
  root.adoptedStyleSheets = [...saved, seeThrough];
  const all = writings(), { theme } = root.host.dataset, { pale, covered } = paleAndCovered(all);
  root.host.dataset.theme = theme === "dark" ? "light" : "dark";
  pale.push(...paleAndCovered(all).pale);
  root.host.dataset.theme = theme;
  root.adoptedStyleSheets = saved;
  return { height: root.querySelector("section").offsetHeight, cut: cut(all),
    overlapping: overlapping(all.filter(({ node }) => isDrawn(node))), covered, pale };
}
