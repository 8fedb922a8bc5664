"""What the models are fed: shapes from the file or from --input, values from a seed."""

import dataclasses
import math
import pathlib
import re

import numpy

from .faults import Refusal, UsageFault
from .model import ALIASES
from .runtime import Session

# Sizes for dimensions that the file leaves open, in the order tried: nets that halve their input need
# multiples of 32, speech nets a minimum length; small ones come last because they prove least.
OPEN_SIZES = (32, 64, 160, 224, 320, 512, 640, 16, 8, 4, 2, 1)

# Upper ends for random integers: the first serves bytes and word indices, the second every mask.
INTEGER_RANGES = (256, 2)
FLAG_LIKE = re.compile("mask|type|segment|flag|padding", re.IGNORECASE)

FED = ("float16 float32 float64 bool int8 uint8 int16 uint16 int32 uint32 int64 uint64").split()
DISTRIBUTIONS = ("normal", "uniform", "pixels")

# Few numbers may leave no channel alive behind a ReLU, and cost little: more of them are tried.
PROBES = 3
PROBES_IF_SMALL = 8
SMALL_ELEMENTS = 1e4

OTHER_BATCH = 3
OTHER_BATCH_ELEMENTS = 1e6  # beyond this a second batch size costs more than it shows


@dataclasses.dataclass
class Spec:
    shape: list
    type: str | None = None
    value: float | None = None


@dataclasses.dataclass
class Input:
    """One argument with what the file and the specs leave open filled in."""

    name: str
    type: str
    dims: list
    shape: list
    value: float | None
    integers: int  # the upper end of random ones


@dataclasses.dataclass
class Probes:
    feeds: list  # {name: array} for each run
    batches: list
    inputs: list  # what to report of them


def parse_spec(text):
    """Reads `1x3x32x32`, `2x8:int64` or `:int64=16000`."""
    match = re.fullmatch(r"(\d+(?:x\d+)*)?(?::(\w+))?(?:=(\S+))?", text)
    if not match or not text:
        raise UsageFault(f'--input "{text}": expected a form like 1x3x32x32, 2x8:int64 or :int64=16000')
    shape, kind, value = match.groups()
    spec = Spec([int(size) for size in shape.split("x")] if shape else [], ALIASES.get(kind, kind))
    if kind and spec.type not in FED:
        raise UsageFault(f'--input "{text}": unknown type "{kind}"')
    if value:
        try:
            spec.value = float(value)
        except ValueError:
            raise UsageFault(f'--input "{text}": "{value}" is no number') from None
    return spec


def read_spec_table(path):
    """Reads lines `file<TAB>SPEC SPEC ...` into {file: specs}; `#` begins a comment."""
    rows = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    cells = [(row + "\t").split("\t") for row in rows if row.strip() and not row.startswith("#")]
    return {file: specs.split() for file, specs, *_ in cells}


def candidates(arguments, specs):
    """Every way to fill what the model and the specs leave open, best first: lists of Inputs."""
    if len(specs) > len(arguments):
        raise UsageFault(f"{len(specs)} times --input, but the model has {len(arguments)} inputs")
    specs = specs + [None] * (len(arguments) - len(specs))
    for argument, spec in zip(arguments, specs):
        require_fit(argument, spec)
    pairs = list(zip(arguments, specs))
    has_integers = any("int" in one.type and (not spec or spec.value is None) for one, spec in pairs)
    is_open = any(not spec and any(isinstance(dim, str) for dim in one.dims[1:]) for one, spec in pairs)
    for size in OPEN_SIZES if is_open else (1,):
        for integers in INTEGER_RANGES if has_integers else (0,):
            yield fill(pairs, size, integers)


def require_fit(argument, spec):
    name, kind, dims = argument.name, argument.type, argument.dims
    if dims is None:
        raise Refusal(f'input "{name}" is not a tensor')
    if kind not in FED:
        raise Refusal(f'input "{name}": {kind} cannot be fed')
    if not spec:
        return
    if spec.type and spec.type != kind:
        raise UsageFault(f'input "{name}" is {kind}, --input says {spec.type}')
    fits = len(spec.shape) == len(dims) and all(
        isinstance(dim, str) or dim == size for dim, size in zip(dims, spec.shape)
    )
    if not fits:
        shape = ",".join(str(dim or "?") for dim in dims)
        expected = ",".join(map(str, spec.shape))
        raise UsageFault(f'input "{name}" has shape [{shape}], --input says [{expected}]')


