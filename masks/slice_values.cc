#include "parsimony/masks/slice_values.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/masks/magnitude.h"

namespace parsimony {
namespace {

/// One operand as seen from the slices of an output.
struct SliceState {
  OperandSlice slice;
  bool has = false;  // the operand has the axis; else all of it is seen
  std::vector<SliceValue> at;
  // Coordinates at which the operand does not contribute; empty: contributes everywhere.
  std::vector<bool> absent;
};

SliceValue meet(const std::vector<SliceValue>& slices) {
  return slices.empty() ? SliceValue::kZero : *std::ranges::min_element(slices);
}

class SliceTracer {
 public:
  SliceTracer(const Graph& graph, const Facts& facts, const std::vector<ElementMask>& masks)
      : graph_(graph), facts_(facts), slice_values_(graph.values.size()) {
    for (const ElementMask& mask : masks) masks_.emplace(mask.tensor, &mask);
    whole_.resize(graph.values.size(), SliceValue::kVaries);
  }

  SliceValues run() {
    for (const ValueId v : graph_.values.ids()) {
      const Value& value = graph_.values[v];
      if (value.weight != kNone) {
        weigh(v);
      } else if (facts_.computed[v]) {
        fill(v, SliceValue::kConstant);
      }
    }
    for (const NodeId n : graph_.nodes.ids()) push(n);
    return std::move(slice_values_);
  }

 private:
  const Shape* shape(ValueId value) const {
    const auto& known = facts_.shapes[value];
    return known ? &*known : nullptr;
  }

  void fill(ValueId value, SliceValue content) {
    whole_[value] = content;
    auto& dims = slice_values_[value];
    dims.clear();
    if (const Shape* sizes = shape(value)) {
      for (const int64_t size : *sizes) dims.emplace_back(static_cast<size_t>(size), content);
    }
  }

  /// A weight's slices are zero or constant.
  void weigh(ValueId id) {
    const Weight& weight = graph_.weight_of(id);
    const auto found = masks_.find(weight.name);
    const ElementMask* mask = found == masks_.end() ? nullptr : found->second;
    auto& dims = slice_values_[id];
    dims.clear();
    for (const int64_t size : weight.dims) {
      dims.emplace_back(static_cast<size_t>(size), SliceValue::kZero);
    }
    whole_[id] = SliceValue::kZero;
    const int64_t count = weight.count();
    const int64_t bytes = size_of(weight.dtype);
    std::vector<size_t> index(weight.dims.size(), 0);
    for (int64_t i = 0; i < count; ++i) {
      const bool kept = mask == nullptr || mask->keep[static_cast<size_t>(i)] != 0;
      if (kept && !is_zero(weight.data + i * weight.stride, bytes, is_floating(weight.dtype))) {
        whole_[id] = SliceValue::kConstant;
        for (size_t d = 0; d < index.size(); ++d) dims[d][index[d]] = SliceValue::kConstant;
      }
      for (size_t d = index.size(); d-- > 0;) {
        if (++index[d] < static_cast<size_t>(weight.dims[d])) break;
        index[d] = 0;
      }
    }
  }

  void push(NodeId id) {
    const Node& node = graph_.node(id);
    const OpSchema* schema = followed_schema(node);
    const NodeView view(graph_, node, facts_);
    const Transfer transfer(view);
    const bool known = schema != nullptr && !node.has_subgraph;
    const Factors factors = known ? factor(view) : Factors();
    const bool computes_from_pieces = !factors.maps.empty() && is_product(transfer.behaviour());
    for (const ValueId output : node.outputs) {
      if (output == kNone || facts_.computed[output]) continue;
      fill(output, SliceValue::kVaries);
      // States are recurrent.
      const bool recurrent = known && schema->linear.kind == LinearKind::kRecurrence;
      if (known && !computes_from_pieces && !recurrent) derive(view, transfer, factors, output);
    }
  }

