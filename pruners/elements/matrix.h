// Matrices that criteria over elements compute with: double, row-major.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>

#include "parsimony/pruners/elements/rule.h"

namespace parsimony::elements {

/// [rows, columns]: a row makes one output, a column reads one input.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// [rows, columns]; 1 keeps.
using Keep = Eigen::Array<uint8_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Columns in runs of `length` (the inputs of one position of the kernel), each divided into groups
/// of m from its start; the last group of a run may be shorter.
struct Runs {
  int64_t length = 0;

  /// The column after the group that holds column `c`.
  int64_t group_end(int64_t c, int m) const {
    const int64_t begin = c - c % length;
    return begin + std::min<int64_t>(length, ((c - begin) / m + 1) * m);
  }
};

}  // namespace parsimony::elements
