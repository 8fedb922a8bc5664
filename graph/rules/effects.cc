// What a removed slice becomes, where that depends on the operands' values.
#include <algorithm>

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

}  // namespace parsimony::rules
