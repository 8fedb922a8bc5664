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
