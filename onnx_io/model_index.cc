#include <algorithm>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/graph/blocks.h"
#include "parsimony/onnx_io/model_file_impl.h"
#include "parsimony/onnx_io/node_impl.h"

namespace parsimony::onnx_io {
namespace {

/// Before IR version 4 an initializer had to be listed as a graph input too.
constexpr int64_t kFirstIrWithPlainInitializers = 4;

/// Adds a node before all others, which are not moved in memory.
onnx::NodeProto& add_first(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  nodes.Add();
  for (int i = nodes.size() - 1; i > 0; --i) nodes.SwapElements(i, i - 1);
  return *nodes.Mutable(0);
}

onnx::TensorProto* make_constant(onnx::NodeProto& node, onnx::TensorProto tensor) {
  node.set_op_type("Constant");
  node.add_output(tensor.name());
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name("value");
  attribute.set_type(onnx::AttributeProto::TENSOR);
  *attribute.mutable_t() = std::move(tensor);
  return attribute.mutable_t();
}

template <typename Map>
std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> keys;
  keys.reserve(map.size());
  for (const auto& [key, value] : map) keys.push_back(key);
  std::ranges::sort(keys);
  return keys;
}

}  // namespace

ModelIndex::ModelIndex(onnx::ModelProto& model) : model_(model), functions_(model) {
  const size_t nodes = model.graph().node_size();
  nodes_.reserve(nodes);
  names_.reserve(2 * nodes);
  readers_.reserve(2 * nodes);
  constants_.reserve(nodes);
  index_nodes(add_graph(*model.mutable_graph(), "", nullptr, nullptr));
  find_roots();
  for (const Scope& scope : scopes_) count_reads(scope);
}

Scope& ModelIndex::add_graph(onnx::GraphProto& graph, std::string prefix, const Scope* around,
                             const onnx::NodeProto* owner) {
  Scope& scope = scopes_.emplace_back();
  scope.nodes = graph.mutable_node();
  scope.graph = &graph;
  scope.prefix = std::move(prefix);
  scope.around = around;
  scope.owner = owner;
  const auto define = [&](const std::string& name) {
    names_.insert(name);
    if (around != nullptr) scope.names.insert(name);
  };
  for (const auto& tensor : graph.initializer()) define(tensor.name());
  for (const auto& sparse : graph.sparse_initializer()) define(sparse.values().name());
  for (const auto& input : graph.input()) define(input.name());
  for (const auto& node : graph.node()) {
    for (const std::string& name : node.output()) define(name);
  }
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    constants_[scope.prefix + tensor.name()] = {&tensor, nullptr, true, &scope};
  }
  for (onnx::ValueInfoProto& input : *graph.mutable_input()) {
    inputs_[scope.prefix + input.name()] = &input;
  }
  return scope;
}

Scope& ModelIndex::add_function(onnx::FunctionProto& function, const Scope& around,
                                const onnx::NodeProto& call) {
  Scope& scope = scopes_.emplace_back();
  scope.nodes = function.mutable_node();
  scope.prefix = around.prefix + inside_call(call);
  scope.owner = &call;
  for (int o = 0; o < std::min(function.output_size(), call.output_size()); ++o) {
    if (!call.output(o).empty()) scope.results[function.output(o)] = around.own(call.output(o));
  }
  for (const std::string& name : function.input()) names_.insert(name);
  for (const auto& node : function.node())
    names_.insert(node.output().begin(), node.output().end());
  return scope;
}

void ModelIndex::index_nodes(Scope& scope) {
  for (onnx::NodeProto& node : *scope.nodes) {
    if (key_of(node).empty()) continue;
    const int function = functions_.called_by(node);
    if (function >= 0) {
      // Functions that are called several times are not changed.
      if (functions_.calls(function) > 1) continue;
      index_nodes(add_function(*model_.mutable_functions(function), scope, node));
      continue;
    }
    const std::string key = scope.own(key_of(node));
    nodes_[key] = {&node, &scope};
    if (is_identity(node)) identities_[key] = full_name(scope, node.input(0));
    if (is_standard(node, "Constant")) index_constant(scope, node);
    for_each_body(node, [&](const std::string& attribute, onnx::GraphProto& graph) {
      index_nodes(add_graph(graph, scope.prefix + inside(node, attribute), &scope, &node));
    });
  }
}

