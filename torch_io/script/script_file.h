// A TorchScript model as it lies in its file: read once, edited, written back.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "parsimony/graph/infer.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/torch_io/script/read.h"

namespace parsimony::torch_io {

///     ScriptFile file("model.pt");
///     ScriptGraph& script = file.read({{{1, 3, 32, 32}, {}}});
///     Pruning pruning = plan_pruning(script.graph, config);
///     apply_plan(pruning.plan, script.graph, pruning.analysis.probe, file.editor());
///     file.write("smaller.pt");
class ScriptFile {
 public:
  /// Reads the whole file, each tensor once; no code of it runs. Tensors come to the CPU.
  /// @throws IoError if the file cannot be read; ModelError if it is truncated, or holds something
  /// else than TorchScript, saying what it looks like
  explicit ScriptFile(const std::string& path);
  ~ScriptFile();
  ScriptFile(ScriptFile&&) noexcept;
  ScriptFile& operator=(ScriptFile&&) noexcept;

  const std::string& path() const;
  /// Fingerprint of the file as it was read, lower-case hexadecimal.
  const std::string& sha256() const;
  /// The module as it was read, until it is edited: then what it computes means nothing.
  const torch::jit::Module& module() const;
  /// Those that its author added to the archive, by name.
  const std::unordered_map<std::string, std::string>& extra_files() const;

  /// The module as a Graph, which lives as long as the file, and whose weights are gone once it is
  /// edited. Reading again starts anew, from the disk if something was edited.
  /// @throws ConfigError, ModelError: see read_script; IoError
  ScriptGraph& read(const std::vector<InputSpec>& inputs);

  /// Edits what `read` has read, in its memory where that can be. The file keeps the changes; the
  /// editor lives as long as it does.
  /// @throws ModelError if nothing was read
  ModelEditor& editor();

  /// Some editor has changed something.
  bool edited() const;
  /// The module with all changes made, and as it stays. Then only values may change.
  /// @throws UnsupportedError
  torch::jit::Module small();

  /// Writes under a temporary name, then renames; `path` may be the model itself. A model that was
  /// not edited comes out byte for byte, an edited one with the extra files of the archive.
  /// @throws IoError, leaving an older file at `path` whole; UnsupportedError
  void write(const std::string& path);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace parsimony::torch_io
