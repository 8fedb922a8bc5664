#include <algorithm>
#include <string>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/speedup/reduction_sites_impl.h"

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
    const Shape& dims = graph_.weight(graph_.value(value).weight).dims;
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
    const Shape& dims = graph_.weight(graph_.value(weight.value).weight).dims;
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

}  // namespace parsimony
