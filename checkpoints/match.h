// Which tensors of a checkpoint are which weights of a network.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

/// A tensor that is cut with a weight, under its name within a copy of the network.
struct MatchTarget {
  std::string name;       ///< "layer1.0.conv1.weight"
  std::vector<int> axes;  ///< of the tensor, per axis of the weight; -1: it lacks the axis

  bool operator==(const MatchTarget&) const = default;
};

/// How a weight was recognised.
enum class MatchKind : uint8_t {
  kName,        ///< names and shapes are equal
  kValue,       ///< the elements are equal
  kTransposed,  ///< the elements are equal once the two axes are exchanged
  kFolded,      ///< the elements are, but for the factor of a normalisation that was folded in
  kPath,        ///< the exporter named the node after the module
};

std::string_view name_of(MatchKind kind);

struct WeightMatch {
  std::string weight = {};
  MatchKind kind = MatchKind::kName;
  /// The weight itself first; then what else is cut with it, such as the normalisation.
  std::vector<MatchTarget> targets = {};
  std::string normalisation = {};  ///< folded into the weight: "layer1.0.bn1"; often empty
  /// What the normalisation added to its variance; empty if the elements do not show it.
  std::optional<double> epsilon = {};
  bool equal = false;  ///< the elements too, in the first copy
};

/// Everything of a network under one prefix: the model, its moving average, ….
struct NetworkCopy {
  std::string prefix;  ///< "state_dict.module."
  bool equal = false;  ///< its elements are those of the model's file
};

struct CheckpointMatch {
  std::vector<WeightMatch> weights;
  std::vector<NetworkCopy> copies;
  /// Why a weight is in none of them, where more is known than that nothing fits.
  std::map<std::string, std::string, std::less<>> unmatched = {};
};

/// Compares names first (a prefix may precede them, as DataParallel, torch.compile and Lightning
/// add), then elements: equal, transposed, or times γ/√(σ²+ε) of a batch normalisation that the
/// exporter folded into a convolution, which is checked number by number.
///
/// A copy of the network is a prefix under which every matched weight has a tensor of its shape.
CheckpointMatch match_checkpoint(const Graph& graph, const Checkpoint& checkpoint);

/// A tensor's name within the whole file: its path, joined by dots, without the dictionaries in
/// which a pickled module keeps its parts.
std::string dotted_name(const StoredTensor& tensor);

/// Throws unless there is a copy of the network. @throws ModelError with the first difference
void check_has_copy(const CheckpointMatch& match);

/// The tensors of a checkpoint by dotted name.
class TensorNames {
 public:
  explicit TensorNames(const Checkpoint& checkpoint);
  TensorId find(const std::string& name) const;  ///< kNone if there is none

 private:
  absl::flat_hash_map<std::string, TensorId> ids_;
};

}  // namespace parsimony
