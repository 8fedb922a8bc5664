// Refits layers with libtorch: see parsimony/api/recovery/refit.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "parsimony/api/recovery/refit.h"
#include "parsimony/speedup/small_network.h"
#include "parsimony/training/ranks/group.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

/// The tensor that is held; undefined where nothing is.
at::Tensor tensor_of(const Held& held);
Held held(at::Tensor tensor);
HeldFeed held(Feed feed);

/// Batches run at the same time; nothing records gradients.
class TorchRefit final : public RefitEngine {
 public:
  /// All must outlive it. @param ranks  each has batches of its own, all as many; null: there is
  /// but one
  TorchRefit(const SmallNetwork& small, const Batches& batches, int64_t batch,
             const RankGroup* ranks)
      : small_(small),
        batches_(batches),
        batch_(batch),
        ranks_(ranks),
        device_(device_of(batches)) {}

  std::unique_ptr<Part> open(const Graph& part) override;
  Shape dims_of(const Held& value) const override;
  int64_t bytes_of(const Held& value) const override;
  int at_once() const override;
  void side_by_side(int64_t count, const std::function<void(int64_t)>& work) override;

  HeldFeed feed(bool small) override;
  std::unique_ptr<LayerSums> sums_for(const LayerFit& fit) override;
  JudgedFit fit_recurrent(const Graph& dense, SmallNetwork& small, const FitLayer& layer,
                          const FitData& data, const RefitOptions& options,
                          const std::string& reason) override;
  ChannelMoments moments_of(const Held& value) override;
  int ranks() const override;
  void sum_over_ranks(std::span<double> numbers) override;

 private:
  const SmallNetwork& small_;
  const Batches& batches_;
  const int64_t batch_;
  const RankGroup* ranks_;
  const c10::Device device_;
};

/// @param ranks  that call it together; null: there is but one
int refit(const Graph& dense, SmallNetwork& small, const std::vector<std::string>& fixed,
          const Batches& batches, const RefitOptions& options, const RankGroup* ranks = nullptr);
int estimate_batch_norms(SmallNetwork& small, const Batches& batches, int64_t batch,
                         const RankGroup* ranks = nullptr);

}  // namespace parsimony::training
