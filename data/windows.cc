#include <algorithm>

#include "parsimony/data/windows_impl.h"

namespace parsimony {
namespace {

/// `option` says how long a window is.
ConfigError no_window_input(std::string_view input, std::string_view dims,
                            std::string_view option) {
  return ConfigError("input ", in_quotes(input), " ", dims,
                     " (-1 is any size) takes no windows [samples, length], or their length is "
                     "open: give it with ",
                     option);
}

}  // namespace

ConfigError too_short(std::string_view file, int64_t found, int64_t wanted) {
  return ConfigError(file, ": ", found, " elements, and one window has ", wanted);
}

Shape window_of(const Value& input, std::optional<int64_t> length, std::string_view option) {
  const Shape declared = input.declared.value_or(Shape{-1, -1});
  if (declared.size() < 2) throw no_window_input(input.name, to_string(declared), option);
  Shape window(declared.begin() + 1, declared.end());
  if (window.back() < 1) window.back() = length.value_or(-1);
  for (size_t i = 0; i + 1 < window.size(); ++i) window[i] = std::max<int64_t>(1, window[i]);
  if (window.back() < 1 || element_count(window) != window.back()) {
    throw no_window_input(input.name, to_string(declared), option);
  }
  return window;
}

TensorBytes empty_rows(DType dtype, const Shape& window, int64_t count) {
  TensorBytes result;
  result.dtype = dtype;
  result.dims = window;
  result.dims.insert(result.dims.begin(), count);
  result.bytes.resize(static_cast<size_t>(element_count(result.dims) * size_of(dtype)));
  return result;
}

}  // namespace parsimony
