// Matching of a checkpoint's tensors with a network's weights.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/checkpoints/dependents.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

/// A tensor that is cut with a weight, under its name within a copy of the network.
struct MatchTarget {
  std::string name;            ///< "layer1.0.conv1.weight"
  std::vector<int> axes;       ///< of the tensor, per axis of the weight; -1: it lacks the axis
  int64_t block = 1;           ///< consecutive indices of the tensor per index of the weight
  std::string_view what = {};  ///< what it is to the weight; empty: the weight itself

  bool operator==(const MatchTarget&) const = default;
};

/// The label of a tensor that equals a weight which the network reads in several places.
inline constexpr std::string_view kEqualCopy = "equal copy";

/// The way in which a weight was recognised.
enum class MatchKind : uint8_t {
  kName,        ///< names and shapes are equal
  kValue,       ///< the elements are equal
  kTransposed,  ///< the elements are equal once the two axes are exchanged
  kFolded,      ///< the elements are, but for the factor of a normalisation that was folded in
  kComposed,    ///< the elements are those of g·v/|v|, w/σ or w·mask
  kPath,        ///< the exporter named the node after the module
  kBeside,      ///< a bias: its module's matrix was recognised
};

std::string_view name_of(MatchKind kind);

struct WeightMatch {
  std::string weight = {};
  MatchKind kind = MatchKind::kName;
  /// The weight itself first; then what else is cut with it, such as the normalisation.
  std::vector<MatchTarget> targets = {};
  std::string normalisation = {};  ///< folded into the weight: "layer1.0.bn1"; often empty
  /// The epsilon that the normalisation added to its variance; empty if elements do not show it.
  std::optional<double> epsilon = {};
  bool equal = false;  ///< the elements too, in the first copy
};

/// Everything of a network under one prefix: the model, its moving average, ….
struct NetworkCopy {
  std::string prefix;    ///< "state_dict.module."
  bool equal = false;    ///< its elements are those of the model's file
  bool is_whole = true;  ///< or it lacks some of what the others have, such as buffers
};

struct CheckpointMatch {
  std::vector<WeightMatch> weights;
  /// The first is the one that training uses: whole, and no average of another.
  std::vector<NetworkCopy> copies;
  /// Why a weight is in none of them, where more is known than that nothing fits.
  std::map<std::string, std::string, std::less<>> unmatched = {};
  /// The tensors that fit a weight equally well.
  std::map<std::string, std::vector<MatchTarget>, std::less<>> ambiguous = {};
  /// The network's parameters in the order in which its module has them, under their names within a
  /// copy; empty if the model does not tell.
  std::vector<std::string> order = {};
  /// Tensors of a copy, each with the weight that it equals element by element although nothing
  /// says that both are one.
  std::map<std::string, std::string, std::less<>> lookalikes = {};
};

/// Finds the weights of the graph among the tensors of a checkpoint, in passes. A later pass looks
/// at what earlier ones have left, and none takes back what another has found:
///
/// 1. names: a prefix may precede them, as DataParallel, torch.compile and Lightning add
/// 2. elements of matrices: equal, transposed, composed of several tensors, or times γ/√(σ²+ε) of a
///    batch normalisation that the exporter folded into a convolution; where nothing is equal, the
///    module after which the exporter named the node
/// 3. beside a matrix: the normalisation that was folded into it, and its bias
/// 4. elements of vectors that are nobody's bias
/// 5. what hangs on a weight: copies that are tied to it, and the tensors of `dependents.h`
///
/// Parameters that no pass found, for the network does not read them, have their own names in
/// `order`.
///
/// In 2 and 4 several tensors may fit a weight; it is then in `ambiguous`.
///
/// A copy of the network is a prefix under which the matched weights have tensors of their shapes:
/// all of them, or at least half, as averages of the parameters alone have.
CheckpointMatch match_checkpoint(const Graph& graph, const Checkpoint& checkpoint);

/// Throws unless there is a copy of the network. @throws ModelError with the first difference
void check_has_copy(const CheckpointMatch& match);

}  // namespace parsimony
