// Shared by the tests of live modules.
#pragma once

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include <string>
#include <utility>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/torch_io/live/module_editor.h"
#include "tests/support/message_of.h"

namespace parsimony::torch_io {

using test::message_of;

struct Cut {
  std::string tensor;
  std::vector<AxisKeep> axes;
};

inline void edit(torch::nn::Module& module, const std::vector<Cut>& cuts) {
  ModuleEditor editor(module);
  for (const Cut& cut : cuts) editor.slice(cut.tensor, cut.axes);
  editor.commit();
  editor.keep();
}

inline at::Tensor select(const at::Tensor& tensor, int64_t axis, const std::vector<int64_t>& keep) {
  return tensor.detach().index_select(axis, at::tensor(keep, at::kLong));
}

/// Zero where the axis is not kept.
inline at::Tensor masked(const at::Tensor& tensor, int64_t axis, const std::vector<int64_t>& keep) {
  at::Tensor mask = at::zeros({tensor.size(axis)}, at::kBool);
  mask.index_fill_(0, at::tensor(keep, at::kLong), true);
  std::vector<int64_t> shape(tensor.dim(), 1);
  shape[axis] = tensor.size(axis);
  return tensor.detach() * mask.view(shape);
}

inline void expect_close(const at::Tensor& found, const at::Tensor& expected) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  EXPECT_TRUE(at::allclose(found, expected, 1e-4, 1e-5))
      << (found - expected).abs().max().item<double>();
}

/// The layer computes `expected`, and so does a clone, which is made of its options.
template <typename Holder, typename... Inputs>
void expect_computes(Holder& layer, const at::Tensor& expected, const Inputs&... inputs) {
  const at::NoGradGuard no_grad;
  expect_close(layer->forward(inputs...), expected);
  using Impl = typename Holder::ContainedType;
  const auto clone = std::dynamic_pointer_cast<Impl>(layer->clone());
  expect_close(clone->forward(inputs...), expected);
}

}  // namespace parsimony::torch_io
