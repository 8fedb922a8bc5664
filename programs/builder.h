// A GraphBuilder that also records source locations, and the slices among its tensors.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/graph_builder.h"
#include "parsimony/graph/growing_facts.h"
#include "parsimony/programs/sources.h"

namespace parsimony::programs {

/// An end of a slice: beyond every axis.
inline constexpr int64_t kToEnd = std::numeric_limits<int64_t>::max();

/// The call cannot be expressed by known operators.
struct NotLowered {};

/// A value together with the location in the jit graph that reads it.
struct Operand {
  ValueId value = kNone;
  SourceLocation location = {};
};

/// An integer in a list: fixed, or a run-time number.
struct Element {
  int64_t fixed = 0;
  ValueId run_time = kNone;
  SourceLocation location = {};
};

struct Attributes {
  std::vector<std::pair<std::string, Attribute>> list;
  std::vector<std::pair<std::string, SourceLocation>> locations;

  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> items) : list(items) {}
  Attributes& with(std::string name, Attribute value, SourceLocation location = {}) {
    if (location.known()) locations.emplace_back(name, location);
    list.emplace_back(std::move(name), std::move(value));
    return *this;
  }
};

/// A tensor that is a slice of another along one dimension: x[:, 1:3], x[2], x[::2].
struct Part {
  ValueId whole = kNone;
  int64_t axis = 0;
  int64_t begin = 0, end = 0;  ///< counted from the left, within the whole
  int64_t step = 1;
  int64_t index = 0;  ///< a single one, as it was written: -1 is the last
  ValueId starts = kNone,
          ends = kNone;  ///< the operands that specify them; kNone for a single index
};

/// Values are named after operators, layers after their modules.
class Builder : private GraphBuilder {
 public:
  Builder(Graph& graph, Sources& sources);

  using GraphBuilder::begin;
  using GraphBuilder::graph;
  using GraphBuilder::rename;
  using GraphBuilder::reserve;
  using GraphBuilder::unused_name;

  ValueId input(const std::string& name, DType dtype, const InputSpec& spec);
  /// Adds a tensor of the model.
  ValueId weight(Weight weight);
  /// Adds ones or zeros in place of an optional operand.
  ValueId synthetic(const Shape& dims, double number);

  ValueId constant(const HostTensor& tensor, std::vector<SourceLocation> locations = {});
  ValueId number(double value);    ///< float32, rank 0
  ValueId integer(int64_t value);  ///< int64, rank 0
  ValueId integers(std::vector<int64_t> values, std::vector<SourceLocation> locations = {});
  ValueId cast(const Operand& x, DType type);
  ValueId cast(ValueId x, DType type) { return cast(Operand{x}, type); }
  ValueId real(ValueId x) { return cast(x, DType::kFloat32); }
  /// Combines the elements into one list of integers; a Concat if some are only known at run time.
  ValueId list_of(const std::vector<Element>& elements);

  std::vector<ValueId> emit_many(const std::string& op, const std::vector<Operand>& inputs,
                                 size_t outputs, Attributes attributes = {},
                                 const std::string& domain = "");
  ValueId emit(const std::string& op, const std::vector<Operand>& inputs,
               Attributes attributes = {}, const std::string& domain = "") {
    return emit_many(op, inputs, 1, std::move(attributes), domain).front();
  }
  /// Emits an unknown node, which pins its operands.
  std::vector<ValueId> emit_opaque(const std::string& op, const std::vector<ValueId>& inputs,
                                   size_t outputs, bool has_subgraph);

  /// Adds a new body, nested in the current one.
  BodyId body(const std::string& attribute);
  /// Adds an input of the body, like the number or tensor that the operator starts with.
  ValueId body_input(ValueId like, std::optional<Shape> shape);
  /// Adds later nodes to this body. @returns the previous one
  BodyId enter(BodyId body) { return std::exchange(body_, body); }
  /// Makes the values, which may stand outside of it, the results of a body.
  void finish_body(BodyId body, const std::vector<ValueId>& results);
  /// Emits an If or Loop with these bodies, with the results of the first.
  std::vector<ValueId> emit_control(const std::string& op, const std::vector<ValueId>& inputs,
                                    const std::vector<BodyId>& bodies);

