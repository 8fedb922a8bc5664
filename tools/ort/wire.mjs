// Protobuf's wire format, and nothing of any schema: a message is a list of numbered fields.
//
// Whatever is not touched is written back from the bytes it was read from, so that a model can be
// edited in one place without knowing what stands in the others.

/** How a field's payload is delimited. */
export const Wire = { VARINT: 0, FIXED64: 1, LENGTH: 2, FIXED32: 5 };

const utf8 = new TextDecoder();

/** A field keeps its payload; once opened as a message, the message speaks for it. */
class Field {
  constructor(number, wire, payload) {
    this.number = number;
    this.wire = wire;
    this.payload = payload;
    this.message = undefined;
  }

  open() {
    this.message ??= Message.parse(this.payload);
    return this.message;
  }

  encode() {
    const payload = this.message ? this.message.encode() : this.payload;
    const parts = [encodeVarint((BigInt(this.number) << 3n) | BigInt(this.wire))];
    if (this.wire === Wire.LENGTH) parts.push(encodeVarint(BigInt(payload.length)));
    parts.push(payload);
    return parts;
  }
}

/** A protobuf message whose meaning is known to the caller alone. */
export class Message {
  fields = [];

  /** @throws Error where the bytes are no protobuf message. */
  static parse(bytes) {
    const message = new Message();
    let at = 0;
    while (at < bytes.length) {
      const [tag, bodyAt] = readVarint(bytes, at);
      const wire = Number(tag & 7n);
      const [start, end] = payloadRange(bytes, bodyAt, wire);
      if (end > bytes.length) throw new Error('a protobuf field reaches beyond its message');
      message.fields.push(new Field(Number(tag >> 3n), wire, bytes.subarray(start, end)));
      at = end;
    }
    return message;
  }

  encode() {
    return Buffer.concat(this.fields.flatMap((field) => field.encode()));
  }

  all(number) {
    return this.fields.filter((field) => field.number === number);
  }

  /** The last one counts where a singular field is repeated: so says the format. */
  field(number) {
    return this.all(number).pop();
  }

  message(number) {
    return this.field(number)?.open();
  }

  messages(number) {
    return this.all(number).map((field) => field.open());
  }

  bytes(number) {
    return this.field(number)?.payload;
  }

  text(number) {
    const payload = this.bytes(number);
    return payload ? utf8.decode(payload) : '';
  }

  texts(number) {
    return this.all(number).map((field) => utf8.decode(field.payload));
  }

  int(number) {
    const payload = this.bytes(number);
    return payload ? Number(signed(readVarint(payload, 0)[0])) : 0;
  }

  /** All values of a repeated integer, packed or not, as BigInts. */
  ints(number) {
    const values = [];
    for (const { payload } of this.all(number)) {
      for (let at = 0; at < payload.length;) {
        const [value, next] = readVarint(payload, at);
        values.push(signed(value));
        at = next;
      }
    }
    return values;
  }

  /**
   * All payloads of a repeated field in one run: the values of fixed-width numbers, packed or not.
   */
  run(number) {
    return Buffer.concat(this.all(number).map((field) => field.payload));
  }

  addBytes(number, payload) {
    this.fields.push(new Field(number, Wire.LENGTH, payload));
    return this;
  }

  addText(number, text) {
    return this.addBytes(number, new TextEncoder().encode(text));
  }

  addInt(number, value) {
    this.fields.push(
      new Field(number, Wire.VARINT, encodeVarint(BigInt.asUintN(64, BigInt(value)))),
    );
    return this;
  }

  addFloat(number, value) {
    const payload = Buffer.alloc(4);
    payload.writeFloatLE(value);
    this.fields.push(new Field(number, Wire.FIXED32, payload));
    return this;
  }

  addMessage(number, message = new Message()) {
    const field = new Field(number, Wire.LENGTH, undefined);
    field.message = message;
    this.fields.push(field);
    return message;
  }

  remove(...numbers) {
    this.fields = this.fields.filter((field) => !numbers.includes(field.number));
    return this;
  }
}

function readVarint(bytes, at) {
  let value = 0n;
  for (let shift = 0n; shift < 70n; shift += 7n) {
    if (at >= bytes.length) throw new Error('a protobuf number ends too early');
    const byte = bytes[at++];
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return [value, at];
  }
  throw new Error('a protobuf number is too long');
}

function encodeVarint(value) {
  const bytes = [];
  for (; value > 0x7fn; value >>= 7n) bytes.push(Number(value & 0x7fn) | 0x80);
  bytes.push(Number(value));
  return Uint8Array.from(bytes);
}

const signed = (value) => BigInt.asIntN(64, value);

function payloadRange(bytes, at, wire) {
  switch (wire) {
    case Wire.VARINT:
      return [at, readVarint(bytes, at)[1]];
    case Wire.FIXED64:
      return [at, at + 8];
    case Wire.FIXED32:
      return [at, at + 4];
    case Wire.LENGTH: {
      const [length, start] = readVarint(bytes, at);
      return [start, start + Number(length)];
    }
    default:
      throw new Error(`wire type ${wire} is not used by ONNX: is this an ONNX file?`);
  }
}
