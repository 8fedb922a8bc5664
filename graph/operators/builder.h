// Small helpers that the irregular rules share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "parsimony/graph/factors.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony::operators {

/// Collects the factors of one node, dimension by dimension. Dimensions of size 1 are left out.
/// What names a dimension that is not there throws UnsupportedError.
class FactorBuilder {
 public:
  explicit FactorBuilder(const NodeView& view) : view_(view) {}

  int letter(int64_t size, std::string name = "d");
  void term(ValueId value, int dim, std::span<const int> letters);

  /// The two dimensions are the same axis.
  void tie(ValueId a, int a_dim, ValueId b, int b_dim);
  void pin(ValueId value, int dim, const std::string& reason);
  void map(ValueId a, int a_dim, ValueId b, int b_dim, std::vector<Run> runs);

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

/// Where an integer of a shape operand comes from.
enum class Piece : uint8_t { kLiteral, kComputed, kProduct };

/// One per integer, where a Concat puts the operand together that others read as well, which may
/// want other integers; empty for any other operand.
std::vector<Piece> shared_pieces(const NodeView& view, int input);

/// Makes the integers in operand `input` read `wanted`, changing no more of them than it must:
/// -1 and 0 stay where they still hold, and where a Concat puts the operand together only the piece
/// that disagrees is replaced, so that a dynamic batch survives.
void patch_shape_operand(PatchView& view, int input, std::string_view name, const Shape& wanted,
                         const std::vector<bool>& already_right);

}  // namespace parsimony::operators
