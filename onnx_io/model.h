// An ONNX file that can be pruned.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/base/files.h"
#include "parsimony/engines/editable_model.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/model_file.h"

namespace parsimony::onnx_io {

class OnnxModel final : public EditableFile {
 public:
  /// @throws IoError, ModelError, UnsupportedError
  explicit OnnxModel(const std::string& path);

  const std::string& path() const override { return file_.path(); }
  std::string sha256() const override { return file_.sha256(); }
  std::vector<std::string> data_files() const override { return file_.data_files(); }
  Graph& graph() override { return graph_; }
  ModelEditor& editor() override { return editor_ ? *editor_ : editor_.emplace(file_); }
  void restore() override;
  std::unique_ptr<Network> open(Engine& engine) override;
  std::unique_ptr<Network> open_masked(Engine& engine, const Plan& plan) override;
  int64_t write(const std::string& path) override { return file_.write(path); }

  ModelFile& file() { return file_; }
  /// Makes the current state the original. @param again  applies its changes to a file that
  /// `restore` has read again
  void rebase(std::function<void(ModelFile& file)> again);

 private:
  OpenOptions options() const;
  /// Writes it to a separate file. @returns its path
  std::string scratch_copy(ModelFile& file);

  std::vector<std::unique_ptr<TemporaryFolder>> scratch_;  ///< files for engines that read them
  ModelFile file_;                                         // before the graph, which points into it
  Graph graph_;
  std::optional<OnnxEditor> editor_;
  std::function<void(ModelFile&)> again_;  ///< may be empty
};

}  // namespace parsimony::onnx_io
