// A coupling as text, as fixtures and the solver's unit tests state it; tests/README.md describes
// it.
#pragma once

#include <span>
#include <sstream>
#include <string>

#include "parsimony/masks/coupling.h"

namespace parsimony::test {

/// "0-3+8" for 0, 1, 2, 3, 8.
inline std::string ranges_of(std::span<const int64_t> indices) {
  std::ostringstream text;
  for (size_t i = 0; i < indices.size();) {
    size_t end = i + 1;
    while (end < indices.size() && indices[end] == indices[end - 1] + 1) ++end;
    if (i > 0) text << '+';
    text << indices[i];
    if (end - i > 1) text << '-' << indices[end - 1];
    i = end;
  }
  return text.str();
}

/// Does channel i own index i and no other?
inline bool is_one_to_one(const Group& group, const Member& member) {
  if (member.size != group.size) return false;
  for (int c = 0; c < group.size; ++c) {
    if (member.of(c).size() != 1 || member.of(c)[0] != c) return false;
  }
  return true;
}

/// "W[0]"
inline std::string dimension(const Graph& graph, ValueId value, int dim) {
  return graph.value(value).name + '[' + std::to_string(dim) + ']';
}

inline void print(const Graph& graph, const Group& group, std::ostream& out) {
  out << group.id << ": " << group.size << " channels";
  if (group.granularity != "channel") out << " by " << group.granularity;
  if (group.mixes) out << ", mixed at " << group.mixes_at;
  if (!group.outcomes_of.empty()) out << ", outcomes for " << group.outcomes_of;
  out << '\n';
  for (const Member& member : group.members) {
    out << "  " << dimension(graph, member.value, member.axis) << ' ' << name_of(member.role);
    if (!is_one_to_one(group, member)) {
      out << ':';
      for (int c = 0; c < group.size; ++c) out << ' ' << ranges_of(member.of(c));
    }
    out << '\n';
  }
}

inline void print(const Graph& graph, const Obstacle& obstacle, std::ostream& out) {
  const auto size = graph.weight_of(obstacle.value).dims[static_cast<size_t>(obstacle.dim)];
  out << "  " << dimension(graph, obstacle.value, obstacle.dim);
  if (obstacle.pinned != size) out << ", " << obstacle.pinned << " of " << size;
  out << ": " << obstacle.reason;
  if (obstacle.node != kNone) out << " at " << label_of(graph, graph.node(obstacle.node));
  if (obstacle.structural) out << ", structural";
  out << '\n';
}

inline std::string text_of(const Graph& graph, const Coupling& coupling) {
  std::ostringstream out;
  for (const Group& group : coupling.groups) print(graph, group, out);
  if (coupling.groups.empty()) out << "no groups\n";
  if (!coupling.obstacles.empty()) out << "not prunable:\n";
  for (const Obstacle& obstacle : coupling.obstacles) print(graph, obstacle, out);
  return out.str();
}

}  // namespace parsimony::test
