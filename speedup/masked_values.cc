#include "parsimony/speedup/masked_values.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/slice.h"
#include "parsimony/masks/errors.h"
#include "parsimony/masks/mask.h"

namespace parsimony {
namespace {

/// Slices of divisors stay: 0/0 would be undefined.
bool becomes_zero(const PlanSlice* slice) { return slice->role != Role::kWith; }

constexpr int64_t kShort = 256;  // bytes from one stretch to the next

/// Neighbours along an axis, or in a row.
struct Stretch {
  int64_t first = 0;
  int64_t count = 0;
};

/// The elements of one tensor that are in memory, and what the mask makes of them.
class MaskedRows {
 public:
  MaskedRows(const TensorMask& mask, const TensorRows& tensor, const ZeroBytes& zero)
      : mask_(mask),
        tensor_(tensor),
        zero_(zero),
        rows_(tensor.rows.begin(), tensor.rows.end()),
        row_count_(element_count(tensor.dims)) {
    const int64_t all_rows = tensor.dims.empty() ? 1 : tensor.dims.front();
    if (rows_.empty()) rows_ = successive(0, all_rows);
    row_count_ /= std::max<int64_t>(1, all_rows);
    count_ = std::ssize(rows_) * row_count_;
    size_ = std::ssize(tensor.values) / std::max<int64_t>(1, count_);
  }

  void zero_elements() {
    const PlanMask& mask = *mask_.elements;
    if (tensor_.dims != mask.dims || std::ssize(mask.keep) != element_count(mask.dims)) {
      throw errors::mask_does_not_fit(mask.tensor, mask.dims, tensor_.dims);
    }
    for (size_t r = 0; r < rows_.size(); ++r) {
      const uint8_t* keep = mask.keep.data() + rows_[r] * row_count_;
      clear_unless(keep, static_cast<int64_t>(r) * row_count_, row_count_);
    }
  }

  void zero_smallest() {
    if (mask_.smallest <= 0 || count_ == 0) return;
    const Weight weight{std::string(mask_.tensor), tensor_.dtype, tensor_.dims, at(0), size_};
    clear_unless(mask_smallest(weight, mask_.smallest).keep.data(), 0, count_);
  }

  void zero_slices() {
    for (const PlanSlice* slice : mask_.slices) {
      const AxisKeep axis{slice->axis, slice->size, slice->keep};
      check_slices(mask_.tensor, tensor_.dims, {&axis, 1});
      if (becomes_zero(slice)) zero_slice(*slice);
    }
  }

  void assign() {
    if (mask_.values.empty()) return;
    const std::vector<int64_t> kept = kept_rows();
    const std::vector<Stretch> stretches = kept_of_row();
    int64_t row_bytes = 0;
    for (const Stretch& stretch : stretches) row_bytes += stretch.count * size_;
    const int64_t requested = std::ssize(kept) * row_bytes;
    if (std::ssize(mask_.values) != requested) {
      throw errors::wrong_bytes(mask_.tensor, requested, std::ssize(mask_.values));
    }
    for (size_t r = 0; r < rows_.size(); ++r) {
      const auto row = std::ranges::lower_bound(kept, rows_[r]);
      if (row == kept.end() || *row != rows_[r]) continue;
      const std::byte* next = mask_.values.data() + (row - kept.begin()) * row_bytes;
      for (const Stretch& stretch : stretches) {
        const int64_t bytes = stretch.count * size_;
        const int64_t first = static_cast<int64_t>(r) * row_count_ + stretch.first;
        std::memcpy(at(first), next, bytes);
        next += bytes;
      }
    }
  }

 private:
  void clear_unless(const uint8_t* keep, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      if (keep[i] == 0) std::memset(at(first + i), 0, size_);
    }
  }

  std::byte* at(int64_t i) const { return tensor_.values.data() + i * size_; }

  /// The place of an element in the whole tensor.
  int64_t place_of(int64_t i) const { return rows_[i / row_count_] * row_count_ + i % row_count_; }

  void zero_slice(const PlanSlice& slice) {
    const Shape& dims = tensor_.dims;
    const std::vector<Stretch> removed = removed_by(slice);
    const int64_t length = slice.axis == 0 ? std::ssize(rows_) : slice.size;
    int64_t inner = 1;
    for (size_t d = dims.size() - 1; std::cmp_greater(d, slice.axis); --d) inner *= dims[d];
    const int64_t period = length * inner;
    if (is_plain() && period * size_ < kShort * std::ssize(removed)) {
      std::vector<std::byte> stays(period * size_, std::byte{0xff});
      for (const Stretch& here : removed) {
        std::memset(stays.data() + here.first * inner * size_, 0, here.count * inner * size_);
      }
      for (int64_t first = 0; first < count_; first += period) clear_where_zero(stays, first);
    } else {
      for (int64_t first = 0; first < count_; first += period) {
        for (const Stretch& here : removed) zero(first + here.first * inner, here.count * inner);
      }
    }
  }

