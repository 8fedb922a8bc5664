// The view: screen = world · scale + (x, y).

let view = { scale: 1, x: 0, y: 0 };
let size = { width: 1, height: 1, ratio: 1 };
let moved = false;  // by hand, so it stays where it is when the window changes
let asked = 0;
const state = { drawn: 0, frames: 0, spent: [] };

/** What of the stage is not under the sheet. */
function room() {
  const sheet = narrow.matches ? panel.getBoundingClientRect().height : 0;
  return { width: size.width, height: Math.max(120, size.height - sheet) };
}
/** The same without the buttons at its side. */
function free() {
  const { width, height } = room();
  return { width: width - (narrow.matches ? 0 : 48), height };
}
const fitScale = () => {
  const { width, height } = free();
  return Math.min(width / (world.width + 40), height / (world.height + 20));
};
const clampScale = (scale) => Math.min(3, Math.max(Math.min(0.7, fitScale() * 0.8), scale));

function wholeView() {
  const { width, height } = free();
  const scale = Math.min(1.25, fitScale());
  return { scale, x: (width - world.width * scale) / 2, y: Math.max(0, (height - world.height * scale) / 2) };
}
/** Everything, or the beginning where everything would be too small to read. */
function firstView() {
  const whole = wholeView();
  if (whole.scale >= (narrow.matches ? 0.5 : 0.3)) return whole;
  const scale = narrow.matches ? 0.9 : 0.7;
  const first = boxes.reduce((a, b) => (b.column === 0 && b.top < a.top ? b : a));
  const wide = columns[0].width * scale;
  const fits = wide + 24 <= room().width;
  const left = fits ? 12 - columns[0].x * scale + Math.max(0, (columns.length === 1 || narrow.matches ? (room().width - wide) / 2 - 12 : 12))
    : room().width / 2 - (first.left + boxWidth / 2) * scale;
  return { scale, x: left, y: -10 * scale };
}

let flight = 0;
function fly(to) {
  cancelAnimationFrame(flight);
  if (still.matches) {
    view = to;
    return draw();
  }
  const from = view;
  const start = performance.now();
  const step = (now) => {
    const t = Math.min(1, Math.max(0, (now - start) / 240));
    const eased = 1 - (1 - t) ** 3;
    const scale = from.scale * (to.scale / from.scale) ** eased;
    // Along with the scale, so that the end is approached straight.
    const share = Math.abs(to.scale - from.scale) < 1e-6 ? eased : (scale - from.scale) / (to.scale - from.scale);
    view = { scale, x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share };
    draw();
    if (t < 1) flight = requestAnimationFrame(step);
  };
  flight = requestAnimationFrame(step);
}

function centreOn(list, most) {
  if (list.length === 0) return;
  moved = true;
  const left = Math.min(...list.map((box) => box.left));
  const right = Math.max(...list.map((box) => box.left + boxWidth));
  const top = Math.min(...list.map((box) => box.top));
  const bottom = Math.max(...list.map((box) => box.top + box.height));
  const { width, height } = room();
  const fit = Math.min(width / (right - left + 80), height / (bottom - top + 80));
  const scale = clampScale(Math.min(most, fit, list.length === 1 ? Math.max(view.scale, 0.8) : Infinity));
  fly({ scale, x: width / 2 - ((left + right) / 2) * scale, y: height / 2 - ((top + bottom) / 2) * scale });
}

function zoomBy(factor, at = { x: room().width / 2, y: room().height / 2 }, soft = false) {
  moved = true;
  const scale = clampScale(view.scale * factor);
  const rate = scale / view.scale;
  const next = { scale, x: at.x - (at.x - view.x) * rate, y: at.y - (at.y - view.y) * rate };
  if (soft) return fly(next);
  cancelAnimationFrame(flight);
  view = next;
  draw();
}
function pan(dx, dy) {
  moved = true;
  cancelAnimationFrame(flight);
  view = { ...view, x: view.x + dx, y: view.y + dy };
  draw();
}
