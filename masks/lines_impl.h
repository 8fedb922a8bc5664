// First half of the solver: the factors of all nodes, dimensions united to lines, and the flood of
// pins. Private to masks/.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/operands.h"
#include "parsimony/masks/coupling.h"

namespace parsimony {

/// A letter of one node, among those of all nodes.
using LetterId = Id<struct LetterTag>;

/// Why something is pinned.
struct Reason {
  NodeId node = kNone;
  bool structural = false;         ///< the extent of a kernel: nobody takes it for channels
  std::string_view text;           ///< of the factors, of `Lines::keep_text`, or a literal
  const Letter* letter = nullptr;  ///< whose own reason it is

  std::string words() const { return letter != nullptr ? letter->why() : std::string(text); }
};

/// A run of a map as one of its two lines sees it.
struct LineRun {
  int64_t begin = 0;
  int64_t count = 0;
  LineId other = kNone;
  int64_t other_begin = 0;
};

struct PlacedTerm {
  NodeId node = kNone;
  const Term* term = nullptr;
};

class Lines {
 public:
  Lines(const Graph& graph, const Facts& facts, std::span<const NodeId> keep_whole);

  IdRange<LineId> all() const { return size_.ids(); }
  size_t count() const { return size_.size(); }
  int64_t size(LineId line) const { return size_[line]; }
  LineId of(ValueId value, int dim) const {
    const auto& dims = value_lines_[value];
    return dim < std::ssize(dims) ? dims[dim] : kNone;
  }
  bool dead(LineId line) const { return dead_[line] != kNone; }

  const IdVector<NodeId, Factors>& factors() const { return factors_; }
  /// Does the value depend on weights alone? A transposed weight is still a weight.
  bool from_weights(ValueId value) const { return from_weights_[value]; }
  const IdVector<ValueId, Few<LineId>>& value_lines() const { return value_lines_; }
  std::span<const PlacedTerm> terms(LineId line) const { return terms_[line]; }
  const std::vector<LineRun>& runs(LineId line) const { return runs_[line]; }

  LetterId letter_id(NodeId node, int letter) const {
    return LetterId(letter_begin_[node].number() + letter);
  }
  bool letter_dead(LetterId letter) const { return letter_dead_[letter] != kNone; }
  size_t letters() const { return letter_dead_.size(); }

  /// Reason why index `i` of a living line is pinned; kNone if it is not.
  int pinned(LineId line, int64_t i) const {
    const auto& pins = pinned_[line];
    return pins.empty() ? kNone : pins[i];
  }
  const Reason& reason(int id) const { return reasons_[id]; }
  const Reason& why_dead(LineId line) const { return reason(dead_[line]); }
  int add_reason(const Reason& reason);
  /// Holds a text as long as the lines live.
  std::string_view keep_text(std::string text) { return texts_.emplace_back(std::move(text)); }

 private:
  void collect_factors(std::span<const NodeId> keep_whole);
  void unite_dims();
  void place_terms_and_maps();
  void pin_bodies();
  void pin_ends();
  bool is_scale(const Value& value) const;
  void pin_letters();
  void pin_longest();
  void pin_parts();
  bool is_whole(const Pin& pin) const;
  void pin_single(NodeId node, const Map& map);
  bool is_kernel(NodeId node, size_t letter) const;
  void pin_line(LineId line, int reason);
  void pin_index(LineId line, int64_t i, int reason);
  void kill_letter(LetterId letter, int reason);
  void pin_whole(ValueId value, const Reason& reason);
  void flood();
  void flood_line(LineId line);
  void flood_index(LineId line, int64_t i);
  void flood_letter(LetterId letter);

  const Graph& graph_;
  const Facts& facts_;
  const IdVector<ValueId, bool> from_weights_;
  IdVector<NodeId, Factors> factors_;  // per node; empty where the node is shape arithmetic
  IdVector<ValueId, Few<LineId>> value_lines_;
  IdVector<LineId, int64_t> size_;
  IdVector<LineId, Few<PlacedTerm>> terms_;
  IdVector<LineId, std::vector<LineRun>> runs_;
  IdVector<LineId, int64_t> longest_run_;
  IdVector<NodeId, LetterId> letter_begin_;
  IdVector<LetterId, NodeId> letter_node_;
  std::vector<Reason> reasons_;
  std::deque<std::string> texts_;
  IdVector<LineId, int> dead_;                 // reason
  IdVector<LetterId, int> letter_dead_;        // reason
  IdVector<LineId, std::vector<int>> pinned_;  // where only parts are pinned
  IdVector<LineId, int64_t> pinned_count_;
  const int64_t most_indices_;
  int64_t noted_indices_ = 0;  // of lines that `pinned_` has
  std::vector<LineId> line_queue_;
  std::vector<LetterId> letter_queue_;
  std::vector<std::pair<LineId, int64_t>> index_queue_;
};

}  // namespace parsimony
