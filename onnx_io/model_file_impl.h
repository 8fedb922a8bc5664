// The contents of a ModelFile, its functions, and the index by which it is edited.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <onnx/onnx_pb.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "parsimony/base/types.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/graph/slice.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/external_data.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/node_impl.h"

namespace parsimony::onnx_io {

/// The model-local functions of a model, and their calls.
class Functions {
 public:
  explicit Functions(const onnx::ModelProto& model);

  /// Returns the index of the function that the node calls; -1 if it calls none, or one that is not
  /// inlined: overloaded, recursive, or with too many nodes.
  int called_by(const onnx::NodeProto& node) const;
  /// Returns how often a function is called in all, counting the calls of its callers.
  int calls(int function) const { return calls_[function]; }
  bool empty() const { return calls_.empty(); }

 private:
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  bool count(const Nodes& nodes, int depth);

  const onnx::ModelProto& model_;
  std::map<std::pair<std::string, std::string>, int> by_name_;  // domain and name
  std::vector<int> calls_;
  int64_t nodes_ = 0;  ///< after inlining all calls
};

/// The values of a function's attributes in one call: those of the call, then defaults.
using CallAttributes = absl::flat_hash_map<std::string, onnx::AttributeProto>;
CallAttributes attributes_of(const onnx::NodeProto& call, const onnx::FunctionProto& function);

/// Returns whether an attribute of the node refers to one of the call.
bool refers(const onnx::NodeProto& node);
/// Returns the node with references replaced by the call's attributes; missing ones are dropped.
onnx::NodeProto substituted(const onnx::NodeProto& node, const CallAttributes& attributes);

/// Returns "y::Layer::", the prefix of names that the function defines in this call.
std::string inside_call(const onnx::NodeProto& call);

/// The elements whose (magnitude, index) is at most this pair. `magnitude` is ordered like |x|; its
/// value has no other meaning. Slicing preserves the order of indices, so the union of two such
/// sets is the larger one.
struct SmallestElements {
  uint64_t magnitude = 0;
  int64_t index = -1;

  bool contains(uint64_t of, int64_t at) const {
    return of < magnitude || (of == magnitude && at <= index);
  }
  bool operator<(const SmallestElements& other) const {
    return std::tie(magnitude, index) < std::tie(other.magnitude, other.index);
  }
};

/// Returns a key that grows with the absolute value; NaN is larger than every number.
uint64_t magnitude_of(DType dtype, const std::byte* element);

/// Calls `run(first, count, index)` for runs of neighbouring elements in ascending order; `index`
/// is that of `first`.
using ElementRun = std::function<void(const std::byte* first, int64_t count, int64_t index)>;
using ForEachElementRun = std::function<void(const ElementRun& run)>;

/// Finds the `count` elements of smallest magnitude of a tensor without copying it, 1 ≤ count ≤
/// all. Elements in `zeros` count as zero.
SmallestElements smallest(DType dtype, int64_t stride, int64_t count,
                          const std::optional<SmallestElements>& zeros,
                          const ForEachElementRun& for_each);

/// Sets the elements of a run to zero that are in `chosen`. `index` is that of the first.
void set_zero(std::byte* first, int64_t count, int64_t index, DType dtype, int64_t stride,
              const SmallestElements& chosen);

/// A scope of names: the model's graph, a body, or a function that is called once.
struct Scope {
  /// Null once it is removed.
  google::protobuf::RepeatedPtrField<onnx::NodeProto>* nodes = nullptr;
  onnx::GraphProto* graph = nullptr;       ///< null for a function
  std::string prefix;                      ///< of its names: "" or "y::then_branch::"
  const Scope* around = nullptr;           ///< whose names are visible in a body
  const onnx::NodeProto* owner = nullptr;  ///< null for the model's graph
  absl::flat_hash_set<std::string> names;  ///< names defined in a body, without the prefix
  absl::flat_hash_map<std::string, std::string> results;  ///< of a function: names in the call

  bool is_main() const { return owner == nullptr; }
  std::string own(const std::string& name) const {
    const auto result = results.find(name);
    return result == results.end() ? prefix + name : result->second;
  }
};

/// A tensor that the model holds. Exactly one of `tensor` and `attribute` is set; the attribute is
/// value_int, value_ints, value_float or value_floats of a Constant node.
struct Constant {
  onnx::TensorProto* tensor = nullptr;
  onnx::AttributeProto* attribute = nullptr;
  bool is_initializer = false;
  Scope* scope = nullptr;
};

/// A node and its scope.
struct PlacedNode {
  onnx::NodeProto* node = nullptr;
  Scope* scope = nullptr;
};

/// An index of a model's tensors, nodes and uses by name. Names inside bodies and functions begin
/// with their path, as in a Graph: "y::then_branch::w".
class ModelIndex {
 public:
  explicit ModelIndex(onnx::ModelProto& model);

  /// @throws ModelError with similar names
  Constant& constant(const std::string& name);
  /// Finds a node by its first non-empty output. @throws ModelError with similar names
  PlacedNode node(const std::string& key);
  /// Returns whether there is an initializer, or a Constant node with a tensor, of this name.
  bool holds_tensor(const std::string& name) const;
  std::deque<Scope>& scopes() { return scopes_; }

  /// Resolves a name without a path in a scope.
  std::string full_name(const Scope& scope, const std::string& name) const;
  /// Returns the constant that `name` refers to through Identity nodes; `name` itself if there is
  /// none.
  const std::string& root_of(const std::string& name) const;

