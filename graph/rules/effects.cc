// What a removed slice becomes, where that depends on the operands' values.
#include "parsimony/graph/rules/rules.h"

namespace parsimony::rules {

/// clip(0) is 0 where the bounds enclose 0.
Effect effect_of_clip(const NodeView& view) {
  const auto bound = [&](std::string_view name, int input, double fallback) {
    if (const HostTensor* tensor = view.constant(input); tensor != nullptr && tensor->count() == 1) {
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

/// 0^p is 0 for p > 0, 1 for p = 0, infinite below.
Effect effect_of_pow(const NodeView& view) {
  const HostTensor* exponent = view.constant(1);
  if (exponent == nullptr || exponent->count() != 1 || exponent->number(0) > 0) return Effect::kQuotient;
  return exponent->number(0) == 0 ? Effect::kConstant : Effect::kUndefined;
}

}  // namespace parsimony::rules