void ModelIndex::index_constant(Scope& scope, onnx::NodeProto& node) {
  const int at = value_attribute(node);
  if (at < 0) return;
  onnx::AttributeProto& attribute = *node.mutable_attribute(at);
  Constant& constant = constants_[scope.own(key_of(node))];
  constant.scope = &scope;
  if (attribute.has_t()) {
    constant.tensor = attribute.mutable_t();
  } else {
    constant.attribute = &attribute;
  }
}

void ModelIndex::count_reads(const Scope& scope) {
  const auto read = [&](const std::string& name) { ++readers_[full_name(scope, name)]; };
  for (const auto& node : *scope.nodes) {
    for (const std::string& name : node.input()) read(name);
  }
  if (scope.graph == nullptr) return;
  for (const auto& output : scope.graph->output()) read(output.name());
  for (const auto& annotation : scope.graph->quantization_annotation()) {
    for (const auto& entry : annotation.quant_parameter_tensor_names()) read(entry.value());
  }
}

std::string ModelIndex::full_name(const Scope& scope, const std::string& name) const {
  const Scope* at = &scope;
  while (at->around != nullptr && !at->names.contains(name)) at = at->around;
  return at->own(name);
}

Constant& ModelIndex::constant(const std::string& name) {
  const auto found = constants_.find(name);
  if (found == constants_.end()) {
    throw ModelError("the model has no tensor ", in_quotes(name), ".",
                     did_you_mean(name, keys_of(constants_)));
  }
  return found->second;
}

PlacedNode ModelIndex::node(const std::string& key) {
  const auto found = nodes_.find(key);
  if (found == nodes_.end()) {
    throw ModelError("the model has no node whose first output is ", in_quotes(key), ".",
                     did_you_mean(key, keys_of(nodes_)));
  }
  return found->second;
}

bool ModelIndex::holds_tensor(const std::string& name) const {
  const auto found = constants_.find(name);
  return found != constants_.end() && found->second.tensor != nullptr;
}

const std::string& ModelIndex::root_of(const std::string& name) const {
  const auto found = roots_.find(name);
  return found == roots_.end() ? name : found->second;
}

