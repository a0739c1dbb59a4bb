// Stands in for Jupyter's widget model in pages without a kernel.

class Values {
  constructor(values) {
    this.values = values;
    this.opening = { ...values };
    this.listeners = new Map();
    this.widget_manager = { get_model: async (key) => holderOf(key) };
  }

  get(name) {
    return this.values[name];
  }

  set(name, value) {
    if (this.values[name] === value) return;
    this.values[name] = value;
    for (const listen of this.listeners.get(`change:${name}`) ?? []) listen();
  }

  on(name, listen) {
    this.listeners.set(name, [...(this.listeners.get(name) ?? []), listen]);
  }

  off(name, listen) {
    this.listeners.set(name, (this.listeners.get(name) ?? []).filter((one) => one !== listen));
  }

  save_changes() {} // no kernel to notify
}

const heldWeights = new Map();

// A model's weights, decoded from the base64 in a script of the page.
function holderOf(key) {
  if (!heldWeights.has(key)) {
    const text = globalThis.explorableWeights?.[key] ?? "";
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    heldWeights.set(key, new Values(text ? { data: new DataView(bytes.buffer) } : {}));
  }
  return heldWeights.get(key);
}

// Draws every explorable of the page; `free` names for each kind the values that a reader sets.
export function start(kinds, free) {
  document.querySelectorAll("div.explorable").forEach((el, place) => {
    const { kind, values } = JSON.parse(el.querySelector("script").textContent);
    el.model = Object.assign(new Values(values), { place });
    kinds[kind]({ model: el.model, el, free: free[kind] });
  });
}
