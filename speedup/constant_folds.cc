#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/graph/slice.h"
#include "parsimony/speedup/constant_folds_impl.h"

namespace parsimony {
namespace {

class ReductionSiteFinder {
 public:
  ReductionSiteFinder(const Graph& graph, const Facts& facts, const Coupling& coupling)
      : graph_(graph), facts_(facts), coupling_(coupling), readers_(graph.weights.size(), 0) {
    for (const Value& value : graph.values) {
      if (value.weight == kNone) continue;
      auto& readers = readers_[value.weight];
      readers += static_cast<int>(value.uses.size()) + (value.is_output || value.captured ? 1 : 0);
    }
  }

  std::vector<ReductionSite> run() {
    for (const NodeId n : graph_.nodes.ids()) visit(n);
    return std::move(sites_);
  }

 private:
  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    if (followed_schema(node) == nullptr || node.outputs.empty() || all_computed(node)) return;
    const NodeView view(graph_, node, facts_);
    const Factors factors = factor(view);
    for (size_t l = 0; l < factors.labels.size(); ++l) {
      const Label& label = factors.labels[l];
      if (label.size <= 1 || label.pinned()) continue;
      std::vector<Term> terms;
      for (const Term& term : factors.terms) {
        if (contains(term.labels, static_cast<int>(l))) terms.push_back(term);
      }
      if (label.contracted) {
        sum(view, id, terms, is_product(zero_behaviour(view)));
      } else {
        recurrence(node, id, terms);
      }
    }
  }

  bool all_computed(const Node& node) const {
    return std::ranges::all_of(node.outputs,
                               [&](ValueId v) { return v == kNone || facts_.computed[v]; });
  }

  DimClassId channel_dim_class(const Term& term) const {
    const DimClassId dim_class = coupling_.dim_class_of(term.value, term.dim);
    if (dim_class == kNone) return kNone;
    const auto channels = coupling_.channels(dim_class);
    const bool any =
        std::ranges::any_of(channels, [](const ChannelId& c) { return c.group != kNone; });
    return any ? dim_class : kNone;
  }

  void sum(const NodeView& view, NodeId id, const std::vector<Term>& terms, bool product) {
    for (const Term& term : terms) {
      if (graph_.value(term.value).weight != kNone) continue;
      const DimClassId dim_class = channel_dim_class(term);
      if (dim_class == kNone) continue;
      ReductionSite site{id, term.value, term.dim, dim_class, {}};
      for (const Term& other : terms) {
        if (&other == &term || !product) continue;
        if (coupling_.dim_class_of(other.value, other.dim) == dim_class) {
          site.partners.emplace_back(other.value, other.dim);
        }
        if (terms.size() == 2) describe(view, other, site);
      }
      sites_.push_back(std::move(site));
    }
  }

  /// A recurrence contracts the channels that it produces.
  void recurrence(const Node& node, NodeId id, const std::vector<Term>& terms) {
    for (const Term& term : terms) {
      const auto twice =
          std::ranges::count_if(terms, [&](const Term& t) { return t.value == term.value; });
      if (twice < 2 || graph_.value(term.value).weight == kNone) continue;
      for (const Term& out : terms) {
        if (!contains(node.outputs, out.value)) continue;
        if (channel_dim_class(out) != kNone) {
          sites_.push_back({id, out.value, out.dim, channel_dim_class(out), {}});
        }
      }
      return;
    }
  }

  bool is_own(ValueId value) const {
    const WeightId weight = graph_.value(value).weight;
    if (weight == kNone || !is_floating(graph_.weight(weight).dtype)) return false;
    return readers_[weight] == 1;
  }

  /// A vector of as many elements as the node puts out, which only it reads.
  ValueId bias_of(const NodeView& view, int operand, int64_t count) const {
    const ValueId value = operand < 0 ? kNone : view.input(operand);
    if (value == kNone || !is_own(value)) return kNone;
    const Shape& dims = graph_.weight_of(value).dims;
    const bool fits = !dims.empty() && dims.back() == count && element_count(dims) == count;
    return fits ? value : kNone;
  }

  static bool is_padded(const NodeView& view) {
    const std::string automatic = view.attr("auto_pad", "NOTSET");
    if (automatic != "NOTSET" && automatic != "VALID") return true;
    const auto pads = view.attrs("pads");
    return std::ranges::any_of(pads, [](int64_t p) { return p != 0; });
  }

