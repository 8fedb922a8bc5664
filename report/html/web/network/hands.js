// Hands: pointer, wheel, touch, keys.

const at = (event) => {
  const frame = canvas.getBoundingClientRect();
  return { x: event.clientX - frame.left, y: event.clientY - frame.top };
};
function boxAt({ x, y }) {
  const [wx, wy] = [(x - view.x) / view.scale, (y - view.y) / view.scale];
  return boxes.findIndex((box) =>
    wx >= box.left && wx <= box.left + boxWidth && wy >= box.top && wy <= box.top + box.height);
}

const fingers = new Map();
let wandered = 0;
canvas.addEventListener('pointerdown', (event) => {
  canvas.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, at(event));
  if (fingers.size === 1) wandered = 0;
  hideTip();
});
canvas.addEventListener('pointermove', (event) => {
  const now = at(event);
  const before = fingers.get(event.pointerId);
  if (!before) return showTip(now);
  const others = [...fingers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
  fingers.set(event.pointerId, now);
  wandered += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
  if (wandered < 5) return;
  canvas.classList.add('moving');
  if (others.length === 0) return pan(now.x - before.x, now.y - before.y);
  const other = others[0];
  const apart = (point) => Math.hypot(point.x - other.x, point.y - other.y);
  const middle = { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 };
  pan((now.x - before.x) / 2, (now.y - before.y) / 2);
  if (apart(before) > 0) zoomBy(apart(now) / apart(before), middle);
});
const release = (event) => {
  const known = fingers.delete(event.pointerId);
  canvas.classList.remove('moving');
  if (!known || event.type !== 'pointerup' || wandered >= 5) return;
  const hit = boxAt(at(event));
  choose(hit >= 0 ? { box: hit } : {});
};
canvas.addEventListener('pointerup', release);
canvas.addEventListener('pointercancel', release);
canvas.addEventListener('pointerleave', () => hideTip());
canvas.addEventListener('dblclick', (event) => zoomBy(1.8, at(event), true));
canvas.addEventListener('wheel', (event) => {
  event.preventDefault();
  hideTip();
  const lines = event.deltaMode === 1 ? 32 : 1;
  if (event.ctrlKey || event.metaKey) {
    zoomBy(Math.exp(-Math.max(-120, Math.min(120, event.deltaY * lines)) / 240), at(event));
  } else if (event.shiftKey && event.deltaX === 0) {
    pan(-event.deltaY * lines, 0);
  } else {
    pan(-event.deltaX * lines, -event.deltaY * lines);
  }
}, { passive: false });

function showTip(point) {
  const hit = boxAt(point);
  canvas.classList.toggle('over', hit >= 0);
  if (hit < 0) return hideTip();
  const box = boxes[hit];
  const shape = box.small ? `${plain(box.shape)} → ${plain(box.small)}` : plain(box.shape || '[?]');
  tip.textContent = [box.name, [box.op, shape].filter(Boolean).join(' · ')].join('\n');
  tip.classList.add('shown');
  const x = Math.min(point.x + 14, size.width - tip.offsetWidth - 8);
  const y = point.y + 18 + tip.offsetHeight > size.height ? point.y - tip.offsetHeight - 12 : point.y + 18;
  tip.style.transform = `translate(${Math.max(8, x)}px, ${y}px)`;
}
function hideTip() {
  tip.classList.remove('shown');
}

byId('closer').addEventListener('click', () => zoomBy(1.5, undefined, true));
byId('farther').addEventListener('click', () => zoomBy(1 / 1.5, undefined, true));
byId('whole').addEventListener('click', () => fly(wholeView()));
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target === query) return;
  const steps = { ArrowLeft: [90, 0], ArrowRight: [-90, 0], ArrowUp: [0, 90], ArrowDown: [0, -90] };
  const inPanel = panel.contains(event.target);
  if (steps[event.key] && !inPanel) pan(...steps[event.key]);
  else if (event.key === '+' || event.key === '=') zoomBy(1.25);
  else if (event.key === '-' || event.key === '_') zoomBy(0.8);
  else if (event.key === '0') fly(wholeView());
  else if (event.key === 'Escape') choose({});
  else if (event.key === '/') query.focus();
  else return;
  event.preventDefault();
});
