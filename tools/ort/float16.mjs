// IEEE half precision, which JavaScript of this age does not have.

const scratch = new DataView(new ArrayBuffer(4));

/** The bits of the nearest half (ties to even). */
export function toHalf(value) {
  scratch.setFloat32(0, value);
  const bits = scratch.getUint32(0);
  const sign = (bits >>> 16) & 0x8000;
  const exponent = ((bits >>> 23) & 0xff) - 112;
  const mantissa = bits & 0x7fffff;
  if (exponent >= 31) return sign | 0x7c00 | (Number.isNaN(value) ? 0x200 : 0);
  if (exponent < -10) return sign;
  const full = exponent > 0 ? (exponent << 23) | mantissa : mantissa | 0x800000;
  const shift = exponent > 0 ? 13 : 14 - exponent;
  const rest = full & ((1 << shift) - 1);
  const half = 1 << (shift - 1);
  const low = full >>> shift;
  return sign | (rest > half || (rest === half && low & 1) ? low + 1 : low);
}

/** The number that half's bits stand for. */
export function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 0x1f;
  const mantissa = bits & 0x3ff;
  if (exponent === 31) return mantissa ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 25) * (mantissa + 1024) : 2 ** -24 * mantissa);
}
