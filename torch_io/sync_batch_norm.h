// BatchNorm whose statistics are those of several processes' samples.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <tuple>

namespace parsimony::torch_io {

/// While it lives, every BatchNorm that trains on this thread takes mean and variance over the
/// samples of all processes: that of a module, of a script or of a graph. All of them run the same
/// network at the same time, forwards and backwards.
///
///     const SyncBatchNorm synced([&](const at::Tensor& x) { ranks.sum(x); });
///     replicas.backward(loss(net->forward(batch.inputs), batch.labels), batch.labels.size(0));
///
/// Two sums a layer, of 2 c + 1 numbers forwards and 2 c backwards. Gradients are those of the sum
/// of all processes' losses.
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

/// Mean and biased variance per channel of x [n, c, …], each [c], in double; of all processes'
/// samples while a SyncBatchNorm lives.
std::tuple<at::Tensor, at::Tensor> channel_moments(const at::Tensor& x);

/// BatchNorm of x [n, c, …] by its own moments: y, mean [c] and 1 / √(variance + epsilon) [c], of
/// all processes' samples while a SyncBatchNorm lives. Gradients flow through y. @param weight,
/// bias  [c]
std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_normalised(const at::Tensor& x,
                                                                const at::Tensor& weight,
                                                                const at::Tensor& bias,
                                                                double epsilon);

}  // namespace parsimony::torch_io
