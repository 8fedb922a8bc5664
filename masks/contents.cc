#include "parsimony/masks/contents.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace parsimony {
namespace {

constexpr std::string_view kRecurrent[] = {"GRU", "Gru", "LSTM", "Lstm", "RNN", "Rnn"};

/// What an output's slice sees of one operand.
struct Seen {
  size_t position = 0;  // among the node's inputs
  bool has = false;     // the operand has the axis; else all of it is seen
  std::vector<Content> at;
  std::vector<bool> absent;  // nothing of the operand comes here; empty: it comes everywhere
};

Content meet(const std::vector<Content>& slices) {
  return slices.empty() ? Content::kZero : *std::min_element(slices.begin(), slices.end());
}

class Tracer {
 public:
  Tracer(const Graph& graph, const Facts& facts, const std::vector<ElementMask>& masks)
      : graph_(graph), facts_(facts), contents_(graph.values.size()) {
    for (const ElementMask& mask : masks) masks_.emplace(mask.tensor, &mask);
    whole_.resize(graph.values.size(), Content::kVaries);
  }

  Contents run() {
    for (const ValueId v : graph_.values.ids()) {
      const Value& value = graph_.values[v];
      if (value.weight != kNone) {
        weigh(v);
      } else if (facts_.computed[v]) {
        fill(v, Content::kConstant);
      }
    }
    for (const NodeId n : graph_.nodes.ids()) push(n);
    return std::move(contents_);
  }

 private:
  const Shape* shape(ValueId value) const {
    const auto& known = facts_.shapes[value];
    return known ? &*known : nullptr;
  }

  void fill(ValueId value, Content content) {
    whole_[value] = content;
    auto& dims = contents_[value];
    dims.clear();
    if (const Shape* sizes = shape(value)) {
      for (const int64_t size : *sizes) dims.emplace_back(static_cast<size_t>(size), content);
    }
  }

  /// A weight's slices are zero or constant.
  void weigh(ValueId id) {
    const Weight& weight = graph_.weight(graph_.value(id).weight);
    const auto found = masks_.find(weight.name);
    const ElementMask* mask = found == masks_.end() ? nullptr : found->second;
    auto& dims = contents_[id];
    dims.clear();
    for (const int64_t size : weight.dims) {
      dims.emplace_back(static_cast<size_t>(size), Content::kZero);
    }
    whole_[id] = Content::kZero;
    const int64_t count = weight.count();
    const int64_t bytes = size_of(weight.dtype);
    std::vector<size_t> index(weight.dims.size(), 0);
    for (int64_t i = 0; i < count; ++i) {
      const bool kept = mask == nullptr || mask->keep[static_cast<size_t>(i)] != 0;
      if (kept && !is_zero(weight.data + i * weight.stride, bytes, is_floating(weight.dtype))) {
        whole_[id] = Content::kConstant;
        for (size_t d = 0; d < index.size(); ++d) dims[d][index[d]] = Content::kConstant;
      }
      for (size_t d = index.size(); d-- > 0;) {
        if (++index[d] < static_cast<size_t>(weight.dims[d])) break;
        index[d] = 0;
      }
    }
  }

  static bool is_zero(const std::byte* element, int64_t bytes, bool floating) {
    for (int64_t b = 0; b + 1 < bytes; ++b) {
      if (element[b] != std::byte{0}) return false;
    }
    const std::byte top = bytes > 0 ? element[bytes - 1] : std::byte{1};
    return (floating ? top & std::byte{0x7f} : top) == std::byte{0};
  }

  void push(NodeId id) {
    const Node& node = graph_.node(id);
    const Rule* rule = find_rule(node.domain, node.op);
    const NodeView view(graph_, node, facts_);
    const bool known = rule != nullptr && !node.has_subgraph;
    const Factors factors = known ? factor(view) : Factors();
    const bool computes_from_pieces = !factors.maps.empty() && is_product(effect_of(view));
    for (const ValueId output : node.outputs) {
      if (output == kNone || facts_.computed[output]) continue;
      fill(output, Content::kVaries);
      if (!known || computes_from_pieces) continue;
      auto& dims = contents_[output];
      Content& whole = whole_[output];
      for (size_t d = 0; d < dims.size(); ++d) {
        std::vector<Seen> seen;
        for (size_t i = 0; i < node.inputs.size(); ++i) {
          if (node.inputs[i] == kNone) continue;
          seen.push_back(see(factors, node.inputs[i], output, static_cast<int>(d)));
          seen.back().position = i;
        }
        for (size_t j = 0; j < dims[d].size(); ++j) dims[d][j] = combine(view, *rule, seen, j);
        whole = std::max(whole, meet(dims[d]));
      }
    }
  }

