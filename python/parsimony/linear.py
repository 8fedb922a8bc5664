"""Linear layers of transformers, and what they read."""

from __future__ import annotations

from torch import Tensor, nn


def is_linear(part: nn.Module) -> bool:
    return isinstance(part, nn.Linear) or is_transposed(part)


def is_transposed(part: nn.Module) -> bool:
    """Returns whether it is transformers' Conv1D, whose weight is `[in, out]`."""
    return type(part).__name__ == "Conv1D" and hasattr(part, "nf")


def rows_of(x: Tensor, mask: Tensor) -> Tensor:
    """Returns the vectors of tokens, `[N, width]`, without those behind the end of a sample."""
    flat = x.reshape(-1, x.shape[-1])
    return flat[mask.flatten() != 0] if len(flat) == mask.numel() else flat
