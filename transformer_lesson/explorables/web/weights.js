// Models that explorables share: a page receives each one once and reads it once.

import { readCheckpoint, refuseChanged } from "./checkpoints.js";

const readModels = new WeakMap(); // by the widget that holds their bytes

// The {model, tokenizer} that the trait refers to. If it refers to none, the error thrown says what
// to do.
export async function modelOf(view, trait = "weights") {
  const reference = view.get(trait);
  if (!reference) throw new Error(view.get("missing"));
  const holder = await view.widget_manager.get_model(reference.replace("IPY_MODEL_", ""));
  const bytes = holder.get("data");
  if (!bytes) throw new Error("The model's numbers are not in this page: run the cell again.");
  if (!readModels.has(holder)) readModels.set(holder, readWhole(bytes));
  return readModels.get(holder);
}

async function readWhole(bytes) {
  await refuseChanged(bytes);
  return readCheckpoint(bytes);
}
