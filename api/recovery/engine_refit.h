// Refits layers on an engine that takes graphs, such as ONNX Runtime.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "parsimony/api/recovery/refit.h"
#include "parsimony/engines/engine.h"
#include "parsimony/engines/network.h"

namespace parsimony {

/// Tensors are held as TensorBytes.
Held held(TensorBytes tensor);
std::vector<Held> held(TensorList tensors);
const TensorBytes& bytes_in(const Held& value);
/// The dims behind the first one.
Shape sample_dims(const Held& value);

/// The part is opened when it first runs and the types of its inputs are known; `engine` and `part`
/// must outlive it.
std::unique_ptr<Part> part_on(Engine& engine, const Graph& part);

/// Convolutions, Gemm and MatMul; other layers are left as they are. Batches run one by one, each
/// on all of the engine's threads.
class EngineRefit final : public RefitEngine {
 public:
  /// @param feed  begins anew for every call
  EngineRefit(Engine& engine, std::function<HeldFeed()> feed)
      : engine_(engine), feed_(std::move(feed)) {}

  std::unique_ptr<Part> open(const Graph& part) override { return part_on(engine_, part); }
  Shape dims_of(const Held& value) const override { return bytes_in(value).dims; }
  int64_t bytes_of(const Held& value) const override;

  HeldFeed feed(bool /*small*/) override { return feed_(); }
  std::string_view why_unfit(const Graph& graph, const FitLayer& layer) override;
  std::unique_ptr<LayerSums> sums_for(const LayerFit& fit) override;
  ChannelMoments moments_of(const Held& value) override;

 private:
  Engine& engine_;
  const std::function<HeldFeed()> feed_;
};

}  // namespace parsimony
