// The functions of the criterion table: measured.cc has those that read statistics of data,
// weights.cc those that read weights alone, or nothing.
#pragma once

#include "parsimony/pruners/criterion.h"

namespace parsimony::criteria {

/// Sum of magnitudes: score[c] = Σ |w| over the slices of channel c, in the matrices that produce
/// it.
/// @source Li et al., Pruning Filters for Efficient ConvNets, ICLR 2017,
/// https://arxiv.org/abs/1608.08710
Scores l1(const Graph& graph, const Group& group, const CriterionOptions& options);

/// Euclidean norm: score[c] = √(Σ w²) over the slices of channel c, in the matrices that produce
/// it.
/// @source NNI 3.0, L2NormPruner
Scores l2(const Graph& graph, const Group& group, const CriterionOptions& options);

/// Uniform in [0, 1), drawn from the seed and the group's id alone: groups may be scored in any
/// order.
Scores random(const Graph& graph, const Group& group, const CriterionOptions& options);

/// Largest magnitude: score[c] = max |w| over the slices of channel c, in the matrices that produce
/// it.
Scores linf(const Graph& graph, const Group& group, const CriterionOptions& options);

/// Distance from the geometric median: score[c] = Σ_k ‖F_c - F_k‖₂, F_c the slices of channel c in
/// the matrices that produce it, side by side. Channels that others can replace are removed first.
/// @source He et al., Filter Pruning via Geometric Median, CVPR 2019,
/// https://arxiv.org/abs/1811.00250
Scores fpgm(const Graph& graph, const Group& group, const CriterionOptions& options);

/// Magnitude of the channel relative to what is left when it is removed: score[c] = ‖F_c‖² / Σ
/// ‖F_k‖² over the k with ‖F_k‖ ≥ ‖F_c‖. In (0, 1], and comparable between layers as it is: 1 for
/// the largest channel of each.
/// @source Lee et al., Layer-adaptive Sparsity for the Magnitude-based Pruning, ICLR 2021,
/// https://arxiv.org/abs/2010.07611, eq. 4, with channels in place of elements
Scores lamp(const Graph& graph, const Group& group, const CriterionOptions& options);

/// Scale of the normalisation: score[c] = mean of |γ_c| over the BatchNormalizations of the group.
/// Empty for a group that has none.
/// @source Liu et al., Learning Efficient Convolutional Networks through Network Slimming, ICCV
/// 2017, https://arxiv.org/abs/1708.06519
Scores bn_scale(const Graph& graph, const Group& group, const CriterionOptions& options);

/// Norm over the whole group: score[c] = I_c / mean_k I_k with I_c = Σ w² over the slices of
/// channel c in all parameters of the group, those that produce and those that consume it. Running
/// statistics do not count.
/// @source Fang et al., DepGraph: Towards Any Structural Pruning, CVPR 2023,
/// https://arxiv.org/abs/2301.12900
Scores group_norm(const Graph& graph, const Group& group, const CriterionOptions& options);

/// Share of activations that are not zero: score[c] = 1 - APoZ_c.
/// @source Hu et al., Network Trimming, 2016, https://arxiv.org/abs/1607.03250
Scores apoz(const Graph& graph, const Group& group, const CriterionOptions& options);

/// Mean of the activations of channel c over samples and positions.
/// @source Molchanov et al., Pruning Convolutional Neural Networks for Resource Efficient
/// Inference, ICLR 2017, https://arxiv.org/abs/1611.06440, section 2.2
Scores mean_activation(const Graph& graph, const Group& group, const CriterionOptions& options);

/// The channel's rank within its group: score[c] = #{k: mean_k < mean_c} / channels, in [0, 1). All
/// layers count the same in a global ranking.
/// @source as mean_activation; NNI, ActivationMeanRankPruner
Scores mean_activation_rank(const Graph& graph, const Group& group,
                            const CriterionOptions& options);

/// Weights times the norm of their inputs: score[c] = Σ |w| · ‖x_c‖₂, w the slices of channel c in
/// the matrices that consume it (those that produce it, if none does), x_c its activations.
/// @source Sun et al., A Simple and Effective Pruning Approach for Large Language Models, 2023,
/// https://arxiv.org/abs/2306.11695, eq. 1, summed over a channel
Scores wanda(const Graph& graph, const Group& group, const CriterionOptions& options);

/// Mean rank of the channel's feature map [h, w].
/// @source Lin et al., HRank, CVPR 2020, https://arxiv.org/abs/2002.10179
Scores hrank(const Graph& graph, const Group& group, const CriterionOptions& options);

/// First-order change of the loss: score[c] = mean over batches of |Σ g·w| over the slices of
/// channel c in the matrices that produce it, g the gradient of the batch's mean cross-entropy.
/// @source Molchanov et al., ICLR 2017, https://arxiv.org/abs/1611.06440, eq. 7, over weights
Scores taylor(const Graph& graph, const Group& group, const CriterionOptions& options);

/// Its square: score[c] = mean over batches of (Σ g·w)².
/// @source Molchanov et al., Importance Estimation for Neural Network Pruning, CVPR 2019,
/// https://arxiv.org/abs/1906.10771, eq. 8
Scores taylor_squared(const Graph& graph, const Group& group, const CriterionOptions& options);

/// Fisher information of a mask m_c that the operands of all layers that read the channel share:
/// score[c] = mean over samples of (∂L/∂m_c)², where ∂L/∂m_c = Σ a·∂L/∂a over layers and positions.
/// @source Liu et al., Group Fisher Pruning, ICML 2021, https://arxiv.org/abs/2108.00708, eq. 6
Scores fisher(const Graph& graph, const Group& group, const CriterionOptions& options);

/// Scores how far the weights move away from zero: score[c] = Σ -g·w over the steps of the training
/// before the cut and the slices of channel c in the matrices that produce it. For recipes only: it
/// needs a training loop, not just data.
/// @source Sanh et al., Movement Pruning, NeurIPS 2020, https://arxiv.org/abs/2005.07683, eq. 3,
/// summed over a channel
Scores movement(const Graph& graph, const Group& group, const CriterionOptions& options);

/// What the layers that read the channels lose of their outputs when these are removed one after
/// the other and the rest is fitted to them by least squares after each: score[c] = Σ ‖W X − Ŵ
/// X_kept‖² / ‖W X‖² over these layers, without c and those before it. As `wanda` for groups that
/// no matrix reads.
/// @source surgeon.h
Scores obs(const Graph& graph, const Group& group, const CriterionOptions& options);

/// What an expert adds to the tokens that are routed to it: score[e] = mean over the tokens t to
/// which e adds anything of ‖gate_e(t) · f_e(t)‖₂; 0 if there are none. @throws ConfigError if the
/// channels are no experts, or what they add cannot be measured
/// @source Lasby et al., REAP the Experts: Why Pruning Prevails for One-Shot MoE Compression, 2025,
/// https://arxiv.org/abs/2510.13999
Scores reap(const Graph& graph, const Group& group, const CriterionOptions& options);

/// Saliency by the diagonal of the Hessian: score[c] = Σ ½·h·w² over the slices of channel c in the
/// matrices that produce it, with h ≈ the mean over samples of g² (the Gauss-Newton diagonal).
/// @source LeCun et al., Optimal Brain Damage, NeurIPS 1989, eq. 5
Scores obd(const Graph& graph, const Group& group, const CriterionOptions& options);

}  // namespace parsimony::criteria
