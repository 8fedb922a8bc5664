// How far a network is from another one, on the same inputs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parsimony/engines/engine.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

/// ‖a − b‖ / ‖b‖ over the elements of all floating-point outputs, as many of each as of the other;
/// infinite where an element of `a` is not finite. 0 where `b` is 0 and `a` too.
double relative_error(std::span<const TensorBytes> a, std::span<const TensorBytes> b);

/// One network's outputs, batch by batch.
using Outputs = std::vector<std::vector<TensorBytes>>;

/// √(1 − r²), 0..1: how much of what `wanted` says about its samples no positive factor makes of
/// `found`. r is the correlation over all elements of an output [n, …], each measured from its mean
/// over the samples of all batches; of several floating-point outputs r² is averaged. 1 where
/// `found` hardly depends on the sample, or runs against `wanted`; infinite where an element is not
/// finite.
double unexplained(const Outputs& found, const Outputs& wanted);

/// Place of the largest element of each row of [n, classes], a floating-point tensor.
std::vector<int64_t> best_classes(const TensorBytes& scores);

/// Inputs in batches, and labels, if there are any.
struct ErrorData {
  std::vector<std::vector<TensorBytes>> batches;
  std::vector<int64_t> labels;  ///< of all samples, one after the other; may be empty
};

/// Compares networks with one that it has run. With labels it counts how many more of them a
/// network gets wrong, as a share; without, relative_error().
class NetworkComparison {
 public:
  /// Runs `original` on the engine, which must outlive this.
  /// @throws UnsupportedError if it cannot be run
  NetworkComparison(const Graph& original, Engine& engine, ErrorData data);

  double operator()(const Graph& small) const;
  /// See unexplained(); labels or not.
  double unexplained(const Graph& small) const;
  /// 1 − unexplained²: the share of what the outputs say that `small` still says, 0..1; 0 where no
  /// output is a floating-point tensor.
  double explained(const Graph& small) const;
  double accuracy() const { return accuracy_; }  ///< of the original; -1 without labels
  /// Those with labels; without, batches.
  int samples() const;

 private:
  std::vector<std::vector<TensorBytes>> outputs_of(const Graph& graph) const;
  double accuracy_of(const std::vector<std::vector<TensorBytes>>& outputs) const;

  Engine* engine_;
  ErrorData data_;
  std::vector<std::vector<TensorBytes>> wanted_;
  double accuracy_ = -1;
};

}  // namespace parsimony
