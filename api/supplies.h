// What runs data and networks for a pruning, by libtorch as far as it is there.
#pragma once

#include <optional>
#include <string>

#include "parsimony/api/latency/profiler.h"
#include "parsimony/api/network_error.h"
#include "parsimony/api/prune.h"
#include "parsimony/api/torch_component.h"

namespace parsimony {

/// Gives options the functions that they lack, made from what they name: data, steps of recovery,
/// an engine to be quick on. Loads libtorch when one of them is called.
///
///     PruneOptions options;
///     options.calibration.data = "folder:/data/val";
///     Supplies supplies(options, config, model->graph());
///     prune_model(*model, config, options, &supplies.engine());
///     supplies.save();
class Supplies {
 public:
  /// Must live as long as `options` are used; `original` as long as this. Data and steps of
  /// recovery are the config's where the options name none.
  /// @throws ConfigError where recovery or depth have no data; UnsupportedError without the engine
  /// for a budget of milliseconds, or where outputs are to be compared and cannot
  Supplies(PruneOptions& options, const ConfigList& config, const Graph& original);
  Supplies(const Supplies&) = delete;
  Supplies& operator=(const Supplies&) = delete;

  /// libtorch.
  Engine& engine() { return torch_; }

  /// Of a budget of milliseconds, else null.
  const LatencyProfiler* profiler() const { return profiler_ ? &*profiler_ : nullptr; }
  /// Keeps what the profiler has measured.
  void save();

  /// Why outputs do not say what widths are worth, where a budget of milliseconds does without.
  const std::string& without_outputs() const { return without_outputs_; }

 private:
  void compare_outputs(PruneOptions& options, const Graph& original, bool required);
  void recover(PruneOptions& options, const ConfigList& config);
  void remove_blocks(PruneOptions& options, const Graph& original);

  LazyTorch torch_;
  std::optional<LatencyProfiler> profiler_;
  std::optional<NetworkComparison> comparison_;
  std::string without_outputs_;
};

}  // namespace parsimony
