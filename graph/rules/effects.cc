// What a removed slice becomes, where that depends on the operands' values.
#include <algorithm>
#include <cctype>
#include <string>

#include "parsimony/graph/rules/rules.h"

namespace parsimony::rules {

/// clip(0) is 0 where the bounds enclose 0.
Effect effect_of_clip(const NodeView& view) {
  const auto bound = [&](std::string_view name, int input, double fallback) {
    if (const HostTensor* tensor = view.constant(input);
        tensor != nullptr && tensor->count() == 1) {
      return tensor->number(0);
    }
    const Attribute* found = view.find(name);
    const auto* number = found == nullptr ? nullptr : std::get_if<double>(found);
    return number == nullptr ? fallback : *number;
  };
  const bool unknown = (view.has_input(1) && view.constant(1) == nullptr) ||
                       (view.has_input(2) && view.constant(2) == nullptr);
  return !unknown && bound("min", 1, -1) <= 0 && bound("max", 2, 1) >= 0 ? Effect::kQuotient
                                                                         : Effect::kConstant;
}

/// What stands around a channel is no zero if the padding is none.
Effect effect_of_pad(const NodeView& view) {
  if (view.attr("mode", "constant") != "constant") return Effect::kZero;
  const Attribute* found = view.find("value");
  if (found != nullptr) {
    const auto* number = std::get_if<double>(found);
    return number != nullptr && *number == 0 ? Effect::kZero : Effect::kConstant;
  }
  if (!view.has_input(2)) return Effect::kZero;
  const HostTensor* value = view.constant(2);
  return value != nullptr && value->count() == 1 && value->number(0) == 0 ? Effect::kZero
                                                                          : Effect::kConstant;
}

/// 0^p is 0 for p > 0, 1 for p = 0, infinite below.
Effect effect_of_pow(const NodeView& view) {
  const HostTensor* exponent = view.constant(1);
  if (exponent == nullptr || exponent->count() == 0) return Effect::kUndefined;
  double least = exponent->number(0);
  for (int64_t i = 1; i < exponent->count(); ++i) least = std::min(least, exponent->number(i));
  if (least < 0) return Effect::kUndefined;
  return least > 0 ? Effect::kQuotient : Effect::kConstant;
}

/// Filled with zeros unless `value` says otherwise.
Effect effect_of_constant_of_shape(const NodeView& view) {
  const Attribute* value = view.find("value");
  if (value == nullptr) return Effect::kZeros;
  const auto all_zero = [](const auto* list) {
    return list != nullptr &&
           std::all_of(list->begin(), list->end(), [](auto v) { return v == 0; });
  };
  const bool zeros = all_zero(std::get_if<std::vector<double>>(value)) ||
                     all_zero(std::get_if<std::vector<int64_t>>(value));
  return zeros ? Effect::kZeros : Effect::kConstant;
}

namespace {

/// f(0) = 0, with parameters as they are by default; others move it.
bool keeps_zero(std::string activation) {
  for (char& c : activation) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::string_view kKeep[] = {"elu",      "leakyrelu", "relu",           "scaledtanh",
                                        "softsign", "tanh",      "thresholdedrelu"};
  return std::find(std::begin(kKeep), std::end(kKeep), activation) != std::end(kKeep);
}

}  // namespace

/// A product and an activation behind it; Clip's bounds are its parameters.
/// @source onnxruntime, ContribOperators.md: FusedConv, FusedGemm
Effect effect_of_fused(const NodeView& view) {
  const std::string activation = view.attr("activation", std::string_view{});
  if (activation.empty() || keeps_zero(activation)) return Effect::kProduct;
  const Attribute* found = view.find("activation_params");
  const auto* bounds = found == nullptr ? nullptr : std::get_if<std::vector<double>>(found);
  const bool encloses = activation == "Clip" && bounds != nullptr && bounds->size() == 2 &&
                        bounds->front() <= 0 && bounds->back() >= 0;
  return encloses ? Effect::kProduct : Effect::kShifted;
}

/// A hidden unit without weights stays zero if what squashes it, and not only its gates, keeps
/// zero: f of RNN, g of GRU, g and h of LSTM, for each direction.
/// @source ONNX operators RNN, GRU and LSTM, opset 14
Effect effect_of_recurrence(const NodeView& view) {
  const Attribute* found = view.find("activations");
  if (found == nullptr) return Effect::kProduct;
  const auto* names = std::get_if<std::vector<std::string>>(found);
  if (names == nullptr) return Effect::kShifted;
  const size_t gates = view.node().op == "RNN" ? 0 : 1;  // the first of each direction
  const size_t each = view.node().op == "LSTM" ? 3 : view.node().op == "GRU" ? 2 : 1;
  for (size_t i = 0; i < names->size(); ++i) {
    if (i % each >= gates && !keeps_zero((*names)[i])) return Effect::kShifted;
  }
  return Effect::kProduct;
}

}  // namespace parsimony::rules