  /// Returns whether some graph of the model defines this name, without a path.
  bool is_used(const std::string& name) const { return names_.contains(name); }
  int readers(const std::string& name) const;
  /// Returns `expected`, with a number if needed to make it unique; without a path.
  std::string fresh_name(const std::string& expected) const;
  /// The same, which is taken from now on.
  std::string claim_name(const std::string& expected);

  /// Adds a constant to a scope, named without the path: an initializer, with a graph input if the
  /// IR version requires it; a Constant node where a body cannot have such an input.
  onnx::TensorProto& add(onnx::TensorProto tensor, Scope& scope);

  /// Makes the node read `name`, without a path, at `input`; constants that lose their last reader
  /// are recorded for `purge`.
  void set_input(const PlacedNode& node, int input, const std::string& name);

  /// Redirects readers of the nodes' outputs, and removes the nodes with everything used only by
  /// them; constants are recorded for `purge`.
  /// @throws ModelError if an output is an output of a graph
  void bypass(std::span<const BypassedNode> nodes);

  /// Updates the declared dims of an initializer, if it is declared.
  void declare(const std::string& initializer, const Shape& dims);

  /// Removes constants, and Identity nodes of them, without readers.
  void purge();

 private:
  Scope& add_graph(onnx::GraphProto& graph, std::string prefix, const Scope* around,
                   const onnx::NodeProto* owner);
  Scope& add_function(onnx::FunctionProto& function, const Scope& around,
                      const onnx::NodeProto& call);
  void index_nodes(Scope& scope);
  void index_constant(Scope& scope, onnx::NodeProto& node);
  void count_reads(const Scope& scope);
  void find_roots();
  void drop_reader(const std::string& name);
  void drop_reads(const PlacedNode& node, std::vector<std::string>& dropped,
                  std::unordered_set<const onnx::NodeProto*>& removed);
  struct Redirected {
    PlacedNode node;
    std::string to;       ///< the operand, as the node names it
    std::string to_full;  ///< with its path
    int seen = 0;         ///< readers
  };
  using Redirections = std::map<std::string, Redirected>;

  Redirections redirections(std::span<const BypassedNode> nodes);
  void remove_unread(std::vector<PlacedNode> work);
  void erase(const std::vector<PlacedNode>& nodes);
  void forget_inside(const onnx::NodeProto& owner);

  onnx::ModelProto& model_;
  const Functions functions_;
  std::deque<Scope> scopes_;  ///< the model's graph first; outer scopes before inner ones
  std::unordered_map<std::string, Constant> constants_;
  absl::flat_hash_map<std::string, onnx::ValueInfoProto*> inputs_;
  absl::flat_hash_map<std::string, PlacedNode> nodes_;
  std::unordered_map<std::string, std::string> identities_;  // output -> input
  std::unordered_map<std::string, std::string> roots_;  // output of an Identity -> its constant
  absl::flat_hash_map<std::string, int> readers_;
  absl::flat_hash_set<std::string> names_;  // without paths
  std::unordered_set<std::string> unread_;
};

/// Pending edits of an external tensor, applied when it is written. Indices refer to the file.
struct ExternalEdit {
  ExternalData::Range source;
  Shape dims;                  ///< as in the file
  std::vector<AxisKeep> axes;  ///< each axis once
  std::optional<SmallestElements> zeros;
  ChangeRows change;  ///< of the remaining elements, last; may be empty
};

struct ModelFile::Impl {
  explicit Impl(const std::string& model_path);

  std::string path;
  ExternalData external;
  const MappedFile& source;  ///< the model itself
  onnx::ModelProto model;
  bool edited = false;
  std::unordered_map<const onnx::TensorProto*, ExternalEdit> external_edits;
  std::deque<std::vector<std::byte>> edited_bytes;      ///< unpacked sources of edits
  std::unordered_map<std::string, std::string> copies;  ///< name of a copy -> of what
  std::unique_ptr<ModelIndex> index;                    ///< null until the first edit
  std::deque<onnx::NodeProto> substituted;   ///< of functions, with the attributes of a call
  Scalars scalars;                           ///< of Constant nodes with value_int or value_float
  std::shared_future<std::string> checksum;  ///< last: reads `source` in a thread of its own
};

/// Passes the kept elements, in order and in runs, to `run`; see for_each_run. Pages are released
/// after use.
void for_each_kept_run(const ExternalEdit& edit, int64_t element_bytes,
                       const ExternalData& external, const RunSink& run);

/// Returns the remaining bytes of an external tensor, with its zeros and changes.
std::vector<std::byte> edited(const ExternalEdit& edit, DType dtype, const ExternalData& external);
/// Returns these bytes for `count` of the kept indices of the first axis, from `first` on.
std::vector<std::byte> edited_rows(const ExternalEdit& edit, DType dtype,
                                   const ExternalData& external, int64_t first, int64_t count);

/// Where elements are written that are in the model's own file.
enum class Embedded { kInside, kBeside };

/// Writes the model in `impl` to `path`, with its external data next to it. @returns the bytes of
/// both
int64_t write_edited(ModelFile::Impl& impl, const std::string& path, Embedded embedded);

/// Copies the model and its external files unchanged. @returns the bytes of all; nothing, without
/// writing anything, if that would overwrite another file
std::optional<int64_t> copy_unedited(ModelFile::Impl& impl, const std::string& path);

}  // namespace parsimony::onnx_io
