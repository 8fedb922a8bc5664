// Drawing.

const pen = canvas.getContext('2d');
let font = 'sans-serif';

/** "/layer1/conv1/Conv" of a Conv is "/layer1/conv1". */
const bare = (box) => {
  const cut = Math.max(box.name.lastIndexOf('/'), box.name.lastIndexOf('.'));
  return box.op && cut > 0 && box.name.slice(cut + 1).startsWith(box.op) ? box.name.slice(0, cut) : box.name;
};
/** The end of a name says more than its beginning; it is cut where a part begins, if one fits. */
function ending(text, fits, mark = '…') {
  if (fits(text)) return text;
  const parts = text.split(/(?<=[./])/);
  for (let i = 1; i < parts.length; ++i) {
    const rest = parts.slice(i).join('');
    if (fits(mark + rest)) return /^\d+$/.test(rest) ? null : mark + rest;
  }
  return null;
}
function tail(text, width, mark) {
  const whole = ending(text, (part) => pen.measureText(part).width <= width, mark);
  if (whole !== null) return whole;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pen.measureText(`…${text.slice(middle)}`).width <= width) high = middle;
    else low = middle + 1;
  }
  return `…${text.slice(low)}`;
}

/** From afar a box has room for the end of its name only, as large as it can be read. */
function writeFar(box) {
  const points = Math.min(24, Math.max(12, Math.round(9.5 / view.scale)));
  pen.font = `600 ${points}px ${font}`;
  box.far ??= new Map();
  if (!box.far.has(points)) box.far.set(points, tail(bare(box), boxWidth - 22, ''));
  pen.textBaseline = 'middle';
  pen.textAlign = isEnd(box) ? 'center' : 'left';
  pen.fillStyle = colours.ink;
  const x = isEnd(box) ? box.left + boxWidth / 2 : box.left + 12;
  written(box, box.far.get(points), x, box.top + box.height / 2 + (isEnd(box) ? 1 : decided ? -1.5 : 0.5));
}

function texts(box) {
  if (box.texts) return box.texts;
  if (isEnd(box)) {
    pen.font = `600 11px ${font}`;
    box.texts = { name: tail(box.name, boxWidth - 24) };
  } else if (box.layer) {
    pen.font = `600 12px ${font}`;
    const name = tail(bare(box), boxWidth - 22);
    pen.font = `11px ${font}`;
    const sizes = box.small && box.kept < box.channels ? `${box.channels} → ${box.kept}` : plain(box.shape || '[?]');
    box.texts = { name, sub: tail(`${box.op} · ${sizes}`, boxWidth - 22) };
  } else {
    pen.font = `11px ${font}`;
    const name = box.op;
    const left = boxWidth - 30 - pen.measureText(name).width;
    pen.font = `10px ${font}`;
    const sizes = plain(box.shape || '[?]');
    box.texts = { name, shape: pen.measureText(sizes).width <= left ? sizes : '' };
  }
  return box.texts;
}

function outline(box) {
  const r = isEnd(box) ? box.height / 2 : 7;
  const radii = isEnd(box) ? r : [box.joined ? 0 : r, box.joined ? 0 : r, box.last ? r : 0, box.last ? r : 0];
  pen.beginPath();
  pen.roundRect(box.left, box.top, boxWidth, box.height, radii);
}

function fill(box) {
  const far = view.scale < 0.3;
  const shade = far ? strongOf : paleOf;
  if (isEnd(box)) {
    pen.fillStyle = colours.card;
    return pen.fill();
  }
  const fixed = far ? colours.afar : colours.hatched;  // strokes closer than pixels would flicker
  if (box.makes.length === 0) {
    pen.fillStyle = fixed;
    return pen.fill();
  }
  if (box.makes.length === 1 && box.pinned === 0) {
    pen.fillStyle = shade(box.makes[0]);
    pen.fill();
  } else {
    pen.save();
    pen.clip();
    const shown = box.makes.slice(0, 6);
    const free = boxWidth * (1 - (box.channels > 0 ? box.pinned / box.channels : 0));
    shown.forEach((g, i) => {
      pen.fillStyle = shade(g);
      pen.fillRect(box.left + (free * i) / shown.length, box.top, free / shown.length + 0.5, box.height);
    });
    if (box.pinned > 0) {
      pen.fillStyle = fixed;
      pen.fillRect(box.left + free, box.top, boxWidth - free, box.height);
    }
    pen.restore();
  }
  if (!far && box.layer) stripe(box);
}

/** The strong colour at the side of a layer, and how much of it is kept. */
function stripe(box) {
  pen.save();
  pen.clip();
  const shown = box.makes.slice(0, 6);
  shown.forEach((g, i) => {
    pen.fillStyle = strongOf(g);
    pen.fillRect(box.left, box.top + (box.height * i) / shown.length, 5, box.height / shown.length + 0.5);
  });
  if (decided && box.channels > 0) {
    pen.fillStyle = colours.line;
    pen.fillRect(box.left + 5, box.top + box.height - 5, boxWidth - 5, 5);
    pen.fillStyle = strongOf(box.makes[0]);
    pen.fillRect(box.left + 5, box.top + box.height - 5, ((boxWidth - 5) * box.kept) / box.channels, 5);
  }
  pen.restore();
}

