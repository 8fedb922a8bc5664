#include "parsimony/pruners/elements/masks.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "parsimony/pruners/settings.h"

namespace parsimony::elements {

namespace {

/// Places of the `count` lowest scores; of equal ones the first.
std::vector<size_t> lowest(std::span<const double> scores, int64_t count) {
  std::vector<size_t> places(scores.size());
  std::iota(places.begin(), places.end(), size_t{0});
  const auto lower = [&](size_t a, size_t b) {
    return scores[a] < scores[b] || (scores[a] == scores[b] && a < b);
  };
  const auto end = places.begin() + count;
  if (end != places.end()) std::nth_element(places.begin(), end, places.end(), lower);
  places.erase(end, places.end());
  return places;
}

/// Keeps the n highest of columns [begin, end) of one row; of equal ones the left.
void keep_highest(const Matrix& scores, int64_t row, int64_t begin, int64_t end, int n,
                  Keep& keep) {
  std::vector<int64_t> order(end - begin);
  std::iota(order.begin(), order.end(), begin);
  std::ranges::stable_sort(order,
                           [&](int64_t a, int64_t b) { return scores(row, a) > scores(row, b); });
  for (size_t i = n; i < order.size(); ++i) keep(row, order[i]) = 0;
}

struct Block {
  int64_t row = 0;
  int64_t column = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

std::vector<Block> blocks_of(const Matrix& weights, int block_rows, int block_columns, Runs runs) {
  std::vector<Block> blocks;
  for (int64_t r = 0; r < weights.rows(); r += block_rows) {
    const int64_t rows = std::min<int64_t>(block_rows, weights.rows() - r);
    for (int64_t c = 0; c < weights.cols();) {
      const int64_t end = runs.group_end(c, block_columns);
      blocks.push_back({r, c, rows, end - c});
      c = end;
    }
  }
  return blocks;
}

}  // namespace

Keep keep_n_of_m(const Matrix& scores, NmPattern pattern, Runs runs) {
  Keep keep = Keep::Ones(scores.rows(), scores.cols());
  for (int64_t r = 0; r < scores.rows(); ++r) {
    for (int64_t c = 0; c < scores.cols();) {
      const int64_t end = runs.group_end(c, pattern.m);
      if (end - c > pattern.n) keep_highest(scores, r, c, end, pattern.n, keep);
      c = end;
    }
  }
  return keep;
}

Keep keep_all_but(const Matrix& scores, int64_t count) {
  Keep keep = Keep::Ones(scores.rows(), scores.cols());
  const std::span<const double> all(scores.data(), scores.size());
  for (size_t i : lowest(all, count)) keep.data()[i] = 0;
  return keep;
}

Keep keep_of_rows(const Matrix& scores, double ratio) {
  Keep keep = Keep::Ones(scores.rows(), scores.cols());
  const int64_t count = floor_of(ratio, scores.cols());
  for (int64_t r = 0; r < scores.rows(); ++r) {
    const std::span<const double> row(scores.data() + r * scores.cols(), scores.cols());
    for (size_t c : lowest(row, count)) keep(r, static_cast<int64_t>(c)) = 0;
  }
  return keep;
}

Keep keep_blocks(const Matrix& weights, int block_rows, int block_columns, double ratio,
                 Runs runs) {
  const std::vector<Block> blocks = blocks_of(weights, block_rows, block_columns, runs);
  std::vector<double> scores;
  scores.reserve(blocks.size());
  for (const Block& b : blocks) {
    scores.push_back(weights.block(b.row, b.column, b.rows, b.columns).squaredNorm() /
                     static_cast<double>(b.rows * b.columns));
  }
  Keep keep = Keep::Ones(weights.rows(), weights.cols());
  for (size_t i : lowest(scores, floor_of(ratio, static_cast<int64_t>(blocks.size())))) {
    const Block& b = blocks[i];
    keep.block(b.row, b.column, b.rows, b.columns).setZero();
  }
  return keep;
}

Matrix wanda_scores(const Matrix& weights, const Eigen::MatrixXd& second) {
  const Eigen::RowVectorXd norms = second.diagonal().cwiseMax(0.0).cwiseSqrt().transpose();
  return weights.cwiseAbs().array().rowwise() * norms.array();
}

}  // namespace parsimony::elements
