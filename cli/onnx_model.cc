#include "parsimony/cli/onnx_model.h"

#include "parsimony/cli/torch_component.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"

namespace parsimony::cli {

OnnxModel::OnnxModel(const std::string& path) : file_(path), graph_(onnx_io::to_graph(file_)) {}

std::unique_ptr<ModelEditor> OnnxModel::editor() {
  return std::make_unique<onnx_io::OnnxEditor>(file_);
}

std::unique_ptr<Prover> OnnxModel::prover(const Plan& plan, const Probe& probe,
                                          const ProofOptions& options) {
  return torch_component().prover(graph_, plan, probe, options, beside());
}

std::unique_ptr<Runner> OnnxModel::runner() {
  return torch_component().runner(onnx_io::to_graph(file_, onnx_io::EditedData::kMadeAnew),
                                  beside());
}

std::function<bool(const Weight&)> OnnxModel::beside() const {
  if (!file_.has_data_beside()) return {};
  return [this](const Weight& weight) { return file_.holds_beside(weight); };
}

}  // namespace parsimony::cli