function write(box) {
  const { name, sub, shape } = texts(box);
  pen.textBaseline = 'middle';
  pen.fillStyle = colours.ink;
  if (isEnd(box)) {
    pen.font = `600 11px ${font}`;
    pen.textAlign = 'center';
    pen.fillText(name, box.left + boxWidth / 2, box.top + box.height / 2 + 0.5);
  } else if (box.layer) {
    pen.textAlign = 'left';
    const room = decided && box.channels > 0 ? 2.5 : 0;
    pen.font = `600 12px ${font}`;
    written(box, name, box.left + 13, box.top + 17 - room);
    pen.font = `11px ${font}`;
    written(box, sub, box.left + 13, box.top + 34 - room);
  } else {
    pen.textAlign = 'left';
    pen.font = `11px ${font}`;
    written(box, name, box.left + 13, box.top + box.height / 2 + 0.5);
    pen.font = `10px ${font}`;
    pen.textAlign = 'right';
    pen.fillStyle = colours.quiet;
    if (shape) written(box, shape, box.left + boxWidth - 9, box.top + box.height / 2 + 0.5);
  }
}
/** Hatching would run through letters. */
function written(box, text, x, y) {
  if (box.makes.length === 0 || box.pinned > 0) {
    pen.lineJoin = 'round';
    pen.lineWidth = 4;
    pen.strokeStyle = box.makes.length === 0 ? colours.fixed : colours.card;
    pen.strokeText(text, x, y);
  }
  pen.fillText(text, x, y);
}

function border(box) {
  const mine = chosen.box === box.index;
  const group = chosen.group >= 0 ? groups[chosen.group] : null;
  const roles = group ? group.roles ??= rolesOf(group) : null;
  const role = roles?.get(box.index);
  pen.setLineDash([]);
  if (mine || role) {
    pen.lineWidth = Math.max(2.5, 2.2 / view.scale);
    pen.strokeStyle = mine ? colours.accent : strongOf(chosen.group);
    if (role === 'in') pen.setLineDash([7, 4]);
  } else {
    pen.lineWidth = Math.min(1.5, 1 / view.scale);
    pen.strokeStyle = box.makes.length > 0 ? strongOf(box.makes[0]) : colours.hatch;
  }
  pen.stroke();
  pen.setLineDash([]);
}
function rolesOf(group) {
  const roles = new Map();
  for (const [box, , role] of group.members) {
    if (role === 'out' || !roles.has(box)) roles.set(box, role);
  }
  return roles;
}

function paint() {
  asked = 0;
  const start = performance.now();
  const { ratio } = size;
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  pen.setTransform(view.scale * ratio, 0, 0, view.scale * ratio, view.x * ratio, view.y * ratio);
  const left = -view.x / view.scale;
  const top = -view.y / view.scale;
  const right = left + size.width / view.scale;
  const bottom = top + size.height / view.scale;

  pen.lineWidth = Math.max(1.4, 0.9 / view.scale);
  pen.strokeStyle = colours.wire;
  pen.globalAlpha = focus ? 0.35 : 1;
  for (const wire of wires) {
    if (wire.right < left || wire.left > right || wire.bottom < top || wire.top > bottom) continue;
    pen.setLineDash(wire.inside ? [5, 4] : []);
    pen.stroke(wire.path);
  }
  pen.setLineDash([]);
  pen.globalAlpha = 1;
  pen.lineWidth = Math.max(2.2, 1.8 / view.scale);
  pen.strokeStyle = chosen.group >= 0 ? strongOf(chosen.group) : colours.accent;
  for (const path of focusLines) pen.stroke(path);

  let drawn = 0;
  const legible = view.scale > 0.66;
  const names = view.scale > 0.36;
  for (const box of boxes) {
    if (box.left > right || box.left + boxWidth < left || box.top > bottom || box.top + box.height < top) continue;
    ++drawn;
    if (focus && !focus.has(box.index)) {
      pen.globalAlpha = 1;
      outline(box);
      pen.fillStyle = colours.page;
      pen.fill();
      pen.globalAlpha = 0.28;
    }
    outline(box);
    fill(box);
    outline(box);
    border(box);
    if (legible) write(box);
    else if (names && (box.layer || isEnd(box))) writeFar(box);
    pen.globalAlpha = 1;
  }
  paintMap();
  state.drawn = drawn;
  state.frames += 1;
  state.spent.push(performance.now() - start);
  if (state.spent.length > 240) state.spent.shift();
}
function draw() {
  if (!asked) asked = requestAnimationFrame(paint);
}
