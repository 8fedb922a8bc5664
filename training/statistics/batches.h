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

/// An input that takes what an output was for the sample before, as in a stream of frames.
struct FedBack {
  size_t input = 0;        ///< of the graph's
  ValueId output = kNone;  ///< of the dense graph
  std::string name = {};   ///< the output's, by which other graphs have it
};

/// Samples as a network takes them.
struct SampleBatch {
  SampleBatch() = default;
  SampleBatch(const Batch& batch)  // NOLINT(google-explicit-constructor): one input, with labels
      : inputs({batch.inputs}), labels(batch.labels), count(batch.labels.size(0)) {}

  std::vector<at::Tensor> inputs;  ///< in the graph's order
  at::Tensor labels;               ///< [count], int64; undefined where there are none
  /// What outputs should be, in the graph's order; empty, or undefined, where nothing says it.
  std::vector<at::Tensor> targets = {};
  /// Inputs that have the dense network's outputs for the batch before; null: none.
  std::shared_ptr<const std::vector<FedBack>> states = {};
  int64_t count = 0;
};

/// What training and criteria by gradient minimise: a scalar. @param outputs  the network's
using Loss =
    std::function<at::Tensor(const std::vector<at::Tensor>& outputs, const SampleBatch& batch)>;

/// The next batch; empty after the last.
using BatchSource = std::function<std::optional<SampleBatch>()>;

/// Values of libtorch.
ValueSource values_of(BatchSource feed);
EngineValues values_of(const std::vector<at::Tensor>& tensors);

/// Starts an iteration over the data, `size` samples at a time; the last batch may be smaller. Each
/// call gives the same batches.
using Batches = std::function<BatchSource(int64_t size)>;

/// The first `samples` of the training set as network inputs, in order and without augmentation.
/// `data` must outlive it.
Batches batches_of(const Dataset& data, int64_t samples);
/// The first 1,024 of the test set; empty if there is none.
Batches test_batches_of(const std::shared_ptr<const Dataset>& data);

/// `samples` from the `first` on.
Batches batches_of(std::shared_ptr<const SampleSource> data, int64_t samples, int64_t first = 0);

/// Of every `ranks` batches' worth of samples the consecutive ones of this rank: each rank has as
/// many batches, and together they have what one would have. Samples are left out that are too few
/// for all.
Batches share_of(Batches batches, int rank, int ranks);

/// The same on a device, where they stay after the first pass if there is room. What runs them, and
/// forms sums over them, does it there.
Batches on_device(Batches batches, c10::Device device);
/// Where they are; the processor if there are none.
c10::Device device_of(const Batches& batches);

/// What runs through a network.
struct Calibration {
  Batches batches;
  int64_t samples = 0;                           ///< that these give
  int64_t values = 0;                            ///< of one sample
  Batches held_out = {};                         ///< what calibration does not see; empty: nothing
  int64_t held_out_samples = 0;                  ///< that these give
  std::shared_ptr<const Dataset> labelled = {};  ///< null for data without a test part
  Loss loss = {};  ///< empty: by the labels where there are some, else none
  /// All of these call the same: each runs its share of the batches, and sums are those of all.
  const RankGroup* ranks = nullptr;
};
Calibration calibration_of(std::shared_ptr<const Dataset> data, int64_t samples);
Calibration calibration_of(std::shared_ptr<const SampleSource> data, int64_t samples);

/// The same samples, one in each batch, whose states are those of the dense network.
Batches fed_back(const Graph& graph, const std::vector<FedBack>& states, Batches batches);

/// The batch size declared by the network's first input; 0 if symbolic.
int64_t fixed_batch(const Graph& graph);

/// The samples per run of the network: its own batch size, or 32 if that is symbolic.
int64_t calibration_batch(const Graph& graph);

/// As many samples of so many values as suit a device: 256 images of 3 x 32 x 32.
int64_t batch_on_device(int64_t values);

/// Calls `add` with every batch of that size; an incomplete one is dropped if the network's is
/// fixed. @throws ConfigError if there is no batch
void for_each_batch(const Graph& graph, const Batches& batches, int64_t size,
                    const std::function<void(const SampleBatch&)>& add);

/// @throws ModelError if samples [n, …] do not match the network's inputs
void check_dims(const Graph& graph, const std::vector<at::Tensor>& inputs);

}  // namespace parsimony::training
