// Zeros for a while.
#include "parsimony/torch_io/zeroed.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <span>

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
  rows.slices = {{"w", 0, Role::kOut, 4, {0, 2}}, {"u", 0, Role::kWith, 6, {0}}};
  PlanGroup columns;
  columns.slices = {{"w", 1, Role::kIn, 6, {1, 2, 3, 4}}, {"v", 0, Role::kOut, 6, {1, 2}}};
  plan.groups = {rows, columns};
  TensorUpdate update;
  update.tensor = "v";
  const std::array<float, 2> values{9, 8};
  const auto bytes = std::as_bytes(std::span(values));
  update.values.assign(bytes.begin(), bytes.end());
  plan.updates = {update};
  return plan;
}

NetworkTensors network(const Tensors& tensors) {
  NetworkTensors found{[tensors](const std::string& name) { return tensors.at(name); }, {}};
  for (const auto& [name, tensor] : tensors) found.all.push_back(tensor);
  return found;
}

/// What the plan leaves of w, v and u, whatever memory they are views of, and what else there is,
/// which stays as it is; afterwards everything is as before, and in the same memory.
void expect_zeros_in_these_alone(const Tensors& tensors) {
  Tensors before;
  std::map<std::string, const void*> memory;
  for (const auto& [name, tensor] : tensors) {
    before[name] = tensor.clone();
    memory[name] = tensor.data_ptr();
  }
  {
    const Zeroed zeroed(plan(), network(tensors));
    const at::Tensor w = at::zeros({4, 6});
    for (const int column : {1, 2, 3, 4}) w[2][column] = 13 + column;
    EXPECT_TRUE(at::equal(tensors.at("w"), w)) << tensors.at("w");
    EXPECT_TRUE(at::equal(tensors.at("v"), at::tensor({0, 9, 8, 0, 0, 0}, at::kFloat)));
    EXPECT_TRUE(at::equal(tensors.at("u"), at::tensor({0, 0, 3, 4, 5, 6}, at::kFloat)));
    for (const auto& [name, tensor] : tensors) {
      const bool is_other = name.starts_with("other");
      if (!is_other && !name.starts_with("tied")) continue;
      EXPECT_TRUE(at::equal(tensor, is_other ? before[name] : w)) << name;
    }
  }
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(at::equal(tensor, before[name])) << name;
    EXPECT_EQ(tensor.data_ptr(), memory[name]) << name;
  }
}

TEST(Zeroed, WhatGoesIsZeroAndComesBack) { expect_zeros_in_these_alone(originals()); }

TEST(Zeroed, ATransposedViewStaysAndTheSameViewFollows) {
  Tensors tensors = originals();
  tensors["other"] = tensors.at("w").t();
  tensors["tied"] = tensors.at("w").view({4, 6});
  expect_zeros_in_these_alone(tensors);
}

TEST(Zeroed, OverlappingSlicesOfABufferAreApart) {
  const at::Tensor buffer = at::arange(1, 41, at::kFloat);
  Tensors tensors = originals();
  tensors["w"] = buffer.narrow(0, 0, 24).view({4, 6});
  tensors["other"] = buffer.narrow(0, 16, 12).view({3, 4});
  tensors["other of it"] = buffer.narrow(0, 30, 10);
  expect_zeros_in_these_alone(tensors);
}

TEST(Zeroed, SlicesThatDoNotOverlapStayInTheirMemory) {
  const at::Tensor buffer = at::arange(1, 41, at::kFloat);
  Tensors tensors = originals();
  tensors["w"] = buffer.narrow(0, 0, 24).view({4, 6});
  tensors["other"] = buffer.narrow(0, 24, 16);
  const void* memory = tensors["w"].data_ptr();
  const Zeroed zeroed(plan(), network(tensors));
  EXPECT_EQ(tensors["w"].data_ptr(), memory);
}

TEST(Zeroed, ColumnsOfAWiderMatrixAreApart) {
  const at::Tensor wide = at::zeros({4, 12});
  wide.narrow(1, 0, 6).copy_(originals().at("w"));
  Tensors tensors = originals();
  tensors["w"] = wide.narrow(1, 0, 6);
  tensors["other"] = wide.narrow(1, 6, 6);
  expect_zeros_in_these_alone(tensors);
}

TEST(Zeroed, ExpandedTensorsCanBeZeroed) {
  Tensors tensors = originals();
  tensors["v"] = at::ones({1}).expand({6});
  expect_zeros_in_these_alone(tensors);
}

TEST(Zeroed, ATensorWhoseWindowsOverlapCanBeZeroed) {
  const Plan rows = [] {
    Plan plan;
    PlanGroup group;
    group.slices = {{"w", 0, Role::kOut, 4, {1, 3}}};
    plan.groups = {group};
    return plan;
  }();
  const at::Tensor signal = at::arange(1, 10, at::kFloat);
  const Tensors tensors{{"w", signal.unfold(0, 6, 1)}};
  const at::Tensor before = tensors.at("w").clone();
  {
    const Zeroed zeroed(rows, network(tensors));
    EXPECT_TRUE(at::equal(tensors.at("w")[1], before[1]));
    EXPECT_EQ(tensors.at("w")[2].abs().sum().item<float>(), 0);
  }
  EXPECT_TRUE(at::equal(tensors.at("w"), before));
}

}  // namespace
}  // namespace parsimony::torch_io
