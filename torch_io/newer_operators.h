// Operators of PyTorch that this libtorch may lack.
#pragma once

namespace parsimony::torch_io {

/// Adds those of newer versions that are composed of older ones: files that use them can be read
/// and run. Does nothing where libtorch has them; only the first call does anything.
void add_newer_operators();

}  // namespace parsimony::torch_io
