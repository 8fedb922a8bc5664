#include "parsimony/graph/node_names.h"

namespace parsimony {

std::string module_of_node_name(std::string_view name) {
  if (!name.starts_with('/')) return {};
  std::string path;
  std::string_view last;  // "layer1" is repeated within "layer1.0": a container has no call
  while (true) {
    name.remove_prefix(1);
    const size_t slash = name.find('/');
    if (slash == std::string_view::npos) return path;
    const std::string_view part = name.substr(0, slash);
    const bool repeats = !last.empty() && part.starts_with(last) && part.size() > last.size() &&
                         part[last.size()] == '.';
    if (!repeats && !path.empty()) path += '.';
    path += repeats ? part.substr(last.size()) : part;
    last = part;
    name.remove_prefix(slash);
  }
}

}  // namespace parsimony
