#include "parsimony/masks/errors.h"

#include <string>

namespace parsimony::errors {

UnsupportedError no_magnitude(std::string_view tensor, std::string_view dtype) {
  return UnsupportedError("tensor " + in_quotes(tensor) + ": elements of type " +
                          std::string(dtype) +
                          " are not ranked; wanted floating point or 8-bit integers");
}

ModelError bad_tensor_file(std::string_view file, std::string_view why) {
  return ModelError(std::string(file) + ": not a safetensors file: " + std::string(why));
}

ModelError bad_tensor(std::string_view file, std::string_view tensor, std::string_view why) {
  return ModelError(std::string(file) + ": tensor " + in_quotes(tensor) + ": " + std::string(why));
}

UnsupportedError tensor_dtype(std::string_view file, std::string_view tensor,
                              std::string_view dtype) {
  return UnsupportedError(std::string(file) + ": tensor " + in_quotes(tensor) +
                          ": elements of type " + in_quotes(dtype) +
                          " are not read; wanted BOOL, an integer type, F16, BF16, F32 or F64");
}

ModelError mask_does_not_fit(std::string_view tensor, const Shape& mask, const Shape& found) {
  return ModelError("the mask of tensor " + in_quotes(tensor) + " has shape " + to_string(mask) +
                    ", the tensor " + to_string(found));
}

ModelError unwritable_tensor(std::string_view tensor, std::string_view why) {
  return ModelError("tensor " + in_quotes(tensor) + " cannot be written: " + std::string(why));
}

}  // namespace parsimony::errors
