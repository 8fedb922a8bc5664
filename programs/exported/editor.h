// Edits a program of torch.export into the small network.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/programs/exported/archive.h"
#include "parsimony/programs/exported/program.h"
#include "parsimony/programs/literal_editor.h"

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
class ProgramEditor : public LiteralEditor {
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

  bool edited() const;

  /// The edited program. Its tensors refer to the editor. @throws UnsupportedError for a change
  /// that has no form in a program; ModelError if the result cannot be read
  EditedProgram finish() const;

  /// Can the readers of the sum read its operand `kept` instead?
  static bool can_bypass(const Program& program, NodeId sum, int kept);

 private:
  void write(const SourceLocation& location, const HostTensor& value, const std::string& node,
             const std::string& what) override;
  void write_parts(const SourceLocation& call, const std::vector<int64_t>& sizes,
                   const std::string& node) override;
  void note_item(const SourceLocation& location, int64_t number) override;
  std::optional<HostTensor> written_at(const SourceLocation& location) const override;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace parsimony::programs
