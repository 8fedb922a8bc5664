// The solver, step by step: the factors of all nodes, dimensions united into dim classes, and pins
// propagated to a fixed point; which axes are free, and the classes of indices that can only be
// removed together; what happens to removed channels downstream. Private to masks/.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/blocks.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/weights.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/masks/union_find.h"

namespace parsimony {

/// A label of one node, numbered over all nodes.
using LabelId = Id<struct LabelTag>;

/// Why something is pinned.
struct Reason {
  NodeId node = kNone;
  bool structural = false;       ///< the extent of a kernel, not a channel dimension
  std::string_view text;         ///< of the factors, of `DimClasses::keep_text`, or a literal
  const Label* label = nullptr;  ///< the label that has the reason

  std::string words() const { return label != nullptr ? label->why() : std::string(text); }
};

/// A segment of a map as seen from one of its two dim classes.
struct ClassSegment {
  int64_t begin = 0;
  int64_t count = 0;
  DimClassId other = kNone;
  int64_t other_begin = 0;
};

struct PlacedTerm {
  NodeId node = kNone;
  const Term* term = nullptr;
};

/// What is computed for one expert alone, by layers of its own, and added to the others' results.
struct ExpertBranch {
  DimClassId dim_class = kNone;  ///< of the scores
  int64_t index = 0;             ///< of the expert
  NodeId reader = kNone;         ///< the node that reads its place alone
  Branch branch;
};

class DimClasses {
 public:
  DimClasses(const Graph& graph, const Facts& facts, const CouplingOptions& options);

  IdRange<DimClassId> all() const { return size_.ids(); }
  size_t count() const { return size_.size(); }
  int64_t size(DimClassId dim_class) const { return size_[dim_class]; }
  DimClassId of(ValueId value, int dim) const {
    const auto& dims = value_dim_classes_[value];
    return dim < std::ssize(dims) ? dims[dim] : kNone;
  }
  /// Whether the dimension is one of an input or output that may become shorter, or of a table
  /// whose readers are given other numbers.
  bool is_free(ValueId value, int dim) const {
    return contains(interface_.free, ValueDim{value, dim});
  }
  bool wholly_pinned(DimClassId dim_class) const { return class_pin_[dim_class] != kNone; }

  const IdVector<NodeId, Factors>& factors() const { return factors_; }
  /// Does the value depend only on weights? A transposed weight is still a weight.
  bool from_weights(ValueId value) const { return from_weights_[value]; }
  const IdVector<ValueId, Few<DimClassId>>& value_dim_classes() const { return value_dim_classes_; }
  std::span<const PlacedTerm> terms(DimClassId dim_class) const { return terms_[dim_class]; }
  const std::vector<ClassSegment>& segments(DimClassId dim_class) const {
    return segments_[dim_class];
  }

  LabelId label_id(NodeId node, int label) const {
    return LabelId(label_begin_[node].number() + label);
  }
  const std::vector<ExpertBranch>& branches() const { return branches_; }
  bool label_pinned(LabelId label) const { return label_pin_[label] != kNone; }
  size_t labels() const { return label_pin_.size(); }

  /// Reason why index `i` of a dim class that is not wholly pinned is pinned; kNone if it is not.
  int pinned(DimClassId dim_class, int64_t i) const {
    const auto& pins = pinned_[dim_class];
    return pins.empty() ? kNone : pins[i];
  }
  const Reason& reason(int id) const { return reasons_[id]; }
  const Reason& why_pinned(DimClassId dim_class) const { return reason(class_pin_[dim_class]); }
  int add_reason(const Reason& reason);
  /// Stores a text for the lifetime of the dim classes.
  std::string_view keep_text(std::string text) { return texts_.emplace_back(std::move(text)); }

 private:
  void collect_factors(std::span<const NodeId> pinned_nodes);
  void pin_measured(const Node& node, const std::string& why, Factors& factors) const;
  void unite_dims();
  void place_terms_and_maps();
  void pin_bodies();
  void pin_ends();
  bool is_evaluated(const Value& value) const;
  void note_experts(const CouplingOptions& options);
  bool stays(NodeId node, size_t label) const;
  void find_branches();
  bool leaves_with(NodeId reader, DimClassId dim_class, int64_t i) const;
  void pin_labels();
  void pin_longest();
  void pin_parts();
  bool is_whole(const Pin& pin) const;
  void pin_single(NodeId node, const Map& map);
  void pin_unreached(NodeId node, const Map& map);
  bool is_kernel(NodeId node, size_t label) const;
  void pin_class(DimClassId dim_class, int reason);
  void pin_index(DimClassId dim_class, int64_t i, int reason);
  void pin_label(LabelId label, int reason);
  void pin_value(ValueId value, const Reason& reason, bool is_end = false);
  void propagate();
  void propagate_class(DimClassId dim_class);
  void propagate_index(DimClassId dim_class, int64_t i);
  void propagate_label(LabelId label);

