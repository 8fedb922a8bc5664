// The transfer function of zeros: by the row's behaviour, or by operands' values.
#include "parsimony/graph/operators/zero.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "parsimony/graph/attributes.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {

/// clip(0) is 0 where the bounds enclose 0.
ZeroBehaviour zero_of_clip(const NodeView& view) {
  const auto bound = [&](std::string_view name, int input, double fallback) {
    if (const HostTensor* tensor = view.constant(input);
        tensor != nullptr && tensor->count() == 1) {
      return tensor->number(0);
    }
    return attr(view.node(), name, fallback);
  };
  const bool unknown = (view.has_input(1) && view.constant(1) == nullptr) ||
                       (view.has_input(2) && view.constant(2) == nullptr);
  return !unknown && bound("min", 1, -1) <= 0 && bound("max", 2, 1) >= 0 ? ZeroBehaviour::kFirst
                                                                         : ZeroBehaviour::kConstant;
}

/// Padding is zero only if its value is.
ZeroBehaviour zero_of_pad(const NodeView& view) {
  if (view.attr("mode", "constant") != "constant") return ZeroBehaviour::kZero;
  const Attribute* found = view.find("value");
  if (found != nullptr) {
    const auto* number = std::get_if<double>(found);
    return number != nullptr && *number == 0 ? ZeroBehaviour::kZero : ZeroBehaviour::kConstant;
  }
  if (!view.has_input(2)) return ZeroBehaviour::kZero;
  const HostTensor* value = view.constant(2);
  return value != nullptr && value->count() == 1 && value->number(0) == 0
             ? ZeroBehaviour::kZero
             : ZeroBehaviour::kConstant;
}

/// 0^p is 0 for p > 0, 1 for p = 0, infinite below.
ZeroBehaviour zero_of_pow(const NodeView& view) {
  const HostTensor* exponent = view.constant(1);
  if (exponent == nullptr || exponent->count() == 0) return ZeroBehaviour::kUndefined;
  double least = exponent->number(0);
  for (int64_t i = 1; i < exponent->count(); ++i) least = std::min(least, exponent->number(i));
  if (least < 0) return ZeroBehaviour::kUndefined;
  return least > 0 ? ZeroBehaviour::kQuotient : ZeroBehaviour::kConstant;
}

/// Filled with zeros unless `value` says otherwise.
ZeroBehaviour zero_of_constant_of_shape(const NodeView& view) {
  const Attribute* value = view.find("value");
  if (value == nullptr) return ZeroBehaviour::kZeros;
  const auto all_zero = [](const auto* list) {
    return list != nullptr && std::ranges::all_of(*list, [](auto v) { return v == 0; });
  };
  const bool zeros = all_zero(std::get_if<std::vector<double>>(value)) ||
                     all_zero(std::get_if<std::vector<int64_t>>(value));
  return zeros ? ZeroBehaviour::kZeros : ZeroBehaviour::kConstant;
}

/// A number repeated along new axes.
ZeroBehaviour zero_of_expand(const NodeView& view) {
  const HostTensor* x = view.constant(0);
  const bool zero = x != nullptr && x->count() == 1 && x->number(0) == 0;
  return zero ? ZeroBehaviour::kZeros : ZeroBehaviour::kZero;
}

namespace {

/// f(0) = 0 with default parameters; others may shift it.
bool keeps_zero(std::string activation) {
  for (char& c : activation) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::string_view kKeep[] = {"elu",      "leakyrelu", "relu",           "scaledtanh",
                                        "softsign", "tanh",      "thresholdedrelu"};
  return std::find(std::begin(kKeep), std::end(kKeep), activation) != std::end(kKeep);
}

/// A hidden unit without weights stays zero if what squashes it, and not only its gates, keeps
/// zero; `each` activations stand for one direction, the first `gates` of them for gates.
/// @source ONNX operators RNN, GRU and LSTM, opset 14
ZeroBehaviour zero_of_recurrence(const NodeView& view, size_t gates, size_t each) {
  const Attribute* found = view.find("activations");
  if (found == nullptr) return ZeroBehaviour::kProduct;
  const auto* names = std::get_if<std::vector<std::string>>(found);
  if (names == nullptr) return ZeroBehaviour::kShifted;
  for (size_t i = 0; i < names->size(); ++i) {
    if (i % each >= gates && !keeps_zero((*names)[i])) return ZeroBehaviour::kShifted;
  }
  return ZeroBehaviour::kProduct;
}

}  // namespace

ZeroBehaviour zero_of_rnn(const NodeView& view) { return zero_of_recurrence(view, 0, 1); }
ZeroBehaviour zero_of_gru(const NodeView& view) { return zero_of_recurrence(view, 1, 2); }
ZeroBehaviour zero_of_lstm(const NodeView& view) { return zero_of_recurrence(view, 1, 3); }

