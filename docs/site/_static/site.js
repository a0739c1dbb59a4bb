// Explorables without a kernel: show the state that the controls say.
function chosen(control) {
  if (control.tagName === "FIELDSET") return Number(control.querySelector(":checked").value);
  return control.type === "checkbox" ? Number(control.checked) : Number(control.value);
}

function count(control) {
  if (control.tagName === "FIELDSET") return control.querySelectorAll("input").length;
  return control.type === "checkbox" ? 2 : Number(control.max) + 1;
}

for (const still of document.querySelectorAll(".still")) {
  const { states, pictures } = JSON.parse(still.querySelector("script").textContent);
  const controls = [...still.querySelectorAll("[data-control]")];
  still.addEventListener("input", event => {
    if (event.target.type === "range") {
      const words = JSON.parse(event.target.dataset.options)[event.target.value];
      event.target.setAttribute("aria-valuetext", words);
      event.target.nextElementSibling.textContent = words;
    }
    const number = controls.reduce((sum, control) => sum * count(control) + chosen(control), 0);
    const [picture, text] = states[number];
    const image = still.querySelector("img");
    image.removeAttribute("width"); // pictures of one explorable may differ in size
    image.removeAttribute("height");
    image.src = pictures[picture];
    image.alt = text;
    still.querySelector("[role=status]").textContent = text;
  });
}

// Search results from the disk: browsers forbid to fetch a page for its summary.
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

// What is wider than the page scrolls: the keyboard must reach it.
function reachWideParts() {
  for (const part of document.querySelectorAll("mjx-container[display], .still-picture")) {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
  }
}
window.addEventListener("load", () => {
  reachWideParts();
  window.MathJax?.startup?.promise.then(reachWideParts);
});
window.addEventListener("resize", reachWideParts);