  bool is_plain() const { return zero_.points.size() == 1 && zero_.points[0] == std::byte{0}; }

  /// The compiler makes vectors of it, where a call for each stretch would cost more.
  void clear_where_zero(const std::vector<std::byte>& stays, int64_t first) {
    std::byte* bytes = at(first);
    for (size_t b = 0; b < stays.size(); ++b) bytes[b] &= stays[b];
  }

  /// Along its axis; of the first axis, the rows that are in memory.
  std::vector<Stretch> removed_by(const PlanSlice& slice) const {
    std::vector<uint8_t> stays(slice.size, 0);
    for (const int64_t k : slice.keep) stays[k] = 1;
    std::vector<Stretch> removed;
    const int64_t length = slice.axis == 0 ? std::ssize(rows_) : slice.size;
    for (int64_t i = 0; i < length; ++i) {
      if (stays[slice.axis == 0 ? rows_[i] : i] != 0) continue;
      if (removed.empty() || removed.back().first + removed.back().count != i)
        removed.push_back({i, 0});
      ++removed.back().count;
    }
    return removed;
  }

  void zero(int64_t first, int64_t count) {
    if (zero_.points.size() == 1) {
      std::memset(at(first), static_cast<int>(zero_.points.front()), count * size_);
      return;
    }
    for (int64_t i = first; i < first + count; ++i) {
      *at(i) = zero_.points[place_of(i) / zero_.inner % std::ssize(zero_.points)];
    }
  }

  /// Returns the rows of the whole tensor that are kept.
  std::vector<int64_t> kept_rows() const {
    std::vector<int64_t> kept = successive(0, tensor_.dims.empty() ? 1 : tensor_.dims.front());
    for (const PlanSlice* slice : mask_.slices) {
      if (slice->axis == 0) kept = common(kept, slice->keep);
    }
    return kept;
  }

  /// Returns the elements that are kept of a kept row.
  std::vector<Stretch> kept_of_row() const {
    std::vector<AxisKeep> axes;
    for (const PlanSlice* slice : mask_.slices) {
      if (slice->axis > 0) axes.push_back({slice->axis - 1, slice->size, slice->keep});
    }
    const Shape& dims = tensor_.dims;
    const Shape row(dims.begin() + (dims.empty() ? 0 : 1), dims.end());
    std::vector<Stretch> kept;
    for_each_run(at(0), row, 1, axes, [&](const std::byte* run, int64_t count) {
      kept.push_back({run - at(0), count});
    });
    return kept;
  }

  const TensorMask& mask_;
  const TensorRows& tensor_;
  const ZeroBytes& zero_;
  std::vector<int64_t> rows_;
  int64_t row_count_;  ///< elements of a row
  int64_t count_ = 0;  ///< elements in memory
  int64_t size_ = 0;   ///< bytes of one
};

}  // namespace

bool TensorMask::changes_values() const {
  return smallest > 0 || !values.empty() || elements != nullptr ||
         std::ranges::any_of(slices, becomes_zero);
}

std::vector<TensorMask> tensor_masks(const Plan& plan) {
  std::vector<TensorMask> masks;
  absl::flat_hash_map<std::string_view, size_t> index;
  const auto mask_of = [&](std::string_view tensor) -> TensorMask& {
    const auto [known, is_new] = index.emplace(tensor, masks.size());
    if (is_new) masks.emplace_back().tensor = tensor;
    return masks[known->second];
  };
  if (plan.constants == Constants::kExact) {
    for (const PlanMask& mask : plan.masks) mask_of(mask.tensor).elements = &mask;
    return masks;
  }
  for (const PlanZeros& zeros : plan.zeros) mask_of(zeros.tensor).smallest = zeros.smallest;
  for (const PlanGroup& group : plan.groups) {
    for (const PlanSlice& slice : group.slices) mask_of(slice.tensor).slices.push_back(&slice);
  }
  for (const TensorUpdate& update : plan.updates) {
    if (!update.values.empty()) mask_of(update.tensor).values = update.values;
  }
  return masks;
}

void mask_values(const TensorMask& mask, const TensorRows& tensor, const ZeroBytes& zero) {
  MaskedRows rows(mask, tensor, zero);
  if (mask.elements != nullptr) return rows.zero_elements();
  rows.zero_smallest();
  rows.zero_slices();
  rows.assign();
}

}  // namespace parsimony
