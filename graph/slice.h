// Slices: the indices kept along the axes of a tensor, and slicing of tensors in memory, whatever
// their element type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "parsimony/base/types.h"

namespace parsimony {

/// Returns the indices that both lists keep.
std::vector<int64_t> common(const std::vector<int64_t>& a, const std::vector<int64_t>& b);

/// The entry of an axis; null if there is none.
AxisKeep* find_axis(std::vector<AxisKeep>& axes, int axis);
const AxisKeep* find_axis(const std::vector<AxisKeep>& axes, int axis);

/// Each axis once, in order of first mention: where several entries name one, what all of them
/// keep.
std::vector<AxisKeep> merged(std::span<const AxisKeep> axes);

/// Adds `further`, which count in what `cuts` leave, so that all count in the whole tensor. Each of
/// the two names an axis once.
void compose(std::vector<AxisKeep>& cuts, std::span<const AxisKeep> further);

/// Checks slices. Where several entries name the same axis, only what all of them keep stays.
/// @throws ModelError, naming `tensor`, if an axis is not there, its size differs, or the kept
/// indices are not ascending, not within the axis, or none.
void check_slices(std::string_view tensor, const Shape& dims, std::span<const AxisKeep> axes);

/// Dimensions of what stays. `axes` must have passed `check_slices`.
Shape sliced(const Shape& dims, std::span<const AxisKeep> axes);

/// Takes consecutive bytes of the kept elements, in row-major order.
using RunSink = std::function<void(const std::byte* run, int64_t bytes)>;

/// Passes the kept elements of a row-major tensor to `sink` in maximal contiguous runs.
/// `element_bytes` is the distance between elements.
void for_each_run(const std::byte* data, const Shape& dims, int64_t element_bytes,
                  std::span<const AxisKeep> axes, const RunSink& sink);

/// Most bytes that a PackedSink is given at a time.
constexpr int64_t kPackedBytes = int64_t{4} << 20;

/// Takes kept elements, one after the other, in row-major order. Nothing before `upto` will be read
/// again.
using PackedSink = std::function<void(std::span<const std::byte> packed, const std::byte* upto)>;

/// Passes the kept elements to `sink` in blocks large enough to be written to a file. Each element
/// is copied at most once; long runs are passed without a copy.
void for_each_packed(const std::byte* data, const Shape& dims, int64_t element_bytes,
                     std::span<const AxisKeep> axes, const PackedSink& sink);

/// Writes the kept elements one after the other to `out`, which holds
/// element_count(sliced(dims, axes)) * element_bytes bytes and may be `data` itself.
///
///     Shape dims{64, 3, 3, 3};
///     AxisKeep rows{0, 64, {0, 2, 3}};
///     slice(weight, dims, sizeof(float), {&rows, 1}, out);  // out: [3, 3, 3, 3]
void slice(const std::byte* data, const Shape& dims, int64_t element_bytes,
           std::span<const AxisKeep> axes, std::byte* out);

/// Returns the kept elements, as `slice` writes them, in new memory.
std::vector<std::byte> sliced_bytes(const std::byte* data, const Shape& dims, int64_t element_bytes,
                                    std::span<const AxisKeep> axes);

}  // namespace parsimony
