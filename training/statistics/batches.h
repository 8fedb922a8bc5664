// Sources of calibration batches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/recovery/part.h"
#include "parsimony/data/dataset.h"
#include "parsimony/graph/graph.h"
#include "parsimony/training/loader/loader.h"
#include "parsimony/training/ranks/group.h"

namespace parsimony {
class SampleSource;
}

namespace parsimony::training {

/// An input that takes an output for the previous sample, as in a stream of frames.
struct FedBack {
  size_t input = 0;        ///< index in the graph
  ValueId output = kNone;  ///< in the dense graph
  std::string name = {};   ///< the output's name, which identifies it in other graphs
};

/// Samples as inputs of a network.
struct SampleBatch {
  SampleBatch() = default;
  SampleBatch(const Batch& batch)  // NOLINT(google-explicit-constructor): one input, with labels
      : inputs({batch.inputs}), labels(batch.labels), count(batch.labels.size(0)) {}

  std::vector<at::Tensor> inputs;  ///< in the graph's order
  at::Tensor labels;               ///< [count], int64; undefined if there are none
  /// Expected outputs, in the graph's order; empty, or undefined for outputs without targets.
  std::vector<at::Tensor> targets = {};
  /// Inputs that take the dense network's outputs for the previous batch; null: none.
  std::shared_ptr<const std::vector<FedBack>> states = {};
  int64_t count = 0;
};

/// The scalar that training and gradient criteria minimise. @param outputs  of the network
using Loss =
    std::function<at::Tensor(const std::vector<at::Tensor>& outputs, const SampleBatch& batch)>;

/// Returns the next batch; empty after the last.
using BatchSource = std::function<std::optional<SampleBatch>()>;

/// Converts batches to libtorch values.
ValueSource values_of(BatchSource feed);
EngineValues values_of(const std::vector<at::Tensor>& tensors);

/// Starts an iteration over the data, `size` samples at a time; the last batch may be smaller. Each
/// call yields the same batches.
using Batches = std::function<BatchSource(int64_t size)>;

/// Returns the first `samples` of the training set as network inputs, in order and without
/// augmentation. `data` must outlive the result.
Batches batches_of(const Dataset& data, int64_t samples);
/// Returns the first 1,024 samples of the test set; empty if there is none.
Batches test_batches_of(const std::shared_ptr<const Dataset>& data);

/// Returns `samples` from number `first` on.
Batches batches_of(std::shared_ptr<const SampleSource> data, int64_t samples, int64_t first = 0);

/// Returns this rank's share: of every `ranks` batches of samples, one batch of consecutive ones.
/// Each rank has the same number of batches, and together they have the samples of a single
/// process. Samples left over at the end are omitted.
Batches share_of(Batches batches, int rank, int ranks);

/// Copies the batches to a device, where they stay after the first pass if there is room. Networks
/// and sums over them then run there.
Batches on_device(Batches batches, c10::Device device);
/// Returns the device of the batches; the CPU if there are none.
c10::Device device_of(const Batches& batches);

/// Data for calibrating a network.
struct Calibration {
  Batches batches;
  int64_t samples = 0;                           ///< in `batches`
  int64_t values = 0;                            ///< per sample
  Batches held_out = {};                         ///< samples not used for calibration; empty: none
  int64_t held_out_samples = 0;                  ///< in `held_out`
  std::shared_ptr<const Dataset> labelled = {};  ///< null for data without a test part
  Loss loss = {};  ///< empty: by the labels if there are some, else none
  /// Ranks that make the same calls: each runs its share of the batches, and sums are over all.
  const RankGroup* ranks = nullptr;
};
Calibration calibration_of(std::shared_ptr<const Dataset> data, int64_t samples);
Calibration calibration_of(std::shared_ptr<const SampleSource> data, int64_t samples);

/// Returns the samples one per batch, with states computed by the dense network.
Batches fed_back(const Graph& graph, const std::vector<FedBack>& states, Batches batches);

/// Returns the batch size declared by the network's first input; 0 if symbolic.
int64_t fixed_batch(const Graph& graph);

/// Returns the samples per run of the network: its own batch size, or 32 if that is symbolic.
int64_t calibration_batch(const Graph& graph);

/// Returns a batch size whose gradients fit into memory, for samples of `values` values: 256 for
/// 3 x 32 x 32.
int64_t batch_that_fits(int64_t values);

/// Calls `add` with every batch of that size; an incomplete one is dropped if the network's batch
/// size is fixed. @throws ConfigError if there is no batch
void for_each_batch(const Graph& graph, const Batches& batches, int64_t size,
                    const std::function<void(const SampleBatch&)>& add);

/// @throws ModelError if samples [n, …] do not match the network's inputs
void check_dims(const Graph& graph, const std::vector<at::Tensor>& inputs);

}  // namespace parsimony::training
