// Numbers and names for people.

const thousands = (number) => Math.round(number).toLocaleString('en-US');
function short(number) {
  for (const [unit, size] of [['T', 1e12], ['G', 1e9], ['M', 1e6], ['k', 1e3]]) {
    if (Math.abs(number) >= size) return `${+(number / size).toPrecision(3)} ${unit}`;
  }
  return String(number);
}
const long = (number) => (number < 1e7 ? thousands(number) : short(number));
function percent(part, whole) {
  if (whole <= 0) return '–';
  const share = (100 * part) / whole;
  return share > 0 && share < 0.05 ? '< 0.1 %' : `${+share.toFixed(1)} %`;
}
const plain = (shape) => shape.slice(1, -1).replaceAll(', ', '×') || 'scalar';
const counted = (number, word) => `${thousands(number)} ${word}${number === 1 ? '' : 's'}`;
const unit = (group) => (group.granularity === 'channel' ? 'channel' : 'slice');
