// How far two runs are apart. Everything is relative to the reference's scale: max|a - b| / max|a|.

/** Largest finite absolute value. */
export function peak(data) {
  let largest = 0;
  for (const value of data) {
    const size = Math.abs(value);
    if (size > largest && size < Infinity) largest = size;
  }
  return largest;
}

/** The largest |a - b| and where; Infinity where one is NaN or infinite and the other is not. */
function largestDistance(a, b) {
  let largest = 0;
  let at = -1;
  for (let i = 0; i < a.length; ++i) {
    if (Object.is(a[i], b[i]) || a[i] === b[i]) continue;
    const distance = Math.abs(a[i] - b[i]);
    const size = Number.isNaN(distance) ? Infinity : distance;
    if (size > largest) [largest, at] = [size, i];
  }
  return { distance: largest, at };
}

/**
 * Compares b with the reference a.
 * @returns {difference, at, wanted, found}: the relative difference, and where it is largest.
 *   Infinity where a is zero throughout and b is not: there is no scale to set it against.
 */
export function relativeDifference(a, b) {
  const { distance, at } = largestDistance(a, b);
  return at < 0
    ? { difference: 0 }
    : { difference: distance / peak(a), at, wanted: a[at], found: b[at] };
}

/**
 * NaN proves nothing, even where both have it. An infinity that both share is a value like another.
 */
export const hasNaN = (data) => data.some((value) => Number.isNaN(value));

/** Where no reference says that an infinity should be there, it is as bad as NaN. */
export const isFinite = (data) =>
  data.every((value) => typeof value === 'string' || Number.isFinite(value));

/** One output of one run against the other's; another shape is wholly different. */
export function differenceOf(wanted, found) {
  if (`${wanted.shape}` === `${found.shape}`) return relativeDifference(wanted.data, found.data);
  return {
    difference: Infinity,
    shape_wanted: wanted.shape,
    shape_found: found.shape,
    rank_differs: wanted.shape.length !== found.shape.length,
  };
}

/**
 * How much an output moves between probes, relative to its scale: what stands still proves nothing.
 * null where one probe cannot tell.
 */
export function signalOf(runs) {
  const alike = runs
    .filter(({ shape }) => `${shape}` === `${runs[0].shape}`)
    .map(({ data }) => data);
  const scale = Math.max(...alike.map(peak));
  if (scale === 0) return 0;
  if (alike.length < 2) return null;
  return (
    Math.max(...alike.slice(1).map((data, i) => largestDistance(alike[i], data).distance)) / scale
  );
}
