// The sheet at the bottom of narrow windows.
const grip = byId('grip');
function openSheet(open) {
  panel.classList.toggle('closed', !open);
  grip.setAttribute('aria-expanded', String(open));
  draw();
}
grip.addEventListener('click', () => openSheet(panel.classList.contains('closed')));

// Search.

let marked = -1;
function search() {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (box) => `${box.name} ${box.op}`.toLowerCase();
  const hits = words.length === 0 ? [] : boxes.filter((box) => words.every((word) => text(box).includes(word)));
  // Layers before what follows them.
  hits.sort((a, b) => Number(b.layer ?? false) - Number(a.layer ?? false));
  marked = hits.length > 0 ? 0 : -1;
  found.replaceChildren(...hits.slice(0, 50).map((box, i) => {
    const item = el('li', { role: 'option', id: `hit-${i}`, 'aria-selected': String(i === 0), 'data-box': box.index },
      el('span', { class: 'name' }, box.name || '–'), el('span', { class: 'share' }, box.op));
    item.addEventListener('pointerdown', (event) => event.preventDefault());
    item.addEventListener('click', () => take(box.index));
    return item;
  }));
  if (words.length > 0 && hits.length === 0) found.append(el('li', { class: 'none' }, 'No layer has this name.'));
  show(words.length > 0);
}
function show(open) {
  found.hidden = !open;
  query.setAttribute('aria-expanded', String(open));
  mark(marked);
}
function mark(index) {
  marked = index;
  [...found.querySelectorAll('[role=option]')].forEach((item, i) => {
    item.setAttribute('aria-selected', String(i === index));
    if (i === index) item.scrollIntoView({ block: 'nearest' });
  });
  if (index >= 0 && !found.hidden) query.setAttribute('aria-activedescendant', `hit-${index}`);
  else query.removeAttribute('aria-activedescendant');
}
function take(box) {
  show(false);
  query.blur();
  choose({ box }, { centre: true });
}
query.addEventListener('input', search);
query.addEventListener('focus', () => query.value && search());
query.addEventListener('blur', () => show(false));
query.addEventListener('keydown', (event) => {
  const items = [...found.querySelectorAll('[role=option]')];
  if (event.key === 'Escape') {
    query.value = '';
    show(false);
    canvas.focus();
  } else if (event.key === 'Enter' && items[marked]) take(Number(items[marked].dataset.box));
  else if (event.key === 'ArrowDown' && items.length > 0) mark((marked + 1) % items.length);
  else if (event.key === 'ArrowUp' && items.length > 0) mark((marked + items.length - 1) % items.length);
  else return;
  event.preventDefault();
});
