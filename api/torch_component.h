// The interface to libtorch for pruning. It is implemented in a separate component, a shared
// library that is loaded on first use: libtorch depends on hundreds of libraries.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "parsimony/api/export_model.h"
#include "parsimony/api/network_error.h"
#include "parsimony/api/own_operators.h"
#include "parsimony/api/prune.h"
#include "parsimony/engines/editable_model.h"
#include "parsimony/graph/blocks.h"
#include "parsimony/pruners/statistics.h"
#include "parsimony/speedup/observation.h"

namespace parsimony {

/// The component's side is cli/torch/component.cc. Signatures use only the standard library and
/// rooms below torch_io. Parsimony's errors propagate unchanged.
///
/// To add a method: declare it here, define it there. Components built before are then rejected,
/// see torch_interface().
class TorchComponent : public Engine {
 public:
  std::string name() const override { return "libtorch"; }
  bool executes_graphs() const override { return true; }

  /// Registers custom operators in the component's own table; called once, before anything else.
  virtual void add_own_operators(const OwnOperators& own) = 0;

  /// See data/sample_source.h; called once, too.
  virtual void count_samples_in(std::atomic<int64_t>& counter) = 0;

  /// Configures reproducible results: operators run on one thread, up to `requested` batches
  /// (default: the number of cores) in parallel. @throws ConfigError if `requested` is not positive
  virtual void use_cores(std::optional<int> requested) = 0;
  /// Configures timing: sets the number of threads, without `requested` by measurement, once per
  /// process. @returns the number. @throws ConfigError if `requested` is not positive
  virtual int choose_threads(std::optional<int> requested) = 0;

  /// Opens TorchScript; `specs` describe the tensors that `forward` takes.
  /// @throws IoError, ModelError, UnsupportedError, ConfigError
  virtual std::unique_ptr<EditableFile> open_script(const std::string& path,
                                                    const std::vector<InputSpec>& specs) = 0;

  /// Writes TorchScript as ONNX and proves it; see torch_io/export.
  /// @throws IoError, ModelError, ConfigError, UnsupportedError, VerificationError
  virtual Exported export_script(const std::string& model, const std::vector<InputSpec>& inputs,
                                 const std::string& path, const ExportSettings& settings) = 0;

  /// See Observe. @throws UnsupportedError
  virtual std::vector<std::vector<IndexContent>> observe(
      const Graph& graph, const Probe& probe, const std::vector<ElementMask>& masks,
      const std::vector<Dimension>& dimensions) = 0;

  /// Runs calibration data through the network that `graph` describes; see training/statistics.
  /// @throws ConfigError, IoError for the data; ModelError if they do not fit; UnsupportedError for
  /// what cannot be run
  virtual Statistics measure(const Graph& graph, const Facts& facts, const Coupling& coupling,
                             const Needs& needs, const CalibrationData& data) = 0;

  /// Returns how much each block changes its input, see training/statistics; throws as `measure`.
  virtual std::vector<double> block_influences(const Graph& graph,
                                               const std::vector<ResidualBlock>& blocks,
                                               const CalibrationData& data) = 0;

  /// Returns calibration data as inputs of the network, in batches of its declared size or of 64,
  /// with labels if there are any. @throws ConfigError, IoError, ModelError for the data
  /// @param unseen  return up to 256 of the samples after them instead, or 1,024 of the test set,
  /// up to 128 MB
  virtual ErrorData samples(const Graph& graph, const CalibrationData& data, bool unseen) = 0;

  /// Changes values of the small network of `plan`; see training/recovery.
  /// @throws ConfigError, IoError for the data; ModelError if they do not fit; UnsupportedError for
  /// what cannot be run
  virtual Recovered recover(const Graph& original, const Plan& plan,
                            const RecoverySettings& settings, const CalibrationData& data,
                            const Say& say) = 0;

  /// Changes values of a small network that was pruned earlier, from `dense`.
  virtual Recovered recover_pruned(const Graph& dense, const Graph& small,
                                   const RecoverySettings& settings, const CalibrationData& data,
                                   const Say& say) = 0;
};

namespace cli {
class TorchCommands;
}

/// The component's entry point: its only symbol, `parsimony_libtorch`, points to one. `version`
/// keeps its place in all versions.
struct TorchComponentEntry {
  const char* version = "";    ///< must equal the command's version
  const char* interface = "";  ///< must equal torch_interface()
  TorchComponent* component = nullptr;
  cli::TorchCommands* commands = nullptr;  ///< further functions for the command
};

/// Returns a hash of this header, cli/torch_commands.h and all project headers that they include:
/// calls across the boundary rely on the layouts declared there.
const char* torch_interface();

constexpr const char* kTorchComponentSymbol = "parsimony_libtorch";

/// Returns the component, which the first call loads. Before that, OpenMP's threads are configured
/// to sleep while they wait, unless the environment says otherwise.
/// @throws UnsupportedError if it is missing, or of another version or build
TorchComponent& torch_component();
/// Likewise loads the component; returns its entry, which also has the command's functions.
const TorchComponentEntry& torch_component_entry();

/// Registers a function that is called before libtorch is loaded.
void before_libtorch(void (*prepare)());

/// Loads the component in the background, which takes about 0.6 s; errors are reported by the
/// caller's first call of torch_component().
std::jthread loading_torch_component();

/// libtorch as an engine: the component, loaded when a network is first opened.
class LazyTorch final : public Engine {
 public:
  enum class For { kResults, kTimes };
  /// @param threads  see TorchComponent::use_cores and, for times, choose_threads
  explicit LazyTorch(std::optional<int> threads, For use = For::kResults)
      : threads_(threads), use_(use) {}

  std::string name() const override { return "libtorch"; }
  std::string version() const override { return loaded().version(); }
  bool executes_graphs() const override { return true; }
  std::unique_ptr<Network> open(const Graph& graph, const OpenOptions& options) override {
    return loaded().open(graph, options);
  }
  std::unique_ptr<Network> open_masked(const Graph& graph, const Plan& plan,
                                       const OpenOptions& options) override {
    return loaded().open_masked(graph, plan, options);
  }

  /// Returns the component with its threads configured.
  TorchComponent& loaded() const;

 private:
  std::optional<int> threads_;
  For use_;
};

/// Returns whether the component exists.
bool has_torch_component();

/// Returns the path of a file next to the command, in the build tree or installed; for other
/// programs, under the installation prefix.
std::filesystem::path installed_file(const std::string& name);

}  // namespace parsimony
