#include <algorithm>
#include <functional>
#include <vector>

#include "parsimony/api/output_metrics.h"
#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

using Row = std::vector<double>;

struct Box {
  double left;
  double top;
  double right;
  double bottom;
  double confidence;
  int64_t of_class;

  double area() const { return std::max(0.0, right - left) * std::max(0.0, bottom - top); }
};

double overlap(const Box& a, const Box& b) {
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (width <= 0 || height <= 0) return 0;
  const double both = width * height;
  return both / (a.area() + b.area() - both);
}

/// The numbers of one sample, in either order.
struct BoxRows {
  explicit BoxRows(const Shape& dims)
      : in_columns(dims.size() == 2 && dims[0] < dims[1]),
        boxes(dims.size() == 2 ? dims[in_columns ? 1 : 0] : 0),
        width(dims.size() == 2 ? dims[in_columns ? 0 : 1] : 0) {}

  double number(const Row& row, int64_t box, int64_t i) const {
    return row[static_cast<size_t>(in_columns ? i * boxes + box : box * width + i)];
  }
  int64_t first_class() const { return in_columns ? 4 : 5; }

  bool in_columns;
  int64_t boxes;
  int64_t width;
};

/// The boxes of one sample, the most confident first, without those that lie over one of their
/// class.
std::vector<Box> boxes_of(const BoxRows& rows, const Row& row) {
  constexpr double kLeastConfidence = 0.3;
  constexpr double kSameBox = 0.5;
  std::vector<Box> found;
  for (int64_t b = 0; b < rows.boxes; ++b) {
    Box box{0, 0, 0, 0, -1, 0};
    for (int64_t c = rows.first_class(); c < rows.width; ++c) {
      if (rows.number(row, b, c) <= box.confidence) continue;
      box.confidence = rows.number(row, b, c);
      box.of_class = c;
    }
    if (!rows.in_columns) box.confidence *= rows.number(row, b, 4);
    if (!(box.confidence >= kLeastConfidence)) continue;
    const double half_width = rows.number(row, b, 2) / 2;
    const double half_height = rows.number(row, b, 3) / 2;
    box.left = rows.number(row, b, 0) - half_width;
    box.right = rows.number(row, b, 0) + half_width;
    box.top = rows.number(row, b, 1) - half_height;
    box.bottom = rows.number(row, b, 1) + half_height;
    found.push_back(box);
  }
  std::ranges::stable_sort(found, std::greater<>(), &Box::confidence);
  std::vector<Box> kept;
  for (const Box& box : found) {
    const bool covered = std::ranges::any_of(kept, [&](const Box& other) {
      return other.of_class == box.of_class && overlap(other, box) > kSameBox;
    });
    if (!covered) kept.push_back(box);
  }
  return kept;
}

}  // namespace

double boxes_found_again(const Answers& answers) {
  constexpr double kFoundAgain = 0.5;
  const BoxRows rows(answers.dims);
  if (rows.width <= rows.first_class()) {
    throw ModelError("--metric boxes: a sample of the output has shape ", to_string(answers.dims),
                     ", wanted rows [boxes, 5 + classes] or columns [4 + classes, boxes]");
  }
  size_t wanted = 0;
  size_t again = 0;
  for (size_t i = 0; i < answers.found.size(); ++i) {
    std::vector<Box> left = boxes_of(rows, answers.found[i]);
    for (const Box& box : boxes_of(rows, answers.wanted[i])) {
      ++wanted;
      const auto same = std::ranges::find_if(left, [&](const Box& other) {
        return other.of_class == box.of_class && overlap(other, box) >= kFoundAgain;
      });
      if (same == left.end()) continue;
      ++again;
      left.erase(same);
    }
  }
  return wanted > 0 ? static_cast<double>(again) / static_cast<double>(wanted) : 1;
}

}  // namespace parsimony
