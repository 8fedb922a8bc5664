// The command's libtorch component.
#include <torch/version.h>

#include "parsimony/cli/torch/calibration.h"
#include "parsimony/cli/torch/export.h"
#include "parsimony/cli/torch/guard.h"
#include "parsimony/cli/torch/recovery.h"
#include "parsimony/cli/torch/runners.h"
#include "parsimony/cli/torch/script_model.h"
#include "parsimony/cli/torch/training.h"
#include "parsimony/cli/torch_component.h"
#include "parsimony/torch_io/machine/examine.h"
#include "parsimony/torch_io/machine/threads.h"
#include "parsimony/torch_io/observe.h"
#include "parsimony/torch_io/prove.h"
#include "parsimony/training/statistics/block_influence.h"
#include "parsimony/training/statistics/measure.h"

namespace parsimony::component {
namespace {

class Component final : public cli::TorchComponent {
 public:
  std::string version() override { return TORCH_VERSION; }

  machine::MachineReport doctor() override {
    return guarded([] { return torch_io::examine(); });
  }

  int choose_threads(std::optional<int> wanted) override {
    return guarded([&] { return torch_io::choose_threads(wanted); });
  }

  std::unique_ptr<Model> open_script(const std::string& path,
                                     const std::vector<std::string>& specs) override {
    return guarded([&] { return std::make_unique<ScriptModel>(path, specs); });
  }

  std::unique_ptr<Prover> prover(const Graph& original, const Plan& plan, const Probe& probe,
                                 const ProofOptions& options,
                                 std::function<bool(const Weight&)> read_anew) override {
    return guarded([&] {
      return std::make_unique<GuardedProver>(
          torch_io::Reference(original, probe, torch_io::mixes(plan),
                              torch_io::masked_run(original, plan, std::move(read_anew)), options));
    });
  }

  std::unique_ptr<Runner> runner(Graph graph,
                                 std::function<bool(const Weight&)> read_anew) override {
    return guarded([&] { return graph_runner(std::move(graph), std::move(read_anew)); });
  }

  LedgerPoint train(const cli::TrainRequest& order) override {
    return guarded([&] { return component::train(order); });
  }

  int sweep(const cli::SweepRequest& order) override {
    return guarded([&] { return component::sweep(order); });
  }

  std::vector<cli::TrainBenchRow> bench_training(const cli::TrainBenchRequest& order) override {
    return guarded([&] { return component::bench_training(order); });
  }

  std::vector<std::vector<IndexContent>> observe(
      const Graph& graph, const Probe& probe, const std::vector<ElementMask>& masks,
      const std::vector<Dimension>& dimensions) override {
    return guarded([&] { return torch_io::observe(graph, probe, masks, dimensions); });
  }

  bool differs(const Graph& original, const Plan& plan, const Probe& probe,
               const ProofOptions& options) override {
    return guarded([&] { return torch_io::differs(original, plan, probe, options); });
  }

  Recovered recover(const Graph& original, const Plan& plan,
                    const cli::RecoveryOrder& order) override {
    return guarded([&] { return component::recover(original, plan, order); });
  }

  cli::ExportOutcome export_onnx(const cli::ExportOrder& order) override {
    return guarded([&] { return component::export_onnx(order); });
  }

  ErrorData samples(const Graph& graph, const cli::CalibrationOrder& order) override {
    return guarded([&] { return calibration_samples(order, graph); });
  }

  std::vector<double> block_influences(const Graph& graph, const std::vector<ResidualBlock>& blocks,
                                       const cli::CalibrationOrder& order) override {
    return guarded([&] {
      const training::Dataset data = calibration_data(order, graph);
      return training::block_influences(graph, blocks, training::batches_of(data, order.samples));
    });
  }

  Statistics measure(const Graph& graph, const Facts& facts, const Coupling& coupling,
                     const Needs& needs, const cli::CalibrationOrder& order) override {
    return guarded([&] {
      const training::Dataset data = calibration_data(order, graph);
      return training::measure(graph, facts, coupling, needs,
                               training::batches_of(data, order.samples));
    });
  }
};

}  // namespace
}  // namespace parsimony::component

extern "C" const parsimony::cli::TorchComponentEntry* parsimony_torch_component();

const parsimony::cli::TorchComponentEntry* parsimony_torch_component() {
  static parsimony::component::Component component;
  static const parsimony::cli::TorchComponentEntry entry{parsimony::cli::kTorchInterface,
                                                         PARSIMONY_VERSION, &component};
  return &entry;
}
