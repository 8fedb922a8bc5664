// Edits a program of torch.export into the small network.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/graph/model_editor.h"
#include "parsimony/programs/exported/archive.h"
#include "parsimony/programs/exported/program.h"

namespace parsimony::programs {

/// A program as it is to be written.
struct EditedProgram {
  std::string json;
  std::vector<ArchivedTensor> tensors;  ///< in the order of the archive, then those that were added
  std::deque<std::vector<std::byte>> literals = {};  ///< to which tensors refer
  std::vector<InputSpec> inputs;                     ///< with which it is to be read
};

/// Collects the changes of a plan and applies them to the program's JSON, in which everything else
/// stays as it was written.
class ProgramEditor : public ModelEditor {
 public:
  /// All three must outlive the editor. @param inputs  with which the program was read
  ProgramEditor(const Archive& archive, const Program& program,
                const std::vector<InputSpec>& inputs);
  ~ProgramEditor() override;

  /// For additions outside of sub-graphs. @throws UnsupportedError
  void bypass(std::span<const BypassedNode> nodes) override;
  void copy(const std::string& name, const std::string& of, const std::string& consumer,
            int input) override;
  void slice(const std::string& tensor, std::span<const AxisKeep> axes) override;
  void slice_input(const std::string& input, std::span<const AxisKeep> axes) override;
  void zero_smallest(const std::string& tensor, int64_t count) override;
  void assign(const std::string& tensor, std::span<const std::byte> values) override;
  /// @throws UnsupportedError if the program has no literal for it
  void set_attribute(const std::string& node, const std::string& attribute,
                     std::span<const int64_t> values) override;
  /// @throws UnsupportedError if the program has no literal for it
  void set_input(const std::string& node, int input, const HostTensor& constant) override;
  void update_shapes(const ChangeOf& change) override;

  bool edited() const;

  /// The edited program. Its tensors refer to the editor. @throws UnsupportedError for a change
  /// that has no form in a program; ModelError if the result cannot be read
  EditedProgram finish() const;

  /// Can the readers of the sum read its operand `kept` instead?
  static bool can_bypass(const Program& program, NodeId sum, int kept);
  /// Nodes of the patches whose changes have no form in the program.
  static std::vector<NodeId> unwritable(const Archive& archive, const Program& program,
                                        const std::vector<Patch>& patches);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace parsimony::programs
