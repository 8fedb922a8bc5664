// Takes a node out of a model, with what only it needed.
#include <algorithm>

#include "parsimony/graph/blocks.h"
#include "parsimony/onnx_io/model_index_impl.h"
#include "parsimony/onnx_io/node_impl.h"

namespace parsimony::onnx_io {

void ModelIndex::check_bypass(const PlacedNode& placed, int input) const {
  const onnx::NodeProto& node = *placed.node;
  const auto refuse = [&](const std::string& why) {
    throw parsimony::errors::not_bypassed(label_of(node), why);
  };
  if (node.output_size() != 1) refuse("it has several outputs");
  if (input < 0 || input >= node.input_size() || node.input(input).empty()) {
    refuse("it has no operand " + std::to_string(input));
  }
  const std::string from = full_name(*placed.scope, node.output(0));
  const std::string to = full_name(*placed.scope, node.input(input));
  int seen = 0;
  for (const Scope& scope : scopes_) {
    if (scope.nodes == nullptr) continue;
    for (int o = 0; scope.graph != nullptr && o < scope.graph->output_size(); ++o) {
      const onnx::ValueInfoProto& output = scope.graph->output(o);
      if (full_name(scope, output.name()) == from) refuse("its result is an output of the network");
    }
    for (const onnx::NodeProto& reader : *scope.nodes) {
      for (const std::string& name : reader.input()) {
        if (full_name(scope, name) != from) continue;
        ++seen;
        if (full_name(scope, node.input(input)) != to) refuse("its operand is hidden by another");
      }
    }
  }
  if (seen < readers(from)) refuse("its result is described by an annotation");
}

void ModelIndex::bypass(const std::string& key, int input) {
  const PlacedNode placed = node(key);
  check_bypass(placed, input);
  const std::string from = full_name(*placed.scope, placed.node->output(0));
  const std::string to = placed.node->input(input);
  for (Scope& scope : scopes_) {
    if (scope.nodes == nullptr) continue;
    for (onnx::NodeProto& reader : *scope.nodes) {
      for (int i = 0; i < reader.input_size(); ++i) {
        if (full_name(scope, reader.input(i)) == from) set_input({&reader, &scope}, i, to);
      }
    }
  }
  unread_.erase(from);
  remove_unread(placed);
}

/// Removes the node from the readers of its operands, and of the values captured inside it.
void ModelIndex::drop_reads(const PlacedNode& placed, std::vector<std::string>& dropped) {
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
      drop_reads({&inner, &scope}, dropped);
    }
  }
}

void ModelIndex::remove_unread(const PlacedNode& first) {
  absl::flat_hash_map<std::string, PlacedNode> producers;
  for (Scope& scope : scopes_) {
    if (scope.nodes == nullptr) continue;
    for (onnx::NodeProto& node : *scope.nodes) {
      for (const std::string& name : node.output()) producers[scope.own(name)] = {&node, &scope};
    }
  }
  std::unordered_set<const onnx::NodeProto*> gone;
  std::vector<PlacedNode> nodes;
  std::vector<PlacedNode> work = {first};
  while (!work.empty()) {
    const PlacedNode placed = work.back();
    work.pop_back();
    const auto& outputs = placed.node->output();
    const auto unread = [&](const std::string& name) {
      return readers(placed.scope->own(name)) == 0;
    };
    if (gone.contains(placed.node) || !std::ranges::all_of(outputs, unread)) {
      continue;
    }
    gone.insert(placed.node);
    nodes.push_back(placed);
    std::vector<std::string> dropped;
    drop_reads(placed, dropped);
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
  std::unordered_set<const onnx::NodeProto*> gone;
  absl::flat_hash_map<Scope*, std::unordered_set<std::string>> names;
  for (const PlacedNode& placed : nodes) {
    gone.insert(placed.node);
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
    if (scope->nodes == nullptr) continue;  // went with its owner
    remove_if(*scope->nodes, [&](const onnx::NodeProto& node) { return gone.contains(&node); });
    if (scope->graph == nullptr) continue;
    remove_if(*scope->graph->mutable_value_info(),
              [&](const onnx::ValueInfoProto& info) { return here.contains(info.name()); });
  }
}

/// The bodies of a node that goes, and all that they define.
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
