// One call of an aten operator, and the functions that lower it. Anything unsupported throws
// NotLowered, and the call becomes an unknown node.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/programs/builder.h"

namespace parsimony::programs {

class Call;
using Lowering = void(Call& call);

/// How an aten operator is lowered.
struct Rule {
  std::string_view op;
  Lowering* lower = nullptr;
  std::string_view onnx = {};  ///< ONNX name, for functions that lower several operators
  bool moves = false;          ///< complex tensors are supported, with complex results
};

/// Returns null for an unknown operator.
const Rule* find_rule(std::string_view op);
/// Returns the rule for complex tensors.
const Rule* find_complex_rule(std::string_view op);

/// A number computed from sizes whose value was taken from the Graph.
struct SettledNumber {
  SourceLocation location;
  ValueId number = kNone;
};

class Call {
 public:
  Call(Builder& builder, int id, const Rule& rule, std::vector<Binding> arguments,
       size_t result_count)
      : out(builder),
        op(rule.op),
        onnx(rule.onnx),
        args(std::move(arguments)),
        results(result_count),
        id_(id) {}

  Builder& out;
  const std::string op;    ///< "conv2d"
  const std::string onnx;  ///< of the rule
  const std::vector<Binding> args;
  std::vector<Binding> results;

  size_t size() const { return args.size(); }
  const std::vector<SettledNumber>& settled() const { return settled_; }
  const Binding& arg(size_t i) const;
  bool none(size_t i) const { return arg(i).is(BindingKind::kNone); }
  SourceLocation location(size_t i, int item = kNone) const {
    return {id_, static_cast<int>(i), item};
  }
  void require(bool holds) const {
    if (!holds) throw NotLowered();
  }

  Operand tensor(size_t i) const;           ///< a tensor
  Operand optional_tensor(size_t i) const;  ///< kNone for None
  Operand tensor_or_number(size_t i);       ///< a number becomes a constant
  std::vector<Operand> tensors(size_t i) const;
  /// Returns a constant; numbers computed from sizes are resolved with these.
  int64_t integer(size_t i) const;
  int64_t integer(size_t i, int64_t fallback) const;  ///< if it is None or omitted
  double number(size_t i) const;
  double number(size_t i, double fallback) const;
  double single(size_t i) const;  ///< a number, or the single element of a known tensor
  bool flag(size_t i) const;
  const std::string& text(size_t i) const;
  /// A list of integers; a single integer is a list of one.
  std::vector<Element> elements(size_t i) const;
  Element element(size_t i) const;
  std::vector<int64_t> integers(size_t i) const;
  /// Like `integers`; a single number is repeated `n` times.
  std::vector<int64_t> integers(size_t i, size_t n) const;

  /// Returns the rank without the axis of real and imaginary part.
  size_t rank(ValueId value);
  Shape shape(ValueId value);
  /// Returns the axis counted from the left.
  int64_t axis(int64_t axis, size_t rank) const;

  void set_result(ValueId value) { set_result(0, Binding::tensor(value)); }
  void set_node(const std::string& op_name, const std::vector<Operand>& inputs,
                Attributes attributes = {}, const std::string& domain = "") {
    set_result(out.emit(op_name, inputs, std::move(attributes), domain));
  }
  void set_complex(ValueId value) {
    out.set_complex(value);
    set_result(value);
  }
  void set_result(size_t i, Binding binding) { results.at(i) = std::move(binding); }
  /// Sets a result that may share memory with the operand.
  void set_view(ValueId view, ValueId base) {
    out.alias(view, base);
    set_result(view);
  }

 private:
  int64_t settle(ValueId number, SourceLocation location) const;

