#include <algorithm>
#include <utility>

#include "parsimony/onnx_io/constant_impl.h"
#include "parsimony/onnx_io/errors.h"
#include "parsimony/onnx_io/model_index_impl.h"
#include "parsimony/onnx_io/node_impl.h"
#include "parsimony/onnx_io/remove_if_impl.h"

namespace parsimony::onnx_io {
namespace {

/// Before IR version 4 an initializer had to be listed as a graph input too.
constexpr int64_t kFirstIrWithPlainInitializers = 4;

template <typename Map>
std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> keys;
  keys.reserve(map.size());
  for (const auto& [key, value] : map) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace

ModelIndex::ModelIndex(onnx::ModelProto& model) : model_(model) {
  const onnx::GraphProto& graph = model.graph();
  const auto nodes = static_cast<size_t>(graph.node_size());
  nodes_.reserve(nodes);
  names_.reserve(2 * nodes);
  readers_.reserve(2 * nodes);
  constants_.reserve(nodes);
  index_graph();
  find_roots();
  count_reads(graph);
}

void ModelIndex::index_graph() {
  onnx::GraphProto& graph = *model_.mutable_graph();
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    constants_[tensor.name()] = {&tensor, nullptr, true};
  }
  for (onnx::ValueInfoProto& input : *graph.mutable_input()) inputs_[input.name()] = &input;
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    const std::string& key = key_of(node);
    if (key.empty()) continue;
    nodes_[key] = &node;
    if (is_identity(node)) identities_[key] = node.input(0);
    if (!is_standard(node, "Constant")) continue;
    const int at = value_attribute(node);
    if (at < 0) continue;
    onnx::AttributeProto& attribute = *node.mutable_attribute(at);
    if (attribute.has_t()) {
      constants_[key] = {attribute.mutable_t(), nullptr, false};
    } else {
      constants_[key] = {nullptr, &attribute, false};
    }
  }
}

void ModelIndex::count_reads(const onnx::GraphProto& graph) {
  for (const auto& tensor : graph.initializer()) names_.insert(tensor.name());
  for (const auto& sparse : graph.sparse_initializer()) names_.insert(sparse.values().name());
  for (const auto& input : graph.input()) names_.insert(input.name());
  for (const auto& node : graph.node()) {
    for (const std::string& name : node.input()) ++readers_[name];
    for (const std::string& name : node.output()) names_.insert(name);
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) count_reads(attribute.g());
      for (const auto& subgraph : attribute.graphs()) count_reads(subgraph);
    }
  }
  for (const auto& output : graph.output()) ++readers_[output.name()];
  for (const auto& annotation : graph.quantization_annotation()) {
    for (const auto& entry : annotation.quant_parameter_tensor_names()) ++readers_[entry.value()];
  }
}

Constant& ModelIndex::constant(const std::string& name) {
  const auto found = constants_.find(name);
  if (found == constants_.end()) throw errors::unknown_tensor(name, keys_of(constants_));
  return found->second;
}

onnx::NodeProto& ModelIndex::node(const std::string& key) {
  const auto found = nodes_.find(key);
  if (found == nodes_.end()) throw errors::unknown_node(key, keys_of(nodes_));
  return *found->second;
}

bool ModelIndex::is_initializer(const std::string& name) const {
  const auto found = constants_.find(name);
  return found != constants_.end() && found->second.is_initializer;
}

const std::string& ModelIndex::root_of(const std::string& name) const {
  const auto found = roots_.find(name);
  return found == roots_.end() ? name : found->second;
}

/// Every step is taken once, however long a chain of Identity nodes is.
void ModelIndex::find_roots() {
  for (const auto& [output, input] : identities_) {
    std::vector<const std::string*> passed = {&output};
    const std::string* at = &input;
    while (passed.size() <= identities_.size()) {  // or else a circle
      if (const auto known = roots_.find(*at); known != roots_.end()) {
        at = &known->second;
        break;
      }
      const auto next = identities_.find(*at);
      if (next == identities_.end()) break;
      passed.push_back(at);
      at = &next->second;
    }
    const std::string root = *at;
    for (const std::string* each : passed) roots_.insert_or_assign(*each, root);
  }
  std::erase_if(roots_, [&](const auto& entry) { return !constants_.contains(entry.second); });
}

