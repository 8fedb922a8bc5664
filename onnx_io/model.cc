#include "parsimony/onnx_io/model.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "parsimony/base/errors.h"
#include "parsimony/onnx_io/masked.h"
#include "parsimony/onnx_io/reader.h"

namespace parsimony::onnx_io {

struct OnnxModel::Scratch {
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "parsimony-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw parsimony::errors::cannot_write(name, errno);
    folder = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::filesystem::path folder;
};

OnnxModel::OnnxModel(const std::string& path) : file_(path), graph_(to_graph(file_)) {}

OnnxModel::~OnnxModel() = default;

void OnnxModel::restore() {
  if (!file_.edited()) return;
  editor_.reset();
  graph_ = {};
  file_ = ModelFile(std::string(file_.path()));
  graph_ = to_graph(file_);
}

std::unique_ptr<Network> OnnxModel::open(Engine& engine) {
  OpenOptions opened = options();
  if (!file_.edited()) {
    opened.file = [this] { return file_.path(); };
    return engine.open(graph_, opened);
  }
  opened.file = [this] { return scratch_copy(file_); };
  return engine.open(to_graph(file_, EditedData::kMadeAnew), opened);
}

std::unique_ptr<Network> OnnxModel::open_masked(Engine& engine, const Plan& plan) {
  OpenOptions opened = options();
  opened.file = [this, &plan] {
    ModelFile masked(file_.path());
    mask(masked, plan);
    return scratch_copy(masked);
  };
  return engine.open_masked(graph_, plan, opened);
}

std::string OnnxModel::scratch_copy(ModelFile& file) {
  const std::string path =
      scratch_.emplace_back(std::make_unique<Scratch>())->folder / "model.onnx";
  file.write(path);
  return path;
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
