#include "parsimony/graph/slice.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"

namespace parsimony {

std::vector<int64_t> common(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

const AxisKeep* find_axis(const std::vector<AxisKeep>& axes, int axis) {
  const auto it =
      std::ranges::find_if(axes, [&](const AxisKeep& entry) { return entry.axis == axis; });
  return it == axes.end() ? nullptr : &*it;
}

AxisKeep* find_axis(std::vector<AxisKeep>& axes, int axis) {
  return const_cast<AxisKeep*>(find_axis(std::as_const(axes), axis));
}

std::vector<AxisKeep> merged(std::span<const AxisKeep> axes) {
  std::vector<AxisKeep> result;
  for (const AxisKeep& axis : axes) {
    AxisKeep* known = find_axis(result, axis.axis);
    if (known == nullptr) {
      result.push_back(axis);
    } else {
      known->keep = common(known->keep, axis.keep);
    }
  }
  return result;
}

void compose(std::vector<AxisKeep>& cuts, std::span<const AxisKeep> further) {
  for (const AxisKeep& axis : further) {
    AxisKeep* known = find_axis(cuts, axis.axis);
    if (known == nullptr) {
      cuts.push_back(axis);
      continue;
    }
    std::vector<int64_t> keep;
    for (const int64_t index : axis.keep) keep.push_back(known->keep[index]);
    known->keep = std::move(keep);
  }
}

namespace {

ModelError bad_slice(std::string_view tensor, const std::string& axis, const std::string& expected,
                     const std::string& found) {
  return ModelError("tensor \"" + std::string(tensor) + "\": cannot slice " + axis + ": expected " +
                    expected + ", found " + found);
}

/// The indices of each dimension that stay.
class Keeps {
 public:
  /// Views `axes`.
  Keeps(const Shape& dims, std::span<const AxisKeep> axes) : of_(dims.size(), nullptr) {
    for (const AxisKeep& axis : axes) {
      if (static_cast<int64_t>(axis.keep.size()) == axis.size) continue;
      const std::vector<int64_t>*& keep = of_[axis.axis];
      if (keep == nullptr) {
        keep = &axis.keep;
        continue;
      }
      keep = &common_.emplace_back(common(*keep, axis.keep));
    }
  }

  /// Null: the dimension is not pruned.
  const std::vector<int64_t>* operator[](size_t dim) const { return of_[dim]; }

 private:
  std::vector<const std::vector<int64_t>*> of_;
  std::list<std::vector<int64_t>> common_;  // where several slices name one axis
};

struct Run {
  int64_t begin;
  int64_t bytes;
};

/// A loop around the runs: over the kept indices of one axis, or over all of several whole axes.
struct Loop {
  int64_t count;
  int64_t stride;
  const std::vector<int64_t>* keep;
};

/// The dimensions from the innermost sliced one inwards are runs, the others loops. The runs of one
/// place of the loops are a row.
struct Layout {
  std::vector<Loop> loops;  // innermost first
  std::vector<Run> runs;
  const std::vector<int64_t>* keep = nullptr;  // of the innermost sliced dimension
  int64_t unit = 0;                            // bytes of one of its indices
  int64_t row_bytes = 0;                       // that stay
};

std::vector<Run> runs_of(const std::vector<int64_t>& keep, int64_t unit) {
  std::vector<Run> runs;
  for (const int64_t index : keep) {
    const int64_t begin = index * unit;
    if (!runs.empty() && runs.back().begin + runs.back().bytes == begin) {
      runs.back().bytes += unit;
    } else {
      runs.push_back({begin, unit});
    }
  }
  return runs;
}

Layout layout_of(const Shape& dims, int64_t element_bytes, const Keeps& keeps) {
  Layout layout;
  int64_t stride = element_bytes;
  size_t d = dims.size();
  for (; d > 0 && keeps[d - 1] == nullptr; --d) stride *= dims[d - 1];
  if (d == 0) {
    layout.runs.push_back({0, stride});
    layout.row_bytes = stride;
    return layout;
  }
  layout.keep = keeps[d - 1];
  layout.unit = stride;
  layout.row_bytes = stride * static_cast<int64_t>(layout.keep->size());
  layout.runs = runs_of(*layout.keep, stride);
  stride *= dims[d - 1];
  for (--d; d > 0; --d) {
    const int64_t size = dims[d - 1];
    const bool whole = keeps[d - 1] == nullptr;
    if (whole && !layout.loops.empty() && layout.loops.back().keep == nullptr) {
      layout.loops.back().count *= size;
    } else {
      const int64_t count = whole ? size : static_cast<int64_t>(keeps[d - 1]->size());
      layout.loops.push_back({count, stride, keeps[d - 1]});
    }
    stride *= size;
  }
  return layout;
}

/// Calls `row` with the beginning of every row.
template <typename Row>
void walk(const Layout& layout, size_t depth, const std::byte* data, Row& row) {
  if (depth == 0) {
    row(data);
    return;
  }
  const Loop& loop = layout.loops[depth - 1];
  for (int64_t i = 0; i < loop.count; ++i) {
    const int64_t index = loop.keep != nullptr ? (*loop.keep)[i] : i;
    walk(layout, depth - 1, data + index * loop.stride, row);
  }
}

bool is_empty(const Shape& dims) { return contains(dims, 0); }

/// Kept elements only move towards the front, so `out` may be `row` or lie before it.
template <size_t kBytes>
void copy_elements(const std::byte* row, const std::vector<int64_t>& keep, std::byte* out) {
  for (const int64_t index : keep) {
    std::memmove(out, row + index * static_cast<int64_t>(kBytes), kBytes);
    out += kBytes;
  }
}

/// A run costs a call, an element of a size known at compile time only a load and a store.
bool goes_by_element(const Layout& layout) {
  constexpr int64_t kShortRun = 64;
  const auto runs = static_cast<int64_t>(layout.runs.size());
  const int64_t unit = layout.unit;
  return layout.row_bytes < runs * kShortRun && (unit == 1 || unit == 2 || unit == 4 || unit == 8);
}

/// Copies what is kept of one row to `out`.
void copy_row(const Layout& layout, bool by_element, const std::byte* row, std::byte* out) {
  switch (by_element ? layout.unit : 0) {
    case 1:
      return copy_elements<1>(row, *layout.keep, out);
    case 2:
      return copy_elements<2>(row, *layout.keep, out);
    case 4:
      return copy_elements<4>(row, *layout.keep, out);
    case 8:
      return copy_elements<8>(row, *layout.keep, out);
    default:
      break;
  }
  for (const Run& run : layout.runs) {
    std::memmove(out, row + run.begin, run.bytes);
    out += run.bytes;
  }
}

/// Gathers short runs; long ones go to the sink from where they lie.
class Packer {
 public:
  Packer(const Layout& layout, const PackedSink& sink)
      : layout_(layout), by_element_(goes_by_element(layout)), sink_(sink) {}

  void row(const std::byte* begin) {
    if (by_element_ && layout_.row_bytes <= kPackedBytes) {
      std::byte* out = room(layout_.row_bytes);
      copy_row(layout_, true, begin, out);
      upto_ = begin + (layout_.keep->back() + 1) * layout_.unit;
      return;
    }
    for (const Run& run : layout_.runs) add(begin + run.begin, run.bytes);
  }

  void flush() {
    if (filled_ > 0) sink_({buffer_.get(), static_cast<size_t>(filled_)}, upto_);
    filled_ = 0;
  }

 private:
  static constexpr int64_t kLongRun = int64_t{1} << 18;

  /// Returns the place where the next `bytes` go.
  std::byte* room(int64_t bytes) {
    if (filled_ + bytes > kPackedBytes) flush();
    if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(kPackedBytes);
    std::byte* out = buffer_.get() + filled_;
    filled_ += bytes;
    return out;
  }

  void add(const std::byte* run, int64_t bytes) {
    if (bytes < kLongRun) {
      std::memcpy(room(bytes), run, bytes);
      upto_ = run + bytes;
      return;
    }
    flush();
    for (int64_t at = 0; at < bytes; at += kPackedBytes) {
      const int64_t part = std::min(kPackedBytes, bytes - at);
      sink_({run + at, static_cast<size_t>(part)}, run + at + part);
    }
  }

  const Layout& layout_;
  bool by_element_;
  const PackedSink& sink_;
  std::unique_ptr<std::byte[]> buffer_;
  int64_t filled_ = 0;
  const std::byte* upto_ = nullptr;
};

}  // namespace

void check_slices(std::string_view tensor, const Shape& dims, std::span<const AxisKeep> axes) {
  const auto rank = static_cast<int64_t>(dims.size());
  for (const AxisKeep& axis : axes) {
    const std::string what = "axis " + std::to_string(axis.axis);
    if (axis.axis < 0 || axis.axis >= rank) {
      throw bad_slice(tensor, what, "an axis of " + to_string(dims), what);
    }
    const int64_t size = dims[axis.axis];
    if (axis.size != size) {
      throw bad_slice(tensor, what, "size " + std::to_string(size),
                      "size " + std::to_string(axis.size));
    }
    if (axis.keep.empty() && size > 0) {
      throw bad_slice(tensor, what, "at least one kept index", "none");
    }
    int64_t next = 0;
    for (const int64_t index : axis.keep) {
      if (index < next || index >= size) {
        throw bad_slice(tensor, what, "ascending indices below " + std::to_string(size),
                        std::to_string(index));
      }
      next = index + 1;
    }
  }
  const Keeps keeps(dims, axes);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (keeps[d] != nullptr && keeps[d]->empty()) {
      throw bad_slice(tensor, "axis " + std::to_string(d), "at least one kept index",
                      "none that all slices keep");
    }
  }
}

Shape sliced(const Shape& dims, std::span<const AxisKeep> axes) {
  Shape kept = dims;
  const Keeps keeps(dims, axes);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (keeps[d] != nullptr) kept[d] = static_cast<int64_t>(keeps[d]->size());
  }
  return kept;
}