  void describe(const NodeView& view, const Term& weight, ReductionSite& site) const {
    if (!is_own(weight.value)) return;
    const int operand = view.input(0) == weight.value ? 0 : 1;
    if (view.input(operand) != weight.value) return;
    const Shape& dims = graph_.weight_of(weight.value).dims;
    const auto form = linear_form(view.node(), operand, dims.size());
    if (!form || !form->plain || view.input(form->data) != site.value) return;
    site.axis = weight.dim;
    if (form->kind == LinearKind::kTransposedConvolution) {
      if (form->groups == 1) site.weight = weight.value;
      site.can_absorb = form->groups == 1;
      return;  // not every output reads every position
    }
    site.weight = weight.value;
    site.can_absorb = form->groups == 1;
    const double beta = attr(view.node(), "beta", 1.0);
    site.bias_scale = attr(view.node(), "alpha", 1.0) / beta;
    const auto out = static_cast<size_t>(form->out_axis);  // a vector has no output axis
    if (operand == 1 && beta != 0 && !is_padded(view) && out < dims.size()) {
      site.bias = bias_of(view, form->bias, dims[out]);
    }
  }

  const Graph& graph_;
  const Facts& facts_;
  const Coupling& coupling_;
  IdVector<WeightId, int> readers_;
  std::vector<ReductionSite> sites_;
};

}  // namespace

std::vector<ReductionSite> find_reduction_sites(const Graph& graph, const Facts& facts,
                                                const Coupling& coupling) {
  return ReductionSiteFinder(graph, facts, coupling).run();
}

// The arithmetic of constants: new elements of weights and biases.
namespace {

/// All elements of a weight, one after the other, to be changed.
class Elements {
 public:
  explicit Elements(const Weight& weight)
      : dims(weight.dims),
        bytes(dense_bytes(weight)),
        dtype_(weight.dtype),
        width_(size_of(dtype_)),
        read_(reader_of(dtype_)) {}

  void zero(const std::vector<uint8_t>& keep) {
    for (size_t i = 0; i < keep.size(); ++i) {
      if (keep[i] == 0) std::memset(&bytes[i * width_], 0, width_);
    }
  }

  double get(int64_t i) const { return read_(&bytes[i * width_]); }
  void set(int64_t i, double value) { write_number(value, dtype_, &bytes[i * width_]); }

  const Shape dims;
  std::vector<std::byte> bytes;

 private:
  DType dtype_;
  size_t width_;
  ReadNumber read_;
};

/// Calls visit(outer, inner) for every combination of the other coordinates of an axis; an element
/// is at (outer * size + index) * inner_count + inner.
template <typename Visit>
void across(const Shape& dims, int axis, const Visit& visit) {
  int64_t outer = 1;
  int64_t inner = 1;
  for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
    (d < axis ? outer : inner) *= d == axis ? 1 : dims[d];
  }
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) visit(o, i, inner);
  }
}

/// Changes the weights of one network.
class Folder {
 public:
  Folder(const Graph& graph, const Coupling& coupling, const AxisMasks& channels)
      : graph_(graph), coupling_(coupling), channels_(channels) {
    for (const WeightId w : graph.weights.ids()) {
      ids_.emplace(graph.weights[w].name, w);
    }
  }

  void mask(const ElementMask& mask) {
    const auto found = ids_.find(mask.tensor);
    if (found == ids_.end()) return;
    elements(found->second, "elements that the mask removes are zero").zero(mask.keep);
  }

  void add(const Sum& sum) {
    const auto dim_class = coupling_.channels(sum.site.dim_class);
    std::vector<double> removed(sum.constants.size(), 0);
    bool any = false;
    for (size_t j = 0; j < removed.size(); ++j) {
      if (channels_.keeps(dim_class[j])) continue;
      removed[j] = sum.constants[j];
      any = any || removed[j] != 0;
    }
    if (!any) return;
    sum.site.bias != kNone ? into_bias(sum.site, removed) : into_absorber(sum, removed);
  }

  const std::map<WeightId, Elements>& changed() const { return elements_; }

  std::string reason(WeightId weight) const {
    std::string text;
    for (const std::string& reason : reasons_.at(weight)) {
      text += (text.empty() ? "" : "; ") + reason;
    }
    return text;
  }

 private:
  Elements& elements(WeightId id, const std::string& reason) {
    reasons_[id].insert(reason);
    return elements_.try_emplace(id, graph_.weight(id)).first->second;
  }

  /// The current elements, with masks applied.
  const Elements& current(WeightId id) {
    const auto found = elements_.find(id);
    if (found != elements_.end()) return found->second;
    return read_.try_emplace(id, graph_.weight(id)).first->second;
  }

  std::string at(const ReductionSite& site) const {
    return label_of(graph_, graph_.node(site.node));
  }

