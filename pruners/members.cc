#include "parsimony/pruners/members.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "parsimony/graph/attributes.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/graph/weights.h"
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
  const auto after = dims.begin() + *axis + 1;
  return std::accumulate(after, dims.end(), int64_t{1}, std::multiplies<>());
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

/// Whether these are a quantised weight's scales or zero points, one per block: no matrices.
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

/// An expert is all its matrices, and what scores it.
bool is_expected(const Graph& graph, const Group& group, const Member& member, Which which) {
  const Weight& weight = graph.weight_of(member.value);
  const bool matrix = weight.dims.size() >= 2 && !scales_others(graph, member);
  if (!has_magnitude(weight.dtype)) return false;
  if (has_experts(group) && which != Which::kParameters) {
    return matrix && member.role != Role::kWith;
  }
  if (which == Which::kProducing) return matrix && member.role == Role::kOut;
  if (which == Which::kConsuming) return matrix && member.role == Role::kIn;
  return member.role != Role::kWith && !is_running_statistic(graph, member);
}

template <typename Expected>
std::vector<const Member*> select(const Group& group, Expected expected) {
  std::vector<const Member*> result;
  std::set<std::pair<ValueId, int>> seen;
  const auto add = [&](const Member& member) {
    if (expected(member) && seen.emplace(member.value, member.axis).second)
      result.push_back(&member);
  };
  std::ranges::for_each(group.members, add);
  for (const ChannelBranch& own : group.branches) std::ranges::for_each(own.weights, add);
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
  auto found = select(group, [&](const Member& m) { return is_expected(graph, group, m, which); });
  if (which == Which::kParameters) return found;
  if (found.empty() && which == Which::kProducing) {
    found = select(group, [&](const Member& member) {
      return has_magnitude(graph.weight_of(member.value).dtype);
    });
  }
  // Tables and states differ between files of one network.
  if (std::ranges::any_of(found, &Member::of_layer)) {
    std::erase_if(found, [](const Member* member) { return !member->of_layer; });
  }
  return found;
}

namespace {

struct Layout {
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;
};

Layout layout_of(const Shape& dims, int axis) {
  Layout layout;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    int64_t& part = i < axis ? layout.outer : i == axis ? layout.size : layout.inner;
    part *= dims[i];
  }
  return layout;
}

}  // namespace

Eigen::MatrixXd slices_of(const Graph& graph, const Member& member) {
  const Weight& weight = graph.weight_of(member.value);
  const std::vector<double> values = values_of(graph, member, weight);
  const Layout layout = layout_of(weight.dims, member.axis);
  const int64_t outer = layout.outer;
  const int64_t inner =
      values.empty() ? layout.inner : layout.inner * (std::ssize(values) / weight.count());
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

namespace {

constexpr int kLanes = 16;         // independent sums that the compiler turns into vectors
constexpr int64_t kTile = 1024;    // columns summed at a time: 8 KB of the first-level cache
constexpr int64_t kShortRun = 32;  // shorter slices are summed side by side

/// Elements of one type at one distance; a distance known at compile time makes the loops vectors.
template <typename Source, Power kPower, bool kPacked>
class Elements {
 public:
  explicit Elements(const Weight& weight) : data_(weight.data), stride_(weight.stride) {}

  double at(int64_t i) const {
    const double x = Source::at(data_ + i * (kPacked ? Source::kBytes : stride_));
    return kPower == Power::kOne ? x : x * x;
  }

  /// Sums `count` neighbours from `begin` on.
  double sum(int64_t begin, int64_t count) const {
    std::array<double, kLanes> lanes{};
    int64_t i = begin;
    for (; i + kLanes <= begin + count; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        lanes[lane] += at(i + lane);
      }
    }
    double total = 0;
    for (double lane : lanes) total += lane;
    for (; i < begin + count; ++i) total += at(i);
    return total;
  }

  /// Adds `count` columns of `rows` rows that lie `pitch` elements apart. `sums` stays in the
  /// cache.
  void add_columns(int64_t begin, int64_t rows, int64_t pitch, int64_t count, double* sums) const {
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4) {
      const int64_t a = begin + row * pitch;
      const int64_t b = a + pitch;
      const int64_t c = b + pitch;
      const int64_t d = c + pitch;
      for (int64_t j = 0; j < count; ++j) {
        sums[j] += (at(a + j) + at(b + j)) + (at(c + j) + at(d + j));
      }
    }
    for (; row < rows; ++row) {
      for (int64_t j = 0; j < count; ++j) sums[j] += at(begin + row * pitch + j);
    }
  }

 private:
  const std::byte* data_;
  int64_t stride_;
};

