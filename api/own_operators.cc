#include "parsimony/api/own_operators.h"

#include "parsimony/engines/onnx_runtime.h"
#include "parsimony/graph/operators/rules_file.h"

namespace parsimony {
namespace {

OwnOperators& added() {
  static OwnOperators operators;
  return operators;
}

}  // namespace

void add_own_operators(const OwnOperators& own) {
  for (const std::string& path : own.libraries) {
    runtime::add_kernel_library(path);
    added().libraries.push_back(path);
  }
  for (const std::string& path : own.rules) {
    add_rules(path);
    added().rules.push_back(path);
  }
}

const OwnOperators& own_operators() { return added(); }

}  // namespace parsimony