  void derive(const NodeView& view, const Transfer& transfer, const Factors& factors,
              ValueId output) {
    auto& dims = slice_values_[output];
    SliceValue& whole = whole_[output];
    std::vector<OperandSlice> slices;
    for (size_t d = 0; d < dims.size(); ++d) {
      std::vector<SliceState> seen;
      for (int i = 0; i < view.inputs(); ++i) {
        const ValueId operand = view.input(i);
        if (operand == kNone) continue;
        seen.push_back(see(factors, operand, output, static_cast<int>(d)));
        seen.back().slice = {.operand = i,
                             .has_axis = seen.back().has,
                             .divides = contains(factors.divisors, operand)};
      }
      for (size_t j = 0; j < dims[d].size(); ++j) {
        slices.clear();
        for (const SliceState& each : seen) {
          slices.push_back(each.slice);
          slices.back().content = each.at[j];
          slices.back().absent = !each.absent.empty() && each.absent[j];
        }
        dims[d][j] = transfer(slices);
      }
      whole = std::max(whole, meet(dims[d]));
    }
  }

  SliceState see(const Factors& factors, ValueId operand, ValueId output, int dim) const {
    const auto size = slice_values_[output][static_cast<size_t>(dim)].size();
    SliceState seen;
    const bool pieces = std::ranges::any_of(
        factors.maps, [&](const Map& map) { return map.b == output && map.b_dim == dim; });
    if (pieces) {
      see_pieces(factors, operand, output, dim, size, seen);
    } else {
      see_labels(factors, operand, output, dim, size, seen);
    }
    if (!seen.has) seen.at.assign(size, whole_[operand]);
    return seen;
  }

  void see_pieces(const Factors& factors, ValueId operand, ValueId output, int dim, size_t size,
                  SliceState& seen) const {
    for (const Map& map : factors.maps) {
      if (map.b != output || map.b_dim != dim || map.a != operand) continue;
      const auto& from = slice_values_[operand];
      if (!seen.has) {
        seen.at.assign(size, SliceValue::kVaries);
        seen.absent.assign(size, true);
      }
      seen.has = true;
      for (const Segment& run : map.segments) {
        for (int64_t i = 0; i < run.count; ++i) {
          const auto b = static_cast<size_t>(run.b_begin + i);
          const auto a = static_cast<size_t>(run.a_begin + i);
          seen.at[b] = from.empty() ? SliceValue::kVaries : from[static_cast<size_t>(map.a_dim)][a];
          seen.absent[b] = false;
        }
      }
    }
  }

  /// The coordinate of an index in the labels that both dimensions have; the others are summed
  /// over, or the same everywhere.
  static int64_t coordinate(const Factors& factors, const Term& term, const Term& other,
                            int64_t index) {
    int64_t key = 0;
    int64_t scale = 1;
    for (size_t k = term.labels.size(); k-- > 0;) {
      const Label& label = factors.labels[static_cast<size_t>(term.labels[k])];
      if (is_shared(factors, term.labels[k], other)) {
        key += index % label.size * scale;
        scale *= label.size;
      }
      index /= label.size;
    }
    return key;
  }

  static bool is_shared(const Factors& factors, int l, const Term& other) {
    const Label& label = factors.labels[static_cast<size_t>(l)];
    return label.size > 1 && !label.mixes && !label.pinned() && contains(other.labels, l);
  }

  void see_labels(const Factors& factors, ValueId operand, ValueId output, int dim, size_t size,
                  SliceState& seen) const {
    const auto& from = slice_values_[operand];
    for (const Term& mine : factors.terms) {
      if (mine.value != output || mine.dim != dim) continue;
      for (const Term& theirs : factors.terms) {
        if (theirs.value != operand || from.empty()) continue;
        const bool shares =
            std::ranges::any_of(theirs.labels,
                                [&](int l) { return is_shared(factors, l, mine); }) &&
            same_order(factors, mine, theirs);
        if (!shares) continue;
        std::unordered_map<int64_t, SliceValue> by_key;
        const auto& slices = from[static_cast<size_t>(theirs.dim)];
        for (size_t i = 0; i < slices.size(); ++i) {
          const int64_t key = coordinate(factors, theirs, mine, static_cast<int64_t>(i));
          const auto [it, fresh] = by_key.try_emplace(key, slices[i]);
          if (!fresh) it->second = std::min(it->second, slices[i]);
        }
        if (!seen.has) seen.at.assign(size, SliceValue::kVaries);
        seen.has = true;
        for (size_t j = 0; j < size; ++j) {
          const int64_t key = coordinate(factors, mine, theirs, static_cast<int64_t>(j));
          const auto it = by_key.find(key);
          if (it != by_key.end()) seen.at[j] = std::max(seen.at[j], it->second);
        }
      }
    }
  }

