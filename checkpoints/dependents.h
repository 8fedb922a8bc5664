// The tensors of a checkpoint by name, and what hangs on a weight under another name: its
// parametrization, low-rank factors, scales.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/checkpoints/checkpoint.h"

namespace parsimony {

/// A tensor's name within the whole file: its path, joined by dots, without the dictionaries in
/// which a pickled module keeps its parts.
std::string dotted_name(const StoredTensor& tensor);

/// The tensors of a checkpoint by dotted name.
class TensorNames {
 public:
  explicit TensorNames(const Checkpoint& checkpoint);
  TensorId find(const std::string& name) const;  ///< kNone if there is none

 private:
  absl::flat_hash_map<std::string, TensorId> ids_;
};

/// The role that a tensor plays for a weight. "Outputs" and "inputs" are the layer's.
enum class DependentPart : uint8_t {
  kWeight,     ///< the weight, or what it is computed from: all of its axes
  kMask,       ///< multiplied into it: all of its axes
  kMagnitude,  ///< of weight normalisation: the weight's axes, 1 where the norm runs
  kLeft,       ///< singular vector of spectral normalisation along the outputs
  kRight,      ///< and along all other axes
  kDown,       ///< low-rank factor [rank, inputs, …]
  kUp,         ///< low-rank factor [outputs, rank, …]
  kPerOutput,  ///< a number per output
  kPerInput,   ///< a number per input
};

/// Its norm runs over the weight and its low-rank factors, whose scale no checkpoint holds.
inline constexpr std::string_view kMagnitudeOfFactors = "magnitude of DoRA";

/// A tensor that hangs on a weight.
struct Dependent {
  TensorId tensor;
  DependentPart part = DependentPart::kWeight;
  std::string_view what;   ///< "low-rank factor"
  bool is_lookup = false;  ///< the weight is a table of rows: its inputs come first
  int order = 0;           ///< of several for one weight, the lowest is the weight's own
};

/// A name that the table of dependents knows: "layer.weight_g" hangs on "layer.weight".
struct Dependency {
  std::string weight;
  Dependent as;  ///< without the tensor
};

/// Returns the dependency of a tensor with this dotted name; empty if the table does not know the
/// name, or if a tensor that must lie beside it is missing.
std::optional<Dependency> dependency_of(const std::string& name, const TensorNames& names);

/// The dependents of each weight of a checkpoint, by dotted names. Does not tell whether the weight
/// exists under its own name or only through its dependents.
class Dependents {
 public:
  Dependents(const Checkpoint& checkpoint, const TensorNames& names);

  const std::vector<Dependent>& of(const std::string& weight) const;
  /// The tensor that stands for a weight which is not stored under its own name; kNone if there is
  /// none.
  TensorId standing_for(const std::string& weight) const;
  /// The weight that a tensor hangs on, or is: "layer.weight" of "layer.weight_g".
  const std::string& weight_of(TensorId tensor) const { return weight_of_[tensor]; }

 private:
  IdVector<TensorId, std::string> weight_of_;
  absl::flat_hash_map<std::string, std::vector<Dependent>> by_weight_;
};

}  // namespace parsimony
