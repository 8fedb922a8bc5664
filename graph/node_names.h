// What exporters say in the names of nodes.
#pragma once

#include <string>
#include <string_view>

namespace parsimony {

/// "/layer1/layer1.0/conv1/Conv", as torch's exporter names nodes, is module "layer1.0.conv1";
/// empty for other names.
std::string module_of_node_name(std::string_view name);

}  // namespace parsimony