  /// b_o += scale * sum_j c_j * sum_k W_ojk. The weight's other large axis is that of the outputs.
  void into_bias(const ReductionSite& site, const std::vector<double>& constants) {
    const Elements& weight = current(graph_.value(site.weight).weight);
    const int out = 1 - site.axis;  // of a convolution's kernel and of a matrix
    const int64_t size = weight.dims[site.axis];
    const int64_t outputs = weight.dims[out];
    const int64_t parts = static_cast<int64_t>(constants.size()) / size;  // groups of a convolution
    std::vector<double> sums(outputs, 0);
    across(weight.dims, site.axis, [&](int64_t outer, int64_t i, int64_t inner) {
      const int64_t o = site.axis == 1 ? outer : i;
      const int64_t first = o / (outputs / parts) * size;
      for (int64_t j = 0; j < size; ++j) {
        const double constant = constants[first + j];
        if (constant == 0) continue;
        sums[o] += constant * weight.get((outer * size + j) * inner + i);
      }
    });
    Elements& bias = elements(graph_.value(site.bias).weight,
                              "takes the constants of removed channels at " + at(site));
    for (int64_t o = 0; o < outputs; ++o) {
      const double sum = site.bias_scale * sums[o];
      if (sum != 0) bias.set(o, bias.get(o) + sum);
    }
  }

  /// W'_k0 = W_k0 + sum_k c_k W_k / c_k0.
  void into_absorber(const Sum& sum, const std::vector<double>& constants) {
    Elements& weight =
        elements(graph_.value(sum.site.weight).weight,
                 "channel " + std::to_string(sum.absorber) +
                     " carries the constants of removed channels at " + at(sum.site));
    const int64_t size = weight.dims[sum.site.axis];
    const double carried = sum.constants[sum.absorber];
    across(weight.dims, sum.site.axis, [&](int64_t outer, int64_t i, int64_t inner) {
      double total = 0;
      for (int64_t j = 0; j < size; ++j) {
        const double constant = constants[j];
        if (constant != 0) total += constant * weight.get((outer * size + j) * inner + i);
      }
      if (total == 0) return;
      const int64_t place = (outer * size + sum.absorber) * inner + i;
      weight.set(place, weight.get(place) + total / carried);
    });
  }

  const Graph& graph_;
  const Coupling& coupling_;
  const AxisMasks& channels_;
  std::map<std::string, WeightId> ids_;
  std::map<WeightId, Elements> elements_;
  std::map<WeightId, Elements> read_;
  std::map<WeightId, std::set<std::string>> reasons_;
};

}  // namespace

void ConstantFolding::complete(Plan& plan) const {
  plan.constants = Constants::kExact;
  Folder folder(state_->graph, state_->coupling, state_->channels);
  for (const ElementMask& mask : state_->masks) {
    if (!contains(mask.keep, 0)) continue;
    folder.mask(mask);
    plan.masks.push_back({mask.tensor, mask.dims, mask.keep});
  }
  for (const Sum& sum : state_->sums) folder.add(sum);
  TensorCuts cuts = cuts_by_tensor(plan);
  for (const auto& [id, elements] : folder.changed()) {
    const Weight& weight = state_->graph.weight(id);
    std::vector<std::string> names = {weight.name};
    for (const PlanCopy& copy : plan.copies) {
      const bool known = contains(names, copy.tensor);
      if (copy.of == weight.name && !known) names.push_back(copy.tensor);
    }
    const int64_t width = size_of(weight.dtype);
    const std::vector<std::byte> before = dense_bytes(weight);
    for (const std::string& name : names) {
      const std::vector<AxisKeep>& axes = cuts[name];
      const auto left = [&](const std::vector<std::byte>& bytes) {
        return sliced_bytes(bytes.data(), weight.dims, width, axes);
      };
      std::vector<std::byte> after = left(elements.bytes);
      if (after == left(before)) continue;
      plan.updates.push_back(
          {name, folder.reason(id), std::move(after), weight.dtype, sliced(weight.dims, axes)});
    }
  }
}

std::vector<MaskOutcome> ConstantFolding::outcomes(const Plan& plan) const {
  std::vector<MaskOutcome> result;
  TensorCuts cuts = cuts_by_tensor(plan);
  for (const ElementMask& mask : state_->masks) {
    const std::vector<std::byte> left =
        sliced_bytes(std::as_bytes(std::span(mask.keep)).data(), mask.dims, 1, cuts[mask.tensor]);
    MaskOutcome outcome{mask.tensor, std::ranges::count(mask.keep, 0), 0};
    outcome.removed = outcome.zeros - std::ranges::count(left, std::byte{0});
    result.push_back(std::move(outcome));
  }
  return result;
}

}  // namespace parsimony
