// What differs between libtorch 1.13 and 2.x. Nothing else asks for the version.
#pragma once

#include <c10/core/TensorImpl.h>
#include <c10/util/C++17.h>
#include <torch/version.h>

#include <string>

namespace parsimony::torch_io::compat {

#if TORCH_VERSION_MAJOR >= 2
/// How an optimizer names the state of a tensor.
using StateKey = void*;
inline StateKey state_key(c10::TensorImpl* tensor) { return tensor; }
#else
using StateKey = std::string;
inline StateKey state_key(c10::TensorImpl* tensor) { return c10::guts::to_string(tensor); }
#endif

}  // namespace parsimony::torch_io::compat
