// BatchNorm with statistics over the samples of several processes.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <tuple>

namespace parsimony::torch_io {

/// During its lifetime, every BatchNorm that trains on this thread, in a module, script or graph,
/// takes mean and variance over the samples of all processes. All of them must run the same network
/// at the same time, forward and backward.
///
///     const SyncBatchNorm synced([&](const at::Tensor& x) { ranks.sum(x); });
///     replicas.backward(loss(net->forward(batch.inputs), batch.labels), batch.labels.size(0));
///
/// Sends two sums per layer: 2 c + 1 numbers in the forward pass, 2 c in the backward pass.
/// Gradients are those of the sum of all processes' losses.
/// @source Ioffe and Szegedy 2015, https://arxiv.org/abs/1502.03167
class SyncBatchNorm {
 public:
  /// Adds up a float64 tensor over the processes, in place.
  using Sum = std::function<void(const at::Tensor&)>;

  /// @param sum  empty: each process has its own statistics
  explicit SyncBatchNorm(Sum sum);
  ~SyncBatchNorm();
  SyncBatchNorm(const SyncBatchNorm&) = delete;
  SyncBatchNorm& operator=(const SyncBatchNorm&) = delete;

 private:
  Sum sum_;
  const Sum* outer_;
};

/// Returns mean and biased variance per channel of x [n, c, …], each [c], in double on the CPU;
/// over all processes' samples while a SyncBatchNorm exists.
std::tuple<at::Tensor, at::Tensor> channel_moments(const at::Tensor& x);

/// Normalises x [n, c, …] by its own moments: returns y, mean [c] and 1 / √(variance + epsilon)
/// [c], over all processes' samples while a SyncBatchNorm exists. Gradients flow through y.
/// @param weight, bias  [c]
std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_normalised(const at::Tensor& x,
                                                                const at::Tensor& weight,
                                                                const at::Tensor& bias,
                                                                double epsilon);

}  // namespace parsimony::torch_io