  int id_;
  mutable std::vector<SettledNumber> settled_;  // changes while arguments are read
};

// The functions that lower aten operators, by the file that has them: `Lowering lower_conv`
// declares a function. The table is in table.cc.

// lower_convolution.cc
Lowering lower_conv, lower_convolution, lower_conv_transpose, lower_max_pool, lower_avg_pool,
    lower_adaptive_pool, lower_upsample, lower_pixel_shuffle, lower_unfold, lower_im2col,
    lower_col2im, lower_pixel_unshuffle, lower_grid_sampler, lower_topk, lower_sort;

// lower_linear.cc
Lowering lower_linear, lower_addmm, lower_addmv, lower_matmul, lower_grouped_mm, lower_baddbmm,
    lower_einsum, lower_embedding, lower_attention, lower_flash_attention, lower_native_attention,
    lower_encoder_layer;

// lower_normalisation.cc
Lowering lower_batch_norm, lower_batch_norm_of_statistics, lower_layer_norm, lower_rms_norm,
    lower_group_norm, lower_native_group_norm, lower_instance_norm, lower_weight_norm, lower_reduce,
    lower_max_min, lower_any, lower_arg, lower_norm, lower_frobenius_norm, lower_linalg_norm,
    lower_var;

// lower_elementwise.cc
Lowering lower_clamp, lower_hardtanh, lower_relu6, lower_leaky_relu, lower_rrelu, lower_elu,
    lower_gelu, lower_silu, lower_hard_sigmoid, lower_softplus, lower_log_sigmoid, lower_prelu,
    lower_glu, lower_shrink, lower_threshold, lower_softmax, lower_unary, lower_real, lower_binary,
    lower_nan_to_num, lower_logit, lower_hypot, lower_xlogy, lower_atan2, lower_add, lower_rsub,
    lower_div, lower_floor_divide, lower_rsqrt, lower_square, lower_ne, lower_log_of_base,
    lower_log1p, lower_expm1, lower_erfc, lower_trunc, lower_lerp, lower_where, lower_masked_fill,
    lower_addcmul, lower_trilu, lower_cumsum, lower_histc;

// lower_cast.cc
Lowering lower_same, lower_copy, lower_copy_into, lower_maybe_copy, lower_cast, lower_to,
    lower_type_as, lower_fill, lower_full, lower_eye, lower_complex_to, lower_full_like, lower_draw,
    lower_scalar_tensor, lower_arange, lower_linspace;

// lower_shape.cc
Lowering lower_view, lower_as_strided, lower_flatten, lower_unflatten, lower_permute,
    lower_transpose, lower_movedim, lower_t, lower_squeeze, lower_unsqueeze, lower_expand, lower_as,
    lower_repeat, lower_repeat_interleave, lower_channel_shuffle;

// lower_complex.cc
Lowering lower_complex_mul, lower_complex_div, lower_complex_add, lower_complex_matmul,
    lower_complex_einsum, lower_conj, lower_complex_abs, lower_part_of_complex, lower_view_as_real,
    lower_view_as_complex, lower_complex, lower_polar, lower_fft, lower_inner_fft;

// lower_indexing.cc
Lowering lower_gather, lower_index, lower_one_hot, lower_places, lower_scatter,
    lower_scatter_reduce, lower_index_add, lower_index_fill, lower_index_put, lower_embedding_bag,
    lower_cat, lower_stack, lower_stack_along, lower_meshgrid, lower_chunk, lower_split,
    lower_tensor_split, lower_unbind, lower_slice, lower_part, lower_flip, lower_narrow, lower_roll,
    lower_diff, lower_select, lower_pad;

// lower_recurrent.cc
Lowering lower_recurrent, lower_cell;
/// Returns an omitted operand's neutral number, repeated `size` times.
Operand or_synthetic(Call& call, size_t i, int64_t size, double number);
ValueId permuted(Call& call, ValueId value, const std::vector<int64_t>& perm);
ValueId reshaped(Call& call, ValueId value, const std::vector<int64_t>& sizes);
/// Returns a tensor filled with a number, of the sizes `sizes`; it is not a constant of the Graph.
ValueId filled_with(Call& call, ValueId sizes, double number, DType dtype);
/// Swaps the last two dimensions.
ValueId transposed(Call& call, ValueId value);
/// Returns the model's matrix that the value is the transpose of, else kNone.
ValueId underlying_matrix(Call& call, ValueId value);

}  // namespace parsimony::programs
