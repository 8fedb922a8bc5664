// State and helpers shared by the passes that match a checkpoint with a network.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/checkpoints/composed_impl.h"
#include "parsimony/checkpoints/dependents.h"
#include "parsimony/checkpoints/match.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/linear_form.h"

namespace parsimony::checkpoints {

/// The use of a weight in the network.
struct WeightUse {
  NodeId node;  ///< that reads it as a layer's weight
  int operand = -1;
  std::optional<LinearForm> form;  ///< with an axis of outputs
  WeightId bias;                   ///< an operand of the same node, or added behind it
  WeightId matrix;                 ///< whose bias it is
  int reads = 0;                   ///< by nodes
  bool is_lookup = false;
};

IdVector<WeightId, WeightUse> weight_uses(const Graph& graph);

std::vector<int> same_axes(size_t rank);

class Matching {
 public:
  Matching(const Graph& of_network, const Checkpoint& file);

  // The tensors of the checkpoint.

  const StoredTensor& tensor(TensorId id) const { return checkpoint.tensors()[id]; }
  bool has_numbers(TensorId id) const { return tensor(id).type->dtype != DType::kUnknown; }
  Numbers numbers(TensorId id) const { return stored_numbers(checkpoint, id); }
  /// By its name within a copy, as far as copies are known; else without what wrappers put before
  /// it. Empty if it is in no copy.
  std::string core_of(TensorId id) const;
  TensorId in_copy(size_t copy, const std::string& core) const {
    return names.find(match.copies[copy].prefix + core);
  }
  /// The tensors whose names end in `core`, each with what precedes it. A weight that exists only
  /// through its parametrization is found by its own name, too.
  std::vector<std::pair<std::string, TensorId>> ending_in(const std::string& core) const;
  /// Returns the tensors of two axes and more that have these sizes, in any order.
  std::vector<TensorId> of_sizes(Shape dims) const;
  /// Returns how the weight is composed of tensors that the network does not read itself.
  Composition composition(WeightId weight, TensorId id, const std::vector<int>& axes) const;

  // The weights of the graph.

  bool is_matched(WeightId id) const { return index_.contains(graph.weight(id).name); }
  const WeightMatch* match_of(WeightId id) const;
  WeightId id_of(const WeightMatch& found) const;
  /// The axis of a weight's outputs or inputs in the tensor that it is matched with; -1 if unknown.
  int axis_of(const WeightMatch& found, bool outputs) const;
  bool is_taken(const std::string& core) const { return taken_.contains(core); }
  void take(const std::string& core) { taken_.insert(core); }
  /// Notes what a weight is; nothing if that is known.
  void add(WeightId id, MatchKind kind, const std::string& core, std::vector<int> axes);
  void add(WeightMatch found);
  /// Returns the sizes expected of the tensor that is matched with the weight.
  Shape expected_dims(const WeightMatch& found) const;

  /// Finds the copies anew.
  void find_copies();

  const Graph& graph;
  const Checkpoint& checkpoint;
  TensorNames names;
  Dependents dependents;
  IdVector<TensorId, std::string> full;  ///< dotted names
  IdVector<WeightId, WeightUse> uses;
  CheckpointMatch match;

 private:
  struct Ending {
    TensorId tensor;
    size_t prefix;  ///< length of what precedes
    bool is_alias;
  };

  void index_endings(const std::string& name, TensorId id, bool is_alias);

  std::map<Shape, std::vector<TensorId>> by_sizes_;
  absl::flat_hash_map<std::string, std::vector<Ending>> endings_;
  absl::flat_hash_map<std::string, size_t> index_;  ///< by weight: of the match
  absl::flat_hash_map<std::string, WeightId> ids_;
  absl::flat_hash_set<std::string> taken_;    ///< names within a copy
  absl::flat_hash_set<std::string> weights_;  ///< those that are weights themselves
};

// The passes; see match_checkpoint.
void match_names(Matching& matching);
void match_matrices(Matching& matching);
void match_beside(Matching& matching);
void match_vectors(Matching& matching);
void match_dependents(Matching& matching);
/// Reasons for what has no tensor.
void explain_unmatched(Matching& matching);

/// "layer1.bias" of "layer1.weight"
std::string beside(const std::string& core, std::string_view name);

/// A reason, if a tensor of that name has another shape than the weight.
void note_shape(Matching& matching, WeightId id, const std::string& core);

/// Are the elements the same bits? Quicker than comparing numbers.
bool same_bytes(const Matching& matching, const Weight& weight, TensorId id);

}  // namespace parsimony::checkpoints
