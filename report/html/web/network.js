'use strict';

// Shows a network: boxes on a canvas, and a panel that says what each is. Places, costs and scores
// come ready with the page; what depends on the window is computed here: into how many columns the
// picture is cut, and what of it is seen.
(() => {
  const data = JSON.parse(document.getElementById('network-data').textContent);
  const byId = (id) => document.getElementById(id);
  const stage = byId('stage');
  const canvas = byId('picture');
  const map = byId('map');
  const panel = byId('panel');
  const content = byId('content');
  const tip = byId('tip');
  const query = byId('query');
  const found = byId('found');
  const narrow = matchMedia('(max-width: 46rem)');
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const still = matchMedia('(prefers-reduced-motion: reduce)');

  const boxWidth = data.box_width;
  const decided = Boolean(data.small);

  // ---------------------------------------------------------------------------------------------
  // The data, with what is left out filled in, and indexes.

  const boxes = data.boxes.map((box, index) => {
    const [x, y, height, layer] = box.at;
    return {
      op: '', shape: '', small: '', params: 0, macs: 0, channels: 0, pinned: 0, makes: [], reads: [],
      weights: [], obstacles: [], ...box,
      kept: box.kept ?? box.channels ?? 0,
      index, x, y, height, rank: layer, sources: [], targets: [], last: true,
    };
  });
  const groups = data.groups.map((group, index) => ({
    granularity: 'channel', mixes_at: '', boxes: [], members: [], ...group,
    kept: group.kept ?? group.size, index,
  }));
  const lines = data.lines.map(([from, to, via, inside]) => ({ from, to, via, inside: inside === 1 }));
  const bends = data.bends.map(([x, rank, box, above]) => ({ x, rank, box, above }));
  const ranks = data.layers.map(([top, bottom, passing]) => ({ top, bottom, passing }));
  for (const { from, to } of lines) {
    boxes[from].targets.push(to);
    boxes[to].sources.push(from);
    if (boxes[to].joined) boxes[from].last = false;
  }
  const isEnd = (box) => box.op === '';
  const cannotShrink = (box) => !isEnd(box) && box.makes.length === 0;
  const producers = (group) =>
    [...new Set(group.members.filter(([box, , role]) => role === 'out' && box >= 0 && boxes[box].layer)
      .map(([box]) => box))];

  // ---------------------------------------------------------------------------------------------
  // Numbers and names for people.

  const thousands = (number) => Math.round(number).toLocaleString('en-US');
  function short(number) {
    for (const [unit, size] of [['T', 1e12], ['G', 1e9], ['M', 1e6], ['k', 1e3]]) {
      if (Math.abs(number) >= size) return `${+(number / size).toPrecision(3)} ${unit}`;
    }
    return String(number);
  }
  const long = (number) => (number < 1e7 ? thousands(number) : short(number));
  const percent = (part, whole) => (whole > 0 ? `${+((100 * part) / whole).toFixed(1)} %` : '–');
  const plain = (shape) => shape.slice(1, -1).replaceAll(', ', '×') || 'scalar';
  const counted = (number, word) => `${thousands(number)} ${word}${number === 1 ? '' : 's'}`;
  const unit = (group) => (group.granularity === 'channel' ? 'channel' : 'slice');

  // ---------------------------------------------------------------------------------------------
  // Colours: those of a group are the more different, the closer two groups are.

  let colours = {};
  const channelsOf = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const mixed = (a, b, share) => {
    const [from, to] = [channelsOf(a), channelsOf(b)];
    const parts = from.map((c, i) => Math.round(c + (to[i] - c) * share));
    return `#${parts.map((c) => c.toString(16).padStart(2, '0')).join('')}`;
  };
  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const base = colour('groups').split(',').map((entry) => entry.trim());
    const strong = [0, 0.34, -0.3].flatMap((shade) =>
      base.map((hue) => (shade < 0 ? mixed(hue, '#000000', -shade) : mixed(hue, '#ffffff', shade))));
    colours = {
      page: colour('page'), card: colour('card'), ink: colour('ink'), quiet: colour('quiet'),
      line: colour('line'), wire: colour('wire'), accent: colour('accent'), fixed: colour('fixed'),
      hatch: colour('hatch'), strong,
      pale: strong.map((hue) => mixed(hue, colour('card'), dark.matches ? 0.72 : 0.8)),
      hatched: null, afar: mixed(colour('fixed'), colour('hatch'), 0.45),
    };
    const tile = document.createElement('canvas');
    tile.width = tile.height = 16;
    const pen = tile.getContext('2d');
    pen.fillStyle = colours.fixed;
    pen.fillRect(0, 0, 16, 16);
    pen.strokeStyle = colours.hatch;
    pen.lineWidth = 2.5;
    for (const at of [-8, 0, 8, 16]) {
      pen.moveTo(at - 2, 18);
      pen.lineTo(at + 18, -2);
    }
    pen.stroke();
    colours.hatched = canvas.getContext('2d').createPattern(tile, 'repeat');
    colours.hatched.setTransform(new DOMMatrix([0.5, 0, 0, 0.5, 0, 0]));
  }
  const strongOf = (group) => colours.strong[group % colours.strong.length];
  const paleOf = (group) => colours.pale[group % colours.pale.length];

  // ---------------------------------------------------------------------------------------------
  // Columns: a network is long. Where only a line or two pass, it can go on beside itself.

  const gutter = 64;
  const margin = 34;
  let columns = [];
  let world = { width: 1, height: 1 };
  let wires = [];

  function cutInto(count, mostPassing) {
    const wanted = ranks.at(-1).bottom / count;
    const cut = [];
    let first = 0;
    for (let l = 0; l < ranks.length; ++l) {
      const high = ranks[l].bottom - ranks[first].top;
      const mayCut = l + 1 < ranks.length && ranks[l].passing <= mostPassing;
      if ((mayCut && high + (ranks[l + 1].bottom - ranks[l + 1].top) / 2 >= wanted) || l + 1 === ranks.length) {
        cut.push({ first, last: l });
        first = l + 1;
      }
    }
    return cut;
  }

  const extents = (() => {
    const list = ranks.map(() => [Infinity, -Infinity]);
    const grow = (rank, left, right) => {
      list[rank][0] = Math.min(list[rank][0], left);
      list[rank][1] = Math.max(list[rank][1], right);
    };
    for (const box of boxes) grow(box.rank, box.x, box.x + boxWidth);
    for (const bend of bends) grow(bend.rank, bend.x - 6, bend.x + 6);
    return list;
  })();

  function measured(cut) {
    let x = 0;
    let height = 0;
    const list = cut.map(({ first, last }) => {
      const part = extents.slice(first, last + 1);
      const left = Math.min(...part.map(([a]) => a));
      const right = Math.max(...part.map(([, b]) => b));
      const column = { first, last, shift: x - left, top: ranks[first].top - margin, x, width: right - left };
      x += column.width + gutter;
      height = Math.max(height, ranks[last].bottom - ranks[first].top + 2 * margin);
      return column;
    });
    return { columns: list, width: x - gutter, height };
  }

  function arrange() {
    if (ranks.length === 0) return;
    const { width, height } = free();
    let best = null;
    for (const passing of [1, 3, 6]) {
      for (let count = 1; count <= 16; ++count) {
        const one = measured(cutInto(count, passing));
        const fit = Math.min(width / (one.width + 40), height / (one.height + 20));
        const score = fit * (passing === 1 ? 1.5 : passing === 3 ? 1.2 : 1);
        if (!best || score > best.score * 1.01) best = { ...one, score };
      }
    }
    columns = best.columns;
    world = { width: best.width, height: best.height };
    const columnOf = [];
    columns.forEach((column, c) => {
      for (let l = column.first; l <= column.last; ++l) columnOf[l] = c;
    });
    const put = (thing) => {
      thing.column = columnOf[thing.rank];
      return columns[thing.column];
    };
    for (const box of boxes) {
      const column = put(box);
      box.left = box.x + column.shift;
      box.top = box.y - column.top;
    }
    for (const bend of bends) bend.middle = bend.x + put(bend).shift;
    drawWires();
  }

  const rankTop = (thing) => ranks[thing.rank].top - columns[thing.column].top;
  const rankBottom = (thing) => ranks[thing.rank].bottom - columns[thing.column].top;

  /** From the lower edge of `from` to the upper edge of `to`; through the gutter to the next column. */
  function lead(path, from, to, lane) {
    const [x1, y1] = from.left === undefined
      ? [from.middle, rankBottom(from)] : [from.left + boxWidth / 2, from.top + from.height];
    const isBox = to.left !== undefined;
    const [x2, y2] = isBox ? [to.left + boxWidth / 2, to.top] : [to.middle, rankTop(to)];
    path.moveTo(x1, y1);
    if (from.column !== to.column) {
      const below = world.height - margin + 6 + lane * 5;
      const above = margin - 8 - lane * 5;
      const side = columns[to.column].x - gutter / 2 + lane * 6;
      const corners = [[x1, below], [side, below], [side, above], [x2, above], [x2, y2]];
      for (let i = 0; i + 1 < corners.length; ++i) path.arcTo(...corners[i], ...corners[i + 1], 9);
      path.lineTo(x2, y2);
    } else {
      const bottom = Math.min(rankBottom(from), y2);
      path.lineTo(x1, bottom);
      const half = (bottom + y2) / 2;
      if (Math.abs(x1 - x2) > 0.5) path.bezierCurveTo(x1, half, x2, half, x2, y2);
      else path.lineTo(x2, y2);
    }
    if (!isBox) path.lineTo(x2, rankBottom(to));
  }

  /** A path for all lines of a box, and what it takes to draw a single one. */
  function drawWires() {
    const bySource = new Map();
    const lanes = new Map();
    const wireOf = (box, inside) => {
      const key = box * 2 + (inside ? 1 : 0);
      if (!bySource.has(key)) {
        bySource.set(key, { box, inside, path: new Path2D(), left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity });
      }
      return bySource.get(key);
    };
    const laneOf = (from, to, box) => {
      if (from.column === to.column) return 0;
      if (!lanes.has(from.column)) lanes.set(from.column, new Map());
      const known = lanes.get(from.column);
      if (!known.has(box)) known.set(box, known.size % 6);
      return known.get(box);
    };
    const grow = (wire, ...things) => {
      const across = things.some((thing) => thing.column !== things[0].column);
      for (const thing of things) {
        const x = thing.middle ?? thing.left + boxWidth / 2;
        wire.left = Math.min(wire.left, across ? x - gutter - boxWidth : x - 2);
        wire.right = Math.max(wire.right, across ? x + gutter + boxWidth : x + 2);
        wire.top = Math.min(wire.top, across ? 0 : rankTop(thing));
        wire.bottom = Math.max(wire.bottom, across ? world.height : rankBottom(thing));
      }
    };
    for (const bend of bends) {
      const from = bend.above < 0 ? boxes[bend.box] : bends[bend.above];
      const wire = wireOf(bend.box, false);
      lead(wire.path, from, bend, laneOf(from, bend, bend.box));
      grow(wire, from, bend);
    }
    for (const line of lines) {
      if (boxes[line.to].joined) continue;
      const from = line.via < 0 ? boxes[line.from] : bends[line.via];
      const wire = wireOf(line.from, line.inside);
      lead(wire.path, from, boxes[line.to], laneOf(from, boxes[line.to], line.from));
      grow(wire, from, boxes[line.to]);
    }
    wires = [...bySource.values()];
  }

  /** One line from end to end, for what is selected. */
  function pathOf(line) {
    const path = new Path2D();
    const way = [boxes[line.to]];
    for (let at = line.via; at >= 0; at = bends[at].above) way.push(bends[at]);
    way.push(boxes[line.from]);
    way.reverse();
    for (let i = 0; i + 1 < way.length; ++i) lead(path, way[i], way[i + 1], 0);
    return path;
  }

  // ---------------------------------------------------------------------------------------------
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

  // ---------------------------------------------------------------------------------------------
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

  // ---------------------------------------------------------------------------------------------
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

  // The map: everything, and what of it is seen.
  const mapPen = map.getContext('2d');
  const mapPicture = document.createElement('canvas');
  let mapIsOld = true;
  let mapScale = 1;
  function paintMap() {
    const visible = { left: view.x, right: view.x + world.width * view.scale, top: view.y, bottom: view.y + world.height * view.scale };
    const { width, height } = room();
    const needed = !narrow.matches &&
      (visible.left < -30 || visible.top < -30 || visible.right > width + 30 || visible.bottom > height + 30);
    map.hidden = !needed;
    if (!needed) return;
    if (mapIsOld) drawMap();
    const { ratio } = size;
    mapPen.setTransform(1, 0, 0, 1, 0, 0);
    mapPen.clearRect(0, 0, map.width, map.height);
    mapPen.drawImage(mapPicture, 0, 0);
    mapPen.scale(ratio, ratio);
    mapPen.strokeStyle = colours.accent;
    mapPen.lineWidth = 2;
    mapPen.strokeRect(
      (-view.x / view.scale) * mapScale + 6, (-view.y / view.scale) * mapScale + 6,
      (width / view.scale) * mapScale, (height / view.scale) * mapScale);
  }
  function drawMap() {
    mapIsOld = false;
    mapScale = Math.min(220 / world.width, 170 / world.height);
    const width = Math.max(24, world.width * mapScale) + 12;
    const height = Math.max(24, world.height * mapScale) + 12;
    for (const each of [map, mapPicture]) {
      each.width = width * size.ratio;
      each.height = height * size.ratio;
    }
    map.style.width = `${width}px`;
    map.style.height = `${height}px`;
    const brush = mapPicture.getContext('2d');
    brush.scale(size.ratio, size.ratio);
    brush.translate(6, 6);
    for (const box of boxes) {
      brush.globalAlpha = focus && !focus.has(box.index) ? 0.2 : 1;
      brush.fillStyle = box.makes.length > 0 ? strongOf(box.makes[0]) : colours.hatch;
      brush.fillRect(box.left * mapScale, box.top * mapScale, Math.max(1, boxWidth * mapScale), Math.max(0.7, box.height * mapScale));
    }
  }
  function moveByMap(event) {
    const frame = map.getBoundingClientRect();
    const { width, height } = room();
    moved = true;
    cancelAnimationFrame(flight);
    view = {
      ...view,
      x: width / 2 - ((event.clientX - frame.left - 6) / mapScale) * view.scale,
      y: height / 2 - ((event.clientY - frame.top - 6) / mapScale) * view.scale,
    };
    draw();
  }
  map.addEventListener('pointerdown', (event) => {
    map.setPointerCapture(event.pointerId);
    moveByMap(event);
  });
  map.addEventListener('pointermove', (event) => {
    if (map.hasPointerCapture(event.pointerId)) moveByMap(event);
  });

  // ---------------------------------------------------------------------------------------------
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

  // ---------------------------------------------------------------------------------------------
  // The panel. Names come from files: they only ever become text.

  function el(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(properties)) {
      if (key === 'class') element.className = value;
      else if (key === 'click') element.addEventListener('click', value);
      else element.setAttribute(key, value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ''));
    return element;
  }
  function svg(tag, properties, ...children) {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [key, value] of Object.entries(properties)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }
  const chip = (group) => {
    const element = el('span', { class: 'chip', 'aria-hidden': 'true' });
    element.style.background = strongOf(group);
    return element;
  };
  const groupButton = (g) =>
    el('button', { type: 'button', class: 'pill', click: () => choose({ group: g }, { centre: true }) }, chip(g), groups[g].id);
  const boxButton = (b) =>
    el('button', { type: 'button', class: 'link', click: () => choose({ box: b }, { centre: true }) }, boxes[b].name || boxes[b].op);
  const facts = (...rows) =>
    el('dl', { class: 'facts' }, rows.filter(Boolean).map(([name, ...value]) => el('div', {}, el('dt', {}, name), el('dd', {}, ...value))));
  const change = (before, after, write = thousands) => (after === before ? [write(before)]
    : [el('span', { class: 'before' }, write(before)), ' → ', el('strong', {}, write(after)), el('span', { class: 'share' }, ` ${percent(after, before)}`)]);
  const back = () => el('button', { type: 'button', class: 'back', click: () => choose({}, { open: false }) }, '← Overview');
  const part = (title, ...children) => el('section', {}, el('h3', {}, title), ...children);
  function bar(kept, whole, group) {
    const inner = el('span');
    inner.style.width = `${(100 * kept) / Math.max(1, whole)}%`;
    inner.style.background = strongOf(group);
    return el('span', { class: 'bar', 'aria-hidden': 'true' }, inner);
  }
  /** A list of buttons; a long one is folded. */
  function many(list, make, most = 12) {
    const items = (from) => from.map((entry) => el('li', {}, make(entry)));
    const first = el('ul', { class: 'list' }, items(list.slice(0, most)));
    if (list.length <= most) return [first];
    return [first, el('details', {}, el('summary', {}, `${counted(list.length - most, 'more')}`.replace('mores', 'more')),
      el('ul', { class: 'list' }, items(list.slice(most))))];
  }

  function obstacleText([axis, size, pinned, reason]) {
    return [el('code', {}, axis), pinned < size ? ` ${thousands(pinned)} of ${thousands(size)}: ` : ' ', reason];
  }

  function overview() {
    const channels = groups.reduce((sum, group) => sum + group.size, 0);
    const kept = groups.reduce((sum, group) => sum + group.kept, 0);
    const [params, macs] = data.dense;
    const [smallParams, smallMacs] = data.small ?? data.dense;
    const inputs = data.inputs.map(({ name, shape, assumed }) =>
      `${name} ${shape ? `[${shape.join(', ')}]` : ''}${assumed ? ' (assumed)' : ''}`).join(', ');
    return [
      decided ? el('p', { class: 'asked' }, data.done ? 'Pruned with ' : 'What would go with ', el('code', {}, data.asked)) : null,
      facts(
        ['Parameters', ...change(params, smallParams, long)],
        ['MACs', ...change(macs, smallMacs, short)],
        ['Groups', thousands(groups.length)],
        ['Channels', ...change(channels, kept)]),
      el('p', { class: 'note' }, `MACs are multiply-adds for ${inputs || 'no input'}.`,
        data.uncounted.length > 0 ? ` ${counted(data.uncounted.length, 'node')} left out: not known.` : ''),
      legend(),
      part('Groups', el('p', { class: 'note' }, 'Channels that go together, or not at all.'),
        groups.length === 0 ? el('p', {}, 'No channel of this network can be removed.')
          : el('ul', { class: 'rows' }, groups.map((group) => el('li', {}, groupRow(group))))),
      fixed(),
    ];
  }

  function groupRow(group) {
    const names = producers(group).map((b) => bare(boxes[b]));
    const amount = group.kept < group.size ? `${thousands(group.kept)} of ${thousands(group.size)}` : thousands(group.size);
    return el('button', { type: 'button', class: 'row', click: () => choose({ group: group.index }, { centre: true }) },
      chip(group.index), el('span', { class: 'id' }, group.id),
      el('span', { class: 'names' }, names.length > 0 ? ending(names[0], (name) => name.length <= 24) ?? names[0] : '–', names.length > 1 ? ` +${names.length - 1}` : ''),
      el('span', { class: 'amount' }, amount),
      decided ? bar(group.kept, group.size, group.index) : null);
  }

  function legend() {
    const swatch = (kind) => el('span', { class: `swatch ${kind}`, 'aria-hidden': 'true' });
    const coloured = swatch('');
    coloured.style.background = `linear-gradient(90deg, ${strongOf(0)} 33%, ${strongOf(1)} 33% 66%, ${strongOf(2)} 66%)`;
    return el('ul', { class: 'legend' },
      el('li', {}, coloured, 'the group whose channels a layer makes'),
      el('li', {}, swatch('hatched'), 'cannot shrink'),
      decided ? el('li', {}, swatch('kept'), data.done ? 'what was kept' : 'what would be kept') : null,
      lines.some((line) => line.inside) ? el('li', {}, swatch('dashed'), 'runs inside the node') : null);
  }

  /** Reasons why layers cannot shrink, each with its layers. */
  function fixed() {
    const reasons = new Map();
    for (const box of boxes) {
      if (!box.layer) continue;
      for (const [axis, , , reason] of box.obstacles) {
        if (!reasons.has(reason)) reasons.set(reason, []);
        reasons.get(reason).push({ box: box.index, axis });
      }
    }
    if (reasons.size === 0) return null;
    return part('Cannot shrink', [...reasons].map(([reason, list]) => el('details', {},
      el('summary', {}, reason, el('span', { class: 'amount' }, thousands(list.length))),
      many(list, ({ box, axis }) => [boxButton(box), ' ', el('code', {}, axis)]))));
  }

  function aboutBox(box) {
    const weights = box.weights.map(([name, shape]) => el('tr', {}, el('td', {}, el('code', {}, name)), el('td', { class: 'number' }, shape.join('×') || 'scalar')));
    return [
      back(),
      el('h2', {}, box.name || box.op),
      el('p', { class: 'kind' }, isEnd(box) ? (box.sources.length > 0 ? 'Output of the network' : 'Input of the network') : box.op),
      facts(
        ['Result', ...(box.small ? [el('span', { class: 'before' }, plain(box.shape)), ' → ', el('strong', {}, plain(box.small))] : [plain(box.shape || '[?]')])],
        box.channels > 0 && ['Channels', ...change(box.channels, box.kept)],
        box.params > 0 && ['Parameters', thousands(box.params), el('span', { class: 'share' }, ` ${percent(box.params, data.dense[0])}`)],
        box.macs > 0 && ['MACs', short(box.macs), el('span', { class: 'share' }, ` ${percent(box.macs, data.dense[1])}`)]),
      box.makes.length > 0 ? part(box.makes.length > 1 ? 'Makes the channels of groups' : 'Makes the channels of group', el('p', { class: 'pills' }, box.makes.map(groupButton))) : null,
      box.reads.length > 0 ? part(box.reads.length > 1 ? 'Reads the channels of groups' : 'Reads the channels of group', el('p', { class: 'pills' }, box.reads.map(groupButton))) : null,
      box.obstacles.length > 0
        ? part('Cannot shrink', el('ul', { class: 'why' }, box.obstacles.map((each) => el('li', {}, obstacleText(each)))))
        : cannotShrink(box) ? part('Cannot shrink', el('p', {}, 'No channel that can be removed passes here.')) : null,
      weights.length > 0 ? part('Weights', el('table', {}, el('tbody', {}, weights))) : null,
      box.sources.length > 0 ? part('Reads', ...many([...new Set(box.sources)], boxButton)) : null,
      box.targets.length > 0 ? part('Is read by', ...many([...new Set(box.targets)], boxButton)) : null,
    ];
  }

  /** How the scores are spread; those that go are below those that stay. */
  function histogram(group) {
    const { range: [least, median, most], kept, gone } = group.scores;
    const high = Math.max(...kept.map((count, i) => count + gone[i]), 1);
    const number = (value) => +value.toPrecision(3);
    const bars = kept.flatMap((count, i) => {
      const g = (60 * gone[i]) / high;
      const k = (60 * count) / high;
      return [
        gone[i] > 0 && svg('rect', { x: i * 10 + 0.5, y: 62 - g, width: 9, height: g, class: 'gone' }),
        count > 0 && svg('rect', { x: i * 10 + 0.5, y: 62 - g - k, width: 9, height: k, fill: strongOf(group.index) }),
      ].filter(Boolean);
    });
    const label = `Scores from ${number(least)} to ${number(most)}, median ${number(median)}`;
    return part('Scores', el('figure', {},
      svg('svg', { viewBox: '0 0 240 64', role: 'img', 'aria-label': label, preserveAspectRatio: 'none' }, ...bars,
        svg('line', { x1: 0, x2: 240, y1: 62.5, y2: 62.5, class: 'ground' })),
      el('figcaption', {}, el('span', {}, `${number(least)}`), el('span', {}, `median ${number(median)}`), el('span', {}, `${number(most)}`))),
    el('p', { class: 'note' }, 'Channels by score. ', el('span', { class: 'swatch gone', 'aria-hidden': 'true' }), data.done ? ' were removed, the others kept.' : ' would go, the others stay.'));
  }

  function aboutGroup(group) {
    const word = unit(group);
    const gone = group.size - group.kept;
    const roles = { out: 'makes', in: 'reads', with: 'follows' };
    // A normalisation has four vectors; they are one row.
    const rows = new Map();
    for (const [box, axis, role, indices, size] of group.members) {
      const key = `${box} ${role} ${indices} ${size}`;
      if (!rows.has(key)) rows.set(key, { box, role, indices, size, axes: [] });
      rows.get(key).axes.push(axis);
    }
    const members = [...rows.values()].map(({ box, role, indices, size, axes }) => el('tr', {},
      el('td', {}, box >= 0 ? boxButton(box) : '–', axes.map((axis) => el('code', { class: 'axis' }, axis))),
      el('td', { class: 'role' }, roles[role] ?? role), el('td', { class: 'number' }, indices === size ? thousands(size) : `${thousands(indices)} of ${thousands(size)}`)));
    const inMembers = new Set(group.members.map(([box]) => box));
    const others = group.boxes.filter((b) => !inMembers.has(b));
    const cost = ([params, macs], shares) => [[params, 'parameter', long], [macs, 'MAC', short]].map(([number, word, write], i) =>
      el('div', {}, `${write(number)} ${word}${number === 1 ? '' : 's'}`, shares ? el('span', { class: 'share' }, ` ${percent(number, data.dense[i])}`) : ''));
    return [
      back(),
      el('h2', {}, chip(group.index), `Group ${group.id}`),
      el('p', { class: 'kind' }, counted(group.size, word), group.granularity === 'channel' ? '' : `, by ${group.granularity}`),
      decided ? el('div', { class: 'outcome' },
        el('p', {}, data.done ? (gone > 0 ? 'Kept ' : 'All kept: ') : (gone > 0 ? 'Would keep ' : 'Would keep all '), el('strong', {}, gone > 0 ? `${thousands(group.kept)} of ${thousands(group.size)}` : thousands(group.size)),
          gone > 0 ? `: ${percent(gone, group.size)} ${data.done ? 'gone' : 'go'}` : ''),
        bar(group.kept, group.size, group.index)) : null,
      group.mixes_at ? el('p', { class: 'warning' }, `Mixes at ${group.mixes_at}: what stays depends on what goes, so the small network is close to the original, not equal to it.`) : null,
      facts(
        [`One ${word} costs`, ...cost(group.channel, false)],
        gone > 0 && [`This group alone ${data.done ? 'saved' : 'saves'}`, ...cost(group.saved, true)]),
      group.scores ? histogram(group) : null,
      part('Weights', el('table', {}, el('thead', {}, el('tr', {}, el('th', {}, 'Layer and axis'), el('th', {}, 'Role'), el('th', { class: 'number' }, 'Indices'))), el('tbody', {}, members))),
      others.length > 0 ? part('Passes', ...many(others, (b) => [boxButton(b), ' ', el('span', { class: 'share' }, boxes[b].op)])) : null,
    ];
  }

  function showPanel() {
    content.replaceChildren(...(chosen.group >= 0 ? aboutGroup(groups[chosen.group])
      : chosen.box >= 0 ? aboutBox(boxes[chosen.box]) : overview()).filter(Boolean));
    content.scrollTop = 0;
    canvas.dataset.box = chosen.box;
    canvas.dataset.group = chosen.group;
  }

  // The sheet at the bottom of narrow windows.
  const grip = byId('grip');
  function openSheet(open) {
    panel.classList.toggle('closed', !open);
    grip.setAttribute('aria-expanded', String(open));
    draw();
  }
  grip.addEventListener('click', () => openSheet(panel.classList.contains('closed')));

  // ---------------------------------------------------------------------------------------------
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

  // ---------------------------------------------------------------------------------------------

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

  function start() {
    font = getComputedStyle(document.body).fontFamily;
    byId('model').textContent = data.model;
    byId('brand').textContent = data.done ? 'Parsimony prune' : 'Parsimony explain';
    canvas.setAttribute('aria-label', `Picture of ${data.model}: ${counted(boxes.length, 'box')}, ${counted(groups.length, 'group')}`.replace('boxs', 'boxes'));
    if (narrow.matches) openSheet(false);
    readColours();
    showPanel();
    resize();
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
})();
