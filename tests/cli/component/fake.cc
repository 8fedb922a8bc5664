// Stands in for the libtorch component: what it does, the environment says.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>

#include "parsimony/base/errors.h"
#include "parsimony/cli/torch_commands.h"
#include "parsimony/engines/timing.h"

namespace parsimony {

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

/// Answers every run with one number per output, in this many seconds.
class FakeNetwork final : public Network {
 public:
  FakeNetwork(const Graph& graph, float answer) : seconds_(seconds_of(graph)) {
    TensorBytes output;
    output.dims = {1};
    output.bytes.resize(sizeof answer);
    std::memcpy(output.bytes.data(), &answer, sizeof answer);
    outputs_.assign(graph.outputs.size(), output);
  }

  std::vector<TensorList> run(const std::vector<TensorList>& inputs, const RunOptions&) override {
    return std::vector<TensorList>(inputs.size(), outputs_);
  }
  void bind(const TensorList&) override {}
  void compute() override {
    // By the clock on the wall and by that of the processor: either may be looked at.
    const double end = machine::steady_seconds() + seconds_;
    const std::clock_t busy =
        std::clock() + static_cast<std::clock_t>(seconds_ * CLOCKS_PER_SEC) + 1;
    while (machine::steady_seconds() < end || std::clock() < busy) {
    }
  }
  TensorList outputs() override { return outputs_; }

 private:
  double seconds_;
  TensorList outputs_;
};

constexpr float kSmall = 1.5F;     // what small networks answer
constexpr float kOriginal = 1.0F;  // what the masked original answers: another number

class Fake final : public TorchComponent, public cli::TorchCommands {
 public:
  std::string version() const override { return "fake"; }
  void count_samples_in(std::atomic<int64_t>& /*counter*/) override {}
  std::vector<machine::Finding> doctor_of_ranks(const RankPlace& /*place*/) override { return {}; }
  machine::MachineReport doctor() override {
    const std::string error = variable("FAKE_ERROR");
    if (error == "ConfigError") throw ConfigError("of the configuration");
    if (error == "VerificationError") throw VerificationError("of the proof");
    if (error == "ShapeError") throw ShapeError(parsimony::NodeId(3), "of a shape");
    if (error == "runtime_error") throw std::runtime_error("unforeseen");
    machine::MachineReport report;
    report.processor.model = "OMP_WAIT_POLICY=" + variable("OMP_WAIT_POLICY");
    machine::advise(report);
    return report;
  }
  void add_own_operators(const OwnOperators&) override {}
  void use_cores(std::optional<int>) override {}
  int choose_threads(std::optional<int>) override { return 1; }
  std::unique_ptr<EditableFile> open_script(const std::string&,
                                            const std::vector<InputSpec>&) override {
    return nullptr;
  }
  std::unique_ptr<Network> open(const Graph& graph, const OpenOptions&) override {
    for (const Node& node : graph.nodes) {
      if (node.op == variable("FAKE_REFUSES")) throw UnsupportedError("no kernel for " + node.op);
    }
    return std::make_unique<FakeNetwork>(graph, kSmall);
  }
  /// Finds a difference in the file, whose rounding is asked for then; behind that, on the graph,
  /// only where the guilty group is pruned.
  std::unique_ptr<Network> open_masked(const Graph& graph, const Plan& plan,
                                       const OpenOptions&) override {
    if (variable("FAKE_ERROR") == "UnsupportedError") throw UnsupportedError("it cannot be run");
    const bool in_the_file = ++masked_ <= 2;
    const bool guilty =
        std::any_of(plan.groups.begin(), plan.groups.end(),
                    [](const PlanGroup& group) { return group.id == variable("FAKE_GUILTY"); });
    return std::make_unique<FakeNetwork>(graph, in_the_file || guilty ? kOriginal : kSmall);
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
  Recovered recover(const Graph&, const Plan&, const RecoverySettings&, const CalibrationData&,
                    const Say&) override {
    return {};
  }
  Recovered recover_pruned(const Graph&, const Graph&, const RecoverySettings&,
                           const CalibrationData&, const Say&) override {
    return {};
  }
  Exported export_script(const std::string&, const std::vector<InputSpec>&, const std::string&,
                         const ExportSettings&) override {
    return {};
  }
  /// The later a block comes, the less it does.
  std::vector<double> block_influences(const Graph&, const std::vector<ResidualBlock>& blocks,
                                       const CalibrationData&) override {
    std::vector<double> influences;
    for (size_t left = blocks.size(); left > 0; --left) {
      influences.push_back(static_cast<double>(left));
    }
    return influences;
  }
  ErrorData samples(const Graph&, const CalibrationData&, bool) override { return {}; }
  /// The higher a channel's number, the less it matters.
  Statistics measure(const Graph&, const Facts&, const Coupling& coupling, const Needs& needs,
                     const CalibrationData& job) override {
    Statistics statistics;
    statistics.samples = job.sample_count();
    for (const Group& group : coupling.groups) {
      statistics.groups.push_back(group.id);
      for (const Measure measure : needs.channels) {
        auto& values = statistics.channels[measure].emplace_back();
        for (int c = group.size; c > 0; --c) values.push_back(c);
      }
    }
    return statistics;
  }

 private:
  int masked_ = 0;
};

}  // namespace
}  // namespace test
}  // namespace parsimony

extern "C" const parsimony::TorchComponentEntry* parsimony_libtorch();

const parsimony::TorchComponentEntry* parsimony_libtorch() {
  static parsimony::test::Fake fake;
  static parsimony::TorchComponentEntry entry;
  entry.component = &fake;
  entry.commands = &fake;
  entry.version = PARSIMONY_VERSION;
  entry.interface = parsimony::torch_interface();
  if (!parsimony::test::variable("FAKE_VERSION").empty()) entry.version = "0.0.9";
  if (!parsimony::test::variable("FAKE_INTERFACE").empty()) entry.interface = "another";
  return &entry;
}
