// Stands in for the libtorch component: what it does, the environment says.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "parsimony/cli/torch_component.h"
#include "parsimony/graph/errors.h"

namespace parsimony::test {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

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
    return nullptr;
  }
  std::unique_ptr<Runner> runner(Graph) override { return nullptr; }
  bool differs(const Graph&, const Plan&, const Probe&, const ProofOptions&) override {
    return false;
  }
};

}  // namespace
}  // namespace parsimony::test

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
