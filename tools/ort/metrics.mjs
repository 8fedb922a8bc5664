// How far two runs are apart. Everything is relative to the larger side's scale: max|a - b| / max|a|.

/** Largest finite absolute value. */
export function peak(data) {
  let largest = 0;
  for (const value of data) {
    const size = Math.abs(value);
    if (size > largest && size < Infinity) largest = size;
  }
  return largest;
}

/**
 * Compares b with the reference a.
 * @returns {difference, at, found, wanted}: the relative difference, and the element where it is largest.
 *   Infinity where one is NaN or infinite and the other is not the same.
 */
export function relativeDifference(a, b) {
  let largest = 0;
  let at = -1;
  for (let i = 0; i < a.length; ++i) {
    if (Object.is(a[i], b[i]) || a[i] === b[i]) continue;
    const distance = Math.abs(a[i] - b[i]);
    const size = Number.isNaN(distance) ? Infinity : distance;
    if (size > largest) [largest, at] = [size, i];
  }
  if (at < 0) return { difference: 0 };
  // Where a is zero throughout, b is wholly wrong: there is no scale to set it against.
  return { difference: largest / peak(a), at, found: b[at], wanted: a[at] };
}

/** NaN proves nothing, even where both have it. An infinity that both share is a value like another. */
export const hasNaN = (data) => data.some((value) => Number.isNaN(value));

/** An infinity is no result where no reference says that it should be there. */
export const isFinite = (data) => data.every((value) => typeof value === 'string' || Number.isFinite(Number(value)));
