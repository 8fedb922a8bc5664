// An ONNX file as a Model.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/api/model.h"
#include "parsimony/onnx_io/model_file.h"

namespace parsimony::cli {

class OnnxModel : public Model {
 public:
  /// @throws IoError, ModelError, UnsupportedError
  explicit OnnxModel(const std::string& path);

  const std::string& path() const override { return file_.path(); }
  std::string sha256() const override { return file_.sha256(); }
  std::vector<std::string> data_files() const override { return file_.data_files(); }
  Graph& graph() override { return graph_; }
  std::unique_ptr<ModelEditor> editor() override;
  std::unique_ptr<Prover> prover(const Plan& plan, const Probe& probe,
                                 const ProofOptions& options) override;
  std::unique_ptr<Runner> runner() override;
  void write(const std::string& path) override { file_.write(path); }

 private:
  /// Which weights need no copy to be computed with; empty where all lie in the model itself.
  std::function<bool(const Weight&)> beside() const;

  onnx_io::ModelFile file_;  // before the graph, which points into it
  Graph graph_;
};

}  // namespace parsimony::cli
