// The pruned architecture as data: what stays of each tensor, which integers change.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/axis_keep.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/model_editor.h"

namespace parsimony {

struct PlanSlice {
  std::string tensor;
  int axis = 0;
  std::string role;  ///< "out", "in" or "with"
  int64_t size = 0;
  std::vector<int64_t> keep;

  bool operator==(const PlanSlice&) const = default;
};

struct PlanGroup {
  std::string id;
  int size = 0;
  int kept = 0;
  std::string granularity = "channel";
  bool mixes = false;
  std::vector<PlanSlice> slices;

  bool operator==(const PlanGroup&) const = default;
};

struct PlanInteger {
  std::string node;  ///< first output of the node
  std::string what;  ///< operand or attribute
  int input = -1;    ///< operand index; -1 for an attribute
  HostTensor from;
  HostTensor to;

  bool operator==(const PlanInteger&) const = default;
};

struct PlanCopy {
  std::string tensor;
  std::string of;
  std::string consumer;  ///< first output of the reading node
  int input = 0;

  bool operator==(const PlanCopy&) const = default;
};

/// A tensor whose remaining values change.
struct PlanFold {
  std::string tensor;
  std::string reason;
  /// The new elements, all that remain of the tensor: of its own type, little-endian, row-major.
  /// Empty where `zeros` says what changes.
  std::vector<std::byte> values = {};

  bool operator==(const PlanFold&) const = default;
};

/// A tensor whose smallest elements become zero (level pruning).
struct PlanZeros {
  std::string tensor;
  int64_t smallest = 0;

  bool operator==(const PlanZeros&) const = default;
};

struct KeptWhole {
  std::string axis;  ///< "TENSOR[DIM]"
  std::string reason;

  bool operator==(const KeptWhole&) const = default;
};

struct Plan {
  std::string format = "onnx";
  std::string sha256;               ///< of the source file; empty if unknown
  std::vector<std::string> inputs;  ///< sizes given for what the source leaves open: "1x3x32x32"
  std::vector<PlanGroup> groups;
  std::vector<PlanInteger> integers;
  std::vector<PlanCopy> copies;
  std::vector<PlanZeros> zeros;
  std::vector<PlanFold> folds;
  std::vector<KeptWhole> kept_whole;

  bool operator==(const Plan&) const = default;

  /// Nothing to change: the model comes out byte for byte as it went in.
  bool empty() const;

  std::string to_json() const;
  /// @throws ConfigError, naming the place, if the text is not a plan.
  static Plan from_json(std::string_view text, std::string_view file_name);
  void save(const std::string& path) const;   ///< @throws IoError
  static Plan load(const std::string& path);  ///< @throws IoError, ConfigError
};

/// What stays of one tensor.
struct TensorCut {
  std::string_view tensor;  ///< the plan's own
  std::vector<AxisKeep> axes;
};

/// All cuts, one per tensor, in order of first mention; none that leaves a tensor as it is.
/// @throws ConfigError if slices of one axis have different sizes or keep nothing in common
std::vector<TensorCut> cuts_of(const Plan& plan);

/// Makes the changes of the plan through the front end's editor.
void replay(const Plan& plan, ModelEditor& editor);

}  // namespace parsimony
