// Weight slices that a criterion scores a channel by; weights stored as integers, as read by
// DequantizeLinear, QLinearConv and similar operators; and norms of slices at memory speed, the
// basis of L1, L2 and related criteria.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/criterion.h"

namespace parsimony {

/// An element of a weight, or each of the codes in it, stands for (code - zero point) · scale.
struct Quantised {
  int64_t inner = 1;  ///< consecutive elements that share a scale
  std::vector<double> scale;
  std::vector<double> zero_point;  ///< as many as scales
  int64_t size = 1;                ///< where an axis has scales in blocks: its length
  int64_t block = 1;               ///< and that of a block
  int bits = 0;                    ///< of a code, where an element is a byte of several

  /// The number of the scale of element i.
  size_t place(int64_t i) const {
    const auto scales = static_cast<int64_t>(scale.size());
    if (size == 1) return static_cast<size_t>(i / inner % scales);
    const int64_t along = i / inner % size;
    const int64_t blocks = (size + block - 1) / block;
    return static_cast<size_t>((i / inner / size * blocks + along / block) * inner + i % inner);
  }
  int64_t codes() const { return bits == 0 ? 1 : 8 / bits; }
  /// Dequantises code `c` of element i, which is stored as the number `stored`.
  double number(int64_t i, int64_t c, double stored) const {
    const size_t k = place(i);
    if (bits > 0) {
      const auto code = static_cast<unsigned>(stored) >> (c * bits) & ((1U << bits) - 1);
      return (static_cast<double>(code) - zero_point[k]) * scale[k];
    }
    return (stored - zero_point[k]) * scale[k];
  }
};

/// Returns how `reader` interprets the weight; empty if it reads plain numbers, or if its scales
/// are not constants per tensor, per channel or per block.
std::optional<Quantised> quantised(const Graph& graph, const Node& reader, const Weight& weight);

/// Members without duplicates: several nodes may read one value.
enum class Which : uint8_t {
  kProducing,  ///< matrices (rank ≥ 2) of layers that produce the channels, or of experts; without
               ///< such, other matrices; without these, members of any rank, those of layers if
               ///< there are any
  kConsuming,   ///< matrices that consume them, those of layers if there are any; may be none
  kParameters,  ///< all except running statistics, divisors and settings
};
std::vector<const Member*> members_of(const Graph& graph, const Group& group, Which which);

/// The signed elements of each channel's slice of one member, in double; quantised weights are
/// dequantised. [channels, elements of a slice]
/// @throws ModelError naming tensor and element if there is a NaN
Eigen::MatrixXd slices_of(const Graph& graph, const Member& member);

/// The slices of several members side by side.
Eigen::MatrixXd slices_of(const Graph& graph, const Group& group, Which which);

enum class Power : uint8_t { kOne = 1, kTwo = 2 };

/// Indices [begin, end) along an axis of a weight.
struct Window {
  int axis = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

/// Σ |w|^power over each slice in the window. Relative to the axis the weight is [outer, size,
/// inner]; the result has `end - begin` elements. Sums are in double.
/// @throws UnsupportedError for a type that has no magnitude
std::vector<double> slice_norms(const Weight& weight, const Window& window, Power power);

/// Computes the norms of slices of integers that stand for (w - zero point) · scale.
std::vector<double> slice_norms(const Weight& weight, const Window& window, Power power,
                                const Quantised& quantised);

/// Σ |w|^power per channel, by default over the matrices (rank ≥ 2) of layers that produce the
/// channels: convolution kernels and rows, not biases, normalisations or tables of positions. What
/// a group without such matrices is summed over, `Which` says. Notifies the graph's owner when a
/// weight has been read.
/// @throws ModelError naming tensor and element if there is a NaN
Scores sum_members(const Graph& graph, const Group& group, Power power,
                   Which which = Which::kProducing);

}  // namespace parsimony
