// Edits a TorchScript module into the small network.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "parsimony/graph/model_editor.h"
#include "parsimony/torch_io/script/read.h"

namespace parsimony::torch_io {

/// May the original module be overwritten?
enum class Original {
  kStays,    ///< it keeps its values
  kGivenUp,  ///< tensors are sliced in its memory, so it becomes invalid
};

/// A changed program: its calls keep the marks of the one that was read.
struct EditedScript {
  std::shared_ptr<torch::jit::Graph> graph;
  std::unordered_map<const torch::jit::Value*, ShapeChange> sizes;  ///< of tensors that changed
  std::unordered_set<const torch::jit::Value*> known;               ///< tensors that were followed
};

/// Collects the changes of one plan and applies them to a copy of the module. Tensors are replaced
/// in all attributes that hold them, and in the constants of a frozen graph; integers are changed
/// in the program, whose `forward` becomes one inlined function.
///
///     ScriptGraph script = read_script(module, inputs);
///     Pruning pruning = plan_pruning(script.graph, config);
///     ScriptEditor editor(script);
///     apply_plan(pruning.plan, script.graph, pruning.analysis.probe, editor);
///     torch::jit::Module small = editor.finish();
class ScriptEditor : public ModelEditor {
 public:
  /// `script` need not outlive the editor.
  explicit ScriptEditor(const ScriptGraph& script, Original original = Original::kStays);
  ~ScriptEditor() override;

  /// Can all requested changes of this node be written into the program?
  bool can_write(const std::string& node) const;

  /// For additions outside of loops. Everything that only the other operand needed is removed;
  /// unused tensors become empty. @throws UnsupportedError
  void bypass(const std::string& node, int input) override;

  /// Copies the current values of `of`: copies come before slices.
  void copy(const std::string& name, const std::string& of, const std::string& consumer,
            int input) override;
  void slice(const std::string& tensor, std::span<const AxisKeep> axes) override;
  void zero_smallest(const std::string& tensor, int64_t count) override;
  void assign(const std::string& tensor, std::span<const std::byte> values) override;

  /// @throws UnsupportedError if the program has no literal for it
  void set_attribute(const std::string& node, const std::string& attribute,
                     std::span<const int64_t> values) override;
  /// @throws UnsupportedError if the program has no literal for it
  void set_input(const std::string& node, int input, const HostTensor& constant) override;

  /// Updates numbers that repeat a size, and removes checks of changed sizes.
  void update_shapes(const ChangeOf& change) override;

  /// Something was changed.
  bool edited() const;

  /// The edited module, which shares no tensor with a preserved original. Afterwards only values
  /// may change, and `finish` returns another module with them; this one is not changed.
  /// @throws UnsupportedError
  torch::jit::Module finish();

  /// The program of `finish` as it was read, with its changes, for writers of other formats.
  const EditedScript& program() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace parsimony::torch_io
