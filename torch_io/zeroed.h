// The masked original in its simplest form: zeros in the tensors themselves.
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

/// What a plan removes, `out` and `in` slices and the elements that level pruning zeroes, is zero
/// in the tensors themselves as long as this lives; then their values are back. With exact
/// constants it is what the plan's masks remove.
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
    at::Tensor indices = {};  ///< of the axis, which the values are of; undefined: of all
  };

  std::vector<Saved> saved_;  // the earliest first
};

}  // namespace parsimony::torch_io
