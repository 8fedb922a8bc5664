#include "parsimony/pruners/members.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/operands.h"
#include "parsimony/masks/magnitude.h"
#include "parsimony/pruners/quantised.h"

namespace parsimony {

namespace {

bool is_running_statistic(const Graph& graph, const Member& member) {
  if (member.node == kNone) return false;
  const Node& node = graph.node(member.node);
  const auto at = std::ranges::find(node.inputs, member.value);
  return is_statistic(node, static_cast<int>(at - node.inputs.begin()));
}

/// Of a quantised weight: its scales or its zero points, one per block, are no matrices.
bool scales_others(const Graph& graph, const Member& member) {
  if (member.node == kNone) return false;
  const Node& node = graph.node(member.node);
  const OpSchema& schema = schema_of(node);
  for (const IntegerOperand& integers : {schema.integers, schema.data}) {
    for (const int operand : {integers.scale, integers.zero_point}) {
      const bool there = operand >= 0 && operand < std::ssize(node.inputs);
      if (there && node.inputs[static_cast<size_t>(operand)] == member.value) return true;
    }
  }
  return false;
}

bool is_wanted(const Graph& graph, const Member& member, Which which) {
  const Weight& weight = graph.weight(graph.value(member.value).weight);
  const bool matrix = weight.dims.size() >= 2 && !scales_others(graph, member);
  if (!has_magnitude(weight.dtype)) return false;
  if (which == Which::kProducing) return matrix && member.role == Role::kOut;
  if (which == Which::kConsuming) return matrix && member.role == Role::kIn;
  return member.role != Role::kWith && !is_running_statistic(graph, member);
}

template <typename Wanted>
std::vector<const Member*> select(const Group& group, Wanted wanted) {
  std::vector<const Member*> result;
  std::set<std::pair<ValueId, int>> seen;
  for (const Member& member : group.members) {
    if (wanted(member) && seen.emplace(member.value, member.axis).second) result.push_back(&member);
  }
  return result;
}

/// Every element, in double; where several codes share one, these side by side.
std::vector<double> values_of(const Graph& graph, const Member& member, const Weight& weight) {
  const HostTensor tensor = to_host(weight);
  const std::optional<Quantised> integers =
      member.node == kNone ? std::nullopt : quantised(graph, graph.node(member.node), weight);
  const int64_t codes = integers ? integers->codes() : 1;
  std::vector<double> values(tensor.count() * codes);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const double stored = tensor.number(i);
    if (std::isnan(stored)) throw errors::nan_weight(weight.name, i);
    for (int64_t c = 0; c < codes; ++c) {
      values[i * codes + c] = integers ? integers->number(i, c, stored) : stored;
    }
  }
  graph.source->release(weight);
  return values;
}

}  // namespace

std::vector<const Member*> members_of(const Graph& graph, const Group& group, Which which) {
  const auto found = select(group, [&](const Member& m) { return is_wanted(graph, m, which); });
  if (!found.empty() || which != Which::kProducing) return found;
  return select(group, [&](const Member& member) {
    return has_magnitude(graph.weight(graph.value(member.value).weight).dtype);
  });
}

Eigen::MatrixXd slices_of(const Graph& graph, const Member& member) {
  const Weight& weight = graph.weight(graph.value(member.value).weight);
  const std::vector<double> values = values_of(graph, member, weight);
  int64_t outer = 1;
  int64_t inner = values.empty() ? 1 : std::ssize(values) / weight.count();
  for (int i = 0; i < static_cast<int>(weight.dims.size()); ++i) {
    if (i < member.axis) outer *= weight.dims[i];
    if (i > member.axis) inner *= weight.dims[i];
  }
  const auto channels = static_cast<int>(member.offsets.size()) - 1;
  size_t widest = 0;
  for (int c = 0; c < channels; ++c) widest = std::max(widest, member.of(c).size());
  Eigen::MatrixXd result =
      Eigen::MatrixXd::Zero(channels, static_cast<int64_t>(widest) * outer * inner);
  for (int c = 0; c < channels; ++c) {
    int64_t column = 0;
    for (const int64_t index : member.of(c)) {
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < inner; ++i) {
          result(c, column++) = values[(o * member.size + index) * inner + i];
        }
      }
    }
  }
  return result;
}

Eigen::MatrixXd slices_of(const Graph& graph, const Group& group, Which which) {
  Eigen::MatrixXd all(group.size, 0);
  for (const Member* member : members_of(graph, group, which)) {
    const Eigen::MatrixXd part = slices_of(graph, *member);
    all.conservativeResize(Eigen::NoChange, all.cols() + part.cols());
    all.rightCols(part.cols()) = part;
  }
  return all;
}

}  // namespace parsimony
