// A TorchScript or torch.export model file: read once, edited, written back.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "parsimony/base/files.h"
#include "parsimony/engines/editable_model.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/torch_io/script/read.h"

namespace parsimony::torch_io {

class TorchNetwork;

///     ScriptFile file("model.pt");
///     ScriptGraph& script = file.read({{{1, 3, 32, 32}, {}}});
///     Pruning pruning = plan_pruning(script.graph, config);
///     apply_plan(pruning.plan, script.graph, pruning.analysis.probe, file.editor());
///     file.write("smaller.pt");
class ScriptFile {
 public:
  /// Reads the file, each tensor once, without running its code. Tensors are loaded to the CPU.
  /// @throws IoError if the file cannot be read; ModelError if it is truncated or not TorchScript,
  /// saying what it looks like
  explicit ScriptFile(const std::string& path);
  /// Uses a module in memory, without a file: edits are made on a copy.
  explicit ScriptFile(const torch::jit::Module& module);
  ~ScriptFile();
  ScriptFile(ScriptFile&&) noexcept;
  ScriptFile& operator=(ScriptFile&&) noexcept;

  const std::string& path() const;
  /// Returns the fingerprint of the file as it was read, lower-case hexadecimal.
  const std::string& sha256() const;
  /// Returns the module as it was read; invalid once it has been edited.
  const torch::jit::Module& module() const;
  /// Returns the extra files of the archive, by name.
  const std::unordered_map<std::string, std::string>& extra_files() const;
  /// Whether it was passed as a module.
  bool in_memory() const;

  /// Returns the module as a Graph. The result lives as long as the file; its weights become
  /// invalid once it is edited. Reading again starts over, from disk if anything was edited.
  /// @throws ConfigError, ModelError: see read_script; IoError
  ScriptGraph& read(const std::vector<InputSpec>& inputs);

  /// Edits the Graph from `read`, in its memory where possible. The file keeps the changes and owns
  /// the editor.
  /// @throws ModelError if nothing was read
  ModelEditor& editor();

  /// Whether an editor has changed anything.
  bool edited() const;
  /// Returns the module with all changes applied. Afterwards only values may change.
  /// @throws UnsupportedError
  torch::jit::Module small();

  /// Writes under a temporary name, then renames; `path` may be the model itself. An unedited model
  /// is reproduced byte for byte; an edited one keeps the extra files of the archive.
  /// @throws IoError, without changing an existing file at `path`; UnsupportedError
  void write(const std::string& path);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class ScriptModel final : public EditableFile {
 public:
  /// `specs` describe the tensors that `forward` takes.
  /// @throws IoError, ModelError, ConfigError
  ScriptModel(const std::string& path, std::vector<InputSpec> specs);
  /// Uses a module in memory, which must not change structurally. It may be trained on: it is run
  /// AsWritten.
  ScriptModel(const torch::jit::Module& module, std::vector<InputSpec> specs);

  /// Returns the module with all changes applied.
  torch::jit::Module small() { return file_.small(); }

  const std::string& path() const override { return file_.path(); }
  std::string sha256() const override { return file_.sha256(); }
  Graph& graph() override { return script_->graph; }
  ModelEditor& editor() override { return file_.editor(); }
  bool owns(const std::string& tensor) const override { return !is_synthetic(*script_, tensor); }
  void restore() override { script_ = &file_.read(specs_); }
  int64_t write(const std::string& path) override {
    file_.write(path);
    return size_of_file(path);
  }

  /// Runs on libtorch's interpreter. @throws UnsupportedError for engines that are not libtorch
  std::unique_ptr<Network> open(Engine& engine) override;
  std::unique_ptr<Network> open_masked(Engine& engine, const Plan& plan) override;

 private:
  std::unique_ptr<Network> opened(TorchNetwork network) const;

  std::vector<InputSpec> specs_;
  ScriptFile file_;  // before the graph, which points into it
  ScriptGraph* script_;
};

}  // namespace parsimony::torch_io
