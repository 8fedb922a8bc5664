// One network in several processes: each computes gradients of its own samples, and all take the
// same step.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "parsimony/training/ranks/group.h"

namespace c10d {
class Reducer;
}

namespace parsimony::training {

/// Gradients that were summed over the ranks.
struct Exchange {
  std::chrono::steady_clock::time_point begin;  ///< from when on this rank's were ready
  std::chrono::steady_clock::time_point end;    ///< when the sum was there
  int64_t bytes = 0;                            ///< of the gradients that were sent
};

/// What a backward() sent.
struct SentGradients {
  int64_t bytes = 0;
  std::chrono::steady_clock::time_point ready;  ///< when this rank's own were all there
};

struct ReplicasOptions {
  int64_t first_bucket = int64_t{1} << 20;  ///< bytes of gradients that are sent together, at first
  int64_t bucket = int64_t{25} << 20;       ///< then
  /// Some parameters may have no part in a loss. Otherwise that is an error of the step after.
  bool find_unused = false;
  bool half = false;  ///< sends gradients as float16: half the bytes, three decimal digits
  /// Called for each bucket, from a thread of c10d's; may be empty.
  std::function<void(const Exchange&)> seen = {};
};

/// A replica on each rank. What follows backward() needs no ranks: the gradients are those of all
/// samples, on every rank the same bits.
///
///     Replicas replicas(group, *net);
///     for (const Batch& batch : own_part) {
///       replicas.backward(loss(net->forward(batch.inputs), batch.labels), batch.labels.size(0));
///       torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0);
///       optimizer.step();
///       optimizer.zero_grad();
///     }
///     replicas.share_buffers();
///
/// After a cut, whose parameters are other tensors, a new one is made. Buckets of gradients are
/// summed while backward() goes on, in the order in which gradients arrived in the first step.
/// @source Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training,
/// 2020; the reducer is c10d's
class Replicas {
 public:
  /// Parameters and buffers become those of rank 0. The tensors must stay the network's.
  /// @throws ConfigError if ranks have other parameters
  Replicas(const RankGroup& group, std::vector<at::Tensor> parameters,
           std::vector<at::Tensor> buffers, const ReplicasOptions& options = {});
  Replicas(const RankGroup& group, const torch::nn::Module& module,
           const ReplicasOptions& options = {});
  ~Replicas();
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  /// Adds the gradient of the mean loss over all ranks' samples to the parameters.
  /// @param loss     the mean over this rank's samples; not read where there are none, and may then
  ///                 be undefined
  /// @param samples  of this rank; may be 0
  /// @param all      of all ranks; 0: they are counted, which costs a message
  void backward(const at::Tensor& loss, int64_t samples, int64_t all = 0);
  /// Where all ranks have as many.
  void backward(const at::Tensor& loss) { backward(loss, 1, group_.size()); }
  /// Adds the gradient of this rank's loss only; the next backward() sends it along. Divide both
  /// losses by the number of passes.
  void accumulate(const at::Tensor& loss) const { loss.backward(); }

  /// By the last backward().
  const SentGradients& sent() const { return sent_; }

  /// Gives all ranks the buffers of rank 0, such as running statistics of BatchNorm. While the
  /// network trains they are only written, so that once before each evaluation is enough.
  void share_buffers() const { group_.share(buffers_); }

 private:
  at::Tensor nothing() const;

  const RankGroup& group_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> buffers_;
  bool find_unused_;
  int64_t steps_ = 0;
  SentGradients sent_;
  std::unique_ptr<c10d::Reducer> reducer_;
};

}  // namespace parsimony::training