  /// Coordinates are only comparable if the shared labels stand in the same order.
  static bool same_order(const Factors& factors, const Term& a, const Term& b) {
    const auto shared = [&](const Term& of, const Term& with) {
      std::vector<int> labels;
      for (const int l : of.labels) {
        if (is_shared(factors, l, with)) labels.push_back(l);
      }
      return labels;
    };
    return shared(a, b) == shared(b, a);
  }

  const Graph& graph_;
  const Facts& facts_;
  std::unordered_map<std::string, const ElementMask*> masks_;
  SliceValues slice_values_;
  IdVector<ValueId, SliceValue> whole_;
};

}  // namespace

SliceValues propagate_slice_values(const Graph& graph, const Facts& facts,
                                   const std::vector<ElementMask>& masks) {
  return SliceTracer(graph, facts, masks).run();
}

namespace {

/// Per index of `axis`: is every element of the slice zero?
std::vector<bool> zero_slices(const Weight& weight, int axis, const ElementMask* mask) {
  const auto size = weight.dims[axis];
  int64_t inner = 1;
  for (size_t d = axis + 1; d < weight.dims.size(); ++d) inner *= weight.dims[d];
  std::vector<bool> zero(size, true);
  const int64_t count = weight.count();
  visit_magnitude(weight, [&]<typename Source>(Source) {
    for (int64_t i = 0; i < count; ++i) {
      const size_t index = (i / inner) % size;
      if (!zero[index] || (mask != nullptr && mask->keep[i] == 0)) continue;
      zero[index] = Source::at(weight.data + i * weight.stride) == 0;
    }
  });
  return zero;
}

class ZeroChannels {
 public:
  ZeroChannels(const Graph& graph, const Coupling& coupling, const std::vector<ElementMask>& zeros)
      : graph_(graph), coupling_(coupling) {
    for (const ElementMask& mask : zeros) masks_.emplace(mask.tensor, &mask);
  }

  int remove(AxisMasks& masks) const {
    int found = 0;
    for (const GroupId g : coupling_.groups.ids()) {
      const Group& group = coupling_.groups[g];
      const auto by_out = group.zero ? zero_channels(group, Role::kOut) : std::vector<bool>{};
      const auto by_in = group.weighted ? zero_channels(group, Role::kIn) : std::vector<bool>{};
      for (size_t c = 0; c < masks.keep[g].size(); ++c) {
        const bool goes = (!by_out.empty() && by_out[c]) || (!by_in.empty() && by_in[c]);
        if (!goes || masks.keep[g][c] == 0) continue;
        masks.keep[g][c] = 0;
        ++found;
      }
    }
    return found;
  }

 private:
  /// Channels all of whose slices of one role are zero; empty if the group has none of it.
  std::vector<bool> zero_channels(const Group& group, Role role) const {
    std::vector<bool> result;
    for (const Member& member : group.members) {
      if (member.role != role) continue;
      if (result.empty()) result.assign(group.size, true);
      const Weight& weight = graph_.weight_of(member.value);
      const auto it = masks_.find(weight.name);
      const auto zero = zero_slices(weight, member.axis, it == masks_.end() ? nullptr : it->second);
      for (int c = 0; c < group.size; ++c) {
        const auto indices = member.of(c);
        const bool all = std::ranges::all_of(indices, [&](int64_t i) { return zero[i]; });
        result[c] = result[c] && all;
      }
    }
    return result;
  }

  const Graph& graph_;
  const Coupling& coupling_;
  std::unordered_map<std::string, const ElementMask*> masks_;
};

}  // namespace

int remove_zero_channels(const Graph& graph, const Coupling& coupling,
                         const std::vector<ElementMask>& zeros, AxisMasks& masks) {
  const int found = ZeroChannels(graph, coupling, zeros).remove(masks);
  // A dimension needs at least one index, even if it is zero.
  return found - keep_enough(coupling, {}, masks);
}

}  // namespace parsimony
