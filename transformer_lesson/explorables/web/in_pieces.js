// Work that takes a while, done in pieces: the page answers in between, and shows what there is.

const PIECE_MILLISECONDS = 8; // with a picture it stays below 50

// Goes through a generator and has the picture drawn as it comes; a later one ends it.
export function inPieces(page, work) {
  const end = performance.now() + PIECE_MILLISECONDS;
  page.work = work;
  while (page.work && performance.now() < end) if (work.next().done) page.work = null;
  if (page.work) setTimeout(goOn, 0, page, work);
}

function goOn(page, work) {
  if (page.work !== work) return;
  if (page.asked) { // a picture is due, perhaps of a move: it comes first
    requestAnimationFrame(() => setTimeout(goOn, 0, page, work));
    return;
  }
  inPieces(page, work);
  page.redraw();
}
