// A TorchScript file that can be pruned.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/base/files.h"
#include "parsimony/base/temporary_folder.h"
#include "parsimony/engines/editable_model.h"
#include "parsimony/torch_io/script/script_file.h"

namespace parsimony::torch_io {

class ScriptModel final : public EditableFile {
 public:
  /// `specs` describe the tensors that `forward` takes.
  /// @throws IoError, ModelError, ConfigError
  ScriptModel(const std::string& path, std::vector<InputSpec> specs);

  const std::string& path() const override { return file_.path(); }
  std::string sha256() const override { return file_.sha256(); }
  Graph& graph() override { return script_->graph; }
  ModelEditor& editor() override { return file_.editor(); }
  void restore() override { script_ = &file_.read(specs_); }
  int64_t write(const std::string& path) override {
    file_.write(path);
    return size_of_file(path);
  }

  /// Runs on libtorch's interpreter. @throws UnsupportedError for engines that are not libtorch
  std::unique_ptr<Network> open(Engine& engine) override;
  std::unique_ptr<Network> open_masked(Engine& engine, const Plan& plan) override;

 private:
  std::vector<InputSpec> specs_;
  ScriptFile file_;  // before the graph, which points into it
  ScriptGraph* script_;
  TemporaryFolder scratch_;
  std::optional<ScriptFile> written_;  ///< in it: the small program, read back
};

}  // namespace parsimony::torch_io
