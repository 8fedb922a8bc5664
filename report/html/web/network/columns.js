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
  let run = null;  // a straight way down is one line, however many layers it passes
  const endRun = () => {
    if (!run) return;
    run.path.moveTo(run.x, run.from);
    run.path.lineTo(run.x, run.to);
    run = null;
  };
  for (const bend of bends) {
    const from = bend.above < 0 ? boxes[bend.box] : bends[bend.above];
    const wire = wireOf(bend.box, false);
    if (bend.above >= 0 && from.middle === bend.middle && from.column === bend.column) {
      run ??= { path: wire.path, x: bend.middle, from: rankBottom(from) };
      run.to = rankBottom(bend);
    } else {
      endRun();
      lead(wire.path, from, bend, laneOf(from, bend, bend.box));
    }
    grow(wire, from, bend);
  }
  endRun();
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
