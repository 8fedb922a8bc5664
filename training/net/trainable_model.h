// A network that can be trained and pruned, from any front end.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/api/prune_model.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/torch_io/optimizer.h"
#include "parsimony/training/net/parameter_groups.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

/// A module as seen by a trainer.
class TrainedModule {
 public:
  virtual ~TrainedModule() = default;

  /// Returns the values passed to an objective.
  virtual std::vector<at::Tensor> outputs(const SampleBatch& batch) = 0;

  /// Returns the trained parameters by name. The tensors are the module's own.
  virtual std::vector<NamedParameter> parameters() = 0;
  /// Returns other tensors that training changes: running statistics.
  virtual std::vector<NamedParameter> buffers() = 0;
  /// Sets training or evaluation mode, before an epoch or an evaluation.
  virtual void train(bool on) = 0;
};

class TrainableModel : public TrainedModule {
 public:
  /// [n, …] -> [n, classes]
  virtual at::Tensor forward(const at::Tensor& x) = 0;
  std::vector<at::Tensor> outputs(const SampleBatch& batch) final {
    return {forward(batch.inputs.front())};
  }

  /// Returns which parameter slices can only be removed together. `example` as in prune().
  virtual std::vector<ParameterGroup> groups(const at::Tensor& example,
                                             Granularity granularity) = 0;

  /// Removes channels; parameters may be other tensors afterwards, on the CPU. `example`, [1, …],
  /// has the input's shape, overriding `request.inputs`. @throws as parsimony::prune does
  virtual PruneResult prune(const at::Tensor& example, const PruneRequest& request,
                            const PruneServices& services) = 0;
  PruneResult prune(const at::Tensor& example, const PruneRequest& request) {
    return prune(example, request, {});
  }
  /// Slices a newly made network to the shapes of a plan; values are filled in later.
  /// @throws ModelError if the plan is for another network
  virtual void restore(const Plan& plan) = 0;

  /// Returns a new network of the same architecture: full size, with its own values.
  virtual std::unique_ptr<TrainableModel> clone_architecture() const = 0;

  /// Writes the network in its format. @throws IoError
  virtual void save(const std::string& path, const at::Tensor& example) = 0;
};

/// Returns shape and element type of an example.
InputSpec spec_of(const at::Tensor& example);

/// Returns the module's tensors: parameters, then buffers.
std::vector<NamedParameter> all_tensors(TrainedModule& module);

/// Copies parameters and buffers by name. @throws ModelError if names or shapes differ
void copy_values(TrainedModule& from, TrainedModule& to);

/// Tensors associated with a network's parameters and buffers: keyed by their names, with the same
/// shapes.
using NamedTensors = std::map<std::string, at::Tensor>;

/// Slices them according to the plan; a shared tensor that the plan separates is copied.
/// @throws ModelError if their shapes are not those before the plan
void follow(const Plan& plan, NamedTensors& tensors);

struct FileNetOptions {
  bool batch_norm = false;  ///< BatchNorms during training (TrainingNorms); ONNX only
};

/// Returns a factory that reads the file at every call. Networks are saved in the file's format.
/// @throws IoError, ModelError, UnsupportedError
std::function<std::unique_ptr<TrainableModel>()> file_net(const std::string& path,
                                                          const FileNetOptions& options = {});

/// A module and its forward function.
struct Live {
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const at::Tensor&)> forward;
};

template <typename Holder>
Live live(Holder holder) {
  return {holder.ptr(), [holder](const at::Tensor& x) mutable { return holder->forward(x); }};
}

/// Returns a network; `make` creates the module in full size with new weights. Saved as
/// TorchScript.
std::unique_ptr<TrainableModel> live_net(std::function<Live()> make);

}  // namespace parsimony::training
