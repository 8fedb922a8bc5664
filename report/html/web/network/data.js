// The files of this folder are one script, in the order of CMakeLists.txt and in one scope. It shows a
// network: boxes on a canvas, and a panel that says what each is. Places, costs and scores come ready
// with the page; what depends on the window is computed here: into how many columns the picture is
// cut, and what of it is seen.

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

// The data, with what is left out filled in, and indexes.

const boxes = data.boxes.map((box, index) => {
  const [x, y, height, layer] = box.at;
  return {
    op: '', shape: '', small: '', params: 0, macs: 0, memory: 0, channels: 0, pinned: 0, makes: [], reads: [],
    weights: [], obstacles: [], ...box,
    kept: box.kept ?? box.channels ?? 0,
    index, x, y, height, rank: layer, sources: [], targets: [], last: true,
  };
});
const peakMemory = Math.max(0, ...boxes.map((box) => box.memory));
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
