// Sums with which recovery fits a layer, and the values that it gives its weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "parsimony/speedup/least_squares.h"
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

  /// x [g, rows, in], lack [g, rows, out]. @param target  of which it is the lack, where held out
  void add(const at::Tensor& x, const at::Tensor& lack, const at::Tensor& target, bool held_out);

  bool empty() const { return !seen_.cross.defined() && !held_.cross.defined(); }

  /// See LayerSums. @param ranks  whose sums are added up; null: there is but one
  std::vector<SplitSums> sums(const RankGroup* ranks);

 private:
  struct Share {
    at::Tensor second;
    at::Tensor cross;
    bool complete = false;  ///< `second` has all rows
  };

  at::Tensor extended(const at::Tensor& x) const;
  void add_to(Share& share, const at::Tensor& x, const at::Tensor& lack);

  bool weights_;
  bool shift_;
  Share seen_;
  Share held_;
  at::Tensor lacking_;  ///< [g], squares of what was held out
  at::Tensor wanted_;
};

/// [g, out, in] of as many matrices.
at::Tensor stacked(const std::vector<Eigen::MatrixXd>& matrices);

/// A weight in double.
at::Tensor in_double(const Weight& weight);

/// Gives a weight other values, in its own type.
void assign(SmallNetwork& small, const Weight& weight, const at::Tensor& values,
            const std::string& reason);

}  // namespace parsimony::training
