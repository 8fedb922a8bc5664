#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include "parsimony/base/ranges.h"
#include "parsimony/checkpoints/formats_impl.h"
#include "parsimony/masks/errors.h"

namespace parsimony::checkpoints {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

/// Axes from the largest stride to the smallest: the order in which the elements lie.
std::vector<int> axes_by_stride(const StoredTensor& tensor) {
  std::vector<int> axes(tensor.dims.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::ranges::stable_sort(axes, std::ranges::greater(), [&](int a) { return tensor.strides[a]; });
  return axes;
}

/// One axis of a copy: which indices, and how far apart they lie.
struct Loop {
  int64_t count = 0;
  int64_t stride = 0;                          ///< in bytes
  const std::vector<int64_t>* keep = nullptr;  ///< null: 0 to count - 1

  int64_t at(int64_t i) const { return (keep == nullptr ? i : (*keep)[i]) * stride; }
};

std::vector<Loop> loops_of(const StoredTensor& tensor, const std::vector<int>& order,
                           const std::vector<AxisKeep>& cuts) {
  std::vector<Loop> loops;
  for (const int axis : order) {
    const AxisKeep* cut = find_axis(cuts, axis);
    const int64_t stride = tensor.strides[axis] * tensor.type->bytes;
    if (cut == nullptr) {
      loops.push_back({tensor.dims[axis], stride});
    } else {
      loops.push_back({static_cast<int64_t>(cut->keep.size()), stride, &cut->keep});
    }
  }
  return loops;
}

/// Removes the inner loops whose elements lie together, and returns how many bytes these are.
int64_t take_run(std::vector<Loop>& loops, int64_t element) {
  int64_t run = element;
  while (!loops.empty() && loops.back().keep == nullptr &&
         (loops.back().stride == run || loops.back().count == 1)) {
    run *= loops.back().count;
    loops.pop_back();
  }
  return run;
}

template <typename Item>
void gather_items(const char* from, const Loop& loop, int64_t first, int64_t count, char* to) {
  for (int64_t i = first; i < first + count; ++i, to += sizeof(Item)) {
    std::memcpy(to, from + loop.at(i), sizeof(Item));
  }
}

/// Copies some iterations of a loop, of `run` bytes each; single elements by their size, which the
/// compiler then knows.
void gather(const char* from, const Loop& loop, int64_t first, int64_t count, int64_t run,
            char* to) {
  switch (run) {
    case 1:
      return gather_items<uint8_t>(from, loop, first, count, to);
    case 2:
      return gather_items<uint16_t>(from, loop, first, count, to);
    case 4:
      return gather_items<uint32_t>(from, loop, first, count, to);
    case 8:
      return gather_items<uint64_t>(from, loop, first, count, to);
    default:
      for (int64_t i = first; i < first + count; ++i, to += run) {
        std::memcpy(to, from + loop.at(i), run);
      }
  }
}

/// Hands bytes on in pieces.
class Pieces {
 public:
  explicit Pieces(const Sink& sink) : sink_(sink), buffer_(kPiece) {}

  /// All iterations of a loop, of `run` bytes each.
  void add(const char* from, const Loop& loop, int64_t run) {
    for (int64_t i = 0; i < loop.count;) {
      if (run > room()) flush();
      if (run > room()) {  // it is a piece of its own
        sink_({from + loop.at(i++), static_cast<size_t>(run)});
        continue;
      }
      const int64_t count = std::min(loop.count - i, room() / run);
      gather(from, loop, i, count, run, buffer_.data() + used_);
      used_ += count * run;
      i += count;
    }
  }

  void flush() {
    if (used_ > 0) sink_({buffer_.data(), static_cast<size_t>(used_)});
    used_ = 0;
  }

 private:
  int64_t room() const { return static_cast<int64_t>(buffer_.size()) - used_; }

  const Sink& sink_;
  std::vector<char> buffer_;
  int64_t used_ = 0;
};

void copy(const StoredTensor& tensor, const std::vector<int>& order, std::string_view storage,
          const std::vector<AxisKeep>& cuts, const Sink& sink) {
  const char* begin = storage.data() + tensor.offset * tensor.type->bytes;
  std::vector<Loop> loops = loops_of(tensor, order, cuts);
  const int64_t run = take_run(loops, tensor.type->bytes);
  const auto none = [](const Loop& loop) { return loop.count == 0; };
  if (run == 0 || std::ranges::any_of(loops, none)) return;
  if (loops.empty()) return sink({begin, static_cast<size_t>(run)});
  const Loop inner = loops.back();
  loops.pop_back();
  Pieces pieces(sink);
  for (std::vector<int64_t> index(loops.size());;) {
    int64_t at = 0;
    for (size_t i = 0; i < loops.size(); ++i) at += loops[i].at(index[i]);
    pieces.add(begin + at, inner, run);
    size_t axis = loops.size();
    while (axis > 0 && ++index[axis - 1] == loops[axis - 1].count) index[--axis] = 0;
    if (axis == 0) return pieces.flush();
  }
}

/// Elements from the first to behind the last.
int64_t extent_of(const StoredTensor& tensor) {
  int64_t last = 0;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] == 0) return 0;
    last += (tensor.dims[i] - 1) * tensor.strides[i];
  }
  return last + 1;
}