  Seen see(const Factors& factors, ValueId operand, ValueId output, int dim) const {
    const auto size = contents_[output][static_cast<size_t>(dim)].size();
    Seen seen;
    const bool pieces = std::any_of(factors.maps.begin(), factors.maps.end(), [&](const Map& map) {
      return map.b == output && map.b_dim == dim;
    });
    if (pieces) {
      see_pieces(factors, operand, output, dim, size, seen);
    } else {
      see_letters(factors, operand, output, dim, size, seen);
    }
    if (!seen.has) seen.at.assign(size, whole_[operand]);
    return seen;
  }

  void see_pieces(const Factors& factors, ValueId operand, ValueId output, int dim, size_t size,
                  Seen& seen) const {
    for (const Map& map : factors.maps) {
      if (map.b != output || map.b_dim != dim || map.a != operand) continue;
      const auto& from = contents_[operand];
      if (!seen.has) {
        seen.at.assign(size, Content::kVaries);
        seen.absent.assign(size, true);
      }
      seen.has = true;
      for (const Run& run : map.runs) {
        for (int64_t i = 0; i < run.count; ++i) {
          const auto b = static_cast<size_t>(run.b_begin + i);
          const auto a = static_cast<size_t>(run.a_begin + i);
          seen.at[b] = from.empty() ? Content::kVaries : from[static_cast<size_t>(map.a_dim)][a];
          seen.absent[b] = false;
        }
      }
    }
  }

  /// The coordinate of an index in the letters that both dimensions have; the others are summed
  /// over, or the same everywhere.
  static int64_t coordinate(const Factors& factors, const Term& term, const Term& other,
                            int64_t index) {
    int64_t key = 0;
    int64_t scale = 1;
    for (size_t k = term.letters.size(); k-- > 0;) {
      const Letter& letter = factors.letters[static_cast<size_t>(term.letters[k])];
      if (is_shared(factors, term.letters[k], other)) {
        key += index % letter.size * scale;
        scale *= letter.size;
      }
      index /= letter.size;
    }
    return key;
  }

  static bool is_shared(const Factors& factors, int l, const Term& other) {
    const Letter& letter = factors.letters[static_cast<size_t>(l)];
    return letter.size > 1 && !letter.mixes && !letter.pinned() &&
           std::find(other.letters.begin(), other.letters.end(), l) != other.letters.end();
  }

  void see_letters(const Factors& factors, ValueId operand, ValueId output, int dim, size_t size,
                   Seen& seen) const {
    const auto& from = contents_[operand];
    for (const Term& mine : factors.terms) {
      if (mine.value != output || mine.dim != dim) continue;
      for (const Term& theirs : factors.terms) {
        if (theirs.value != operand || from.empty()) continue;
        const bool shares = std::any_of(theirs.letters.begin(), theirs.letters.end(),
                                        [&](int l) { return is_shared(factors, l, mine); }) &&
                            same_order(factors, mine, theirs);
        if (!shares) continue;
        std::unordered_map<int64_t, Content> by_key;
        const auto& slices = from[static_cast<size_t>(theirs.dim)];
        for (size_t i = 0; i < slices.size(); ++i) {
          const int64_t key = coordinate(factors, theirs, mine, static_cast<int64_t>(i));
          const auto [it, fresh] = by_key.try_emplace(key, slices[i]);
          if (!fresh) it->second = std::min(it->second, slices[i]);
        }
        if (!seen.has) seen.at.assign(size, Content::kVaries);
        seen.has = true;
        for (size_t j = 0; j < size; ++j) {
          const int64_t key = coordinate(factors, mine, theirs, static_cast<int64_t>(j));
          const auto it = by_key.find(key);
          if (it != by_key.end()) seen.at[j] = std::max(seen.at[j], it->second);
        }
      }
    }
  }

