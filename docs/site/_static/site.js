// What the pages add to the theme.

// Search results from the disk: browsers forbid to fetch a page for its summary.
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

// What is wider than the page scrolls: the keyboard must reach it.
function reachWideParts() {
  for (const part of document.querySelectorAll("mjx-container[display]")) {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
  }
}
window.addEventListener("load", () => {
  reachWideParts();
  window.MathJax?.startup?.promise.then(reachWideParts);
});
window.addEventListener("resize", reachWideParts);

// What unfolds, or gets its font late, is measured as after a change of size; the theme listens too.
const measureAgain = () => window.dispatchEvent(new Event("resize"));
document.addEventListener("toggle", measureAgain, true);
document.fonts.ready.then(measureAgain);
