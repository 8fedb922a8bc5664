// The pruned architecture as data: what stays of each tensor, which integers change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/axis_keep.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/model_editor.h"

namespace parsimony {

/// A residual block that goes: what read the sum reads its kept operand, and the other one, with
/// all that only it needed, is gone. The reference is the original in which that operand is zero.
struct PlanBlock {
  std::string add;     ///< first output of the addition
  int kept_input = 0;  ///< of its operands, 0 or 1

  bool operator==(const PlanBlock&) const = default;
};

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

/// A number that encodes the size of an axis and follows it. The reference has it, too: the small
/// model is equal to the masked original with the same numbers.
struct PlanScale {
  PlanInteger change;
  std::string encodes;  ///< "1/sqrt(64)"
  std::string now;      ///< "1/sqrt(32)"

  bool operator==(const PlanScale&) const = default;
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
  DType dtype = DType::kUnknown;  ///< of the tensor; unknown where there are no new elements
  Shape dims = {};                ///< of the tensor after cutting
  /// Of the values, where only the JSON was read; empty once they are there.
  std::string sha256 = {};

  bool operator==(const PlanFold&) const = default;
};

/// Elements that are zero in the reference of a plan with exact constants, see Plan::masks.
struct PlanMask {
  std::string tensor;
  Shape dims;                 ///< of the whole tensor
  std::vector<uint8_t> keep;  ///< row-major; 0: the element is zero
  std::string sha256 = {};    ///< as in PlanFold

  bool operator==(const PlanMask&) const = default;
};

/// What the small model is equal to.
enum class Constants : uint8_t {
  kDrop,   ///< the original with the `out` and `in` slices of every group zero
  kExact,  ///< the original with the elements of `masks` zero: what stays constant is folded
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
  std::vector<PlanBlock> blocks;    ///< they go first, in this order
  std::vector<PlanGroup> groups;
  std::vector<PlanInteger> integers;
  std::vector<PlanScale> scales;  ///< only where asked for: else they stay as they are
  std::vector<PlanCopy> copies;
  std::vector<PlanZeros> zeros;
  std::vector<PlanFold> folds;
  Constants constants = Constants::kDrop;
  std::vector<PlanMask> masks;  ///< only with exact constants
  std::vector<KeptWhole> kept_whole;

  bool operator==(const Plan&) const = default;

  /// Nothing to change: the model comes out byte for byte as it went in.
  bool empty() const;

  /// All but the values of folds and masks, of which it has the fingerprints.
  std::string to_json() const;
  /// @throws ConfigError, naming the place, if the text is not a plan.
  static Plan from_json(std::string_view text, std::string_view file_name);

  /// Do folds or masks have values, which a second file holds?
  bool has_values() const;
  /// That file, in the safetensors layout: the new elements of folds under their tensors' names,
  /// masks as BOOL tensors under "NAME:mask". @throws ModelError for names that it cannot hold
  std::string values_file() const;
  /// Fills in what from_json left out. @throws ConfigError if they are not the values of this plan,
  /// ModelError if the file is not well formed
  void read_values(std::string_view bytes, std::string_view file_name);

  /// Writes the JSON and, where there are values, `path` + ".safetensors" before it.
  /// @throws IoError, ModelError
  void save(const std::string& path) const;
  /// Reads both. @throws IoError, ConfigError, ModelError
  static Plan load(const std::string& path);
};

/// Where the values of the plan at `path` are.
std::string values_path(const std::string& path);

/// What stays of one tensor.
struct TensorCut {
  std::string_view tensor;  ///< the plan's own
  std::vector<AxisKeep> axes;
};

/// All cuts, one per tensor, in order of first mention; none that leaves a tensor as it is.
/// @throws ConfigError if slices of one axis have different sizes or keep nothing in common
std::vector<TensorCut> cuts_of(const Plan& plan);

/// What the original must have as well, to be compared with the small model once it is masked: the
/// plan's copies, for what it separates is separate there, and its scales.
Plan reference_changes(const Plan& plan);

/// Makes the changes of the plan through the front end's editor.
void replay(const Plan& plan, ModelEditor& editor);

}  // namespace parsimony
