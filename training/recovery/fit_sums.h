// Sums with which recovery fits a layer, and the values that it gives its weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "parsimony/speedup/small_network.h"
#include "parsimony/training/ranks/group.h"

namespace parsimony::training {

/// Sums over a layer's inputs and its residuals.
class FitSums {
 public:
  /// @param weights  fits a matrix
  /// @param shift    fits a constant beside it
  FitSums(bool weights, bool shift) : weights_(weights), shift_(shift) {}

  /// Forgets the residuals, which a round changes; the inputs stay.
  void next_round();

  /// x [g, rows, in], lack [g, rows, out].
  void add(const at::Tensor& x, const at::Tensor& lack);

  bool empty() const { return !cross_.defined(); }

  /// The change of the matrix, and of the constant behind it: [g, out, in (+ 1)]; undefined if
  /// nothing is lacking. @param ranks  whose sums are added up; null: there is but one
  at::Tensor solve(double ridge, const RankGroup* ranks);

 private:
  at::Tensor extended(const at::Tensor& x) const;

  bool weights_;
  bool shift_;
  bool complete_ = false;  ///< `second_` has all rows
  at::Tensor second_;
  at::Tensor cross_;
};

/// A weight in double.
at::Tensor in_double(const Weight& weight);

/// Gives a weight other values, in its own type.
void assign(SmallNetwork& small, const Weight& weight, const at::Tensor& values,
            const std::string& reason);

}  // namespace parsimony::training
