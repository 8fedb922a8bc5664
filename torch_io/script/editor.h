// Edits a TorchScript module so that it computes the small network.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <string>

#include "parsimony/graph/model_editor.h"
#include "parsimony/torch_io/script/read.h"

namespace parsimony::torch_io {

/// May the module that was read be used up?
enum class Original {
  kStays,    ///< it keeps its values
  kGivenUp,  ///< tensors are cut in its memory, and what it computes then means nothing
};

/// Collects the changes of one plan and makes them on a copy of the module. Tensors change in the
/// attributes that hold them, whatever names these have, and in the constants of a frozen graph;
/// integers where they are written in the program, of which `forward` becomes one flat function.
///
///     ScriptGraph script = read_script(module, inputs);
///     Pruning pruning = plan_pruning(script.graph, config);
///     ScriptEditor editor(script);
///     apply_plan(pruning.plan, script.graph, pruning.analysis.probe, editor);
///     torch::jit::Module small = editor.finish();
class ScriptEditor : public ModelEditor {
 public:
  /// Keeps what it needs of `script`, which may go.
  explicit ScriptEditor(const ScriptGraph& script, Original original = Original::kStays);
  ~ScriptEditor() override;

  /// Can all that has been asked of this node so far be written into the program?
  bool can_write(const std::string& node) const;

  /// Of an addition outside of loops. What only its other operand needed goes; tensors that nothing
  /// reads then have no elements. @throws UnsupportedError
  void bypass(const std::string& node, int input) override;

  /// Takes the values that `of` has now: copies come before slices.
  void copy(const std::string& name, const std::string& of, const std::string& consumer,
            int input) override;
  void slice(const std::string& tensor, std::span<const AxisKeep> axes) override;
  void zero_smallest(const std::string& tensor, int64_t count) override;
  void assign(const std::string& tensor, std::span<const std::byte> values) override;

  /// @throws UnsupportedError if no number in the program stands for it
  void set_attribute(const std::string& node, const std::string& attribute,
                     std::span<const int64_t> values) override;
  /// @throws UnsupportedError if no number in the program stands for it
  void set_input(const std::string& node, int input, const HostTensor& constant) override;

  /// Numbers that repeat a size follow it; checks of sizes that changed go.
  void update_shapes(const ChangeOf& change) override;

  /// Something was changed.
  bool edited() const;

  /// The edited module, which shares no tensor with an original that stays. Then only values may
  /// change, and `finish` gives another module with them; this one stays as it is.
  /// @throws UnsupportedError
  torch::jit::Module finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace parsimony::torch_io