/// Visits every step once, however long chains of Identity nodes are.
void ModelIndex::find_roots() {
  roots_.clear();
  for (const auto& [output, input] : identities_) {
    std::vector<const std::string*> passed = {&output};
    const std::string* at = &input;
    while (passed.size() <= identities_.size()) {  // otherwise a cycle
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

std::string ModelIndex::fresh_name(const std::string& expected) const {
  std::string name = expected;
  for (int i = 2; names_.contains(name); ++i) name = expected + "_" + std::to_string(i);
  return name;
}

std::string ModelIndex::claim_name(const std::string& expected) {
  return *names_.insert(fresh_name(expected)).first;
}

onnx::TensorProto& ModelIndex::add(onnx::TensorProto tensor, Scope& scope) {
  const std::string name = tensor.name();
  const bool listed = model_.ir_version() < kFirstIrWithPlainInitializers;
  names_.insert(name);
  if (scope.around != nullptr) scope.names.insert(name);
  Constant& constant = constants_[scope.prefix + name];
  // Functions have no initializers, and an additional body input would have no argument.
  if (scope.graph == nullptr || (listed && !scope.is_main())) {
    onnx::NodeProto& node = add_first(*scope.nodes);
    constant = {make_constant(node, std::move(tensor)), nullptr, false, &scope};
    nodes_[scope.prefix + name] = {&node, &scope};
    return *constant.tensor;
  }
  onnx::GraphProto& graph = *scope.graph;
  if (listed) {
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
  constant = {&added, nullptr, true, &scope};
  return added;
}

void ModelIndex::drop_reader(const std::string& name) {
  const auto found = readers_.find(name);
  if (found == readers_.end()) return;
  if (--found->second == 0) unread_.insert(name);
}

void ModelIndex::set_input(const PlacedNode& placed, int input, const std::string& name) {
  onnx::NodeProto& node = *placed.node;
  while (node.input_size() <= input) node.add_input("");
  const std::string old = full_name(*placed.scope, node.input(input));
  node.set_input(input, name);
  const auto identity = identities_.find(placed.scope->own(key_of(node)));
  if (identity != identities_.end()) {
    identity->second = full_name(*placed.scope, name);
    find_roots();
  }
  ++readers_[full_name(*placed.scope, name)];
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
  std::unordered_set<std::string> removed;
  std::vector<std::string> work(unread_.begin(), unread_.end());
  while (!work.empty()) {
    const std::string name = std::move(work.back());
    work.pop_back();
    const auto identity = identities_.find(name);
    const bool constant = constants_.contains(name);
    if (readers(name) > 0 || (!constant && identity == identities_.end())) continue;
    if (!removed.insert(name).second || constant) continue;
    if (root_of(name) == name) {  // does not refer to a constant
      removed.erase(name);
      continue;
    }
    const std::string input = identity->second;
    if (--readers_[input] == 0) work.push_back(input);
    roots_.erase(name);
    identities_.erase(identity);
  }
  unread_.clear();
  if (removed.empty()) return;
  for (const std::string& name : removed) {
    constants_.erase(name);
    inputs_.erase(name);
    nodes_.erase(name);
    names_.erase(name);  // those inside bodies stay reserved
  }
  for (Scope& scope : scopes_) {
    if (scope.nodes == nullptr) continue;
    const auto is_removed = [&](const std::string& name) {
      return removed.contains(scope.own(name));
    };
    remove_if(*scope.nodes, [&](const onnx::NodeProto& node) {
      return std::ranges::any_of(node.output(), is_removed);
    });
    if (scope.graph == nullptr) continue;
    const auto named = [&](const auto& item) { return is_removed(item.name()); };
    remove_if(*scope.graph->mutable_initializer(), named);
    remove_if(*scope.graph->mutable_value_info(), named);
    if (scope.is_main()) remove_if(*scope.graph->mutable_input(), named);
  }
}

/// By the outputs of the nodes, with their path.
ModelIndex::Redirections ModelIndex::redirections(std::span<const BypassedNode> nodes) {
  Redirections found;
  for (const auto& [key, input] : nodes) {
    const PlacedNode placed = node(key);
    const auto refuse = [&](const std::string& why) {
      throw parsimony::errors::not_bypassed(label_of(*placed.node), why);
    };
    if (placed.node->output_size() != 1) refuse("it has several outputs");
    if (input < 0 || input >= placed.node->input_size() || placed.node->input(input).empty()) {
      refuse("it has no operand " + std::to_string(input));
    }
    const std::string& to = placed.node->input(input);
    found.try_emplace(full_name(*placed.scope, placed.node->output(0)),
                      Redirected{placed, to, full_name(*placed.scope, to)});
  }
  // What reads a sum that is read by another one goes where the first one leads.
  for (auto& [from, one] : found) {
    for (auto next = found.find(one.to_full); next != found.end(); next = found.find(one.to_full)) {
      one.to = next->second.to;
      one.to_full = next->second.to_full;
    }
  }
  return found;
}

void ModelIndex::bypass(std::span<const BypassedNode> nodes) {
  Redirections redirected = redirections(nodes);
  const auto refuse = [&](const Redirected& one, const std::string& why) {
    throw parsimony::errors::not_bypassed(label_of(*one.node.node), why);
  };
  struct Read {
    PlacedNode reader;
    int input;
    const std::string* to;
  };
  std::vector<Read> reads;
  for (Scope& scope : scopes_) {
    if (scope.nodes == nullptr) continue;
    for (int o = 0; scope.graph != nullptr && o < scope.graph->output_size(); ++o) {
      const auto found = redirected.find(full_name(scope, scope.graph->output(o).name()));
      if (found != redirected.end()) {
        refuse(found->second, "its result is an output of the network");
      }
    }
    for (onnx::NodeProto& reader : *scope.nodes) {
      for (int i = 0; i < reader.input_size(); ++i) {
        const auto found = redirected.find(full_name(scope, reader.input(i)));
        if (found == redirected.end()) continue;
        Redirected& one = found->second;
        ++one.seen;
        if (full_name(scope, one.to) != one.to_full)
          refuse(one, "its operand is hidden by another");
        reads.push_back({{&reader, &scope}, i, &one.to});
      }
    }
  }
  std::vector<PlacedNode> bypassed;
  for (const auto& [from, one] : redirected) {
    if (one.seen < readers(from)) refuse(one, "its result is described by an annotation");
    bypassed.push_back(one.node);
  }
  for (const Read& read : reads) set_input(read.reader, read.input, *read.to);
  for (const auto& [from, one] : redirected) unread_.erase(from);
  remove_unread(std::move(bypassed));
}

/// Removes the node from the readers of its operands, and of the values captured inside it.
void ModelIndex::drop_reads(const PlacedNode& placed, std::vector<std::string>& dropped,
                            std::unordered_set<const onnx::NodeProto*>& removed) {
  const auto drop = [&](const Scope& scope, const std::string& name) {
    if (name.empty()) return;
    dropped.push_back(full_name(scope, name));
    drop_reader(dropped.back());
  };
  for (const std::string& name : placed.node->input()) drop(*placed.scope, name);
  for (Scope& scope : scopes_) {
    if (scope.nodes == nullptr || scope.owner != placed.node) continue;
    for (int o = 0; scope.graph != nullptr && o < scope.graph->output_size(); ++o) {
      drop(scope, scope.graph->output(o).name());
    }
    for (onnx::NodeProto& inner : *scope.nodes) {
      if (removed.insert(&inner).second) drop_reads({&inner, &scope}, dropped, removed);
    }
  }
}

void ModelIndex::remove_unread(std::vector<PlacedNode> work) {
  absl::flat_hash_map<std::string, PlacedNode> producers;
  for (Scope& scope : scopes_) {
    if (scope.nodes == nullptr) continue;
    for (onnx::NodeProto& node : *scope.nodes) {
      for (const std::string& name : node.output()) producers[scope.own(name)] = {&node, &scope};
    }
  }
  std::unordered_set<const onnx::NodeProto*> removed;
  std::vector<PlacedNode> nodes;
  while (!work.empty()) {
    const PlacedNode placed = work.back();
    work.pop_back();
    const auto& outputs = placed.node->output();
    const auto unread = [&](const std::string& name) {
      return readers(placed.scope->own(name)) == 0;
    };
    if (removed.contains(placed.node) || !std::ranges::all_of(outputs, unread)) {
      continue;
    }
    removed.insert(placed.node);
    nodes.push_back(placed);
    std::vector<std::string> dropped;
    drop_reads(placed, dropped, removed);
    for (const std::string& name : dropped) {
      const auto producer = producers.find(name);
      const bool shows_constant = constants_.contains(root_of(name));
      if (readers(name) > 0 || producer == producers.end() || shows_constant) continue;
      unread_.erase(name);
      work.push_back(producer->second);
    }
  }
  erase(nodes);
}

void ModelIndex::erase(const std::vector<PlacedNode>& nodes) {
  std::unordered_set<const onnx::NodeProto*> removed;
  absl::flat_hash_map<Scope*, std::unordered_set<std::string>> names;
  for (const PlacedNode& placed : nodes) {
    removed.insert(placed.node);
    forget_inside(*placed.node);
    for (const std::string& name : placed.node->output()) {
      names[placed.scope].insert(name);
      const std::string full = placed.scope->own(name);
      nodes_.erase(full);
      identities_.erase(full);
      roots_.erase(full);
      names_.erase(full);  // those inside bodies stay reserved
    }
  }
  for (const auto& [scope, names_here] : names) {
    const auto& here = names_here;          // lambdas cannot capture bindings everywhere yet
    if (scope->nodes == nullptr) continue;  // removed with its owner
    remove_if(*scope->nodes, [&](const onnx::NodeProto& node) { return removed.contains(&node); });
    if (scope->graph == nullptr) continue;
    remove_if(*scope->graph->mutable_value_info(),
              [&](const onnx::ValueInfoProto& info) { return here.contains(info.name()); });
  }
}

/// Removes the bodies of a removed node, and everything that they define.
void ModelIndex::forget_inside(const onnx::NodeProto& owner) {
  for (Scope& scope : scopes_) {
    if (scope.nodes == nullptr || scope.owner != &owner) continue;
    for (const onnx::NodeProto& node : *scope.nodes) forget_inside(node);
    const auto inside_it = [&](const auto& entry) { return entry.first.starts_with(scope.prefix); };
    std::erase_if(constants_, inside_it);
    std::erase_if(identities_, inside_it);
    std::erase_if(roots_, inside_it);
    absl::erase_if(nodes_, inside_it);
    absl::erase_if(inputs_, inside_it);
    std::erase_if(unread_, [&](const std::string& name) { return name.starts_with(scope.prefix); });
    scope.nodes = nullptr;
    scope.graph = nullptr;
  }
}

}  // namespace parsimony::onnx_io
