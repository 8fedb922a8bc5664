// Data-parallel training: each process computes gradients of its own samples, and all take the same
// step.
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

/// An exchange of gradients, summed over the ranks.
struct Exchange {
  std::chrono::steady_clock::time_point begin;  ///< when this rank's were ready
  std::chrono::steady_clock::time_point end;    ///< when the sum was available
  int64_t bytes = 0;                            ///< of the sent gradients
};

/// Statistics of the last backward().
struct SentGradients {
  int64_t bytes = 0;
  /// When all of this rank's were ready; sums that blocked the pass count as if they came after it.
  std::chrono::steady_clock::time_point ready = {};
  std::chrono::steady_clock::duration blocked = {};  ///< the pass, by sums in shared memory
};

struct ReplicasOptions {
  int64_t first_bucket = int64_t{1} << 20;  ///< size of the first bucket of gradients, in bytes
  int64_t bucket = int64_t{25} << 20;       ///< size of the others
  /// Allows parameters that a loss does not use; otherwise the next step throws.
  bool find_unused = false;
  bool half = false;  ///< sends gradients as float16: half the bytes, three decimal digits
  /// Called for each bucket, perhaps from a thread of c10d; may be empty.
  std::function<void(const Exchange&)> seen = {};
};

/// A replica on each rank. After backward() no communication is needed: the gradients are those of
/// all samples, bitwise identical on every rank.
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
/// Create a new one after a cut, which replaces parameters. Buckets of gradients are summed during
/// backward(), in the order in which gradients became ready in the first step.
/// @source Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training,
/// 2020; the reducer is c10d's
class Replicas {
 public:
  /// Sets parameters and buffers to those of rank 0. The tensors must remain the network's.
  /// @throws ConfigError if ranks have different parameters
  Replicas(const RankGroup& group, std::vector<at::Tensor> parameters,
           std::vector<at::Tensor> buffers, const ReplicasOptions& options = {});
  Replicas(const RankGroup& group, const torch::nn::Module& module,
           const ReplicasOptions& options = {});
  ~Replicas();
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  /// Adds the gradient of the mean loss over all ranks' samples to the parameters.
  /// @param loss     the mean over this rank's samples; not read, and may be undefined, if there
  ///                 are none
  /// @param samples  of this rank; may be 0
  /// @param all      of all ranks; 0: counted at the cost of a message
  void backward(const at::Tensor& loss, int64_t samples, int64_t all = 0);
  /// For ranks with equal numbers of samples.
  void backward(const at::Tensor& loss) { backward(loss, 1, group_.size()); }
  /// Adds the gradient of this rank's loss only; the next backward() also sends it. Divide both
  /// losses by the number of passes.
  void accumulate(const at::Tensor& loss) const { loss.backward(); }

  /// Returns statistics of the last backward().
  const SentGradients& sent() const { return sent_; }

  /// Copies the buffers of rank 0, such as running statistics of BatchNorm, to all ranks. Training
  /// only writes them, so once before each evaluation is enough.
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
