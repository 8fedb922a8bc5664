// The error of a network relative to another one, on the same inputs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parsimony/engines/engine.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

/// ‖found − expected‖ / ‖expected‖, summed over outputs and batches.
struct OutputError {
  double apart = 0;  ///< Σ (found − expected)²
  double size = 0;   ///< Σ expected²

  /// Adds a pair of outputs; ignores outputs that are not floating-point or differ in shape.
  void add(const TensorBytes& found, const TensorBytes& expected);
  void add(const OutputError& other);
  /// Returns √(apart / size): 0 if both are 0, NaN if an element is not finite.
  double relative() const;
};

/// ‖a − b‖ / ‖b‖ over the elements of all floating-point outputs, which must match in number;
/// infinite if an element of `a` is not finite. 0 if both are 0.
double relative_error(std::span<const TensorBytes> a, std::span<const TensorBytes> b);

/// One network's outputs, batch by batch.
using Outputs = std::vector<std::vector<TensorBytes>>;

/// √(1 − r²), 0..1: the part of `expected` that no positive multiple of `found` explains. r is the
/// correlation over all elements of an output [n, …], each centred on its mean over the samples of
/// all batches; r² is averaged over the floating-point outputs. 1 if `found` hardly depends on the
/// sample or correlates negatively with `expected`; infinite if an element is not finite.
double unexplained(const Outputs& found, const Outputs& expected);

/// The values of a tensor in host memory.
HostTensor numbers_of(const TensorBytes& tensor);

/// Inputs in batches, with optional labels.
struct ErrorData {
  std::vector<std::vector<TensorBytes>> batches;
  std::vector<int64_t> labels;  ///< of all samples in order; may be empty
};

/// Compares networks with a reference network. With labels the error is the loss of accuracy,
/// without labels relative_error().
class NetworkComparison {
 public:
  /// Runs `original` on the engine, which must outlive this.
  /// @throws UnsupportedError if it cannot be run
  NetworkComparison(const Graph& original, Engine& engine, ErrorData data);

  double operator()(const Graph& small) const;
  /// Returns unexplained() relative to the reference; ignores labels.
  double unexplained(const Graph& small) const;
  /// R² = 1 − unexplained²: the share of the outputs' variation that `small` still explains, 0..1;
  /// 0 if no output is a floating-point tensor.
  double r_squared(const Graph& small) const;
  double accuracy() const { return accuracy_; }  ///< of the original; -1 without labels
  /// The number of labels, or of batches without labels.
  int samples() const;

  /// Returns the outputs of `graph` for the data; `expected` are those of the reference network.
  Outputs outputs_of(const Graph& graph) const;
  const Outputs& expected() const { return expected_; }
  const std::vector<int64_t>& labels() const { return data_.labels; }

 private:
  double accuracy_of(const Outputs& outputs) const;

  Engine* engine_;
  ErrorData data_;
  std::vector<std::vector<TensorBytes>> expected_;
  double accuracy_ = -1;
};

}  // namespace parsimony
