// Stands in for the libtorch component: what it does, the environment says.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>

#include "parsimony/base/errors.h"
#include "parsimony/cli/torch_component.h"
#include "parsimony/engines/turns.h"

namespace parsimony {

struct Tensors {};

namespace test {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Takes 50 us a node and 1 us a weight, and computes nothing.
double seconds_of(const Graph& graph) {
  double seconds = 50e-6 * static_cast<double>(graph.nodes.size());
  for (const Weight& weight : graph.weights) seconds += 1e-6 * static_cast<double>(weight.count());
  return seconds;
}

class FakeRun final : public BoundRun {
 public:
  explicit FakeRun(double seconds) : seconds_(seconds) {}
  void run() override {
    // By the clock on the wall and by that of the processor: either may be looked at.
    const double end = machine::steady_seconds() + seconds_;
    const std::clock_t busy =
        std::clock() + static_cast<std::clock_t>(seconds_ * CLOCKS_PER_SEC) + 1;
    while (machine::steady_seconds() < end || std::clock() < busy) {
    }
  }
  std::vector<TensorBytes> outputs() override { return {}; }

 private:
  double seconds_;
};

class FakeRunner final : public Runner {
 public:
  explicit FakeRunner(double seconds) : seconds_(seconds) {}
  Tensors run(const Tensors&) override { return {}; }
  std::unique_ptr<BoundRun> bind(const std::vector<TensorBytes>&) override {
    return std::make_unique<FakeRun>(seconds_);
  }

 private:
  double seconds_;
};

/// Finds a difference.
class FakeProver final : public Prover {
 public:
  Proof prove(Runner&) override {
    Proof proof;
    proof.inputs = 3;
    proof.outputs = {{"y", 0.5, 1e-4}};
    return proof;
  }
};

class Fake final : public cli::TorchComponent {
 public:
  std::string version() override { return "fake"; }
  machine::MachineReport doctor() override {
    const std::string error = variable("FAKE_ERROR");
    if (error == "ConfigError") throw ConfigError("of the configuration");
    if (error == "VerificationError") throw VerificationError("of the proof");
    if (error == "ShapeError") throw ShapeError(parsimony::NodeId(3), "of a shape");
    if (error == "runtime_error") throw std::runtime_error("unforeseen");
    machine::MachineReport report;
    report.processor.model = "OMP_WAIT_POLICY=" + variable("OMP_WAIT_POLICY") +
                             " OPENBLAS_CORETYPE=" + variable("OPENBLAS_CORETYPE");
    machine::judge(report);
    return report;
  }
  int choose_threads(std::optional<int>) override { return 1; }
  std::unique_ptr<Model> open_script(const std::string&, const std::vector<std::string>&) override {
    return nullptr;
  }
  std::unique_ptr<Prover> prover(const Graph&, const Plan&, const Probe&, const ProofOptions&,
                                 std::function<bool(const Weight&)>) override {
    if (variable("FAKE_ERROR") == "UnsupportedError") throw UnsupportedError("it cannot be run");
    return std::make_unique<FakeProver>();
  }
  std::unique_ptr<Runner> runner(Graph graph, std::function<bool(const Weight&)>) override {
    for (const Node& node : graph.nodes) {
      if (node.op == variable("FAKE_REFUSES")) throw UnsupportedError("no kernel for " + node.op);
    }
    return std::make_unique<FakeRunner>(seconds_of(graph));
  }
  LedgerPoint train(const cli::TrainRequest&) override { return {}; }
  int sweep(const cli::SweepRequest&) override { return 0; }
  std::vector<cli::TrainBenchRow> bench_training(const cli::TrainBenchRequest&) override {
    return {};
  }
  std::vector<std::vector<IndexContent>> observe(const Graph&, const Probe&,
                                                 const std::vector<ElementMask>&,
                                                 const std::vector<Dimension>&) override {
    return {};
  }
  Recovered recover(const Graph&, const Plan&, const cli::RecoveryOrder&) override { return {}; }
  cli::ExportOutcome export_onnx(const cli::ExportOrder&) override { return {}; }
  bool differs(const Graph&, const Plan& plan, const Probe&, const ProofOptions&) override {
    return std::any_of(plan.groups.begin(), plan.groups.end(),
                       [](const PlanGroup& group) { return group.id == variable("FAKE_GUILTY"); });
  }
  /// The later a block comes, the less it does.
  std::vector<double> block_influences(const Graph&, const std::vector<ResidualBlock>& blocks,
                                       const cli::CalibrationOrder&) override {
    std::vector<double> influences;
    for (size_t left = blocks.size(); left > 0; --left) {
      influences.push_back(static_cast<double>(left));
    }
    return influences;
  }
  ErrorData samples(const Graph&, const cli::CalibrationOrder&) override { return {}; }
  /// The higher a channel's number, the less it matters.
  Statistics measure(const Graph&, const Facts&, const Coupling& coupling, const Needs& needs,
                     const cli::CalibrationOrder& order) override {
    Statistics statistics;
    statistics.samples = order.samples;
    for (const Group& group : coupling.groups) {
      statistics.groups.push_back(group.id);
      for (const Measure measure : needs.channels) {
        auto& values = statistics.channels[measure].emplace_back();
        for (int c = group.size; c > 0; --c) values.push_back(c);
      }
    }
    return statistics;
  }
};

}  // namespace
}  // namespace test
}  // namespace parsimony

extern "C" const parsimony::cli::TorchComponentEntry* parsimony_torch_component();

const parsimony::cli::TorchComponentEntry* parsimony_torch_component() {
  static parsimony::test::Fake fake;
  static parsimony::cli::TorchComponentEntry entry;
  entry.component = &fake;
  entry.version = PARSIMONY_VERSION;
  if (!parsimony::test::variable("FAKE_INTERFACE").empty()) entry.interface = -1;
  if (!parsimony::test::variable("FAKE_VERSION").empty()) entry.version = "0.0.9";
  return &entry;
}
