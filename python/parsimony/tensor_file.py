"""Files of named tensors in the safetensors layout, which the command reads and writes."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Dict, Mapping, Union

import numpy
import torch
from torch import Tensor

from .errors import FileError

_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_TYPES = {name: dtype for dtype, name in _NAMES.items()}


def write_tensors(path: Union[str, Path], tensors: Mapping[str, Tensor]) -> None:
    """Writes `tensors` under their names."""
    header: Dict[str, object] = {}
    contents = []
    offset = 0
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        data = tensor.reshape(-1).view(torch.uint8).numpy() if tensor.numel() else b""
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(data)],
        }
        contents.append(data)
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for data in contents:
            file.write(data)


def in_file(tensor: Tensor, path: Path) -> Tensor:
    """Returns a copy of the elements that lies in a new file, and in memory while it is read. The file
    may be removed; its room is free once the copy is."""
    shape, count = tensor.shape, max(1, tensor.numel())
    copy = torch.from_file(str(path), shared=True, size=count, dtype=tensor.dtype)
    copy = copy[: tensor.numel()].view(shape)
    copy.copy_(tensor)
    return copy


def read_tensors(path: Union[str, Path]) -> Dict[str, Tensor]:
    """Returns all tensors of a file. Raises FileError if it is invalid."""
    content = Path(path).read_bytes()
    try:
        (size,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + size])
        header.pop("__metadata__", None)
        tensors = {}
        for name, entry in header.items():
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            tensor = torch.empty(entry["shape"], dtype=_TYPES[entry["dtype"]])
            if tensor.numel() > 0:
                raw = torch.from_numpy(numpy.frombuffer(content[begin:end], numpy.uint8).copy())
                tensor = raw.view(tensor.dtype).reshape(tensor.shape)
            tensors[name] = tensor
        return tensors
    except (ValueError, KeyError, TypeError, RuntimeError, struct.error) as error:
        raise FileError(f"{path}: not a file of named tensors: {error}") from error
