#include "parsimony/pruners/latency/table.h"

#include <algorithm>
#include <cmath>

#include "parsimony/base/ranges.h"

namespace parsimony {
namespace {

constexpr double kFlat = 0.03;

/// Where a width lies between its neighbours: index of the lower and share of the upper.
struct Interpolation {
  size_t lower = 0;
  size_t upper = 0;
  double share = 0;
};

Interpolation interpolation_of(const std::vector<int>& widths, double width) {
  const auto above =
      std::ranges::upper_bound(widths, width, [](double value, int each) { return value < each; });
  if (above == widths.begin()) return {0, 0, 0};
  const size_t lower = static_cast<size_t>(above - widths.begin()) - 1;
  if (above == widths.end()) return {lower, lower, 0};
  const double from = widths[lower];
  return {lower, lower + 1, (width - from) / (*above - from)};
}

bool ascends(const std::vector<int>& widths) {
  return !widths.empty() && widths.front() >= 1 &&
         std::ranges::adjacent_find(widths, std::greater_equal<>()) == widths.end();
}

}  // namespace

double LatencyTable::at(double width_x, double width_y) const {
  const Interpolation i = interpolation_of(x, width_x);
  const Interpolation j = interpolation_of(y, width_y);
  const auto along_y = [&](size_t row) {
    const double low = seconds[row * y.size() + j.lower];
    return low + j.share * (seconds[row * y.size() + j.upper] - low);
  };
  const double low = along_y(i.lower);
  return low + i.share * (along_y(i.upper) - low);
}

bool LatencyTable::is_sound() const {
  return ascends(x) && ascends(y) && seconds.size() == x.size() * y.size() &&
         std::ranges::all_of(seconds, [](double s) { return std::isfinite(s) && s >= 0; });
}

std::vector<int> first_widths(int size) {
  std::vector<int> widths = {1, size / 4, size / 2, size * 3 / 4, size};
  sort_unique(widths);
  if (widths.front() == 0) widths.erase(widths.begin());
  return widths;
}

int next_width(std::span<const int> widths, std::span<const double> seconds) {
  if (seconds.empty()) return 0;
  double most = kFlat * *std::ranges::max_element(seconds);
  int found = 0;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    const double change = std::abs(seconds[i + 1] - seconds[i]);
    if (widths[i + 1] - widths[i] < 2 || change <= most) continue;
    most = change;
    found = (widths[i] + widths[i + 1]) / 2;
  }
  return found;
}

}  // namespace parsimony
