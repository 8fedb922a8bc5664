#include <algorithm>
#include <string>

#include "parsimony/speedup/exits_impl.h"

namespace parsimony {
namespace {

class Finder {
 public:
  Finder(const Graph& graph, const Facts& facts, const Coupling& coupling)
      : graph_(graph), facts_(facts), coupling_(coupling), readers_(graph.weights.size(), 0) {
    for (const Value& value : graph.values) {
      if (value.weight == kNone) continue;
      auto& readers = readers_[value.weight];
      readers += static_cast<int>(value.uses.size()) + (value.is_output || value.captured ? 1 : 0);
    }
  }

  std::vector<Exit> run() {
    for (const NodeId n : graph_.nodes.ids()) visit(n);
    return std::move(exits_);
  }

 private:
  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    const Rule* rule = find_rule(node.domain, node.op);
    if (rule == nullptr || node.outputs.empty() || all_computed(node)) return;
    const NodeView view(graph_, node, facts_);
    const Factors factors = factor(view);
    for (size_t l = 0; l < factors.letters.size(); ++l) {
      const Letter& letter = factors.letters[l];
      if (letter.size <= 1 || letter.pinned()) continue;
      std::vector<Term> terms;
      for (const Term& term : factors.terms) {
        const auto& letters = term.letters;
        if (std::find(letters.begin(), letters.end(), static_cast<int>(l)) != letters.end()) {
          terms.push_back(term);
        }
      }
      if (letter.contracted) {
        sum(view, id, terms, is_product(effect_of(view)));
      } else {
        recurrence(node, id, terms);
      }
    }
  }

  bool all_computed(const Node& node) const {
    return std::all_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId v) { return v == kNone || facts_.computed[v]; });
  }

  LineId channel_line(const Term& term) const {
    const LineId line = coupling_.line_of(term.value, term.dim);
    if (line == kNone) return kNone;
    const auto channels = coupling_.channels(line);
    const bool any = std::any_of(channels.begin(), channels.end(),
                                 [](const ChannelId& c) { return c.group != kNone; });
    return any ? line : kNone;
  }

  void sum(const NodeView& view, NodeId id, const std::vector<Term>& terms, bool product) {
    for (const Term& term : terms) {
      if (graph_.value(term.value).weight != kNone) continue;
      const LineId line = channel_line(term);
      if (line == kNone) continue;
      Exit exit{id, term.value, term.dim, line, {}};
      for (const Term& other : terms) {
        if (&other == &term || !product) continue;
        if (coupling_.line_of(other.value, other.dim) == line) {
          exit.partners.emplace_back(other.value, other.dim);
        }
        if (terms.size() == 2) describe(view, other, exit);
      }
      exits_.push_back(std::move(exit));
    }
  }

  /// A recurrence sums over the channels that it puts out.
  void recurrence(const Node& node, NodeId id, const std::vector<Term>& terms) {
    for (const Term& term : terms) {
      const auto twice = std::count_if(terms.begin(), terms.end(),
                                       [&](const Term& t) { return t.value == term.value; });
      if (twice < 2 || graph_.value(term.value).weight == kNone) continue;
      for (const Term& out : terms) {
        if (std::find(node.outputs.begin(), node.outputs.end(), out.value) == node.outputs.end()) {
          continue;
        }
        if (channel_line(out) != kNone) {
          exits_.push_back({id, out.value, out.dim, channel_line(out), {}});
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
  ValueId bias_of(const NodeView& view, int64_t count) const {
    const ValueId value = view.input(2);
    if (value == kNone || !is_own(value)) return kNone;
    const Shape& dims = graph_.weight(graph_.value(value).weight).dims;
    const bool fits = !dims.empty() && dims.back() == count && element_count(dims) == count;
    return fits ? value : kNone;
  }

  static bool is_padded(const NodeView& view) {
    const std::string automatic = view.attr("auto_pad", "NOTSET");
    if (automatic != "NOTSET" && automatic != "VALID") return true;
    const auto pads = view.attrs("pads");
    return std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; });
  }

  static double number(const NodeView& view, std::string_view name, double fallback) {
    const Attribute* found = view.find(name);
    const auto* real = found == nullptr ? nullptr : std::get_if<double>(found);
    return real == nullptr ? fallback : *real;
  }

  void describe(const NodeView& view, const Term& weight, Exit& exit) const {
    const std::string& op = view.node().op;
    if (!view.node().domain.empty() || !is_own(weight.value)) return;
    const Shape& dims = graph_.weight(graph_.value(weight.value).weight).dims;
    const bool second = view.input(1) == weight.value;
    exit.axis = weight.dim;
    if (op == "Conv" && second && view.input(0) == exit.value) {
      exit.weight = weight.value;
      exit.can_carry = view.attr("group", 1) == 1;
      if (!is_padded(view)) exit.bias = bias_of(view, dims[0]);
    } else if (op == "ConvTranspose" && second && view.attr("group", 1) == 1) {
      exit.weight = weight.value;
      exit.can_carry = true;
    } else if (op == "Gemm") {
      exit.weight = weight.value;
      exit.can_carry = true;
      const double beta = number(view, "beta", 1);
      exit.bias_scale = number(view, "alpha", 1) / beta;
      if (second && beta != 0) exit.bias = bias_of(view, dims[static_cast<size_t>(1 - weight.dim)]);
    } else if (op == "MatMul") {
      exit.weight = weight.value;
      exit.can_carry = true;
    }
  }

  const Graph& graph_;
  const Facts& facts_;
  const Coupling& coupling_;
  IdVector<WeightId, int> readers_;
  std::vector<Exit> exits_;
};

}  // namespace

std::vector<Exit> find_exits(const Graph& graph, const Facts& facts, const Coupling& coupling) {
  return Finder(graph, facts, coupling).run();
}

}  // namespace parsimony
