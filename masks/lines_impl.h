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
  int other = 0;
  int64_t other_begin = 0;
};

struct PlacedTerm {
  NodeId node = kNone;
  const Term* term = nullptr;
};

class Lines {
 public:
  Lines(const Graph& graph, const Facts& facts, std::span<const NodeId> keep_whole);

  int count() const { return static_cast<int>(size_.size()); }
  int64_t size(int line) const { return size_[static_cast<size_t>(line)]; }
  int of(ValueId value, int dim) const {
    const auto& dims = value_lines_[static_cast<size_t>(value)];
    return static_cast<size_t>(dim) < dims.size() ? dims[static_cast<size_t>(dim)] : kNone;
  }
  bool dead(int line) const { return dead_[static_cast<size_t>(line)] != kNone; }

  const std::vector<Factors>& factors() const { return factors_; }
  /// Does the value depend on weights alone? A transposed weight is still a weight.
  bool from_weights(ValueId value) const { return from_weights_[static_cast<size_t>(value)]; }
  const std::vector<FewInts>& value_lines() const { return value_lines_; }
  std::span<const PlacedTerm> terms(int line) const { return terms_[static_cast<size_t>(line)]; }
  const std::vector<LineRun>& runs(int line) const { return runs_[static_cast<size_t>(line)]; }

  int letter_id(NodeId node, int letter) const {
    return letter_begin_[static_cast<size_t>(node)] + letter;
  }
  bool letter_dead(int letter) const { return letter_dead_[static_cast<size_t>(letter)] != kNone; }
  int letters() const { return static_cast<int>(letter_dead_.size()); }

  /// Reason why index `i` of a living line is pinned; kNone if it is not.
  int pinned(int line, int64_t i) const {
    const auto& pins = pinned_[static_cast<size_t>(line)];
    return pins.empty() ? kNone : pins[static_cast<size_t>(i)];
  }
  const Reason& reason(int id) const { return reasons_[static_cast<size_t>(id)]; }
  const Reason& why_dead(int line) const { return reason(dead_[static_cast<size_t>(line)]); }
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
  bool is_kernel(size_t node, size_t letter) const;
  void pin_line(int line, int reason);
  void pin_index(int line, int64_t i, int reason);
  void kill_letter(int letter, int reason);
  void pin_whole(ValueId value, const Reason& reason);
  void flood();
  void flood_line(int line);
  void flood_index(int line, int64_t i);
  void flood_letter(int letter);

  const Graph& graph_;
  const Facts& facts_;
  const std::vector<bool> from_weights_;
  std::vector<Factors> factors_;  // per node; empty where the node is shape arithmetic
  std::vector<FewInts> value_lines_;
  std::vector<int64_t> size_;
  std::vector<absl::InlinedVector<PlacedTerm, 4>> terms_;
  std::vector<std::vector<LineRun>> runs_;
  std::vector<int64_t> longest_run_;
  std::vector<int> letter_begin_;
  std::vector<NodeId> letter_node_;
  std::vector<Reason> reasons_;
  std::deque<std::string> texts_;
  std::vector<int> dead_;                 // per line: reason
  std::vector<int> letter_dead_;          // per letter: reason
  std::vector<std::vector<int>> pinned_;  // per line, where only parts are pinned
  std::vector<int64_t> pinned_count_;
  const int64_t most_indices_;
  int64_t noted_indices_ = 0;  // of lines that `pinned_` has
  std::vector<int> line_queue_;
  std::vector<int> letter_queue_;
  std::vector<std::pair<int, int64_t>> index_queue_;
};

}  // namespace parsimony
