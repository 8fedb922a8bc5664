// What the editors of programs share: a plan's numbers, written where the program says them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/programs/sources.h"

namespace parsimony::programs {

UnsupportedError not_written(std::string_view node, std::string_view what);

std::string input_name(int input);

/// Finds the literals of a program that a change of its Graph means. How they are written is left
/// to the format.
class LiteralEditor : public ModelEditor {
 public:
  /// @throws UnsupportedError if the program has no literal for it
  void set_attribute(const std::string& node, const std::string& attribute,
                     std::span<const int64_t> values) override;
  /// @throws UnsupportedError if the program has no literal for it
  void set_input(const std::string& node, int input, const HostTensor& constant) override;
  /// Numbers that repeat a size follow it; those that were derived from one become literals.
  void update_shapes(const ChangeOf& change) override;

  /// Makes the changes in order. @returns the nodes of those that have no form in the program
  std::vector<NodeId> refused(const std::vector<Patch>& patches);

 protected:
  /// Both must outlive the editor.
  LiteralEditor(const Graph& graph, const Sources& sources);

  NodeId node(const std::string& key) const;

 private:
  /// Writes one number, or all those of a list. @throws UnsupportedError
  virtual void write(const SourceLocation& location, const HostTensor& value,
                     const std::string& node, const std::string& what) = 0;
  /// Gives a call that splits a tensor explicit sizes of the parts. @throws UnsupportedError
  virtual void write_parts(const SourceLocation& call, const std::vector<int64_t>& sizes,
                           const std::string& node) = 0;
  /// The item of a list, which may be put together when the program runs, was this number.
  virtual void note_item(const SourceLocation& location, int64_t number) = 0;
  /// Returns what was written there; empty if nothing was.
  virtual std::optional<HostTensor> written_at(const SourceLocation& location) const = 0;

  void set_operand(const std::string& key, NodeId id, int input, const HostTensor& to);
  bool set_pieces(NodeId id, int input, const HostTensor& to);
  void set_parts(const std::string& key, NodeId id, const HostTensor& to, bool equal_parts);
  void set_length(const std::string& key, const ConstantOrigin& written, const HostTensor& to);
  void set_elements(const std::string& key, const std::string& what, const ConstantOrigin& written,
                    const HostTensor& from, const HostTensor& to);
  HostTensor constant_of(ValueId value) const;

  const Graph& graph_;
  const Sources& sources_;
  std::unordered_map<std::string, NodeId> nodes_;
};

}  // namespace parsimony::programs