def fill(pairs, size, integers):
    symbols = {}
    for argument, spec in pairs:
        if spec:
            symbols.update((d, s) for d, s in zip(argument.dims, spec.shape) if isinstance(d, str) and d)
    for argument, spec in pairs:
        batch = argument.dims[0] if argument.dims else 0
        if not spec and isinstance(batch, str) and batch:
            symbols.setdefault(batch, 1)

    def sizes(dims):
        for d, dim in enumerate(dims):
            yield dim if isinstance(dim, int) else symbols.get(dim, 1 if d == 0 else size)

    return [
        Input(
            one.name,
            one.type,
            one.dims,
            spec.shape if spec else list(sizes(one.dims)),
            spec.value if spec else None,
            2 if FLAG_LIKE.search(one.name) else integers,
        )
        for one, spec in pairs
    ]


def at_batch(inputs, batch):
    """The same at another batch size; None where the batch is fixed or cannot be told."""
    symbols = {one.dims[0] for one in inputs if one.dims and isinstance(one.dims[0], str)}
    if len(symbols) != 1:
        return None
    (symbol,) = symbols

    def resized(one):
        is_batch = [dim == symbol and (dim != "" or d == 0) for d, dim in enumerate(one.dims)]
        return [batch if changes else size for changes, size in zip(is_batch, one.shape)]

    return [dataclasses.replace(one, shape=resized(one)) for one in inputs]


def draw(inputs, seed, distribution="normal"):
    """{name: array}."""
    return {one.name: values(one, distribution, mixed(seed, i)) for i, one in enumerate(inputs)}


def values(one, distribution, seed):
    count = math.prod(one.shape)
    if one.value is not None:
        drawn = numpy.full(count, one.value)
    elif one.type == "bool":
        drawn = numpy.floor(2 * uniform(seed, count))
    elif "int" in one.type:
        end = min(one.integers, 128) if one.type.endswith("int8") else one.integers
        drawn = numpy.floor(end * uniform(seed, count))
    elif distribution == "normal":
        drawn = normal(seed, count)
    elif distribution == "uniform":
        drawn = uniform(seed, count)
    else:
        drawn = numpy.floor(256 * uniform(seed, count))
    return drawn.astype(one.type).reshape(one.shape)


# Random numbers of our own, so that a probe can be repeated anywhere.


def uniform(seed, count):
    """Mulberry32: numbers in [0, 1)."""
    state = numpy.arange(1, count + 1, dtype=numpy.uint32) * numpy.uint32(0x6D2B79F5) + numpy.uint32(seed)
    t = (state ^ (state >> 15)) * (state | 1)
    t ^= t + (t ^ (t >> 7)) * (t | 61)
    return (t ^ (t >> 14)) / 2**32


def normal(seed, count):
    """Standard normal numbers (Box-Muller)."""
    drawn = uniform(seed, 2 * count)
    return numpy.sqrt(-2 * numpy.log(1 - drawn[::2])) * numpy.cos(2 * numpy.pi * drawn[1::2])


def mixed(*seeds):
    """One seed out of several numbers: neighbouring probes must not share a stream."""
    mask, state = 2**32 - 1, 0x811C9DC5
    for seed in seeds:
        state = ((state ^ seed) * 0x9E3779B1 & mask) ^ (state >> 15)
    return state


def choose_probes(path, model, specs, options):
    """Finds sizes at which the model runs and draws the probes.

    Where the batch is open, one more probe has another batch size: a batch that was written into the
    small model by mistake shows there alone.
    """
    session = Session(path, "all", options.threads)
    inputs = first_that_runs(session, candidates(model.inputs, specs), options)
    small = elements(inputs) <= SMALL_ELEMENTS
    count = options.inputs or (PROBES_IF_SMALL if small else PROBES)
    feeds = [draw(inputs, mixed(options.seed, i), options.distribution) for i in range(count)]
    batches = []
    if other := at_batch(inputs, OTHER_BATCH):
        changed = [one.shape for one, two in zip(inputs, other) if one.shape != two.shape]
        batches = [changed[0][0] if changed else OTHER_BATCH]
        if changed and elements(other) <= OTHER_BATCH_ELEMENTS:
            more = draw(other, mixed(options.seed, count), options.distribution)
            if runs(session, more):
                feeds.append(more)
                batches.append(OTHER_BATCH)
    return Probes(feeds, batches, [{"name": i.name, "type": i.type, "shape": i.shape} for i in inputs])


def first_that_runs(session, all_inputs, options):
    refusal = None
    for inputs in all_inputs:
        try:
            session.run(draw(inputs, options.seed, options.distribution))
            return inputs
        except Refusal as error:
            refusal = refusal or error
    raise Refusal(f"the model runs on no inputs tried; give --input. {refusal}")


def runs(session, feeds):
    try:
        session.run(feeds)
        return True
    except Refusal:
        return False


def elements(inputs):
    return sum(math.prod(one.shape) for one in inputs)
