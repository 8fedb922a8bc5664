// Applies a plan's changes to a Graph alone, so that they can be checked before the model is
// edited.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/model_editor.h"

namespace parsimony {

/// Edits a copy of a graph. Tensors that inference reads (shapes, indices, scalars) change their
/// elements; large weights change only their dims, unless the result is to be run.
class GraphEditor : public ModelEditor {
 public:
  enum class Elements { kLiteral, kAll };

  /// `original` must outlive the editor.
  explicit GraphEditor(const Graph& original, Elements elements = Elements::kLiteral);

  /// The changed graph; valid as long as the editor.
  const Graph& graph() const { return graph_; }

  /// Nodes are renumbered; values and weights keep their ids.
  void bypass(const std::string& node, int input) override;
  void copy(const std::string& name, const std::string& of, const std::string& consumer,
            int input) override;
  void slice(const std::string& tensor, std::span<const AxisKeep> axes) override;
  void slice_input(const std::string& input, std::span<const AxisKeep> axes) override;
  void zero_smallest(const std::string&, int64_t) override {}  // shapes stay
  void assign(const std::string& tensor, std::span<const std::byte> values) override;
  void set_attribute(const std::string& node, const std::string& attribute,
                     std::span<const int64_t> values) override;
  void set_number(const std::string& node, const std::string& attribute, double value) override;
  void set_input(const std::string& node, int input, const HostTensor& constant) override;

 private:
  Node& node(const std::string& key);
  WeightId weight(const std::string& name) const;
  void connect(Node& node, int input, ValueId value);
  ValueId add_value(const std::string& name, WeightId weight);

  Graph graph_;
  Elements elements_;
  absl::flat_hash_map<std::string_view, NodeId> nodes_;  // names are the original's, or in names_
  absl::flat_hash_map<std::string_view, WeightId> weights_;
  std::deque<std::string> names_;
  std::deque<std::vector<std::byte>> storage_;
};

}  // namespace parsimony
