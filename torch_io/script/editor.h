// Edits a TorchScript module into the small network.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "parsimony/programs/literal_editor.h"
#include "parsimony/torch_io/script/read.h"

namespace parsimony::torch_io {

/// Whether the original module may be overwritten.
enum class Original {
  kStays,    ///< keeps its values
  kGivenUp,  ///< tensors are sliced in place, so it becomes invalid
};

/// Collects the changes of one plan and applies them to a copy of the module. Tensors are replaced
/// in all attributes that refer to them, and in the constants of a frozen graph; integers are
/// changed in the program, whose `forward` becomes one inlined function.
///
///     ScriptGraph script = read_script(module, inputs);
///     Pruning pruning = plan_pruning(script.graph, config);
///     ScriptEditor editor(script);
///     apply_plan(pruning.plan, script.graph, pruning.analysis.probe, editor);
///     torch::jit::Module small = editor.finish();
class ScriptEditor : public programs::LiteralEditor {
 public:
  /// `script` need not outlive the editor.
  explicit ScriptEditor(const ScriptGraph& script, Original original = Original::kStays);
  ~ScriptEditor() override;

  /// Whether all requested changes of this node can be written into the program.
  bool can_write(const std::string& node) const;

  /// Supports additions outside of loops. Everything that only the other operand needed is removed;
  /// unused tensors become empty. @throws UnsupportedError
  void bypass(std::span<const BypassedNode> nodes) override;

  /// Copies the current values of `of`: call before slicing.
  void copy(const std::string& name, const std::string& of, const std::string& consumer,
            int input) override;
  void slice(const std::string& tensor, std::span<const AxisKeep> axes) override;
  void zero_smallest(const std::string& tensor, int64_t count) override;
  void assign(const std::string& tensor, std::span<const std::byte> values) override;

  /// Updates numbers that repeat a size, and removes checks of changed sizes.
  void update_shapes(const ChangeOf& change) override;

  /// Whether anything was changed.
  bool edited() const;

  /// Returns the edited module, which shares no tensor with a preserved original. Afterwards only
  /// values may change, and `finish` returns another module with them; this one is not changed.
  /// @throws UnsupportedError
  torch::jit::Module finish();

 private:
  struct Impl;

  explicit ScriptEditor(std::unique_ptr<Impl> impl);
  void write(const programs::SourceLocation& location, const HostTensor& value,
             const std::string& node, const std::string& what) override;
  void write_parts(const programs::SourceLocation& call, const std::vector<int64_t>& sizes,
                   const std::string& node) override;
  void note_item(const programs::SourceLocation& location, int64_t number) override;
  std::optional<HostTensor> written_at(const programs::SourceLocation& location) const override;

  std::unique_ptr<Impl> impl_;
};

}  // namespace parsimony::torch_io
