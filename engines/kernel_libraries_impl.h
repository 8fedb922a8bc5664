// Libraries of custom operators: kernels of a user's own, which ONNX Runtime runs.
#pragma once

#include <span>
#include <string>

#include "parsimony/engines/ort_api_impl.h"

namespace parsimony::runtime {

/// A loaded library. It stays loaded.
struct KernelLibrary {
  std::string path;
  ort::Status* (*add_to)(ort::SessionOptions*, const ort::ApiBase*) = nullptr;
};

std::span<const KernelLibrary> kernel_libraries();

}  // namespace parsimony::runtime
