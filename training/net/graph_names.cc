#include "parsimony/training/net/graph_names.h"

#include <unordered_map>

namespace parsimony::training {

std::vector<NamedParameter> by_graph_names(const GraphModuleImpl& net,
                                           const torch::OrderedDict<std::string, at::Tensor>& own) {
  std::unordered_map<const c10::TensorImpl*, std::string> names;
  for (const auto& [name, tensor] : net.weights()) {
    names.emplace(tensor.unsafeGetTensorImpl(), name);
  }
  std::vector<NamedParameter> result;
  for (const auto& item : own) {
    const auto known = names.find(item.value().unsafeGetTensorImpl());
    result.emplace_back(known == names.end() ? item.key() : known->second, item.value());
  }
  return result;
}

}  // namespace parsimony::training
