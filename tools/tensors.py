"""safetensors files as numpy arrays."""

import json
import struct

import numpy

TYPES = {
    "F16": numpy.float16,
    "F32": numpy.float32,
    "F64": numpy.float64,
    "I8": numpy.int8,
    "I16": numpy.int16,
    "I32": numpy.int32,
    "I64": numpy.int64,
    "U8": numpy.uint8,
    "BOOL": numpy.bool_,
}


def save(path, arrays):
    """Writes {name: array}; the types are those of TYPES."""
    names = {numpy.dtype(of): name for name, of in TYPES.items()}
    header, offset = {}, 0
    for name, array in arrays.items():
        end = offset + array.nbytes
        header[name] = {"dtype": names[array.dtype], "shape": array.shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(numpy.ascontiguousarray(array).tobytes())


def load_bytes(path):
    """{name: (dtype, shape, bytes)}, mapped into memory."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    data = numpy.memmap(path, numpy.uint8, "r", 8 + length)
    header.pop("__metadata__", None)
    return {
        name: (row["dtype"], row["shape"], data[slice(*row["data_offsets"])]) for name, row in header.items()
    }


def load(path):
    """Reads {name: array}."""
    rows = load_bytes(path).items()
    return {name: data.view(TYPES[dtype]).reshape(shape) for name, (dtype, shape, data) in rows}
