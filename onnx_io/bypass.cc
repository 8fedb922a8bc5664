// Takes a node out of a model, with what only it needed.
#include "parsimony/graph/bypass.h"

#include <algorithm>

#include "parsimony/onnx_io/model_index_impl.h"
#include "parsimony/onnx_io/node_impl.h"
#include "parsimony/onnx_io/remove_if_impl.h"

namespace parsimony::onnx_io {
namespace {

void check(const onnx::GraphProto& graph, const onnx::NodeProto& node, int input, int readers) {
  const auto refuse = [&](const std::string& why) {
    throw parsimony::errors::not_bypassed(label_of(node), why);
  };
  if (node.output_size() != 1) refuse("it has several outputs");
  if (input < 0 || input >= node.input_size() || node.input(input).empty()) {
    refuse("it has no operand " + std::to_string(input));
  }
  const std::string& name = node.output(0);
  const auto& outputs = graph.output();
  if (std::any_of(outputs.begin(), outputs.end(),
                  [&](const auto& o) { return o.name() == name; })) {
    refuse("its result is an output of the network");
  }
  int seen = 0;
  for (const onnx::NodeProto& reader : graph.node()) {
    seen += static_cast<int>(std::count(reader.input().begin(), reader.input().end(), name));
  }
  if (seen < readers) refuse("its result is read inside a subgraph");
}

}  // namespace

void ModelIndex::bypass(const std::string& key, int input) {
  onnx::NodeProto& node = this->node(key);
  check(model_.graph(), node, input, readers(node.output(0)));
  const std::string from = node.output(0);
  const std::string to = node.input(input);
  for (onnx::NodeProto& reader : *model_.mutable_graph()->mutable_node()) {
    for (int i = 0; i < reader.input_size(); ++i) {
      if (reader.input(i) == from) set_input(reader, i, to);
    }
  }
  unread_.erase(from);
  remove_unread(node);
}

void ModelIndex::remove_unread(onnx::NodeProto& first) {
  absl::flat_hash_map<std::string, onnx::NodeProto*> producers;
  for (onnx::NodeProto& node : *model_.mutable_graph()->mutable_node()) {
    for (const std::string& name : node.output()) producers[name] = &node;
  }
  std::unordered_set<const onnx::NodeProto*> gone;
  std::vector<onnx::NodeProto*> work = {&first};
  while (!work.empty()) {
    onnx::NodeProto& node = *work.back();
    work.pop_back();
    const auto unread = [&](const std::string& name) { return readers(name) == 0; };
    if (gone.contains(&node) || !std::all_of(node.output().begin(), node.output().end(), unread)) {
      continue;
    }
    gone.insert(&node);
    for (const std::string& name : node.input()) {
      if (name.empty()) continue;
      drop_reader(name);
      const auto producer = producers.find(name);
      const bool shows_constant = constants_.contains(root_of(name));
      if (readers(name) > 0 || producer == producers.end() || shows_constant) continue;
      unread_.erase(name);
      work.push_back(producer->second);
    }
  }
  erase(gone);
}

void ModelIndex::erase(const std::unordered_set<const onnx::NodeProto*>& nodes) {
  std::unordered_set<std::string> names;
  for (const onnx::NodeProto* node : nodes) {
    names.insert(node->output().begin(), node->output().end());
  }
  for (const std::string& name : names) {
    nodes_.erase(name);
    identities_.erase(name);
    roots_.erase(name);
    names_.erase(name);
  }
  onnx::GraphProto& graph = *model_.mutable_graph();
  remove_if(*graph.mutable_value_info(),
            [&](const onnx::ValueInfoProto& info) { return names.contains(info.name()); });
  remove_if(*graph.mutable_node(),
            [&](const onnx::NodeProto& node) { return nodes.contains(&node); });
}

}  // namespace parsimony::onnx_io
