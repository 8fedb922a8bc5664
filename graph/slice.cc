#include "parsimony/graph/slice.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/graph/errors.h"

namespace parsimony {
namespace {

ModelError bad_slice(std::string_view tensor, const std::string& axis, const std::string& wanted,
                     const std::string& found) {
  return ModelError("tensor \"" + std::string(tensor) + "\": cannot slice " + axis + ": wanted " +
                    wanted + ", found " + found);
}

/// What stays of each dimension.
class Keeps {
 public:
  /// Views `axes`.
  Keeps(const Shape& dims, std::span<const AxisKeep> axes) : of_(dims.size(), nullptr) {
    for (const AxisKeep& axis : axes) {
      if (static_cast<int64_t>(axis.keep.size()) == axis.size) continue;
      const std::vector<int64_t>*& keep = of_[static_cast<size_t>(axis.axis)];
      if (keep == nullptr) {
        keep = &axis.keep;
        continue;
      }
      keep = &common_.emplace_back(common(*keep, axis.keep));
    }
  }

  /// Null: the dimension stays whole.
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

/// The dimensions from the innermost sliced one inwards are runs, the others loops.
struct Layout {
  std::vector<Loop> loops;  // innermost first
  std::vector<Run> runs;
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
    return layout;
  }
  layout.runs = runs_of(*keeps[d - 1], stride);
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

template <typename Emit>
void walk(const Layout& layout, size_t depth, const std::byte* data, Emit& emit) {
  if (depth == 0) {
    for (const Run& run : layout.runs) emit(data + run.begin, run.bytes);
    return;
  }
  const Loop& loop = layout.loops[depth - 1];
  for (int64_t i = 0; i < loop.count; ++i) {
    const int64_t index = loop.keep != nullptr ? (*loop.keep)[static_cast<size_t>(i)] : i;
    walk(layout, depth - 1, data + index * loop.stride, emit);
  }
}

template <typename Emit>
void walk(const std::byte* data, const Shape& dims, int64_t element_bytes,
          std::span<const AxisKeep> axes, Emit emit) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  const Keeps keeps(dims, axes);
  const Layout layout = layout_of(dims, element_bytes, keeps);
  walk(layout, layout.loops.size(), data, emit);
}

}  // namespace

void check_slices(std::string_view tensor, const Shape& dims, std::span<const AxisKeep> axes) {
  const auto rank = static_cast<int64_t>(dims.size());
  for (const AxisKeep& axis : axes) {
    const std::string what = "axis " + std::to_string(axis.axis);
    if (axis.axis < 0 || axis.axis >= rank) {
      throw bad_slice(tensor, what, "an axis of " + to_string(dims), what);
    }
    const int64_t size = dims[static_cast<size_t>(axis.axis)];
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
  walk(data, dims, element_bytes, axes,
       [&](const std::byte* run, int64_t bytes) { sink(run, bytes); });
}

void slice(const std::byte* data, const Shape& dims, int64_t element_bytes,
           std::span<const AxisKeep> axes, std::byte* out) {
  walk(data, dims, element_bytes, axes, [&](const std::byte* run, int64_t bytes) {
    // Runs of one element are the common case behind a convolution; a constant size is an inlined
    // copy. What is kept moves towards the front only, so `out` may be `data`.
    if (bytes == 4) {
      std::memmove(out, run, 4);
    } else {
      std::memmove(out, run, static_cast<size_t>(bytes));
    }
    out += bytes;
  });
}

}  // namespace parsimony