bool same_view(const StoredTensor& a, const StoredTensor& b) {
  return a.offset == b.offset && a.dims == b.dims && a.strides == b.strides;
}

View cut_view(const StoredTensor& tensor, const std::vector<AxisKeep>& cuts, int64_t offset) {
  View view{offset, tensor.dims, std::vector<int64_t>(tensor.dims.size())};
  for (const AxisKeep& cut : cuts) view.dims[cut.axis] = static_cast<int64_t>(cut.keep.size());
  const std::vector<int> order = axes_by_stride(tensor);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    if (tensor.strides[order[i]] == 0) continue;  // one element, repeated
    view.strides[order[i]] = stride;
    stride *= std::max<int64_t>(view.dims[order[i]], 1);
  }
  return view;
}

/// Elements that it needs in a storage of its own.
int64_t stored_elements(const View& view) {
  int64_t elements = 1;
  for (size_t i = 0; i < view.dims.size(); ++i) {
    if (view.dims[i] == 0) return 0;
    if (view.strides[i] != 0) elements *= view.dims[i];
  }
  return elements;
}

/// The tensor without the repetitions of axes of stride 0.
StoredTensor without_repetition(const StoredTensor& tensor) {
  StoredTensor once = tensor;
  for (size_t i = 0; i < once.dims.size(); ++i) {
    if (once.strides[i] == 0) once.dims[i] = std::min<int64_t>(once.dims[i], 1);
  }
  return once;
}

std::vector<AxisKeep> without_repetition(const StoredTensor& tensor, std::vector<AxisKeep> cuts) {
  std::erase_if(cuts, [&](const AxisKeep& cut) { return tensor.strides[cut.axis] == 0; });
  return cuts;
}

bool same_cuts(const std::vector<AxisKeep>& a, const std::vector<AxisKeep>& b) {
  return std::ranges::equal(a, b, [](const AxisKeep& x, const AxisKeep& y) {
    return x.axis == y.axis && x.keep == y.keep;
  });
}

/// The elements that remain, in the order of the strides.
void copy_cut(const StoredTensor& tensor, std::string_view storage,
              const std::vector<AxisKeep>& axes, const Sink& sink) {
  copy(without_repetition(tensor), axes_by_stride(tensor), storage,
       without_repetition(tensor, axes), sink);
}

}  // namespace

bool Edits::empty() const {
  return std::ranges::none_of(cuts.ids(), [this](TensorId id) { return changes(id) || names[id]; });
}

NewLayout lay_out(const IdVector<TensorId, StoredTensor>& tensors, size_t storages,
                  const Edits& edits) {
  IdVector<StorageId, std::vector<TensorId>> on(storages);
  IdVector<StorageId, bool> changes(storages);
  NewLayout layout{IdVector<StorageId, std::optional<NewStorage>>(storages), {}};
  for (const TensorId id : tensors.ids()) {
    const StoredTensor& tensor = tensors[id];
    layout.views.push_back({tensor.offset, tensor.dims, tensor.strides});
    on[tensor.storage].push_back(id);
    if (edits.changes(id)) changes[tensor.storage] = true;
  }
  for (const StorageId storage : on.ids()) {
    if (!changes[storage]) continue;
    std::vector<TensorId>& views = on[storage];
    std::ranges::stable_sort(views, {}, [&](TensorId id) {
      return std::pair(tensors[id].offset, tensors[id].offset + extent_of(tensors[id]));
    });
    NewStorage& as = layout.storages[storage].emplace();
    TensorId before;
    for (const TensorId id : views) {
      const StoredTensor& tensor = tensors[id];
      if (before != TensorId() && same_view(tensors[before], tensor)) {
        if (!same_cuts(edits.cuts[before], edits.cuts[id])) {
          throw UnsupportedError("tensors ", in_quotes(to_string(tensors[before].path)), " and ",
                                 in_quotes(to_string(tensor.path)),
                                 " share their elements and would be cut differently");
        }
        layout.views[id] = layout.views[before];
        continue;
      }
      const bool overlaps = before != TensorId() && tensor.count() > 0 &&
                            tensor.offset < tensors[before].offset + extent_of(tensors[before]);
      if (overlaps) {
        throw UnsupportedError("tensors ", in_quotes(to_string(tensors[before].path)), " and ",
                               in_quotes(to_string(tensor.path)),
                               " overlap in one storage, which cannot be cut");
      }
      layout.views[id] = cut_view(tensor, edits.cuts[id], as.elements);
      as.elements += stored_elements(layout.views[id]);
      as.order.push_back(id);
      before = id;
    }
  }
  return layout;
}

