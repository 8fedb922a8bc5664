// The masked original in its simplest form: zeros in the module's own tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/speedup/plan.h"

namespace parsimony::torch_io {

/// Finds a tensor by name. @throws ModelError if there is none
using FindTensor = std::function<at::Tensor(const std::string&)>;

/// The tensors of a network: those that plans name, and all that its program reads.
struct NetworkTensors {
  FindTensor find;
  std::vector<at::Tensor> all;
};

/// The parameters and buffers of a module, which must outlive it.
NetworkTensors tensors_of(const torch::nn::Module& module);

/// Memory of their own, for a while, for tensors that a change of what a plan names would also
/// show in: other views of the memory, such as a transpose, and the elements of an expanded
/// tensor. Tensors that are the same view stay one.
class Separated {
 public:
  Separated(const Plan& plan, const NetworkTensors& tensors);
  ~Separated();
  Separated(const Separated&) = delete;
  Separated& operator=(const Separated&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> shown_;  ///< the tensor, and what it showed
};

/// Zeroes the slices (`out` and `in`) that a plan removes, and the elements that level pruning
/// zeroes, in the tensors themselves; values are restored at the end of its lifetime. With exact
/// constants the plan's masks are zeroed instead.
class Zeroed {
 public:
  Zeroed(const Plan& plan, const NetworkTensors& tensors);
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

  Separated separated_;
  std::vector<Saved> saved_;  // oldest first
};

}  // namespace parsimony::torch_io
