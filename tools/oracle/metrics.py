"""How far two runs are apart. Everything is relative to the reference's scale: max|a - b| / max|a|."""

import numpy


def is_text(array):
    return array.dtype.kind in "OUS"


def peak(array):
    """Largest finite absolute value."""
    if is_text(array):
        return 0.0
    sizes = numpy.abs(array.astype(float))
    return float(sizes[numpy.isfinite(sizes)].max(initial=0))


def distances(a, b):
    """|a - b| of each element; infinite where one is NaN or infinite and the other is not."""
    if is_text(a) or is_text(b):
        return numpy.where(a == b, 0.0, numpy.inf)
    a, b = a.astype(float), b.astype(float)
    with numpy.errstate(invalid="ignore"):
        apart = numpy.abs(a - b)
    same = (a == b) | (numpy.isnan(a) & numpy.isnan(b))
    return numpy.where(same, 0, numpy.where(numpy.isnan(apart), numpy.inf, apart))


def has_nan(array):
    """NaN proves nothing, even where both have it. An infinity that both share is a value like another."""
    return not is_text(array) and bool(numpy.isnan(array.astype(float)).any())


def is_finite(array):
    """Where no reference says that an infinity should be there, it is as bad as NaN."""
    return is_text(array) or bool(numpy.isfinite(array.astype(float)).all())


def difference_of(expected, found):
    """The relative difference of one output of one run, and where it is largest.

    It is infinite where the shape is another, and where `expected` is zero throughout and `found` is
    not: there is no scale to set it against.
    """
    if expected.shape != found.shape:
        shapes = {"shape_wanted": list(expected.shape), "shape_found": list(found.shape)}
        return {"difference": numpy.inf, **shapes, "rank_differs": expected.ndim != found.ndim}
    apart = distances(expected, found).ravel()
    if not apart.any():
        return {"difference": 0.0}
    at = int(apart.argmax())
    scale = peak(expected)
    return {
        "difference": float(apart[at]) / scale if scale else numpy.inf,
        "at": at,
        "expected": expected.item(at),
        "found": found.item(at),
    }


def signal_of(runs):
    """How much an output moves between probes, relative to its scale: what stands still proves nothing.

    None where one probe cannot tell.
    """
    alike = [run for run in runs if run.shape == runs[0].shape]
    scale = max(map(peak, alike))
    if scale == 0:
        return 0.0
    if len(alike) < 2:
        return None
    return max(float(distances(a, b).max(initial=0)) for a, b in zip(alike, alike[1:])) / scale