  /// Pins the values, because `op` reads them in a way that is not analysed.
  void pin(const std::string& op, std::vector<ValueId> values);

  /// x[starts:ends:step] along one axis.
  ValueId slice(const Operand& x, int64_t axis, ValueId starts, ValueId ends, int64_t step = 1);

  /// Pins one dimension, by indexing it.
  void pin_axis(ValueId value, int64_t axis);

  /// Dimension `dim` of a tensor, at run time.
  ValueId size_of_dim(ValueId value, int64_t dim);

  /// Marks a complex value: real and imaginary part are along the last axis.
  void set_complex(ValueId value) { complex_.insert(value); }
  bool is_complex(ValueId value) const { return complex_.contains(value); }

  /// Returns the node that computes the value; null for inputs and weights.
  const Node* producer(ValueId value) const;

  /// Returns null if unknown.
  const Shape* shape(ValueId value);
  const HostTensor* known(ValueId value);

  /// Records that the two may share memory.
  void alias(ValueId view, ValueId base);
  ValueId root(ValueId value) const;

  /// Notes that `before` is `after` from here on; of a tensor of the model the next run finds that.
  void note_write(ValueId before, ValueId after);
  /// From here on the value, which was written into a part of memory, is that part of `part.whole`.
  void note_part(ValueId value, const Part& part) { parts_[value] = part; }
  /// Returns what `note_part` was told of the value, or null.
  const Part* noted_part(ValueId value) const;
  /// Returns what a tensor of the model is by now.
  ValueId now(ValueId weight) const;
  /// Keeps what the next run finds, which has to be as large as the model's tensor.
  void finish_writes();

  Sources& sources() { return sources_; }

  struct Mark {
    size_t nodes, values, weights, size_literals, frozen;
    std::map<ValueId, ValueId> written;
  };
  Mark mark() const;
  void roll_back(const Mark& mark);

  /// Keeps the value even if it is unused.
  void keep(ValueId value) { kept_.push_back(value); }

  /// Removes unused nodes. Must be called last. @returns the new id of each value, kNone for those
  /// that are removed
  IdVector<ValueId, ValueId> compact();

 private:
  ValueId declared(ValueId weight);
  /// Returns the name for a layer's result; empty for others.
  std::string name_for(const std::string& op, const std::vector<Operand>& inputs) const;
  void forget_facts(const Mark& from);

  Graph& graph_;
  Sources& sources_;
  BodyId body_;  ///< kNone: the network itself
  std::unordered_map<ValueId, ValueId> bases_;
  std::unordered_map<ValueId, Part> parts_;
  std::unordered_set<ValueId> complex_;
  std::vector<ValueId> kept_;
  std::map<ValueId, ValueId> written_;  ///< tensors of the model, and what they are by now
  std::unordered_map<ValueId, NodeId> producers_;
  IdVector<BodyId, Mark> body_starts_;
  GrowingFacts facts_;
};

/// Returns empty if the value is not such a slice, or its bounds are only known at run time.
std::optional<Part> part_of(Builder& builder, ValueId value);

/// Returns a size of a tensor. The first element of a dimension always exists: of x[:, :1] the size
/// is 1, and the other sizes are those of x.
Element size_at(Builder& builder, ValueId value, int64_t dim);

/// Returns all sizes as one list.
ValueId sizes_of(Builder& builder, ValueId value);

/// Returns the whole with the part replaced: Concat(x[:begin], replacement, x[end:]), or with a
/// step a Gather from both, whose axis is pinned.
ValueId replaced(Builder& builder, const Part& part, ValueId replacement);

/// Returns `result` where it overwrites all of `memory`, which stays as large as what is written.
ValueId written_over(Builder& builder, ValueId memory, ValueId result);

/// Whether a tensor has no elements: whoever writes into it changes nothing.
bool is_empty(Builder& builder, ValueId value);

/// Returns what changes if `result` is written into `value`: that, then what it is a part of, each
/// with what it becomes, up to the owner of the memory; fewer if one is a view of another kind.
std::vector<std::pair<ValueId, ValueId>> written_through(Builder& builder, ValueId value,
                                                         ValueId result);

}  // namespace parsimony::programs
