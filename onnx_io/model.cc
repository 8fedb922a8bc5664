#include "parsimony/onnx_io/model.h"

#include "parsimony/onnx_io/reader.h"

namespace parsimony::onnx_io {

OnnxModel::OnnxModel(const std::string& path) : file_(path), graph_(to_graph(file_)) {}

void OnnxModel::restore() {
  if (!file_.edited()) return;
  editor_.reset();
  graph_ = {};
  file_ = ModelFile(std::string(file_.path()));
  graph_ = to_graph(file_);
}

std::unique_ptr<Network> OnnxModel::open(Engine& engine) {
  if (file_.edited()) return engine.open(to_graph(file_, EditedData::kMadeAnew), options());
  OpenOptions as_it_lies = options();
  as_it_lies.file = [this] { return file_.path(); };
  return engine.open(graph_, as_it_lies);
}

std::unique_ptr<Network> OnnxModel::open_masked(Engine& engine, const Plan& plan) {
  return engine.open_masked(graph_, plan, options());
}

/// Weights beside the model need no copy to be computed with.
OpenOptions OnnxModel::options() const {
  OpenOptions options;
  if (file_.has_data_beside()) {
    options.stays = [this](const Weight& weight) { return file_.holds_beside(weight); };
  }
  return options;
}

}  // namespace parsimony::onnx_io