  const Graph& graph_;
  const Facts& facts_;
  const Interface& interface_;
  const IdVector<ValueId, bool> from_weights_;
  IdVector<NodeId, Factors> factors_;  // per node; empty where the node is shape arithmetic
  IdVector<ValueId, Few<DimClassId>> value_dim_classes_;
  IdVector<DimClassId, int64_t> size_;
  IdVector<DimClassId, Few<PlacedTerm>> terms_;
  IdVector<DimClassId, std::vector<ClassSegment>> segments_;
  IdVector<DimClassId, int64_t> longest_segment_;
  IdVector<NodeId, LabelId> label_begin_;
  IdVector<LabelId, NodeId> label_node_;
  std::vector<Reason> reasons_;
  std::deque<std::string> texts_;
  IdVector<DimClassId, int> class_pin_;            // reason
  IdVector<LabelId, int> label_pin_;               // reason
  IdVector<DimClassId, std::vector<int>> pinned_;  // if only some indices are pinned
  IdVector<DimClassId, int64_t> pinned_count_;
  const int64_t most_indices_;
  bool experts_leave_ = false;             // of the whole network
  IdVector<DimClassId, bool> experts_of_;  // or of layers: dim classes of their weights
  IdVector<DimClassId, bool> chosen_;      // those of experts that may leave
  std::vector<ExpertBranch> branches_;     // of these experts
  int64_t noted_indices_ = 0;              // of dim classes that have an entry in `pinned_`
  std::vector<DimClassId> class_queue_;
  std::vector<LabelId> label_queue_;
  std::vector<std::pair<DimClassId, int64_t>> index_queue_;
};

/// An axis of one size: its strides within the dim classes that contain it, and the labels that
/// name it.
struct Axis {
  struct Position {
    DimClassId dim_class = kNone;
    int64_t stride = 1;
  };
  int64_t size = 1;
  int priority = 0;
  std::vector<Position> positions;
  std::vector<LabelId> labels;
  bool free = false;
};

using AxisId = Id<struct AxisTag>;

/// The axes of all products; the granularity policy decides which are free and which pinned. A
/// label that never appears in a product has no axis and is free unless it is pinned.
class Axes {
 public:
  Axes(const Graph& graph, const DimClasses& dim_classes, const CouplingOptions& options);

  const IdVector<AxisId, Axis>& all() const { return axes_; }
  /// May coordinates of the label be removed?
  bool free(LabelId label) const {
    const AxisId axis = axis_of_label_[label];
    return !dim_classes_.label_pinned(label) && (axis == kNone || axes_[axis].free);
  }
  AxisId axis_of(LabelId label) const { return axis_of_label_[label]; }

 private:
  void collect(const Graph& graph, const CouplingOptions& options);
  void choose(unsigned shuffle_seed);

  const DimClasses& dim_classes_;
  IdVector<AxisId, Axis> axes_;
  IdVector<LabelId, AxisId> axis_of_label_;
};

/// A node at which something happens to the channels of a dim class.
struct Occurrence {
  DimClassId dim_class = kNone;  ///< either all of a dim class
  LabelId label = kNone;         ///< or the coordinates of a label
  NodeId node = kNone;
};

/// An element is one index of a dim class that is not wholly pinned, or one coordinate of a free
/// axis.
class IndexClasses {
 public:
  IndexClasses(const DimClasses& dim_classes, const Axes& axes);

  /// Number of elements of a dim class; 0 if it is wholly pinned.
  int64_t length(DimClassId dim_class) const {
    return dim_classes_.wholly_pinned(dim_class) ? 0 : dim_classes_.size(dim_class);
  }
  /// Per dim class, its first element; one past the end.
  const IdVector<DimClassId, int64_t>& dim_class_begin() const { return dim_class_begin_; }
  /// Number of elements; the coordinates come after the indices of the dim classes.
  size_t count() const { return sets_.count(); }

  int32_t root(DimClassId dim_class, int64_t i) { return sets_.find(element(dim_class, i)); }
  int32_t root(int64_t element) { return sets_.find(static_cast<int32_t>(element)); }

  /// Why the class of `root` may not be removed; null if it may.
  const Reason* pinned(int32_t root) const {
    const int id = pin_[root];
    return id == kNone ? nullptr : &reason(id);
  }

  /// Per root, the first node at which one of the events concerns its class.
  std::vector<NodeId> first_occurrences(const std::vector<Occurrence>& events);

 private:
  int32_t element(DimClassId dim_class, int64_t i) const {
    return static_cast<int32_t>(dim_class_begin_[dim_class] + i);
  }
  const Reason& reason(int id) const;
  void number_elements();
  void unite_products();
  void unite_maps();
  void mark_pins();
  void pin(int32_t element, int reason);

  const DimClasses& dim_classes_;
  const Axes& axes_;
  UnionFind sets_;
  IdVector<DimClassId, int64_t> dim_class_begin_;
  IdVector<AxisId, int64_t> coordinate_begin_;
  std::vector<int> pin_;  // per root
  std::vector<Reason> refused_;
};

struct Effects {
  IdVector<ValueId, FewFlags> roles;   ///< per dimension: bits of Role
  IdVector<ValueId, FewFlags> zero;    ///< per dimension
  std::vector<Occurrence> mixing;      ///< what remains depends on what was removed
  std::vector<Occurrence> unweighted;  ///< summed over without a weight
  std::vector<Occurrence> experts;     ///< chosen among by scores
};

Effects trace_effects(const Graph& graph, const Facts& facts, const DimClasses& dim_classes,
                      const Axes& axes);

/// The node that gives outcomes where channels are mixed: a softmax, or the quotient of numbers and
/// their sum, as a softmax is written out. kNone if they are none.
NodeId maker_of_outcomes(const Graph& graph, NodeId mixing);

/// The node that reads a weight of the group together with what the softmax gives, element by
/// element: the expectation over bins in a detector's box head. kNone if there is none. Products
/// with activations, as in attention, are none.
NodeId reader_of_outcomes(const Graph& graph, const DimClasses& dim_classes, const Group& group,
                          NodeId softmax);

}  // namespace parsimony
