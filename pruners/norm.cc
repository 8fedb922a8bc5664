#include "parsimony/pruners/norm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "parsimony/graph/elements.h"
#include "parsimony/masks/magnitude.h"

namespace parsimony {

namespace {

constexpr int kLanes = 16;         // independent sums that the compiler turns into vectors
constexpr int64_t kTile = 1024;    // columns summed at a time: 8 KB of the first-level cache
constexpr int64_t kShortRun = 32;  // shorter slices are summed side by side

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

/// Elements of one type at one distance; a distance known at compile time makes the loops vectors.
template <typename Source, Power kPower, bool kPacked>
class Elements {
 public:
  explicit Elements(const Weight& weight) : data_(weight.data), stride_(weight.stride) {}

  double at(int64_t i) const {
    const double x = Source::at(data_ + i * (kPacked ? Source::kBytes : stride_));
    return kPower == Power::kOne ? x : x * x;
  }

  /// Of `count` neighbours from `begin` on.
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
  const Weight& weight = graph.weight(graph.value(member.value).weight);
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