void for_each_run(const std::byte* data, const Shape& dims, int64_t element_bytes,
                  std::span<const AxisKeep> axes, const RunSink& sink) {
  if (is_empty(dims)) return;
  const Keeps keeps(dims, axes);
  const Layout layout = layout_of(dims, element_bytes, keeps);
  const auto row = [&](const std::byte* begin) {
    for (const Run& run : layout.runs) sink(begin + run.begin, run.bytes);
  };
  walk(layout, layout.loops.size(), data, row);
}

void for_each_packed(const std::byte* data, const Shape& dims, int64_t element_bytes,
                     std::span<const AxisKeep> axes, const PackedSink& sink) {
  if (is_empty(dims)) return;
  const Keeps keeps(dims, axes);
  const Layout layout = layout_of(dims, element_bytes, keeps);
  Packer packer(layout, sink);
  const auto row = [&](const std::byte* begin) { packer.row(begin); };
  walk(layout, layout.loops.size(), data, row);
  packer.flush();
}

void slice(const std::byte* data, const Shape& dims, int64_t element_bytes,
           std::span<const AxisKeep> axes, std::byte* out) {
  if (is_empty(dims)) return;
  const Keeps keeps(dims, axes);
  const Layout layout = layout_of(dims, element_bytes, keeps);
  const bool by_element = goes_by_element(layout);
  const auto row = [&](const std::byte* begin) {
    copy_row(layout, by_element, begin, out);
    out += layout.row_bytes;
  };
  walk(layout, layout.loops.size(), data, row);
}

std::vector<std::byte> sliced_bytes(const std::byte* data, const Shape& dims, int64_t element_bytes,
                                    std::span<const AxisKeep> axes) {
  std::vector<std::byte> bytes(element_count(sliced(dims, axes)) * element_bytes);
  slice(data, dims, element_bytes, axes, bytes.data());
  return bytes;
}

}  // namespace parsimony
