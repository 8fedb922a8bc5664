// A TorchScript file as a Model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parsimony/api/model.h"
#include "parsimony/torch_io/script/script_file.h"

namespace parsimony::component {

class ScriptModel final : public Model {
 public:
  /// `specs` are those of --input, one per tensor that `forward` takes.
  /// @throws IoError, ModelError, ConfigError
  ScriptModel(const std::string& path, const std::vector<std::string>& specs);

  const std::string& path() const override { return file_.path(); }
  std::string sha256() const override { return file_.sha256(); }
  Graph& graph() override { return script_.graph; }
  std::unique_ptr<ModelEditor> editor() override { return file_.editor(); }
  std::unique_ptr<Prover> prover(const Plan& plan, const Probe& probe,
                                 const ProofOptions& options) override;
  std::unique_ptr<Runner> runner() override;
  void write(const std::string& path) override { file_.write(path); }

 private:
  torch_io::ScriptFile file_;  // before the graph, which points into it
  torch_io::ScriptGraph& script_;
};

}  // namespace parsimony::component
