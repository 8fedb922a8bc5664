// The names by which a configuration can select layers.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/pruners/layers.h"

namespace parsimony {

class LayerNames {
 public:
  explicit LayerNames(const Graph& graph);

  /// In graph order.
  const std::vector<NodeId>& layers() const { return layers_; }

  /// Whether a word is an op type at all: "Conv", "Conv2d", "Linear", "default".
  static bool is_type(std::string_view type);
  static std::vector<std::string> types();

  std::vector<NodeId> of_type(std::string_view type) const;
  std::vector<NodeId> of_name(const std::string& name) const;
  /// Is the text a pattern, with `*` for any characters and `?` for one?
  static bool is_pattern(std::string_view text);
  /// Layers with a name that is as a whole like the pattern.
  std::vector<NodeId> like(std::string_view pattern) const;
  /// @throws ConfigError if the pattern is not well formed or too large
  std::vector<NodeId> matching(const std::string& pattern, std::string_view place) const;

  /// Layers with a name that contains `part`.
  std::vector<NodeId> containing(std::string_view part) const;

  /// Operators of the layers, sorted, each once.
  std::vector<std::string> present_types() const;
  /// All names of all layers.
  std::vector<std::string> names() const;
  /// The node of that name if it is not a layer; null if there is none.
  const Node* other_node(std::string_view name) const;

 private:
  bool has_type(NodeId layer, std::string_view type) const;
  /// Layers with a name that is `requested`.
  std::vector<NodeId> with_name(const std::function<bool(const std::string&)>& requested) const;

  const Graph& graph_;
  Layers index_;
  std::vector<NodeId> layers_;
  std::vector<std::vector<std::string>> names_;  ///< parallel to layers_
  std::unordered_map<std::string, std::vector<NodeId>> by_name_;
};

}  // namespace parsimony
