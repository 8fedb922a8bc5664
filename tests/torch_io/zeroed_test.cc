// Zeros for a while.
#include "parsimony/torch_io/zeroed.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <span>

#include "parsimony/base/errors.h"

namespace parsimony::torch_io {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

Tensors originals() {
  return {{"w", at::arange(1, 25, at::kFloat).view({4, 6})},
          {"v", at::arange(1, 7, at::kFloat)},
          {"u", at::arange(1, 7, at::kFloat)}};
}

/// Of w the nine smallest elements go, then rows 1 and 3 and columns 0 and 5; v becomes 9, 8 where
/// it stays.
Plan plan() {
  Plan plan;
  plan.zeros = {{"u", 2}, {"w", 9}};
  PlanGroup rows;
  rows.slices = {{"w", 0, "out", 4, {0, 2}}, {"u", 0, "with", 6, {0}}};
  PlanGroup columns;
  columns.slices = {{"w", 1, "in", 6, {1, 2, 3, 4}}, {"v", 0, "out", 6, {1, 2}}};
  plan.groups = {rows, columns};
  TensorUpdate update;
  update.tensor = "v";
  const std::array<float, 2> values{9, 8};
  const auto bytes = std::as_bytes(std::span(values));
  update.values.assign(bytes.begin(), bytes.end());
  plan.updates = {update};
  return plan;
}

TEST(Zeroed, WhatGoesIsZeroAndComesBack) {
  const Tensors tensors = originals();
  {
    const Zeroed zeroed(plan(), [&](const std::string& name) { return tensors.at(name); });
    const at::Tensor w = at::zeros({4, 6});
    for (const int column : {1, 2, 3, 4}) w[2][column] = 13 + column;
    EXPECT_TRUE(at::equal(tensors.at("w"), w)) << tensors.at("w");
    EXPECT_TRUE(at::equal(tensors.at("v"), at::tensor({0, 9, 8, 0, 0, 0}, at::kFloat)));
    EXPECT_TRUE(at::equal(tensors.at("u"), at::tensor({0, 0, 3, 4, 5, 6}, at::kFloat)));
  }
  for (const auto& [name, tensor] : originals()) {
    EXPECT_TRUE(at::equal(tensors.at(name), tensor)) << name;
  }
}

TEST(Zeroed, WhatCannotBeWrittenToIsRefusedBeforeAnythingChanges) {
  Tensors tensors = originals();
  tensors["v"] = at::ones({1}).expand({6});
  const at::Tensor w = tensors.at("w").clone();
  const auto find = [&](const std::string& name) { return tensors.at(name); };
  EXPECT_THROW(Zeroed(plan(), find), UnsupportedError);
  EXPECT_TRUE(at::equal(tensors.at("w"), w));
}

}  // namespace
}  // namespace parsimony::torch_io
