function resize() {
  size = { width: stage.clientWidth, height: stage.clientHeight, ratio: devicePixelRatio || 1 };
  canvas.width = Math.round(size.width * size.ratio);
  canvas.height = Math.round(size.height * size.ratio);
  mapIsOld = true;
  if (!moved) {
    arrange();
    if (boxes.length > 0) view = firstView();
  }
  paint();
}

/** `network.html#g3` and `network.html#layer1.conv2` open with a group or a layer. */
function chooseByAddress() {
  let name;
  try {
    name = decodeURIComponent(location.hash.slice(1));
  } catch {
    return;  // not what an address has
  }
  const group = groups.findIndex(({ id }) => id === name);
  const box = boxes.findIndex((one) => one.name === name);
  if (group >= 0) choose({ group });
  else if (box >= 0) choose({ box }, { centre: true });
}

function start() {
  font = getComputedStyle(document.body).fontFamily;
  byId('model').textContent = data.model;
  byId('brand').textContent = data.done ? 'Parsimony prune' : 'Parsimony explain';
  canvas.setAttribute('aria-label', `Picture of ${data.model}: ${counted(boxes.length, 'box')}, ${counted(groups.length, 'group')}`.replace('boxs', 'boxes'));
  if (narrow.matches) openSheet(false);
  readColours();
  showPanel();
  resize();
  if (location.hash) chooseByAddress();
  addEventListener('hashchange', chooseByAddress);
  new ResizeObserver(resize).observe(stage);
  dark.addEventListener('change', () => {
    readColours();
    mapIsOld = true;
    showPanel();
    draw();
  });
  narrow.addEventListener('change', () => openSheet(!narrow.matches));
}
start();

// For tests, and for who drives the page by a script.
globalThis.parsimonyNetwork = {
  data, state,
  get view() { return { ...view }; },
  get columns() { return columns.length; },
  choose,
  /** The place of a box in the window. */
  place(index) {
    const frame = canvas.getBoundingClientRect();
    const box = boxes[index];
    return {
      x: frame.left + view.x + box.left * view.scale, y: frame.top + view.y + box.top * view.scale,
      width: boxWidth * view.scale, height: box.height * view.scale,
    };
  },
};
