// What stays along the axes of a tensor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace parsimony {

/// The indices that stay along one axis; ascending, counted along the tensor's full length.
struct AxisKeep {
  int axis = 0;
  int64_t size = 0;
  std::vector<int64_t> keep;
};

/// What both keep.
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

}  // namespace parsimony