void copy_storage(const IdVector<TensorId, StoredTensor>& tensors, std::string_view storage,
                  const NewStorage& as, const Edits& edits, const Sink& sink) {
  for (const TensorId id : as.order) {
    const auto& values = edits.values[id];
    if (!values) {
      copy_cut(tensors[id], storage, edits.cuts[id], sink);
      continue;
    }
    // New elements are row-major; the tensor may lie otherwise.
    const View view = cut_view(tensors[id], edits.cuts[id], 0);
    const StoredTensor given{
        .type = tensors[id].type, .dims = view.dims, .strides = dense_strides(view.dims)};
    copy(given, axes_by_stride(tensors[id]),
         {reinterpret_cast<const char*>(values->data()), values->size()}, {}, sink);
  }
}

namespace {

/// An axis of more than one element.
struct Axis {
  int64_t count = 0;
  int64_t stride = 0;  ///< in elements
};

/// Writes the elements of the axes in order, and returns the end. What a stride of 0 repeats is
/// copied from what has been written.
std::byte* gather(std::span<const Axis> axes, int64_t size, const std::byte* from, std::byte* to) {
  if (axes.empty()) return std::copy_n(from, size, to);
  const auto [count, stride] = axes.front();
  if (axes.size() == 1 && stride == 1) return std::copy_n(from, count * size, to);
  std::byte* end = to;
  for (int64_t i = 0; i < (stride == 0 ? 1 : count); ++i) {
    end = gather(axes.subspan(1), size, from + i * stride * size, end);
  }
  if (stride != 0) return end;
  std::byte* const last = to + (end - to) * count;
  while (end < last) end = std::copy_n(to, std::min(end - to, last - end), end);
  return end;
}

}  // namespace

StoredValues values_of(const StoredTensor& tensor, std::string_view storage) {
  const int64_t size = tensor.type->bytes;
  if (tensor.strides == dense_strides(tensor.dims)) {
    return StoredValues(
        std::as_bytes(std::span(storage.substr(tensor.offset * size, tensor.count() * size))));
  }
  std::vector<std::byte> values(tensor.count() * size);
  if (values.empty()) return StoredValues(std::move(values));
  std::vector<Axis> axes;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    if (tensor.dims[d] > 1) axes.push_back({tensor.dims[d], tensor.strides[d]});
  }
  const std::string_view from = storage.substr(tensor.offset * size);
  gather(axes, size, reinterpret_cast<const std::byte*>(from.data()), values.data());
  return StoredValues(std::move(values));
}

void check_fits(const StoredTensor& tensor, std::string_view storage, std::string_view file) {
  const auto room = static_cast<int64_t>(storage.size()) / tensor.type->bytes;
  const auto fail = [&](const std::string& why) {
    throw errors::bad_tensor(file, to_string(tensor.path), why);
  };
  if (tensor.strides.size() != tensor.dims.size()) fail("it has other strides than dimensions");
  if (tensor.offset < 0) fail("its offset is negative");
  int64_t last = tensor.offset;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    if (tensor.strides[i] < 0) fail("a stride is negative");
    if (tensor.dims[i] < 0) fail("a dimension is negative");
    int64_t reach = 0;
    if (tensor.dims[i] > 0 &&
        __builtin_mul_overflow(tensor.dims[i] - 1, tensor.strides[i], &reach)) {
      reach = room;
    }
    if (__builtin_add_overflow(last, reach, &last)) last = room;
    if (last < 0) last = room;
  }
  if (contains(tensor.dims, 0)) return;
  if (last >= room) {
    fail("its shape " + to_string(tensor.dims) + " needs more elements than the " +
         std::to_string(room) + " of its storage");
  }
  element_count(tensor.dims);  // a repeated element may be counted beyond bounds
}

}  // namespace parsimony::checkpoints
