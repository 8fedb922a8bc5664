#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/weights.h"
#include "parsimony/masks/coupling_impl.h"
#include "parsimony/masks/union_find.h"

namespace parsimony {
namespace {

constexpr std::string_view kTooLong = "longer than any channel axis";
constexpr std::string_view kExpertsStay =
    "scores choose among these; they leave by granularity expert only";

/// Maximum number of indices that the solver handles individually, at about 60 bytes each: 32 MB
/// plus four times the size of the weights, so that memory is bounded whatever sizes a file
/// declares.
int64_t most_indices(const Graph& graph) {
  constexpr int64_t kFree = int64_t{1} << 19;
  int64_t bytes = 0;
  for (const Weight& weight : graph.weights) {
    if (weight.data != nullptr) bytes += weight.count() * size_of(weight.dtype);
  }
  return kFree + bytes / 16;
}

bool takes_part(const Facts& facts, const Node& node) {
  return !std::ranges::all_of(node.outputs,
                              [&](ValueId v) { return v == kNone || facts.computed[v]; });
}

}  // namespace

DimClasses::DimClasses(const Graph& graph, const Facts& facts, const CouplingOptions& options)
    : graph_(graph),
      facts_(facts),
      interface_(options.interface),
      from_weights_(depends_on_weights_only(graph)),
      most_indices_(most_indices(graph)) {
  collect_factors(options.pinned_nodes);
  unite_dims();
  place_terms_and_maps();
  note_experts(options);
  find_branches();
  pin_bodies();
  pin_ends();
  pin_labels();
  propagate();
  pin_longest();
  pin_parts();
  propagate();
}

int DimClasses::add_reason(const Reason& reason) {
  reasons_.push_back(reason);
  return static_cast<int>(reasons_.size()) - 1;
}

void DimClasses::collect_factors(std::span<const NodeId> pinned_nodes) {
  factors_.resize(graph_.nodes.size());
  label_begin_.reserve(graph_.nodes.size());
  for (const NodeId n : graph_.nodes.ids()) {
    const Node& node = graph_.nodes[n];
    if (takes_part(facts_, node)) factors_[n] = factor(NodeView(graph_, node, facts_));
    if (contains(pinned_nodes, n)) {
      const std::string why = node.calls > 1 ? "all calls of its function read the same integers"
                                             : "the smaller shapes did not fit here";
      const std::vector<Pin> pins = std::move(factors_[n].pins);
      factors_[n] = pin_operands(NodeView(graph_, node, facts_), why);
      for (const Pin& pin : pins) {  // of scores whose places the node reads
        if (pin.read != kNone)
          factors_[n].pins.push_back({pin.value, pin.dim, pin.begin, pin.end, why});
      }
      pin_measured(node, why, factors_[n]);
    }
    label_begin_.push_back(label_node_.next_id());
    label_node_.resize(label_node_.size() + factors_[n].labels.size(), n);
  }
  label_pin_.assign(label_node_.size(), kNone);
}

/// Pins the dimensions from which the sizes that the node is given were read.
void DimClasses::pin_measured(const Node& node, const std::string& why, Factors& factors) const {
  std::vector<ValueId> open = node.inputs;
  for (size_t i = 0; i < open.size(); ++i) {
    const NodeId id = open[i] == kNone ? NodeId() : graph_.value(open[i]).producer;
    if (id == kNone || !facts_.computed[open[i]]) continue;
    const Node& producer = graph_.node(id);
    for (const ValueId v : producer.inputs) {
      if (v == kNone || contains(open, v)) continue;
      open.push_back(v);
      const auto& shape = facts_.shapes[v];
      if (!has_trait(producer, kReadsSizes) || !shape) continue;
      for (int d = 0; d < std::ssize(*shape); ++d)
        factors.pins.push_back({v, d, 0, (*shape)[d], why});
    }
  }
}

/// Dimensions in which a label appears alone belong to one dim class.
void DimClasses::unite_dims() {
  IdVector<ValueId, int32_t> begin;
  int32_t count = 0;
  for (const auto& shape : facts_.shapes) {
    begin.push_back(count);
    count += static_cast<int32_t>(shape ? shape->size() : 0);
  }
  UnionFind dims(count);
  std::vector<int32_t> alone;
  for (const Factors& factors : factors_) {
    alone.assign(factors.labels.size(), kNone);
    for (const Term& term : factors.terms) {
      if (term.labels.size() != 1) continue;
      const int32_t dim = begin[term.value] + term.dim;
      int32_t& first = alone[term.labels[0]];
      if (first == kNone) {
        first = dim;
      } else {
        dims.unite(first, dim);
      }
    }
  }
  for (const auto& [a, b] : interface_.tied) {
    dims.unite(begin[a.value] + a.dim, begin[b.value] + b.dim);
  }
  std::vector<DimClassId> dim_class_of_root(dims.count(), kNone);
  value_dim_classes_.resize(graph_.values.size());
  for (const ValueId v : graph_.values.ids()) {
    if (!facts_.shapes[v]) continue;
    for (size_t d = 0; d < facts_.shapes[v]->size(); ++d) {
      const int64_t size = (*facts_.shapes[v])[d];
      DimClassId dim_class;
      if (size > 1) {
        DimClassId& of_root = dim_class_of_root[dims.find(begin[v] + static_cast<int32_t>(d))];
        if (of_root == kNone) of_root = size_.push_back(size);
        dim_class = of_root;
      }
      value_dim_classes_[v].push_back(dim_class);
    }
  }
}

void DimClasses::place_terms_and_maps() {
  terms_.resize(size_.size());
  segments_.resize(size_.size());
  longest_segment_.assign(size_.size(), 0);
  for (const NodeId n : factors_.ids()) {
    for (const Term& term : factors_[n].terms) {
      const DimClassId dim_class = of(term.value, term.dim);
      if (dim_class != kNone) terms_[dim_class].push_back({n, &term});
    }
    for (const Map& map : factors_[n].maps) {
      const DimClassId a = of(map.a, map.a_dim);
      const DimClassId b = of(map.b, map.b_dim);
      for (const Segment& run : map.segments) {
        if (run.count <= 0) continue;
        if (a != kNone) segments_[a].push_back({run.a_begin, run.count, b, run.b_begin});
        if (b != kNone) segments_[b].push_back({run.b_begin, run.count, a, run.a_begin});
      }
    }
  }
  for (const DimClassId dim_class : all()) {
    std::ranges::stable_sort(segments_[dim_class], {}, &ClassSegment::begin);
    for (const ClassSegment& run : segments_[dim_class]) {
      longest_segment_[dim_class] = std::max(longest_segment_[dim_class], run.count);
    }
  }
  class_pin_.assign(size_.size(), kNone);
  pinned_.resize(size_.size());
  pinned_count_.assign(size_.size(), 0);
}

void DimClasses::pin_value(ValueId value, const Reason& reason, bool is_end) {
  int id = kNone;
  for (int d = 0; d < std::ssize(value_dim_classes_[value]); ++d) {
    const DimClassId dim_class = of(value, d);
    if (dim_class == kNone || wholly_pinned(dim_class)) continue;
    if (is_end && is_free(value, d)) continue;
    if (id == kNone) id = add_reason(reason);
    pin_class(dim_class, id);
  }
}

/// Inputs and results of bodies that no node's factors join, and values pinned by the file.
void DimClasses::pin_bodies() {
  for (const Body& body : graph_.bodies) {
    if (body.owner != kNone && takes_part(facts_, graph_.node(body.owner))) continue;
    const auto pin = [&](std::string_view what, ValueId id) {
      const std::string& name = graph_.value(id).name;
      pin_value(id, {body.owner, false,
                     keep_text(std::string(what) + " \"" + name + "\" of " + body.attribute)});
    };
    for (const ValueId id : body.inputs) pin("input", id);
    for (const ValueId id : body.outputs) pin("result", id);
  }
  for (const auto& [id, reason] : graph_.pinned_values) pin_value(id, {kNone, false, reason});
}

void DimClasses::pin_ends() {
  for (const ValueId v : graph_.values.ids()) {
    const Value& value = graph_.values[v];
    const auto pin_end = [&](const char* what) {
      pin_value(v, {kNone, false, keep_text(what + (" \"" + value.name + "\""))}, true);
    };
    if (value.is_input) pin_end("graph input");
    if (value.is_output) pin_end("graph output");
    if (facts_.computed[v]) pin_value(v, {value.producer, false, "computed from shapes"});
    if (value.weight != kNone && is_evaluated(value)) {
      const bool floats = is_floating(graph_.weight(value.weight).dtype);
      pin_value(v, {kNone, false, floats ? "scales of sizes" : "arithmetic on sizes"});
    }
  }
}

/// Numbers that are evaluated, not only read for their shapes.
bool DimClasses::is_evaluated(const Value& value) const {
  if (!is_floating(graph_.weight(value.weight).dtype) && !is_table(graph_, value)) return false;
  return std::ranges::any_of(value.uses, [&](const Use& use) {
    const Node& node = graph_.node(use.node);
    if (node.outputs.empty() || node.outputs[0] == kNone) return false;
    return facts_.computed[node.outputs[0]] && reads_elements(node, use.input);
  });
}

void DimClasses::pin_longest() {
  std::vector<DimClassId> prunable;
  int64_t indices = 0;
  for (const DimClassId dim_class : all()) {
    if (wholly_pinned(dim_class)) continue;
    prunable.push_back(dim_class);
    indices += size(dim_class);
  }
  std::ranges::stable_sort(prunable, [&](DimClassId a, DimClassId b) { return size(a) > size(b); });
  for (const DimClassId dim_class : prunable) {
    if (indices <= most_indices_) break;
    pin_class(dim_class, add_reason({kNone, false, kTooLong}));
    indices -= size(dim_class);
  }
}

void DimClasses::note_experts(const CouplingOptions& options) {
  experts_leave_ = options.granularity == Granularity::kExpert;
  experts_of_.assign(count(), false);
  for (const auto& [node, granularity] : options.of_layers) {
    if (granularity != Granularity::kExpert) continue;
    for (const ValueId value : graph_.node(node).inputs) {
      if (value == kNone || graph_.value(value).weight == kNone) continue;
      for (const DimClassId dim_class : value_dim_classes_[value]) {
        if (dim_class != kNone) experts_of_[dim_class] = true;
      }
    }
  }
}

/// Are these experts that nobody asked to remove?
bool DimClasses::stays(NodeId node, size_t label) const {
  const Factors& factors = factors_[node];
  if (factors.labels[label].role != notation::LabelRole::kExpert || experts_leave_) return false;
  return std::ranges::none_of(factors.terms, [&](const Term& term) {
    const DimClassId dim_class = of(term.value, term.dim);
    return contains(term.labels, static_cast<int>(label)) && dim_class != kNone &&
           experts_of_[dim_class];
  });
}

void DimClasses::pin_labels() {
  for (const NodeId node : factors_.ids()) {
    for (size_t l = 0; l < factors_[node].labels.size(); ++l) {
      const Label& label = factors_[node].labels[l];
      if (stays(node, l) && label.size > 1) {
        pin_label(label_id(node, static_cast<int>(l)), add_reason({node, false, kExpertsStay}));
      }
      if (!label.pinned() || label.size <= 1) continue;
      pin_label(label_id(node, static_cast<int>(l)),
                add_reason({node, is_kernel(node, l), {}, &label}));
    }
    for (const Pin& pin : factors_[node].pins) {
      const DimClassId dim_class = of(pin.value, pin.dim);
      if (dim_class == kNone || wholly_pinned(dim_class) || !is_whole(pin)) continue;
      if (is_free(pin.value, pin.dim) || (pin.read != kNone && chosen_[dim_class])) continue;
      pin_class(dim_class, add_reason({node, false, pin.reason}));
    }
  }
}

/// Where a node reads one expert's place among the scores and is, with layers, a branch of a sum,
/// the branch leaves with the expert.
void DimClasses::find_branches() {
  chosen_.assign(count(), false);
  for (const NodeId n : factors_.ids()) {
    for (const Term& term : factors_[n].terms) {
      const DimClassId dim_class = of(term.value, term.dim);
      if (dim_class == kNone || term.labels.size() != 1) continue;
      const auto label = static_cast<size_t>(term.labels.front());
      const bool experts = factors_[n].labels[label].role == notation::LabelRole::kExpert;
      if (experts && !stays(n, label)) chosen_[dim_class] = true;
    }
  }
  if (!contains(chosen_, true)) return;
  using Expert = std::pair<DimClassId, int64_t>;
  std::map<NodeId, std::set<Expert>> read;
  const auto add = [&](NodeId reader, DimClassId dim_class, int64_t index) {
    if (dim_class != kNone && chosen_[dim_class]) read[reader].emplace(dim_class, index);
  };
  for (const NodeId n : factors_.ids()) {
    for (const Pin& pin : factors_[n].pins) {
      if (pin.read != kNone) add(n, of(pin.value, pin.dim), pin.read);
    }
    for (const Map& map : factors_[n].maps) {
      if (of(map.b, map.b_dim) != kNone) continue;
      for (const Segment& run : map.segments) {
        for (int64_t i = 0; i < run.count; ++i) add(n, of(map.a, map.a_dim), run.a_begin + i);
      }
    }
  }
  BranchFinder finder(graph_, facts_);
  std::map<NodeId, Expert> owner;
  for (const auto& [reader, experts] : read) {
    auto branch = experts.size() == 1 ? finder.with(reader) : std::nullopt;
    if (!branch || !graph_.source->can_bypass(graph_, branch->add, branch->kept_input)) continue;
    const Expert& expert = *experts.begin();
    const auto is_own = [&](NodeId n) {
      const auto owned = owner.find(n);
      const auto reads = read.find(n);
      return (owned == owner.end() || owned->second == expert) &&
             (reads == read.end() || reads->second == experts);
    };
    // A sum loses one of its operands only.
    if (!is_own(branch->add) || !std::ranges::all_of(branch->nodes, is_own)) continue;
    owner.emplace(branch->add, expert);
    for (const NodeId n : branch->nodes) owner.emplace(n, expert);
    branches_.push_back({expert.first, expert.second, reader, std::move(*branch)});
  }
}

bool DimClasses::leaves_with(NodeId reader, DimClassId dim_class, int64_t i) const {
  // They are in the order of their readers, each of which reads one place.
  const auto at = std::ranges::lower_bound(branches_, reader, {}, &ExpertBranch::reader);
  return at != branches_.end() && at->reader == reader && at->dim_class == dim_class &&
         at->index == i;
}

bool DimClasses::is_whole(const Pin& pin) const {
  return pin.begin == 0 && pin.end == size(of(pin.value, pin.dim));
}

void DimClasses::pin_parts() {
  // Programs of PyTorch compute what they do not fix.
  const bool open = graph_.format != "onnx" || leaves_open(graph_);
  for (const NodeId node : factors_.ids()) {
    for (const Map& map : factors_[node].maps) {
      pin_single(node, map);
      if (open) pin_unreached(node, map);
    }
    for (const Pin& pin : factors_[node].pins) {
      const DimClassId dim_class = of(pin.value, pin.dim);
      if (dim_class == kNone || wholly_pinned(dim_class) || is_free(pin.value, pin.dim)) continue;
      if (leaves_with(node, dim_class, pin.read)) continue;
      const int reason = add_reason({node, false, pin.reason});
      const bool one = pin.read != kNone && chosen_[dim_class];
      const int64_t end = one ? pin.read + 1 : pin.end;
      for (int64_t i = one ? pin.read : pin.begin; i < end && !wholly_pinned(dim_class); ++i)
        pin_index(dim_class, i, reason);
    }
  }
}

/// An index that forms a complete dimension of another value may not be removed.
void DimClasses::pin_single(NodeId node, const Map& map) {
  const DimClassId a = of(map.a, map.a_dim);
  const DimClassId b = of(map.b, map.b_dim);
  if ((a == kNone) == (b == kNone)) return;
  const ValueId single = a == kNone ? map.a : map.b;
  int reason = kNone;
  for (const Segment& run : map.segments) {
    if (run.count <= 0) continue;
    if (reason == kNone) {
      reason =
          add_reason({node, false, keep_text("is all of \"" + graph_.value(single).name + "\"")});
    }
    const DimClassId dim_class = a == kNone ? b : a;
    const int64_t index = a == kNone ? run.b_begin : run.a_begin;
    if (!leaves_with(node, dim_class, index)) pin_index(dim_class, index, reason);
  }
}

/// What a slice of a table leaves out may be what inputs of another size take.
void DimClasses::pin_unreached(NodeId node, const Map& map) {
  const DimClassId dim_class = of(map.a, map.a_dim);
  if (dim_class == kNone || wholly_pinned(dim_class) || !from_weights(map.a)) return;
  const bool computed = std::ranges::any_of(
      graph_.nodes[node].inputs, [&](ValueId v) { return v != kNone && facts_.computed[v]; });
  const bool is_read = std::ranges::any_of(
      terms_[dim_class], [&](const PlacedTerm& at) { return !from_weights(at.term->value); });
  if (!computed || is_read) return;
  std::vector<bool> reached(static_cast<size_t>(size(dim_class)), false);
  for (const ClassSegment& run : segments_[dim_class]) {
    std::fill_n(reached.begin() + run.begin, run.count, true);
  }
  const int reason = add_reason({node, false, "inputs of another size may take it"});
  for (int64_t i = 0; i < size(dim_class) && !wholly_pinned(dim_class); ++i) {
    if (!reached[static_cast<size_t>(i)]) pin_index(dim_class, i, reason);
  }
}

/// Does the label appear only in weights?
bool DimClasses::is_kernel(NodeId node, size_t label) const {
  const Factors& factors = factors_[node];
  if (!factors.labels[label].window) return false;
  return std::ranges::any_of(factors.terms, [&](const Term& term) {
    return contains(term.labels, static_cast<int>(label)) && from_weights(term.value);
  });
}

void DimClasses::pin_class(DimClassId dim_class, int reason) {
  int& wholly_pinned = class_pin_[dim_class];
  if (wholly_pinned != kNone) return;
  wholly_pinned = reason;
  class_queue_.push_back(dim_class);
}

void DimClasses::pin_index(DimClassId dim_class, int64_t i, int reason) {
  if (wholly_pinned(dim_class)) return;
  auto& pins = pinned_[dim_class];
  if (pins.empty()) {
    if (size(dim_class) > most_indices_ - noted_indices_) {
      return pin_class(dim_class, add_reason({kNone, false, kTooLong}));
    }
    noted_indices_ += size(dim_class);
    pins.assign(size(dim_class), kNone);
  }
  int& pin = pins[i];
  if (pin != kNone) return;
  pin = reason;
  index_queue_.emplace_back(dim_class, i);
  if (++pinned_count_[dim_class] == size(dim_class)) pin_class(dim_class, reason);
}

void DimClasses::pin_label(LabelId label, int reason) {
  int& wholly_pinned = label_pin_[label];
  if (wholly_pinned != kNone) return;
  wholly_pinned = reason;
  label_queue_.push_back(label);
}

void DimClasses::propagate() {
  while (!class_queue_.empty() || !label_queue_.empty() || !index_queue_.empty()) {
    if (!class_queue_.empty()) {
      const DimClassId dim_class = class_queue_.back();
      class_queue_.pop_back();
      propagate_class(dim_class);
    } else if (!label_queue_.empty()) {
      const LabelId label = label_queue_.back();
      label_queue_.pop_back();
      propagate_label(label);
    } else {
      const auto [dim_class, i] = index_queue_.back();
      index_queue_.pop_back();
      propagate_index(dim_class, i);
    }
  }
}

/// A wholly pinned dimension pins its labels and everything that its indices are mapped to.
void DimClasses::propagate_class(DimClassId dim_class) {
  const int reason = class_pin_[dim_class];
  for (const PlacedTerm& placed : terms(dim_class)) {
    for (const int label : placed.term->labels) pin_label(label_id(placed.node, label), reason);
  }
  for (const ClassSegment& run : segments(dim_class)) {
    if (run.other == kNone || wholly_pinned(run.other)) continue;
    if (run.other_begin == 0 && run.count == size(run.other)) {
      pin_class(run.other, reason);
      continue;
    }
    for (int64_t i = 0; i < run.count && !wholly_pinned(run.other); ++i) {
      pin_index(run.other, run.other_begin + i, reason);
    }
  }
}

void DimClasses::propagate_index(DimClassId dim_class, int64_t i) {
  if (wholly_pinned(dim_class)) return;  // propagation of the class covers it
  const int reason = pinned(dim_class, i);
  const auto& all = segments(dim_class);
  auto it =
      std::ranges::lower_bound(all, i - longest_segment_[dim_class] + 1, {}, &ClassSegment::begin);
  for (; it != all.end() && it->begin <= i; ++it) {
    if (it->other == kNone || i >= it->begin + it->count) continue;
    pin_index(it->other, it->other_begin + i - it->begin, reason);
  }
}

/// A product of pinned labels is wholly pinned, and so is a dimension in which a pinned label
/// appears alone.
void DimClasses::propagate_label(LabelId label) {
  const NodeId node = label_node_[label];
  const int reason = label_pin_[label];
  const int own = label.number() - label_begin_[node].number();
  for (const Term& term : factors_[node].terms) {
    if (!contains(term.labels, own)) continue;
    const bool all_pinned =
        std::ranges::all_of(term.labels, [&](int l) { return label_pinned(label_id(node, l)); });
    const DimClassId dim_class = of(term.value, term.dim);
    if (all_pinned && dim_class != kNone) pin_class(dim_class, reason);
  }
}

}  // namespace parsimony
