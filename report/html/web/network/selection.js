// What is selected.

let chosen = { box: -1, group: -1 };
let focus = null;  // the boxes that are not faded; null: all
let focusLines = [];

function choose(next, { open = true, centre = false } = {}) {
  chosen = { box: -1, group: -1, ...next };
  focus = null;
  focusLines = [];
  if (chosen.group >= 0) {
    const group = groups[chosen.group];
    focus = new Set([...group.boxes, ...group.members.map(([box]) => box)]);
  } else if (chosen.box >= 0) {
    const box = boxes[chosen.box];
    focus = new Set([chosen.box, ...box.sources, ...box.targets]);
    for (const g of box.makes) for (const other of groups[g].boxes) focus.add(other);
  }
  if (focus) {
    focusLines = lines.filter(({ from, to }) => (chosen.group >= 0
      ? focus.has(from) && focus.has(to) && boxes[from].makes.includes(chosen.group)
      : from === chosen.box || to === chosen.box)).filter(({ to }) => !boxes[to].joined).map(pathOf);
  }
  showPanel();
  if (open && focus && narrow.matches) openSheet(true);
  // The sheet may have come to lie over what was touched.
  const low = chosen.box >= 0 ? view.y + (boxes[chosen.box].top + boxes[chosen.box].height) * view.scale : 0;
  if (narrow.matches && low > room().height - 8 && !centre) centreOn([boxes[chosen.box]], view.scale);
  if (centre) {
    if (chosen.box >= 0) centreOn([boxes[chosen.box]], 0.9);
    else if (chosen.group >= 0) centreOn([...focus].filter((b) => b >= 0).map((b) => boxes[b]), 1);
  }
  mapIsOld = true;
  draw();
}
