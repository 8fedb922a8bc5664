#include "parsimony/api/recovery/square_sums.h"

#include <algorithm>
#include <vector>

#include "parsimony/api/recovery/row_sums.h"

namespace parsimony {
namespace {

// Columns of a block: several of fewer cost more than the products that they save.
constexpr int64_t kLeast = 512;

/// Returns the first column of each block, and the number of columns.
std::vector<int64_t> bounds_of(int64_t columns) {
  const int64_t blocks = std::max<int64_t>(1, columns / kLeast);
  std::vector<int64_t> bounds;
  for (int64_t i = 0; i <= blocks; ++i) bounds.push_back(i * columns / blocks);
  return bounds;
}

}  // namespace

void ask_squares(GraphBuilder& graph, ValueId x, int64_t columns) {
  const std::vector<int64_t> bounds = bounds_of(columns);
  std::vector<ValueId> parts;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    const bool whole = bounds.size() == 2;
    parts.push_back(whole ? x : columns_between(graph, x, bounds[i], bounds[i + 1]));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t j = i; j < parts.size(); ++j) graph.output(products(graph, parts[i], parts[j]));
  }
}

size_t square_outputs(int64_t columns) {
  const size_t blocks = bounds_of(columns).size() - 1;
  return blocks * (blocks + 1) / 2;
}

void add_squares(std::span<const TensorBytes> blocks, int64_t group,
                 Eigen::Ref<Eigen::MatrixXd> sum) {
  const std::vector<int64_t> bounds = bounds_of(sum.rows());
  auto block = blocks.begin();
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    for (size_t j = i; j + 1 < bounds.size(); ++j, ++block) {
      // By columns, as they lie in the sum, the numbers are the transpose.
      const Shape& dims = block->dims;
      const auto* first = reinterpret_cast<const float*>(block->bytes.data());
      const Eigen::Map<const Eigen::MatrixXf> values(
          first + (dims[0] == 1 ? 0 : group) * dims[1] * dims[2], dims[2], dims[1]);
      sum.block(bounds[j], bounds[i], dims[2], dims[1]) += values.cast<double>();
    }
  }
}

void mirror_squares(Eigen::Ref<Eigen::MatrixXd> sum) {
  sum.triangularView<Eigen::StrictlyUpper>() = sum.transpose();
}

}  // namespace parsimony
