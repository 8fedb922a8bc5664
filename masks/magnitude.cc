#include "parsimony/masks/magnitude.h"

#include "parsimony/graph/errors.h"

namespace parsimony {

bool has_magnitude(DType type) {
  return is_floating(type) || is_small_integer(type) || type == DType::kInt16 ||
         type == DType::kUInt16;
}

void reject_nan(const Weight& weight) {
  visit_magnitude(weight, [&]<typename Source>(Source) {
    const int64_t count = weight.count();
    for (int64_t i = 0; i < count; ++i) {
      if (std::isnan(Source::at(weight.data + i * weight.stride))) {
        throw errors::nan_weight(weight.name, i);
      }
    }
  });
}

}  // namespace parsimony
