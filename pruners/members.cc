#include "parsimony/pruners/members.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "parsimony/graph/attributes.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/graph/operators/operands.h"
#include "parsimony/masks/magnitude.h"

namespace parsimony {

namespace {

const Weight* constant_input(const Graph& graph, const Node& node, int input) {
  if (input < 0 || input >= std::ssize(node.inputs)) return nullptr;
  const ValueId value = node.inputs[static_cast<size_t>(input)];
  const WeightId id = value == kNone ? kNone : graph.value(value).weight;
  return id == kNone ? nullptr : &graph.weight(id);
}

std::vector<double> numbers(const Weight& weight) {
  const HostTensor tensor = to_host(weight);
  std::vector<double> result;
  for (int64_t i = 0; i < tensor.count(); ++i) {
    if (!std::isfinite(tensor.number(i))) throw errors::nan_weight(weight.name, i);
    result.push_back(tensor.number(i));
  }
  return result;
}

/// Elements per step along the axis of the scales; 0 if there is no such axis.
int64_t inner_size(const Node& node, const IntegerOperand& integers, const Shape& dims) {
  const int vector = integers.scale >= 0 ? integers.scale : integers.zero_point;
  const auto axis = axis_along(node, integers.operand, vector, dims.size());
  if (!axis) return 0;
  const auto behind = dims.begin() + *axis + 1;
  return std::accumulate(behind, dims.end(), int64_t{1}, std::multiplies<>());
}

/// The numbers of a constant; `absent` where there is no such operand.
std::optional<std::vector<double>> numbers_of(const Graph& graph, const Node& node, int input,
                                              double absent) {
  const bool there = input >= 0 && input < std::ssize(node.inputs) &&
                     node.inputs[static_cast<size_t>(input)] != kNone;
  if (!there) return std::vector<double>{absent};
  const Weight* found = constant_input(graph, node, input);
  if (found == nullptr || found->count() < 1) return std::nullopt;
  return numbers(*found);
}

/// The axis along which the scales have a dimension that others share, and how many do; its size
/// and block stay 1 if there is none.
bool set_blocks(const Shape& dims, const Shape& scales, Quantised& result) {
  if (dims.size() != scales.size()) return false;
  int64_t inner = 1;
  for (size_t d = dims.size(); d-- > 0; inner *= dims[d]) {
    if (dims[d] == scales[d] || scales[d] < 1) continue;
    if (result.size > 1) return false;
    result.inner = inner;
    result.size = dims[d];
    result.block = (dims[d] + scales[d] - 1) / scales[d];
  }
  return true;
}

/// Zero points that are packed as the codes are: row by row, in as many bytes as a row needs.
std::vector<double> unpacked(const std::vector<double>& bytes, int bits, int64_t rows,
                             int64_t columns) {
  const int64_t width = std::ssize(bytes) / rows;
  const int64_t each = 8 / bits;
  std::vector<double> result;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns && c / each < width; ++c) {
      const auto byte = static_cast<unsigned>(bytes[r * width + c / each]);
      result.push_back(byte >> (c % each * bits) & ((1U << bits) - 1));
    }
  }
  return result;
}

/// Codes of a few bits, with a scale for as many neighbours as there are bytes for each.
std::optional<Quantised> packed(const Graph& graph, const Node& reader,
                                const IntegerOperand& integers, const Weight& weight) {
  const auto bits = static_cast<int>(attr(reader, integers.bits, 4));
  if (bits != 2 && bits != 4 && bits != 8) return std::nullopt;
  const Weight* scales = constant_input(graph, reader, integers.scale);
  auto zero = numbers_of(graph, reader, integers.zero_point, std::ldexp(1, bits - 1));
  const bool fits = scales != nullptr && scales->count() > 0 && weight.count() > 0 &&
                    weight.count() % scales->count() == 0 && weight.dims.size() > 1;
  if (!fits || !zero) return std::nullopt;
  Quantised result{weight.count() / scales->count(), numbers(*scales), std::move(*zero)};
  result.bits = bits;
  const int64_t columns = scales->dims.size() > 1 ? scales->dims.back() : weight.dims[1];
  const size_t count = result.scale.size();
  const Weight* points = constant_input(graph, reader, integers.zero_point);
  if (points == nullptr) {
    result.zero_point.resize(count, result.zero_point.front());
  } else if (!is_floating(points->dtype)) {
    result.zero_point =
        unpacked(result.zero_point, result.bits, scales->count() / columns, columns);
  }
  return result.zero_point.size() == count ? std::optional(result) : std::nullopt;
}

}  // namespace

std::optional<Quantised> quantised(const Graph& graph, const Node& reader, const Weight& weight) {
  if (is_floating(weight.dtype) && !is_small_float(weight.dtype)) return std::nullopt;
  const OpSchema& schema = schema_of(reader);
  const bool second = constant_input(graph, reader, schema.data.operand) == &weight;
  const IntegerOperand& integers = second ? schema.data : schema.integers;
  if (constant_input(graph, reader, integers.operand) != &weight) return std::nullopt;
  if (!integers.bits.empty()) return packed(graph, reader, integers, weight);
  auto scale = numbers_of(graph, reader, integers.scale, 1);
  auto zero = numbers_of(graph, reader, integers.zero_point, 0);
  if (!scale || !zero) return std::nullopt;
  const size_t count = std::max(scale->size(), zero->size());
  for (auto* list : {&*scale, &*zero}) {
    if (list->size() == 1) list->resize(count, list->front());
    if (list->size() != count) return std::nullopt;
  }
  Quantised result{1, std::move(*scale), std::move(*zero)};
  if (count == 1) return result;
  const Weight* scales = constant_input(graph, reader, integers.scale);
  if (scales != nullptr && scales->dims.size() > 1) {
    return set_blocks(weight.dims, scales->dims, result) ? std::optional(result) : std::nullopt;
  }
  result.inner = inner_size(reader, integers, weight.dims);
  if (result.inner < 1) return std::nullopt;
  return result;
}

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
