// Masked execution: the sizes of the small network, beside the original's.
#pragma once

#include <vector>

#include "parsimony/torch_io/executor/program_impl.h"

namespace parsimony::executor {

/// Sizes are those of the original, for data is moved by them. What they are in the small network
/// is computed beside, from Shape on through whatever reads nothing but sizes and weights.
class SmallSizes {
 public:
  explicit SmallSizes(const Program& program);

  /// Does the node compute from sizes, and perhaps weights, alone?
  bool computes(const Step& step) const;
  /// A size that enters the arithmetic as a real number is that of the small network, or what the
  /// plan puts in its place.
  void substitute(const Step& step, Call& call) const;
  /// Computes what a node that has run says of sizes.
  void follow(const Step& step, const Call& call);

 private:
  bool reads_constants_only(const Step& step) const;

  IdVector<ValueId, at::Tensor> small_;
  IdVector<ValueId, bool> constant_;  ///< computed from weights alone
};

}  // namespace parsimony::executor
