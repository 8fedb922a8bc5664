#include <numeric>
#include <string>
#include <utility>

#include "parsimony/torch_io/exported/sizes_impl.h"

namespace parsimony::torch_io::exported {

using Json = nlohmann::ordered_json;

int64_t hint_of(const Json& size) {
  if (size.contains("as_int")) return size["as_int"].get<int64_t>();
  const Json& expression = size["as_expr"];
  const bool known = expression.contains("hint") && expression["hint"].is_object();
  return known ? expression["hint"].value("as_int", int64_t{1}) : 1;
}

namespace {

/// The size by `after / before`. @source sympy's srepr, in which expressions are written
Json scaled(Json size, int64_t before, int64_t after) {
  if (before == after || before == 0) return size;
  if (size.contains("as_int")) return Json{{"as_int", after}};
  Json& expression = size["as_expr"];
  const int64_t common = std::gcd(before, after);
  const std::string factor = common == before ? "Integer(" + std::to_string(after / common) + ")"
                                              : "Rational(" + std::to_string(after / common) +
                                                    ", " + std::to_string(before / common) + ")";
  expression["expr_str"] = "Mul(" + factor + ", " + expression["expr_str"].get<std::string>() + ")";
  if (expression.contains("hint") && expression["hint"].is_object()) {
    expression["hint"] = {{"as_int", hint_of(size) * after / before}};
  }
  return size;
}

}  // namespace

void resize(Json& meta, const ShapeChange& change) {
  Json& sizes = meta["sizes"];
  Json& strides = meta["strides"];
  const size_t rank = sizes.size();
  if (change.before.size() != rank || change.after.size() != rank || strides.size() != rank) return;
  const Json old = strides;
  for (size_t d = 0; d < rank; ++d) {
    if (change.before[d] == change.after[d]) continue;
    for (size_t outer = 0; outer < rank; ++outer) {
      if (hint_of(old[outer]) > hint_of(old[d])) {
        const int64_t stride = hint_of(strides[outer]);
        strides[outer] =
            scaled(strides[outer], stride, stride / change.before[d] * change.after[d]);
      }
    }
    sizes[d] = scaled(sizes[d], change.before[d], change.after[d]);
  }
}

}  // namespace parsimony::torch_io::exported
