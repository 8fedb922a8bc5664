// Rows of the tables of operators.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "parsimony/torch_io/script/call_impl.h"

namespace parsimony::torch_io::script {

/// An operator, and its name in ONNX where the function lowers several.
struct Name {
  // NOLINTNEXTLINE(google-explicit-constructor): any name is one
  Name(const char* own, const char* other = "") : aten(own), onnx(other) {}

  std::string_view aten;
  std::string_view onnx;
};

struct Family {
  Lowering* lower;
  std::vector<Name> names;
};

std::unordered_map<std::string_view, Rule> by_name(const std::vector<Family>& families);

}  // namespace parsimony::torch_io::script
