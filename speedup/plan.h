// The pruned architecture as data: what is kept of each tensor, and which integers change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/masks/coupling.h"

namespace parsimony {

/// A removed branch of a sum: readers of the sum read its kept operand, and the other operand is
/// removed with all nodes that only it needed. Of a residual block, the reference is the original
/// with that operand zero. What leaves with experts of a group is in the reference as it was, and
/// adds zero where no token chooses them.
struct PlanBlock {
  std::string add;         ///< first output of the addition
  int kept_input = 0;      ///< of its operands, 0 or 1
  std::string group = {};  ///< of the experts with which it leaves; empty: a residual block

  bool operator==(const PlanBlock&) const = default;
};

struct PlanSlice {
  std::string tensor;
  int axis = 0;
  Role role = Role::kOut;
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

/// An axis of an input or output of the network that becomes shorter.
struct PlanEnd {
  std::string value;
  bool input = false;  ///< or an output
  int axis = 0;
  int64_t size = 0;
  std::vector<int64_t> keep;

  bool operator==(const PlanEnd&) const = default;
};

/// An input whose integers number words, some of which leave: the small network is given `i` for
/// keep[i].
struct PlanWords {
  std::string input;
  int64_t size = 0;
  std::vector<int64_t> keep;

  bool operator==(const PlanWords&) const = default;
};

/// An output that the next run takes as input.
struct PlanState {
  std::string output;
  std::string input;

  bool operator==(const PlanState&) const = default;
};

/// A number that encodes the size of an axis and is updated with it. It is changed in the reference
/// as well: the small model equals the masked original with the same numbers.
struct PlanScale {
  PlanInteger change;
  std::string encodes;  ///< "1/sqrt(64)"
  std::string now;      ///< "1/sqrt(32)"

  bool operator==(const PlanScale&) const = default;
};

/// A number of the network, read by one node, that is a power of the length of an axis.
struct Scale {
  NodeId node = kNone;
  int input = -1;       ///< its operand index; -1: the attribute `what`
  std::string what;     ///< "operand 1", "scale"
  std::string tensor;   ///< name of the operand; empty for an attribute
  HostTensor value;     ///< one element; also an attribute's implied default
  double exponent = 0;  ///< value = size ^ exponent, up to rounding
  int64_t size = 0;     ///< of the axis, in the original
  DimClassId dim_class =
      kNone;  ///< the axis: (index / stride) % size over the indices of a dim class
  int64_t stride = 1;
  std::vector<GroupId> groups;  ///< whose pruning shortens the axis
};

/// A scale whose axis was cut.
struct CutScale {
  Scale scale;
  int64_t kept = 0;     ///< the new length of the axis
  HostTensor would_be;  ///< kept ^ exponent, rounded to its type
};

struct PlanCopy {
  std::string tensor;
  std::string of;
  std::string consumer;  ///< first output of the reading node
  int input = 0;

  bool operator==(const PlanCopy&) const = default;
};

/// A tensor whose remaining values change.
struct TensorUpdate {
  std::string tensor;
  std::string reason;
  /// All remaining elements of the tensor, of its own type, little-endian, row-major. Empty if
  /// `zeros` describes the change.
  std::vector<std::byte> values = {};
  DType dtype = DType::kUnknown;  ///< of the tensor; unknown if there are no new elements
  Shape dims = {};                ///< of the tensor after slicing
  /// The hash of the values, if only the JSON was read; empty once they are loaded.
  std::string sha256 = {};

  bool operator==(const TensorUpdate&) const = default;
};

/// Elements that are zero in the reference of a plan with exact constants, see Plan::masks.
struct PlanMask {
  std::string tensor;
  Shape dims;                 ///< of the whole tensor
  std::vector<uint8_t> keep;  ///< row-major; 0: the element is zero
  std::string sha256 = {};    ///< as in TensorUpdate

  bool operator==(const PlanMask&) const = default;
};

/// The reference that the small model is equal to.
enum class Constants : uint8_t {
  kDrop,   ///< the original with the `out` and `in` slices of every group zero
  kExact,  ///< the original with the elements of `masks` zero: constant channels are folded
};

/// A tensor whose smallest elements become zero (level pruning).
struct PlanZeros {
  std::string tensor;
  int64_t smallest = 0;

  bool operator==(const PlanZeros&) const = default;
};

/// A file beside the weights of a checkpoint's directory, as it is once they are cut: the
/// configuration from which a class builds the small network.
struct PlanFile {
  std::string name;                 ///< relative to the directory: "config.json"
  std::optional<std::string> text;  ///< none: the file leaves

