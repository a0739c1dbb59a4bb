// Long work done in pieces: between them the page responds, and draws what there is so far.

const PIECE_MILLISECONDS = 8; // a piece and a redraw together stay below 50

// Runs a generator to its end, with a redraw after each piece; a later call replaces it.
export function inPieces(page, work) {
  const end = performance.now() + PIECE_MILLISECONDS;
  page.work = work;
  while (page.work && performance.now() < end) if (work.next().done) page.work = null;
  if (page.work) setTimeout(goOn, 0, page, work);
}

function goOn(page, work) {
  if (page.work !== work) return;
  if (page.asked) { // a redraw is due, perhaps for a click: it comes first
    requestAnimationFrame(() => setTimeout(goOn, 0, page, work));
    return;
  }
  inPieces(page, work);
  page.redraw();
}
