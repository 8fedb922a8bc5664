// The edits that a front end must support on the original model. A Plan is replayed through them.
// A GraphEditor applies them to a Graph alone, so that they can be checked before the model is
// edited.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// A node whose readers read its operand `input` instead.
struct BypassedNode {
  std::string node;
  int input = 0;
};

/// A value's shape before and after pruning.
struct ShapeChange {
  Shape before;
  Shape after;
};

/// Edits one model in place. Nodes are named by their first non-empty output, tensors by the name
/// that the user sees. Every call throws ModelError if the node or tensor does not exist or does
/// not fit.
class ModelEditor {
 public:
  virtual ~ModelEditor() = default;

  /// The nodes are removed, and so is everything that is then unused: nodes before them and their
  /// constants. What was removed by an earlier call has no name any more.
  /// @throws UnsupportedError if nodes cannot be removed from this kind of model, or an output is
  /// one of the model's
  virtual void bypass(std::span<const BypassedNode> nodes);

  /// Adds tensor `name`, equal to `of`, and makes input `input` of `consumer` read it.
  virtual void copy(const std::string& name, const std::string& of, const std::string& consumer,
                    int input) = 0;

  /// Keeps the given indices of each axis; axes that are not named are not cut.
  virtual void slice(const std::string& tensor, std::span<const AxisKeep> axes) = 0;

  /// Slices an input of the network, as `slice` does a tensor; only for formats that infer shapes
  /// from it. Other formats learn its shape from `update_shapes`, or declare none.
  virtual void slice_input(const std::string& input, std::span<const AxisKeep> axes) {
    (void)input, (void)axes;
  }

  /// Sets to zero the `count` elements of smallest magnitude; ties fall to the lower index.
  virtual void zero_smallest(const std::string& tensor, int64_t count) = 0;

  /// Replaces the elements of a tensor: `values` are of its type, little-endian, row-major, and as
  /// many as its dims, as sliced so far, require.
  virtual void assign(const std::string& tensor, std::span<const std::byte> values) = 0;

  /// Replaces an integer attribute, keeping its form (one integer or a list); an absent one is
  /// added as one integer if there is one value, else as a list. Without values the attribute is
  /// removed.
  virtual void set_attribute(const std::string& node, const std::string& attribute,
                             std::span<const int64_t> values) = 0;

  /// Replaces an attribute that is one floating point number, or adds it. By default there are
  /// none: formats other than ONNX keep such numbers elsewhere.
  virtual void set_number(const std::string& node, const std::string& attribute, double value);

  /// Makes input `input` of `node` read a new constant.
  virtual void set_input(const std::string& node, int input, const HostTensor& constant) = 0;

  /// Updates the shapes that the model declares for its values. `change` is called for each
  /// declared name; symbolic dimensions and sizes that did not change are left alone.
  using ChangeOf = std::function<std::optional<ShapeChange>(std::string_view name)>;
  virtual void update_shapes(const ChangeOf& change) { (void)change; }
};

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
  void bypass(std::span<const BypassedNode> nodes) override;
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
