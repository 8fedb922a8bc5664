// The masked original in its simplest form: zeros in the module's own tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "parsimony/speedup/plan.h"

namespace parsimony::torch_io {

/// Finds a tensor by name. @throws ModelError if there is none
using FindTensor = std::function<at::Tensor(const std::string&)>;

/// The parameters and buffers of a module, which must outlive it.
FindTensor tensors_of(const torch::nn::Module& module);

/// Zeroes the slices (`out` and `in`) that a plan removes, and the elements that level pruning
/// zeroes, in the tensors themselves; values are restored at the end of its lifetime. With exact
/// constants the plan's masks are zeroed instead.
class Zeroed {
 public:
  Zeroed(const Plan& plan, const FindTensor& find);
  ~Zeroed();
  Zeroed(const Zeroed&) = delete;
  Zeroed& operator=(const Zeroed&) = delete;

 private:
  struct Saved {
    at::Tensor tensor;
    at::Tensor values;
    int64_t axis = 0;
    at::Tensor indices = {};  ///< of the axis, of the saved values; undefined: all
  };

  std::vector<Saved> saved_;  // oldest first
};

}  // namespace parsimony::torch_io
