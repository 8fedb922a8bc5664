#include "parsimony/cli/torch/script_model.h"

#include <utility>

#include "parsimony/cli/torch/runners.h"
#include "parsimony/graph/infer.h"
#include "parsimony/torch_io/script/run.h"

namespace parsimony::component {
namespace {

std::vector<InputSpec> parsed(const std::vector<std::string>& specs) {
  std::vector<InputSpec> result;
  for (const std::string& spec : specs) result.push_back(parse_input_spec(spec));
  return result;
}

}  // namespace

ScriptModel::ScriptModel(const std::string& path, const std::vector<std::string>& specs)
    : file_(path), script_(file_.read(parsed(specs))) {}

std::unique_ptr<Prover> ScriptModel::prover(const Plan& plan, const Probe& probe,
                                            const ProofOptions& options) {
  return guarded([&] {
    const bool mixes = torch_io::mixes(plan);
    // Zeros in the module's own tensors depend on neither reader nor executor; where more than
    // tensors changes, they are not enough.
    const bool by_executor = mixes || !plan.blocks.empty() || !plan.scales.empty();
    torch_io::Computation masked = by_executor
                                       ? torch_io::masked_run(script_.graph, plan)
                                       : torch_io::zeroed_run(file_.module(), script_, plan);
    return std::make_unique<GuardedProver>(
        torch_io::Reference(script_.graph, probe, mixes, std::move(masked), options));
  });
}

std::unique_ptr<Runner> ScriptModel::runner() {
  return guarded([&] {
    const auto module = file_.small();
    return std::make_unique<FunctionRunner>(torch_io::script_run(module),
                                            [module](const std::vector<at::Tensor>& inputs) {
                                              return torch_io::bound_script(module, inputs);
                                            });
  });
}

}  // namespace parsimony::component
