#include <algorithm>

#include "parsimony/masks/lines_impl.h"
#include "parsimony/masks/union_find.h"

namespace parsimony {
namespace {

constexpr std::string_view kTooLong = "longer than any channel axis";

/// How many indices the solver looks at one by one, at about 60 bytes each: 32 MB, and four times
/// what the weights take, so that memory stays within bounds whatever sizes a file names.
int64_t most_indices(const Graph& graph) {
  constexpr int64_t kFree = int64_t{1} << 19;
  int64_t bytes = 0;
  for (const Weight& weight : graph.weights) {
    if (weight.data != nullptr) bytes += weight.count() * size_of(weight.dtype);
  }
  return kFree + bytes / 16;
}

bool takes_part(const Facts& facts, const Node& node) {
  return !std::all_of(node.outputs.begin(), node.outputs.end(),
                      [&](ValueId v) { return v == kNone || facts.computed[v]; });
}

}  // namespace

Lines::Lines(const Graph& graph, const Facts& facts, std::span<const NodeId> keep_whole)
    : graph_(graph),
      facts_(facts),
      from_weights_(made_of_weights(graph)),
      most_indices_(most_indices(graph)) {
  collect_factors(keep_whole);
  unite_dims();
  place_terms_and_maps();
  pin_bodies();
  pin_ends();
  pin_letters();
  flood();
  pin_longest();
  pin_parts();
  flood();
}

int Lines::add_reason(const Reason& reason) {
  reasons_.push_back(reason);
  return static_cast<int>(reasons_.size()) - 1;
}

void Lines::collect_factors(std::span<const NodeId> keep_whole) {
  factors_.resize(graph_.nodes.size());
  letter_begin_.reserve(graph_.nodes.size());
  for (const NodeId n : graph_.nodes.ids()) {
    const Node& node = graph_.nodes[n];
    if (takes_part(facts_, node)) factors_[n] = factor(NodeView(graph_, node, facts_));
    if (std::find(keep_whole.begin(), keep_whole.end(), n) != keep_whole.end()) {
      const std::string why = node.calls > 1 ? "all calls of its function read the same integers"
                                             : "the smaller shapes did not fit here";
      factors_[n] = pin_operands(NodeView(graph_, node, facts_), why);
    }
    letter_begin_.push_back(letter_node_.next_id());
    letter_node_.resize(letter_node_.size() + factors_[n].letters.size(), n);
  }
  letter_dead_.assign(letter_node_.size(), kNone);
}

/// Dimensions in which a letter stands alone are wholly the same.
void Lines::unite_dims() {
  IdVector<ValueId, int32_t> begin;
  int32_t count = 0;
  for (const auto& shape : facts_.shapes) {
    begin.push_back(count);
    count += static_cast<int32_t>(shape ? shape->size() : 0);
  }
  UnionFind dims(count);
  std::vector<int32_t> alone;
  for (const Factors& factors : factors_) {
    alone.assign(factors.letters.size(), kNone);
    for (const Term& term : factors.terms) {
      if (term.letters.size() != 1) continue;
      const int32_t dim = begin[term.value] + term.dim;
      int32_t& first = alone[term.letters[0]];
      if (first == kNone) {
        first = dim;
      } else {
        dims.unite(first, dim);
      }
    }
  }
  std::vector<LineId> line_of_root(dims.count(), kNone);
  value_lines_.resize(graph_.values.size());
  for (const ValueId v : graph_.values.ids()) {
    if (!facts_.shapes[v]) continue;
    for (size_t d = 0; d < facts_.shapes[v]->size(); ++d) {
      const int64_t size = (*facts_.shapes[v])[d];
      LineId line;
      if (size > 1) {
        LineId& of_root = line_of_root[dims.find(begin[v] + static_cast<int32_t>(d))];
        if (of_root == kNone) of_root = size_.push_back(size);
        line = of_root;
      }
      value_lines_[v].push_back(line);
    }
  }
}

void Lines::place_terms_and_maps() {
  terms_.resize(size_.size());
  runs_.resize(size_.size());
  longest_run_.assign(size_.size(), 0);
  for (const NodeId n : factors_.ids()) {
    for (const Term& term : factors_[n].terms) {
      const LineId line = of(term.value, term.dim);
      if (line != kNone) terms_[line].push_back({n, &term});
    }
    for (const Map& map : factors_[n].maps) {
      const LineId a = of(map.a, map.a_dim);
      const LineId b = of(map.b, map.b_dim);
      for (const Run& run : map.runs) {
        if (run.count <= 0) continue;
        if (a != kNone) runs_[a].push_back({run.a_begin, run.count, b, run.b_begin});
        if (b != kNone) runs_[b].push_back({run.b_begin, run.count, a, run.a_begin});
      }
    }
  }
  for (const LineId line : all()) {
    std::stable_sort(runs_[line].begin(), runs_[line].end(),
                     [](const LineRun& x, const LineRun& y) { return x.begin < y.begin; });
    for (const LineRun& run : runs_[line]) {
      longest_run_[line] = std::max(longest_run_[line], run.count);
    }
  }
  dead_.assign(size_.size(), kNone);
  pinned_.resize(size_.size());
  pinned_count_.assign(size_.size(), 0);
}

void Lines::pin_whole(ValueId value, const Reason& reason) {
  int id = kNone;
  for (const LineId line : value_lines_[value]) {
    if (line == kNone || dead(line)) continue;
    if (id == kNone) id = add_reason(reason);
    pin_line(line, id);
  }
}

/// What an operator hands to its body, and what it takes from it; what the file holds fast.
void Lines::pin_bodies() {
  for (const Body& body : graph_.bodies) {
    const auto pin = [&](std::string_view what, ValueId id) {
      const std::string& name = graph_.value(id).name;
      pin_whole(id, {body.owner, false,
                     keep_text(std::string(what) + " \"" + name + "\" of " + body.attribute)});
    };
    for (const ValueId id : body.inputs) pin("input", id);
    for (const ValueId id : body.outputs) pin("result", id);
  }
  for (const auto& [id, reason] : graph_.whole) pin_whole(id, {kNone, false, reason});
}

void Lines::pin_ends() {
  for (const ValueId v : graph_.values.ids()) {
    const Value& value = graph_.values[v];
    if (value.is_input)
      pin_whole(v, {kNone, false, keep_text("graph input \"" + value.name + "\"")});
    if (value.is_output)
      pin_whole(v, {kNone, false, keep_text("graph output \"" + value.name + "\"")});
    if (value.captured)
      pin_whole(v, {kNone, false, keep_text("\"" + value.name + "\" is not only an operand")});
    if (facts_.computed[v]) pin_whole(v, {value.producer, false, "computed from shapes"});
    if (value.weight != kNone && is_scale(value)) pin_whole(v, {kNone, false, "scales of sizes"});
  }
}

/// Numbers that are evaluated, not looked at for their sizes.
bool Lines::is_scale(const Value& value) const {
  if (!is_floating(graph_.weight(value.weight).dtype)) return false;
  return std::any_of(value.uses.begin(), value.uses.end(), [&](const Use& use) {
    const Node& node = graph_.node(use.node);
    if (node.outputs.empty() || node.outputs[0] == kNone) return false;
    const bool evaluated = facts_.computed[node.outputs[0]];
    return evaluated && !has_trait(node, kReadsSizes);
  });
}

void Lines::pin_longest() {
  std::vector<LineId> living;
  int64_t indices = 0;
  for (const LineId line : all()) {
    if (dead(line)) continue;
    living.push_back(line);
    indices += size(line);
  }
  std::stable_sort(living.begin(), living.end(),
                   [&](LineId a, LineId b) { return size(a) > size(b); });
  for (const LineId line : living) {
    if (indices <= most_indices_) break;
    pin_line(line, add_reason({kNone, false, kTooLong}));
    indices -= size(line);
  }
}

void Lines::pin_letters() {
  for (const NodeId node : factors_.ids()) {
    for (size_t l = 0; l < factors_[node].letters.size(); ++l) {
      const Letter& letter = factors_[node].letters[l];
      if (!letter.pinned() || letter.size <= 1) continue;
      kill_letter(letter_id(node, static_cast<int>(l)),
                  add_reason({node, is_kernel(node, l), {}, &letter}));
    }
    for (const Pin& pin : factors_[node].pins) {
      const LineId line = of(pin.value, pin.dim);
      if (line == kNone || dead(line) || !is_whole(pin)) continue;
      pin_line(line, add_reason({node, false, pin.reason}));
    }
  }
}

bool Lines::is_whole(const Pin& pin) const {
  return pin.begin == 0 && pin.end == size(of(pin.value, pin.dim));
}

void Lines::pin_parts() {
  for (const NodeId node : factors_.ids()) {
    for (const Map& map : factors_[node].maps) pin_single(node, map);
    for (const Pin& pin : factors_[node].pins) {
      const LineId line = of(pin.value, pin.dim);
      if (line == kNone || dead(line)) continue;
      const int reason = add_reason({node, false, pin.reason});
      for (int64_t i = pin.begin; i < pin.end && !dead(line); ++i) pin_index(line, i, reason);
    }
  }
}

/// An index that is a whole dimension of another value may not go: one has to stay.
void Lines::pin_single(NodeId node, const Map& map) {
  const LineId a = of(map.a, map.a_dim);
  const LineId b = of(map.b, map.b_dim);
  if ((a == kNone) == (b == kNone)) return;
  const ValueId single = a == kNone ? map.a : map.b;
  int reason = kNone;
  for (const Run& run : map.runs) {
    if (run.count <= 0) continue;
    if (reason == kNone) {
      reason =
          add_reason({node, false, keep_text("is all of \"" + graph_.value(single).name + "\"")});
    }
    pin_index(a == kNone ? b : a, a == kNone ? run.b_begin : run.a_begin, reason);
  }
}

/// Does the letter stand in a weight alone?
bool Lines::is_kernel(NodeId node, size_t letter) const {
  const Factors& factors = factors_[node];
  if (!factors.letters[letter].window) return false;
  return std::any_of(factors.terms.begin(), factors.terms.end(), [&](const Term& term) {
    const auto& letters = term.letters;
    return std::find(letters.begin(), letters.end(), static_cast<int>(letter)) != letters.end() &&
           from_weights(term.value);
  });
}

void Lines::pin_line(LineId line, int reason) {
  int& dead = dead_[line];
  if (dead != kNone) return;
  dead = reason;
  line_queue_.push_back(line);
}

void Lines::pin_index(LineId line, int64_t i, int reason) {
  if (dead(line)) return;
  auto& pins = pinned_[line];
  if (pins.empty()) {
    if (size(line) > most_indices_ - noted_indices_) {
      return pin_line(line, add_reason({kNone, false, kTooLong}));
    }
    noted_indices_ += size(line);
    pins.assign(size(line), kNone);
  }
  int& pin = pins[i];
  if (pin != kNone) return;
  pin = reason;
  index_queue_.emplace_back(line, i);
  if (++pinned_count_[line] == size(line)) pin_line(line, reason);
}

void Lines::kill_letter(LetterId letter, int reason) {
  int& dead = letter_dead_[letter];
  if (dead != kNone) return;
  dead = reason;
  letter_queue_.push_back(letter);
}

void Lines::flood() {
  while (!line_queue_.empty() || !letter_queue_.empty() || !index_queue_.empty()) {
    if (!line_queue_.empty()) {
      const LineId line = line_queue_.back();
      line_queue_.pop_back();
      flood_line(line);
    } else if (!letter_queue_.empty()) {
      const LetterId letter = letter_queue_.back();
      letter_queue_.pop_back();
      flood_letter(letter);
    } else {
      const auto [line, i] = index_queue_.back();
      index_queue_.pop_back();
      flood_index(line, i);
    }
  }
}

/// A dead dimension kills its letters and whatever its indices are mapped to.
void Lines::flood_line(LineId line) {
  const int reason = dead_[line];
  for (const PlacedTerm& placed : terms(line)) {
    for (const int letter : placed.term->letters)
      kill_letter(letter_id(placed.node, letter), reason);
  }
  for (const LineRun& run : runs(line)) {
    if (run.other == kNone || dead(run.other)) continue;
    if (run.other_begin == 0 && run.count == size(run.other)) {
      pin_line(run.other, reason);
      continue;
    }
    for (int64_t i = 0; i < run.count && !dead(run.other); ++i) {
      pin_index(run.other, run.other_begin + i, reason);
    }
  }
}

void Lines::flood_index(LineId line, int64_t i) {
  if (dead(line)) return;  // its whole flood does more
  const int reason = pinned(line, i);
  const auto& all = runs(line);
  auto it = std::lower_bound(all.begin(), all.end(), i - longest_run_[line] + 1,
                             [](const LineRun& run, int64_t at) { return run.begin < at; });
  for (; it != all.end() && it->begin <= i; ++it) {
    if (it->other == kNone || i >= it->begin + it->count) continue;
    pin_index(it->other, it->other_begin + i - it->begin, reason);
  }
}

/// A product of dead letters is dead, and so is a dimension where a dead letter stands alone.
void Lines::flood_letter(LetterId letter) {
  const NodeId node = letter_node_[letter];
  const int reason = letter_dead_[letter];
  const int own = letter.number() - letter_begin_[node].number();
  for (const Term& term : factors_[node].terms) {
    if (std::find(term.letters.begin(), term.letters.end(), own) == term.letters.end()) continue;
    const bool all_dead = std::all_of(term.letters.begin(), term.letters.end(),
                                      [&](int l) { return letter_dead(letter_id(node, l)); });
    const LineId line = of(term.value, term.dim);
    if (all_dead && line != kNone) pin_line(line, reason);
  }
}

}  // namespace parsimony