/// A product and an activation behind it; Clip's bounds are its parameters.
/// @source onnxruntime, ContribOperators.md: FusedConv, FusedGemm
ZeroBehaviour zero_of_fused(const NodeView& view) {
  const std::string activation = view.attr("activation", std::string_view{});
  if (activation.empty() || keeps_zero(activation)) return ZeroBehaviour::kProduct;
  const auto* bounds = attr_if<std::vector<double>>(view.node(), "activation_params");
  const bool encloses = activation == "Clip" && bounds != nullptr && bounds->size() == 2 &&
                        bounds->front() <= 0 && bounds->back() >= 0;
  return encloses ? ZeroBehaviour::kProduct : ZeroBehaviour::kShifted;
}

}  // namespace parsimony::operators

namespace parsimony {
namespace {

using Slices = std::span<const OperandSlice>;

SliceValue least(Slices operands, int from) {
  SliceValue content = SliceValue::kZero;
  for (const OperandSlice& each : operands) {
    if (!each.absent && each.operand >= from) content = std::min(content, each.content);
  }
  return content;
}

bool is_zero(const OperandSlice& slice) { return slice.content == SliceValue::kZero; }

/// Whether a present operand is zero.
bool is_zero(Slices operands, int operand) {
  return std::ranges::any_of(
      operands, [&](const OperandSlice& each) { return each.operand == operand && is_zero(each); });
}

/// The combination of all operands, except control operands.
bool all_zero(Slices operands, bool only_moves) {
  const auto counts = [&](const OperandSlice& each) {
    return !each.absent && (each.has_axis || !only_moves);
  };
  return std::ranges::any_of(operands, counts) &&
         std::ranges::all_of(
             operands, [&](const OperandSlice& each) { return !counts(each) || is_zero(each); });
}

/// One of the first two operands stops the other; along an axis that neither of them has, what is
/// added and has it decides alone.
bool is_stopped(Slices operands) {
  const auto factor = [](const OperandSlice& each) { return each.operand < 2; };
  const bool involved = std::ranges::any_of(
      operands, [&](const OperandSlice& each) { return factor(each) && each.has_axis; });
  return std::ranges::any_of(operands, [&](const OperandSlice& each) {
    return is_zero(each) && (factor(each) || (!involved && each.has_axis));
  });
}

bool quotient_is_zero(const OpSchema& schema, Slices operands) {
  const auto spoils = [&](const OperandSlice& each) {
    return (each.divides && is_zero(each)) ||
           (each.operand == schema.integers.zero_point && !is_zero(each));
  };
  return is_zero(operands, 0) && std::ranges::none_of(operands, spoils);
}

}  // namespace

SliceValue Transfer::operator()(Slices operands) const {
  const SliceValue constant = std::min(least(operands, 0), SliceValue::kConstant);
  const auto zero_if = [&](bool zero) { return zero ? SliceValue::kZero : constant; };
  const bool covered = std::ranges::any_of(
      operands, [](const OperandSlice& each) { return each.has_axis && !each.absent; });
  if (!covered && !operands.empty() && operands.front().absent) {
    if (!schema_.has(kPads)) return SliceValue::kVaries;
    return zero_if(behaviour_ == ZeroBehaviour::kZero);
  }
  switch (behaviour_) {
    case ZeroBehaviour::kZero:
      return zero_if(all_zero(operands, schema_.line.empty()));
    case ZeroBehaviour::kProduct:
      return is_stopped(operands) ? least(operands, 2) : constant;
    case ZeroBehaviour::kQuotient:
      return zero_if(quotient_is_zero(schema_, operands));
    case ZeroBehaviour::kFirst:
      return zero_if(is_zero(operands, 0));
    case ZeroBehaviour::kChoice:
      return zero_if(std::ranges::all_of(
          operands, [](const OperandSlice& each) { return each.operand == 0 || is_zero(each); }));
    case ZeroBehaviour::kNormalised: {
      const auto& [gain, shift, statistics] = schema_.norm;
      if (is_zero(operands, shift) && is_zero(operands, 0) && is_zero(operands, statistics)) {
        return SliceValue::kZero;
      }
      if (!is_zero(operands, gain)) return constant;
      return zero_if(is_zero(operands, shift));
    }
    case ZeroBehaviour::kZeros:
      return SliceValue::kZero;
    case ZeroBehaviour::kShifted:
    case ZeroBehaviour::kConstant:
    case ZeroBehaviour::kUndefined:
      break;
  }
  return constant;
}

}  // namespace parsimony
