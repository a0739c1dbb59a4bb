// Questions as a card in the page: choose, commit, read. No kernel is needed, so it answers at
// once, even while a cell runs; the kernel stores the choice when it is free.

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function show(node, html) { // Python has escaped everything but markup
  if (node.shown === html) return; // else a screen reader would repeat it
  node.innerHTML = html;
  node.shown = html;
}

// While a control has the focus, JupyterLab ignores its own keys, such as the arrows.
function control(tag, attributes, ...children) {
  return element(tag, { ...attributes, "data-lm-suppress-shortcuts": "true" }, ...children);
}

class Card {
  constructor(model, el) {
    this.model = model;
    this.name = `card-${Math.random().toString(36).slice(2)}`; // unique in the page
    this.text = element("div", { id: `${this.name}-text`, tabindex: "-1" });
    this.options = element("div", {
      class: "options", role: "radiogroup", "aria-labelledby": this.text.id,
    });
    this.commit = this.button(model.get("verb"), () => this.take(this.chosen));
    this.buttons = element("div", { class: "buttons" }, this.commit);
    if (!model.get("tells")) this.buttons.append(this.button("I don't know", () => this.take(-1)));
    this.status = element("div", { class: "told", role: "status", tabindex: "-1" });
    this.note = element("div", { class: "note", role: "status" });
    this.options.onchange = () => {
      this.commit.classList.add("ready");
      show(this.note, "");
    };
    this.options.onkeydown = (event) => {
      if (event.key === "Enter" && !event.shiftKey) this.take(this.chosen);
    };
    this.card = element("div", { class: "lesson-card" },
      this.text, this.options, this.buttons, this.status, this.note);
    el.append(this.card);
    this.draw();
  }

  button(words, press) {
    const node = control("button", { type: "button" }, words);
    node.onclick = press;
    return node;
  }

  get radios() {
    return [...this.options.querySelectorAll("input")];
  }

  get chosen() {
    const index = this.radios.findIndex((radio) => radio.checked);
    return index < 0 ? null : index;
  }

  take(index) {
    if (index === null) return show(this.note, "Choose an answer first.");
    this.model.set("answers", [...this.model.get("answers"), index]);
    this.model.save_changes();
    const next = this.buttons.hidden ? this.status : this.text; // the focus stays in the card
    next.focus({ preventScroll: true });
  }

  draw() {
    const [answers, questions, tells] = ["answers", "questions", "tells"]
      .map((name) => this.model.get(name));
    const question = questions[tells ? 0 : answers.length];
    const decided = tells && answers.length > 0;
    if (this.asked !== question) this.ask(question);
    this.buttons.hidden = decided || !question;
    this.options.hidden = !question;
    show(this.note, this.model.get("note"));
    if (!question) show(this.status, this.model.get("end") || "Counting your answers …");
    if (decided) this.tell(question.options, answers[0]);
  }

  ask(question) {
    this.asked = question;
    show(this.text, question?.text ?? "");
    this.commit.classList.remove("ready");
    this.options.replaceChildren(...(question?.options ?? []).map(({ text }) => {
      const words = element("span", { class: "words" });
      show(words, text);
      return element("label", {}, control("input", { type: "radio", name: this.name }), words);
    }));
  }

  tell(options, chosen) {
    [...this.options.children].forEach((label, i) => {
      const { right } = options[i], radio = label.querySelector("input");
      Object.assign(radio, { disabled: true, checked: i === chosen });
      if (i !== chosen && !right || label.className) return;
      label.className = right ? "right" : "wrong";
      if (i === chosen) label.append(element("small", {}, "your choice"));
      label.append(element("b", {}, right ? "✓" : "✗"));
    });
    const shown = options.filter((option, i) => i === chosen || option.right);
    shown.sort((a, b) => a.right - b.right); // the learner's choice first
    this.card.classList.add("lesson-decided"); // unfolds what depends on the answer
    show(this.status, shown.map(({ right, told }) =>
      `<p class="${right ? "right" : "wrong"}">${told}</p>`).join(""));
  }
}

export default {
  render({ model, el }) {
    const card = new Card(model, el), draw = () => card.draw();
    for (const name of ["answers", "end", "note"]) model.on(`change:${name}`, draw);
    return () => ["answers", "end", "note"].forEach((name) => model.off(`change:${name}`, draw));
  },
};
