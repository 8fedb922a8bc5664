// Helpers shared by the irregular rules.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony::operators {

/// Collects the factors of one node, dimension by dimension. Dimensions of size 1 are left out.
/// Naming a dimension that does not exist throws UnsupportedError.
class FactorBuilder {
 public:
  explicit FactorBuilder(const NodeView& view) : view_(view) {}

  int label(int64_t size, std::string name = "d");
  void term(ValueId value, int dim, std::span<const int> labels);

  /// The two dimensions are the same axis.
  void tie(ValueId a, int a_dim, ValueId b, int b_dim);
  void pin(ValueId value, int dim, const std::string& reason);
  void map(ValueId a, int a_dim, ValueId b, int b_dim, std::vector<Segment> segments);

  /// Ties the axes of the first operand and the result, but for those marked: they are pinned.
  void pass(const std::vector<bool>& pinned, const std::string& reason);

  Factors take() { return std::move(factors_); }
  Factors& factors() { return factors_; }

 private:
  int64_t size_of_dim(ValueId value, int dim) const;

  const NodeView& view_;
  Factors factors_;
};

/// Axis counted from the left. @throws ModelError if it lies outside the rank
int normal_axis(const NodeView& view, int64_t axis, size_t rank);

/// Shape of input `i`. @throws UnsupportedError if unknown
const Shape& known_shape(const NodeView& view, int i);

/// The first operand and the result share all axes but these, which may not shrink.
Factors factor_along_axes(const NodeView& view, const std::vector<int64_t>& axes,
                          const std::string& reason);

/// The origin of an integer of a shape operand.
enum class IntegerSource : uint8_t { kLiteral, kComputed, kProduct };

/// One per integer of an operand that is built by a Concat with other readers, which may need other
/// integers; empty for any other operand.
std::vector<IntegerSource> shared_sources(const NodeView& view, int input);

/// Makes operand `input` equal to `requested` with as few changes as possible: -1 and 0 are kept
/// where they are still right, and if a Concat builds the operand only the part that disagrees is
/// replaced, so that a dynamic batch survives.
void patch_shape_operand(PatchView& view, int input, std::string_view name, const Shape& requested,
                         const std::vector<bool>& already_right);

}  // namespace parsimony::operators