  bool operator==(const PlanFile&) const = default;
};

/// A tensor of a checkpoint that leaves, or is called otherwise since others before it left: that
/// of a layer or of an expert.
struct PlanRenaming {
  std::string tensor;
  std::string name;  ///< empty: it leaves

  bool operator==(const PlanRenaming&) const = default;
};

struct UnprunedDim {
  std::string axis;  ///< "TENSOR[DIM]"
  std::string reason;

  bool operator==(const UnprunedDim&) const = default;
};

struct Plan {
  std::string format = "onnx";
  std::string sha256;  ///< of the source file; empty if unknown
  /// Sizes given for the source's symbolic dimensions: "1x3x32x32".
  std::vector<std::string> inputs;
  std::vector<PlanBlock> blocks;  ///< removed first, in this order
  std::vector<PlanGroup> groups;
  std::vector<PlanEnd> ends;      ///< those that change; none unless they were set free
  std::vector<PlanState> states;  ///< as given, or found
  std::vector<PlanWords> words;   ///< if words leave: inputs with their numbers
  std::vector<PlanInteger> integers;
  /// Numbers that the small network computes anew from its sizes: the N of a mean. The masked
  /// original, whose sizes are the old ones, is given them.
  std::vector<PlanInteger> followed;
  std::vector<PlanScale> scales;  ///< only on request; otherwise the numbers are left alone
  std::vector<PlanCopy> copies;
  std::vector<PlanZeros> zeros;
  std::vector<TensorUpdate> updates;
  Constants constants = Constants::kDrop;
  std::vector<PlanMask> masks;          ///< only with exact constants
  std::vector<PlanFile> files;          ///< only of checkpoints
  std::vector<PlanRenaming> renamings;  ///< only of checkpoints
  std::vector<UnprunedDim> unpruned_dims;

  bool operator==(const Plan&) const = default;

  /// Nothing to change: the model is reproduced byte for byte.
  bool empty() const;

  /// Everything except the values of updates and masks, which are represented by their hashes.
  std::string to_json() const;
  /// @throws ConfigError, naming the place, if the text is not a plan.
  static Plan from_json(std::string_view text, std::string_view file_name);

  /// Do updates or masks have values, which are stored in a second file?
  bool has_values() const;
  /// Returns the second file, in the safetensors layout: the new elements of updates under their
  /// tensors' names, masks as BOOL tensors under "NAME:mask". @throws ModelError for names that the
  /// format cannot represent
  std::string values_file() const;
  /// Fills in what from_json left out. @throws ConfigError if they are not the values of this plan,
  /// ModelError if the file is not well formed
  void read_values(std::string_view bytes, std::string_view file_name);

  /// Writes the JSON, preceded by `path` + ".safetensors" if there are values.
  /// @throws IoError, ModelError
  void save(const std::string& path) const;
  /// Reads both. @throws IoError, ConfigError, ModelError
  static Plan load(const std::string& path);
};

/// The path of the values of the plan at `path`.
std::string values_path(const std::string& path);

/// The kept part of one tensor.
struct TensorCut {
  std::string_view tensor;  ///< the plan's own
  std::vector<AxisKeep> axes;
};

/// All cuts, one per tensor, in order of first mention; tensors that do not change are omitted.
/// @throws ConfigError if slices of one axis have different sizes or keep nothing in common
std::vector<TensorCut> cuts_of(const Plan& plan);

/// All cuts of a plan, by the tensor's name.
using TensorCuts = std::map<std::string, std::vector<AxisKeep>>;
TensorCuts cuts_by_tensor(const Plan& plan);

/// Returns the kept part of an input or output of the network, axis by axis.
std::vector<AxisKeep> cuts_of_end(const Plan& plan, std::string_view value, bool input);

/// The first update for which the plan has neither `zeros` nor new values; null if there is none.
const TensorUpdate* incomplete_update(const Plan& plan);

/// The changes that the masked original needs too before it can be compared with the small model:
/// the plan's copies, since tensors that it separates must be separate there, its scales, and the
/// numbers that follow.
Plan reference_changes(const Plan& plan);

/// Does the plan remove residual blocks, which the reference lacks?
bool removes_blocks(const Plan& plan);

/// Removes blocks from a copy of the network. @returns the copy and the new ids of the nodes, kNone
/// for removed ones
std::pair<Graph, IdVector<NodeId, NodeId>> without_blocks(const Graph& graph,
                                                          const std::vector<PlanBlock>& blocks);

/// Applies the plan through the front end's editor.
void replay(const Plan& plan, ModelEditor& editor);

}  // namespace parsimony
