// One node of the source, to be spelled in ONNX of opset 17.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/operators/factor.h"
#include "parsimony/onnx_io/export/target_impl.h"

namespace parsimony::onnx_io {

/// What a function of the table sees, and where it leaves the results.
struct Spelling {
  const NodeView& view;
  Target& out;
  std::vector<ValueId> inputs;   ///< in the target; kNone where absent
  std::vector<bool> wanted;      ///< which outputs are read
  std::vector<ValueId> results;  ///< to be filled, one per output that is wanted
  bool open_batch = false;       ///< dimension 0 of tensors may be another when the model runs

  const Node& node() const { return view.node(); }
  ValueId in(size_t i) const { return i < inputs.size() ? inputs[i] : kNone; }
  DType dtype() const { return out.dtype(in(0)); }
  size_t rank(int i = 0) const { return shape(i).size(); }
  /// @throws UnsupportedError if it is not known
  const Shape& shape(int i = 0) const;
  /// @throws UnsupportedError, naming the node
  void require(bool holds, std::string_view why) const;
  void give(ValueId value) { results.at(0) = value; }
  /// An operand of the source whose elements are known.
  std::vector<int64_t> known_integers(int i) const;
};

using Spell = void (*)(Spelling&);

/// Null for an operator that is written as it is, if there is such a one.
Spell find_spelling(std::string_view domain, std::string_view op);

/// Brings the operands of elementwise operators to one type, as torch does before it computes.
void promote(Spelling& spelling);

// spell_activation.cc
void spell_gelu(Spelling& s);
void spell_mish(Spelling& s);
void spell_mod(Spelling& s);
void spell_logical(Spelling& s);

// spell_normalisation.cc
void spell_group_normalization(Spelling& s);

// spell_pooling.cc
void spell_max_pool(Spelling& s);
void spell_average_pool(Spelling& s);

// spell_adaptive.cc
void spell_adaptive_average_pool(Spelling& s);
void spell_adaptive_max_pool(Spelling& s);

// spell_shape.cc
void spell_reduce(Spelling& s);
void spell_reduce_sum(Spelling& s);
void spell_resize(Spelling& s);
void spell_filled(Spelling& s);

// spell_recurrent.cc
void spell_recurrent(Spelling& s);

}  // namespace parsimony::onnx_io
