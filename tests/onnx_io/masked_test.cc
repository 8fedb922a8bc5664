// The masked original, in the file's own storage.
#include "parsimony/onnx_io/masked.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "parsimony/onnx_io/reader.h"
#include "tests/onnx_io/fixture.h"

namespace parsimony::onnx_io::test {
namespace {

using onnx::TensorProto;

constexpr int64_t kRows = 3000;  // more than are masked at a time
constexpr int64_t kColumns = 1000;

/// w: 1, -2, 3, …, in the file or beside it; b: one element for each row.
std::string model_in(const TemporaryFolder& folder, bool external) {
  onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Op(x, w, b) }");
  onnx::GraphProto& graph = *model.mutable_graph();
  *graph.add_initializer() = counting("w", TensorProto::FLOAT, {kRows, kColumns}, true);
  *graph.add_initializer() = counting("b", TensorProto::FLOAT, {kRows}, false);
  std::string path = folder / "m.onnx";
  if (external) make_external(initializer(model, "w"), folder / "m.onnx.data", "m.onnx.data");
  save(model, path);
  return path;
}

/// Of w five elements and every third row and column go, and what remains of b is replaced.
Plan plan() {
  Plan plan;
  plan.zeros = {{"w", 5}};
  PlanSlice rows{"w", 0, Role::kOut, kRows, {}};
  for (int64_t i = 0; i < kRows; ++i) {
    if (i % 3 != 0) rows.keep.push_back(i);
  }
  PlanSlice columns{"w", 1, Role::kIn, kColumns, {}};
  for (int64_t i = 0; i < kColumns; ++i) {
    if (i % 3 != 0) columns.keep.push_back(i);
  }
  PlanSlice biases = rows;
  biases.tensor = "b";
  plan.groups.emplace_back().slices = {rows, columns, biases};
  TensorUpdate update{.tensor = "b", .reason = "fit"};
  update.values.resize(4 * rows.keep.size(), std::byte{0x3f});
  plan.updates = {update};
  return plan;
}

/// The numbers of `tensor` in the masked file.
std::vector<double> masked_numbers(const TemporaryFolder& folder, const std::string& tensor) {
  const ModelFile masked(folder / "masked.onnx");
  const HostTensor host = to_host(weight_of(to_graph(masked), tensor));
  std::vector<double> numbers;
  for (int64_t i = 0; i < host.count(); ++i) numbers.push_back(host.number(i));
  return numbers;
}

void write_masked(const TemporaryFolder& folder, bool external) {
  const Plan masked = plan();
  ModelFile file(model_in(folder, external));
  mask(file, masked);
  file.write(folder / "masked.onnx");
}

TEST(Masked, TensorsBesideTheModelStayThere) {
  const TemporaryFolder inside;
  const TemporaryFolder beside;
  write_masked(inside, false);
  write_masked(beside, true);
  EXPECT_LT(std::filesystem::file_size(beside / "masked.onnx"), 8 * kRows);
  EXPECT_EQ(std::filesystem::file_size(beside / "masked.onnx.data"), 4 * kRows * kColumns);
  for (const char* tensor : {"w", "b"}) {
    EXPECT_EQ(masked_numbers(inside, tensor), masked_numbers(beside, tensor)) << tensor;
  }
}

TEST(Masked, WhatGoesIsZero) {
  const TemporaryFolder folder;
  write_masked(folder, true);
  const std::vector<double> w = masked_numbers(folder, "w");
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    const bool goes = i < 5 || i / kColumns % 3 == 0 || i % kColumns % 3 == 0;
    const auto number = static_cast<double>(i % 2 == 0 ? i + 1 : -i - 1);
    ASSERT_EQ(w[i], goes ? 0 : number) << i;
  }
  const std::vector<double> b = masked_numbers(folder, "b");
  EXPECT_EQ(b[0], 0);
  EXPECT_NEAR(b[1], 0.747, 0.001);
}

}  // namespace
}  // namespace parsimony::onnx_io::test