  /// Coordinates are only comparable if the shared letters stand in the same order.
  static bool same_order(const Factors& factors, const Term& a, const Term& b) {
    const auto shared = [&](const Term& of, const Term& with) {
      std::vector<int> letters;
      for (const int l : of.letters) {
        if (is_shared(factors, l, with)) letters.push_back(l);
      }
      return letters;
    };
    return shared(a, b) == shared(b, a);
  }

  static bool comes(const Seen& seen, size_t j) { return seen.absent.empty() || !seen.absent[j]; }

  static Content combine(const NodeView& view, const Rule& rule, const std::vector<Seen>& seen,
                         size_t j) {
    const std::string& op = view.node().op;
    if (std::find(std::begin(kRecurrent), std::end(kRecurrent), op) != std::end(kRecurrent)) {
      return Content::kVaries;  // a state runs through time
    }
    Content all = Content::kZero;
    bool any = false;
    for (const Seen& operand : seen) {
      if (!comes(operand, j)) continue;
      any = any || operand.has;
      all = std::min(all, operand.at[j]);
    }
    if (!any && !seen.empty() && !seen[0].absent.empty()) {
      return op == "Pad" ? padding(view, all) : Content::kVaries;
    }
    const Content constant = all >= Content::kConstant ? Content::kConstant : Content::kVaries;
    if (op == "BatchNormalization") return normalised(view, seen, j, constant);
    switch (effect_of(view)) {
      case Effect::kZero:
        return sum(op == "Clip" || rule.line.empty(), seen, j, constant);
      case Effect::kProduct:
        return product(seen, j, constant);
      case Effect::kQuotient: {
        const bool zero = seen[0].position == 0 && seen[0].at[j] == Content::kZero;
        const bool plain = op == "PRelu" || op == "Dropout" || !has_zero_after_first(seen, j);
        return zero && plain && view.inputs() < 3 ? Content::kZero : constant;
      }
      case Effect::kZeros:
        return Content::kZero;
      case Effect::kShifted:
      case Effect::kConstant:
      case Effect::kUndefined:
        return constant;
    }
    return Content::kVaries;
  }

  static bool has_zero_after_first(const std::vector<Seen>& seen, size_t j) {
    return std::any_of(seen.begin() + 1, seen.end(),
                       [&](const Seen& s) { return s.at[j] == Content::kZero; });
  }

  static Content padding(const NodeView& view, Content steering) {
    if (view.attr("mode", "constant") != "constant") return Content::kVaries;
    if (effect_of(view) == Effect::kZero) return Content::kZero;
    return steering >= Content::kConstant ? Content::kConstant : Content::kVaries;
  }

  /// Zero if all is; where elements only move, the operands that lack the axis steer.
  static Content sum(bool moves, const std::vector<Seen>& seen, size_t j, Content constant) {
    bool zero = true;
    bool any = false;
    for (const Seen& operand : seen) {
      if (!comes(operand, j) || (moves && !operand.has)) continue;
      any = true;
      zero = zero && operand.at[j] == Content::kZero;
    }
    return any && zero ? Content::kZero : constant;
  }

  /// A zero among the first two operands stops the other; what is left is the rest: a bias.
  static Content product(const std::vector<Seen>& seen, size_t j, Content constant) {
    bool stopped = false;
    Content rest = Content::kZero;
    for (const Seen& operand : seen) {
      if (operand.position < 2) {
        stopped = stopped || operand.at[j] == Content::kZero;
      } else {
        rest = std::min(rest, operand.at[j]);
      }
    }
    return stopped ? rest : constant;
  }

  static Content normalised(const NodeView& view, const std::vector<Seen>& seen, size_t j,
                            Content constant) {
    if (view.attr("training_mode", 0) != 0 || seen.size() < 5) return constant;
    const auto zero = [&](size_t i) { return seen[i].at[j] == Content::kZero; };
    if (zero(1)) return seen[2].at[j];
    const bool nothing = zero(0) && zero(2) && zero(3);
    return nothing ? Content::kZero : constant;
  }

  const Graph& graph_;
  const Facts& facts_;
  std::unordered_map<std::string, const ElementMask*> masks_;
  Contents contents_;
  IdVector<ValueId, Content> whole_;
};

}  // namespace

Contents trace_contents(const Graph& graph, const Facts& facts,
                        const std::vector<ElementMask>& masks) {
  return Tracer(graph, facts, masks).run();
}

}  // namespace parsimony
