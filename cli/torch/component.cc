// The command's libtorch component.
#include <c10/util/Exception.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "parsimony/cli/torch/jobs.h"
#include "parsimony/cli/torch_commands.h"
#include "parsimony/data/sample_source.h"
#include "parsimony/torch_io/export/export.h"
#include "parsimony/torch_io/machine.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/observe.h"
#include "parsimony/torch_io/script/script_file.h"
#include "parsimony/training/ranks/examine.h"
#include "parsimony/training/recovery/recover.h"
#include "parsimony/training/statistics/measure.h"

namespace parsimony::component {
namespace {

/// Calls `work`. Rethrows libtorch's errors as standard exceptions, without backtraces; errors that
/// a user may cause are handled further down.
template <typename Work>
auto guarded(Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const c10::Error& error) {
    throw std::runtime_error(error.what_without_backtrace());
  }
}

Recovered recover(const Graph& original, const Plan& plan, const RecoverySettings& settings,
                  const CalibrationData& data, const Say& say) {
  const auto& steps = settings.steps;
  // Fine-tuning uses the whole training part, the other steps its beginning.
  const bool whole =
      std::find(steps.begin(), steps.end(), RecoveryMethod::kFinetune) != steps.end();
  const training::Calibration calibration = calibration_of_ranks(data, original, whole);
  if (calibration.ranks != nullptr) calibration.ranks->agree("the plan", plan.to_json());
  return training::recover(original, plan, calibration, settings, say);
}

class Component final : public TorchComponent, public cli::TorchCommands {
 public:
  std::string version() const override { return engine_.version(); }

  std::unique_ptr<Network> open(const Graph& graph, const OpenOptions& options) override {
    return engine_.open(graph, options);
  }

  std::unique_ptr<Network> open_masked(const Graph& graph, const Plan& plan,
                                       const OpenOptions& options) override {
    return engine_.open_masked(graph, plan, options);
  }

  void add_own_operators(const OwnOperators& own) override { parsimony::add_own_operators(own); }
  void count_samples_in(std::atomic<int64_t>& counter) override {
    parsimony::count_samples_in(counter);
  }

  machine::MachineReport doctor() override {
    return guarded([] { return torch_io::examine(); });
  }

  std::vector<machine::Finding> doctor_of_ranks(const RankPlace& place) override {
    return guarded([&] { return training::examine_ranks(place); });
  }

  void use_cores(std::optional<int> requested) override {
    guarded([&] { torch_io::use_cores(requested); });
  }

  int choose_threads(std::optional<int> requested) override {
    return guarded([&] { return torch_io::choose_threads(requested); });
  }

  std::unique_ptr<EditableFile> open_script(const std::string& path,
                                            const std::vector<InputSpec>& specs) override {
    return guarded([&] { return std::make_unique<torch_io::ScriptModel>(path, specs); });
  }

  LedgerPoint train(const cli::TrainRequest& job) override {
    return guarded([&] { return component::train(job); });
  }

  int sweep(const cli::SweepRequest& job) override {
    return guarded([&] { return component::sweep(job); });
  }

  std::vector<cli::TrainBenchRow> bench_training(const cli::TrainBenchRequest& job) override {
    return guarded([&] { return component::bench_training(job); });
  }

  std::vector<std::vector<IndexContent>> observe(
      const Graph& graph, const Probe& probe, const std::vector<ElementMask>& masks,
      const std::vector<Dimension>& dimensions) override {
    return guarded([&] { return torch_io::observe(graph, probe, masks, dimensions); });
  }

  Recovered recover(const Graph& original, const Plan& plan, const RecoverySettings& settings,
                    const CalibrationData& data, const Say& say) override {
    return guarded([&] { return component::recover(original, plan, settings, data, say); });
  }

  Recovered recover_pruned(const Graph& dense, const Graph& small, const RecoverySettings& settings,
                           const CalibrationData& data, const Say& say) override {
    return guarded([&] {
      return training::recover_pruned(dense, small, calibration_of_ranks(data, dense), settings,
                                      say);
    });
  }

  Exported export_script(const std::string& model, const std::vector<InputSpec>& inputs,
                         const std::string& path, const ExportSettings& settings) override {
    return guarded(
        [&] { return export_onnx(torch_io::ScriptFile(model).module(), inputs, path, settings); });
  }

  ErrorData samples(const Graph& graph, const CalibrationData& job, bool unseen) override {
    return guarded([&] { return calibration_samples(job, graph, unseen); });
  }

  std::vector<double> block_influences(const Graph& graph, const std::vector<ResidualBlock>& blocks,
                                       const CalibrationData& job) override {
    return guarded([&] {
      return training::block_influences(graph, blocks, calibration_of(job, graph).batches);
    });
  }

  Statistics measure(const Graph& graph, const Facts& facts, const Coupling& coupling,
                     const Needs& needs, const CalibrationData& job) override {
    return guarded([&] {
      const training::Calibration data = calibration_of_ranks(job, graph);
      return training::measurement(data.batches, data.loss, data.ranks)(graph, facts, coupling,
                                                                        needs);
    });
  }

 private:
  torch_io::TorchEngine engine_;
};

}  // namespace
}  // namespace parsimony::component

extern "C" const parsimony::TorchComponentEntry* parsimony_libtorch();

const parsimony::TorchComponentEntry* parsimony_libtorch() {
  static parsimony::component::Component component;
  static const parsimony::TorchComponentEntry entry{PARSIMONY_VERSION, parsimony::torch_interface(),
                                                    &component, &component};
  return &entry;
}