template <typename View>
std::vector<double> reduce(const View& view, const Layout& layout, const Window& window) {
  std::vector<double> sums(window.end - window.begin);
  if (layout.outer == 1 || layout.inner >= kShortRun) {
    for (int64_t o = 0; o < layout.outer; ++o) {
      for (int64_t i = window.begin; i < window.end; ++i) {
        sums[i - window.begin] += view.sum((o * layout.size + i) * layout.inner, layout.inner);
      }
    }
    return sums;
  }
  const int64_t columns = (window.end - window.begin) * layout.inner;
  std::array<double, kTile> tile;
  for (int64_t first = 0; first < columns; first += kTile) {
    const int64_t count = std::min(kTile, columns - first);
    tile.fill(0);
    view.add_columns(window.begin * layout.inner + first, layout.outer, layout.size * layout.inner,
                     count, tile.data());
    for (int64_t j = 0; j < count; ++j) {
      sums[(first + j) / layout.inner] += tile[j];
    }
  }
  return sums;
}

template <typename Source, Power kPower>
std::vector<double> dispatch_stride(const Weight& weight, const Window& window) {
  const Layout layout = layout_of(weight.dims, window.axis);
  if (weight.stride == Source::kBytes) {
    return reduce(Elements<Source, kPower, true>(weight), layout, window);
  }
  return reduce(Elements<Source, kPower, false>(weight), layout, window);
}

/// Windows that cover the member's indices without reading much beside them.
std::vector<Window> windows_of(const Member& member) {
  std::vector<int64_t> indices = member.indices;
  std::ranges::sort(indices);
  if (indices.empty()) return {};
  const int64_t span = indices.back() + 1 - indices.front();
  if (static_cast<int64_t>(indices.size()) * 2 >= span) {
    return {{member.axis, indices.front(), indices.back() + 1}};
  }
  std::vector<Window> windows;
  for (int64_t i : indices) {
    if (windows.empty() || i > windows.back().end) windows.push_back({member.axis, i, i});
    windows.back().end = i + 1;
  }
  return windows;
}

void add_member(const Graph& graph, const Member& member, Power power, Scores& scores) {
  const Weight& weight = graph.weight_of(member.value);
  const std::optional<Quantised> integers =
      member.node == kNone ? std::nullopt : quantised(graph, graph.node(member.node), weight);
  std::vector<double> sums(member.size);
  for (const Window& window : windows_of(member)) {
    const std::vector<double> part = integers ? slice_norms(weight, window, power, *integers)
                                              : slice_norms(weight, window, power);
    std::copy(part.begin(), part.end(), sums.begin() + window.begin);
  }
  for (size_t c = 0; c < scores.size(); ++c) {
    for (int64_t i : member.of(static_cast<int>(c))) scores[c] += sums[i];
    if (std::isnan(scores[c])) reject_nan(weight);
  }
  graph.source->release(weight);
}

}  // namespace

std::vector<double> slice_norms(const Weight& weight, const Window& window, Power power) {
  return visit_magnitude(weight, [&]<typename Source>(Source) {
    return power == Power::kOne ? dispatch_stride<Source, Power::kOne>(weight, window)
                                : dispatch_stride<Source, Power::kTwo>(weight, window);
  });
}

std::vector<double> slice_norms(const Weight& weight, const Window& window, Power power,
                                const Quantised& quantised) {
  const Layout layout = layout_of(weight.dims, window.axis);
  const ReadNumber read = reader_of(weight.dtype);
  std::vector<double> sums(window.end - window.begin);
  for (int64_t o = 0; o < layout.outer; ++o) {
    const int64_t first = (o * layout.size + window.begin) * layout.inner;
    const int64_t last = (o * layout.size + window.end) * layout.inner;
    for (int64_t i = first; i < last; ++i) {
      const double stored = read(weight.data + i * weight.stride);
      double& sum = sums[(i - first) / layout.inner];
      for (int64_t c = 0; c < quantised.codes(); ++c) {
        const double x = std::fabs(quantised.number(i, c, stored));
        sum += power == Power::kOne ? x : x * x;
      }
    }
  }
  return sums;
}

Scores sum_members(const Graph& graph, const Group& group, Power power, Which which) {
  Scores scores(group.size);
  for (const Member* member : members_of(graph, group, which)) {
    add_member(graph, *member, power, scores);
  }
  return scores;
}

}  // namespace parsimony
