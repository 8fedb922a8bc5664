// Sparsity-inducing penalties that shrink channels during training, so that their removal costs
// little.
#pragma once

#include <vector>

#include "parsimony/configs/recipe.h"
#include "parsimony/training/net/parameter_groups.h"

namespace parsimony::training {

/// Slimming: λ Σ |γ|, the scales of BatchNorms whose channels can be pruned; its gradient is λ
/// sign(γ). Group: λ Σ_g Σ_c ½ s_c ‖w_c‖², w_c all slices of channel c in the members of its group,
/// with s_c = 2^(4 (I_max - I_c) / (I_max - I_min)), I_c = ‖w_c‖²: from 1 for the strongest channel
/// of a group to 16 for the weakest. The strengths s_c are updated every epoch and are constants in
/// between.
/// @source Liu et al., Learning Efficient Convolutional Networks through Network Slimming, 2017
/// @source Fang et al., DepGraph: Towards Any Structural Pruning, 2023, section 3.3
class Penalty {
 public:
  Penalty(const PenaltySettings& settings, std::vector<ParameterGroup> groups);

  /// Recomputes the strengths from the current weights.
  void begin_epoch();
  /// Adds its gradient to the parameters'. Call after `backward`.
  void add_gradients() const;
  /// The penalty term of the loss, with the strengths of the epoch.
  double value() const;

 private:
  PenaltySettings settings_;
  std::vector<ParameterGroup> groups_;
  std::vector<at::Tensor> strength_;  ///< per group, [channels]
};

/// ‖w_c‖² per channel, over all slices. [channels]
at::Tensor squared_norms(const ParameterGroup& group);

}  // namespace parsimony::training
