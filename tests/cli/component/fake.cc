// Stands in for the libtorch component: what it does, the environment says.
#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "parsimony/cli/torch_component.h"
#include "parsimony/graph/errors.h"

namespace parsimony {

struct Tensors {};

namespace test {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class FakeRunner final : public Runner {
 public:
  Tensors run(const Tensors&) override { return {}; }
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
  machine::MachineReport doctor() override {
    const std::string error = variable("FAKE_ERROR");
    if (error == "ConfigError") throw ConfigError("of the configuration");
    if (error == "VerificationError") throw VerificationError("of the proof");
    if (error == "ShapeError") throw ShapeError(3, "of a shape");
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
  std::unique_ptr<Prover> prover(const Graph&, const Plan&, const Probe&,
                                 const ProofOptions&) override {
    if (variable("FAKE_ERROR") == "UnsupportedError") throw UnsupportedError("it cannot be run");
    return std::make_unique<FakeProver>();
  }
  std::unique_ptr<Runner> runner(Graph) override { return std::make_unique<FakeRunner>(); }
  bool differs(const Graph&, const Plan& plan, const Probe&, const ProofOptions&) override {
    return std::any_of(plan.groups.begin(), plan.groups.end(),
                       [](const PlanGroup& group) { return group.id == variable("FAKE_GUILTY"); });
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
