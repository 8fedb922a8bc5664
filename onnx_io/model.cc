#include "parsimony/onnx_io/model.h"

#include <algorithm>
#include <utility>

#include "parsimony/onnx_io/masked.h"
#include "parsimony/onnx_io/reader.h"

namespace parsimony::onnx_io {

OnnxModel::OnnxModel(const std::string& path) : file_(path), graph_(to_graph(file_)) {}

void OnnxModel::restore() {
  if (!file_.edited()) return;
  editor_.reset();
  graph_ = {};
  file_ = ModelFile(std::string(file_.path()));
  if (again_) again_(file_);
  graph_ = to_graph(file_);
}

void OnnxModel::rebase(std::function<void(ModelFile& file)> again) {
  editor_.reset();
  graph_ = to_graph(file_);
  again_ = std::move(again);
}

std::unique_ptr<Network> OnnxModel::open(Engine& engine) {
  OpenOptions opened = options();
  if (!file_.edited()) {
    opened.file = [this] { return file_.path(); };
    return engine.open(graph_, opened);
  }
  opened.file = [this] { return scratch_copy(file_); };
  return engine.open(to_graph(file_, EditedData::kLazy), opened);
}

std::unique_ptr<Network> OnnxModel::open_masked(Engine& engine, const Plan& plan) {
  OpenOptions opened = options();
  opened.file = [this, &plan] {
    ModelFile masked(file_.path());
    mask(masked, plan);
    const bool mixes = std::ranges::any_of(plan.groups, &PlanGroup::mixes);
    if (mixes) gather_around_mixing(masked, graph_, plan);
    return scratch_copy(masked);
  };
  return engine.open_masked(graph_, plan, opened);
}

std::string OnnxModel::scratch_copy(ModelFile& file) {
  const std::string path =
      scratch_.emplace_back(std::make_unique<TemporaryFolder>())->path() / "model.onnx";
  file.write_beside(path);
  return path;
}

/// Returns options with which external weights are streamed without a copy.
OpenOptions OnnxModel::options() const {
  OpenOptions options;
  if (file_.has_data_beside()) {
    options.stays = [this](const Weight& weight) { return file_.is_mapped(weight); };
  }
  return options;
}

}  // namespace parsimony::onnx_io
