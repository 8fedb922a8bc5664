// What stays of tensors, however they lie in memory.
#include "parsimony/torch_io/cut.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/torch_io/live_editing.h"

namespace parsimony::torch_io {
namespace {

const std::vector<int64_t> kRows{0, 2, 3};
const std::vector<int64_t> kColumns{1, 4};

/// [4, 5, 3, 2] becomes [3, 2, 3, 2].
at::Tensor cut_both(const at::Tensor& tensor) {
  const std::vector<AxisKeep> axes{{0, 4, kRows}, {1, 5, kColumns}};
  return cut("w", tensor, axes);
}

void expect_cut(const at::Tensor& tensor, at::MemoryFormat format) {
  const at::Tensor result = cut_both(tensor);
  EXPECT_TRUE(at::equal(result, select(select(tensor, 0, kRows), 1, kColumns)));
  EXPECT_EQ(result.scalar_type(), tensor.scalar_type());
  EXPECT_TRUE(result.is_contiguous(format));
  EXPECT_FALSE(result.requires_grad());
}

at::Tensor numbered() { return at::arange(4 * 5 * 3 * 2, at::kFloat).view({4, 5, 3, 2}); }

TEST(Cut, TensorsOfAnyType) {
  const at::Tensor tensor = numbered();
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kChar,
                                    at::kLong, at::kComplexFloat}) {
    expect_cut(tensor.to(type), at::MemoryFormat::Contiguous);
  }
  expect_cut(tensor.clone().set_requires_grad(true), at::MemoryFormat::Contiguous);
}

TEST(Cut, TensorsThatLieOtherwise) {
  const at::Tensor tensor = numbered();
  expect_cut(tensor.contiguous(at::MemoryFormat::ChannelsLast), at::MemoryFormat::ChannelsLast);
  expect_cut(tensor.permute({2, 3, 1, 0}).contiguous().permute({3, 2, 0, 1}),
             at::MemoryFormat::Contiguous);
  expect_cut(at::cat({tensor, tensor}, 1).narrow(1, 3, 5), at::MemoryFormat::Contiguous);
  expect_cut(at::cat({tensor, tensor}, 0).narrow(0, 3, 4), at::MemoryFormat::Contiguous);
}

TEST(Cut, ConjugatesThatAreNotWrittenOut) {
  const at::Tensor tensor = at::complex(numbered(), numbered() + 1);
  EXPECT_TRUE(at::equal(cut_both(tensor.conj()), cut_both(tensor.conj().resolve_conj())));
  EXPECT_TRUE(at::equal(cut_both(at::imag(tensor.conj())), cut_both(-at::imag(tensor))));
}

TEST(Cut, WhatBothOfTwoSlicesKeep) {
  const std::vector<AxisKeep> axes{{0, 4, {0, 1, 3}}, {0, 4, {1, 2, 3}}};
  EXPECT_TRUE(at::equal(cut("w", numbered(), axes), select(numbered(), 0, {1, 3})));
}

TEST(Cut, AxesThatDoNotFitAreNamed) {
  const std::vector<AxisKeep> axes{{0, 5, kRows}};
  EXPECT_THROW(cut("w", numbered(), axes), ModelError);
}

}  // namespace
}  // namespace parsimony::torch_io