int ModelIndex::readers(const std::string& name) const {
  const auto found = readers_.find(name);
  return found == readers_.end() ? 0 : found->second;
}

std::string ModelIndex::fresh_name(const std::string& wanted) const {
  std::string name = wanted;
  for (int i = 2; names_.contains(name); ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

onnx::TensorProto& ModelIndex::add(onnx::TensorProto tensor) {
  onnx::GraphProto& graph = *model_.mutable_graph();
  const std::string name = tensor.name();
  if (model_.ir_version() < kFirstIrWithPlainInitializers) {
    onnx::ValueInfoProto& input = *graph.add_input();
    input.set_name(name);
    inputs_[name] = &input;
    onnx::TypeProto_Tensor& type = *input.mutable_type()->mutable_tensor_type();
    type.set_elem_type(tensor.data_type());
    type.mutable_shape();
    for (const int64_t dim : tensor.dims()) type.mutable_shape()->add_dim()->set_dim_value(dim);
  }
  onnx::TensorProto& added = *graph.add_initializer();
  added = std::move(tensor);
  constants_[name] = {&added, nullptr, true};
  names_.insert(name);
  return added;
}

void ModelIndex::drop_reader(const std::string& name) {
  const auto found = readers_.find(name);
  if (found == readers_.end()) return;
  if (--found->second == 0) unread_.insert(name);
}

void ModelIndex::set_input(onnx::NodeProto& node, int input, const std::string& name) {
  while (node.input_size() <= input) node.add_input("");
  const std::string old = node.input(input);
  node.set_input(input, name);
  ++readers_[name];
  drop_reader(old);
}

void ModelIndex::declare(const std::string& initializer, const Shape& dims) {
  const auto found = inputs_.find(initializer);
  if (found == inputs_.end()) return;
  onnx::ValueInfoProto& input = *found->second;
  if (!input.type().has_tensor_type()) return;
  onnx::TypeProto_Tensor& type = *input.mutable_type()->mutable_tensor_type();
  if (!type.has_shape() || type.shape().dim_size() != static_cast<int>(dims.size())) return;
  for (size_t d = 0; d < dims.size(); ++d) {
    onnx::TensorShapeProto_Dimension& dim = *type.mutable_shape()->mutable_dim(static_cast<int>(d));
    if (dim.has_dim_value()) dim.set_dim_value(dims[d]);
  }
}

void ModelIndex::purge() {
  std::unordered_set<std::string> gone;
  std::vector<std::string> work(unread_.begin(), unread_.end());
  while (!work.empty()) {
    const std::string name = std::move(work.back());
    work.pop_back();
    const auto identity = identities_.find(name);
    const bool constant = constants_.contains(name);
    if (readers(name) > 0 || (!constant && identity == identities_.end())) continue;
    if (!gone.insert(name).second || constant) continue;
    if (root_of(name) == name) {  // shows no constant: nothing of ours
      gone.erase(name);
      continue;
    }
    const std::string input = identity->second;
    if (--readers_[input] == 0) work.push_back(input);
    roots_.erase(name);
    identities_.erase(identity);
  }
  unread_.clear();
  if (gone.empty()) return;
  for (const std::string& name : gone) {
    constants_.erase(name);
    inputs_.erase(name);
    nodes_.erase(name);
    names_.erase(name);
  }
  onnx::GraphProto& graph = *model_.mutable_graph();
  const auto named = [&](const auto& item) { return gone.contains(item.name()); };
  remove_if(*graph.mutable_initializer(), named);
  remove_if(*graph.mutable_value_info(), named);
  remove_if(*graph.mutable_input(), named);
  remove_if(*graph.mutable_node(), [&](const onnx::NodeProto& node) {
    return std::any_of(node.output().begin(), node.output().end(),
                       [&](const std::string& name) { return gone.contains(name); });
  });
}

}  // namespace parsimony::onnx_io
