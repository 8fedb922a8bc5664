#include "parsimony/onnx_io/reader.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "parsimony/graph/errors.h"
#include "parsimony/onnx_io/errors.h"
#include "parsimony/onnx_io/node_impl.h"
#include "parsimony/onnx_io/reader_impl.h"

namespace parsimony::onnx_io {
namespace {

ModelError in_subgraph(std::string_view node, std::string_view attribute, const ModelError& error) {
  return ModelError("node ", in_quotes(node), ", ", attribute, ": ", error.what());
}

}  // namespace

Reader::Reader(Reading& reading)
    : reading_(reading), impl_(reading.impl), proto_(impl_.model.graph()), graph_(reading.graph) {
  add_opsets(impl_.model.opset_import());
  add_nodes(proto_.node());
  for (const auto& output : proto_.output()) results_.insert(output.name());
}

void Reader::read() {
  const size_t nodes = nodes_.size();
  const size_t initializers = proto_.initializer_size();
  if (prefix_.empty()) {
    graph_.values.reserve(nodes + initializers + 16);
    graph_.weights.reserve(initializers + 16);
    graph_.nodes.reserve(nodes);
  }
  ids_.reserve(2 * nodes + initializers);
  left_out_.resize(nodes);
  define_initializers();
  define_inputs();
  define_outputs();
  define_identities();
  forward_results();
  for (size_t n = 0; n < nodes_.size(); ++n) add_node(n);
  for (const auto& output : proto_.output()) {
    if (is_turn_) break;
    ValueId id = written_as(output.name());
    if (id == kNone) id = resolve(output.name());
    if (id == kNone) throw errors::missing_output(output.name());
    outputs().push_back(id);
    if (is_body()) graph_.value(id).captured = true;
  }
  declare_types();
  mark_annotated();
}

Reader::Reader(const Reader& around, const onnx::GraphProto& proto, BodyId id, std::string prefix)
    : reading_(around.reading_),
      impl_(around.impl_),
      proto_(proto),
      graph_(around.graph_),
      around_(&around),
      body_(id),
      calls_(around.calls_),
      function_(around.function_),
      attributes_(around.attributes_),
      prefix_(std::move(prefix)),
      opsets_(around.opsets_) {
  add_nodes(proto.node());
  for (const auto& output : proto.output()) results_.insert(output.name());
}

Reader::Reader(Reader& around, const onnx::NodeProto& call, const onnx::FunctionProto& function,
               int calls)
    : reading_(around.reading_),
      impl_(around.impl_),
      proto_(onnx::GraphProto::default_instance()),
      graph_(around.graph_),
      body_(around.body_),
      calls_(calls),
      function_(function.name()),
      attributes_(attributes_of(call, function)),
      prefix_(around.prefix_ + inside_call(call)) {
  add_opsets(function.opset_import());
  add_nodes(function.node());
  for (int i = 0; i < function.input_size(); ++i) {
    const bool given = i < call.input_size() && !call.input(i).empty();
    const ValueId id = given ? around.resolve(call.input(i)) : kNone;
    if (given && id == kNone) throw errors::missing_tensor(label_of(call), call.input(i));
    ids_[function.input(i)] = id;
  }
  for (int o = 0; o < std::min(function.output_size(), call.output_size()); ++o) {
    if (call.output(o).empty()) continue;
    results_.insert(function.output(o));
    given_[function.output(o)] = around.written_as(call.output(o));
  }
}

void Reader::add_opsets(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  for (const auto& import : imports) {
    opsets_[canonical_domain(import.domain())] = static_cast<int>(import.version());
  }
}

void Reader::add_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  nodes_.reserve(nodes.size());
  for (const onnx::NodeProto& node : nodes) {
    const bool own = function_.empty() || !refers(node);
    nodes_.push_back(own ? &node : &impl_.substituted.emplace_back(substituted(node, attributes_)));
  }
}

ValueId Reader::read_as(std::string_view name) const {
  const auto id = ids_.find(name);
  return id == ids_.end() ? kNone : id->second;
}

ValueId Reader::resolve(const std::string& name) const {
  const ValueId known = read_as(name);
  return known != kNone || around_ == nullptr ? known : around_->resolve(name);
}

BodyId Reader::read_body(const onnx::NodeProto& node, const std::string& attribute,
                         const onnx::GraphProto& proto) {
  const BodyId id = graph_.bodies.next_id();
  Body& added = graph_.bodies.emplace_back();
  added.attribute = attribute;
  added.around = body_;
  try {
    Reader(*this, proto, id, prefix_ + inside(node, attribute)).read();
  } catch (const ModelError& error) {
    throw in_subgraph(label_of(node), attribute, error);
  }
  return id;
}

void Reader::read_call(const onnx::NodeProto& call, int function) {
  try {
    Reader(*this, call, impl_.model.functions(function), reading_.functions.calls(function)).read();
  } catch (const ModelError& error) {
    throw in_subgraph(label_of(call), call.op_type(), error);
  }
}

Reader::Reader(Reader& around, const onnx::NodeProto& loop, const onnx::GraphProto& body)
    : Reader(around, body, around.body_, around.prefix_ + inside(loop, "body")) {
  is_turn_ = true;
  results_.clear();
  const auto scalar = [&](const std::string& name, DType type, int64_t number) {
    Scalars& scalars = impl_.scalars;
    auto& place = scalars.emplace_back();
    std::memcpy(place.data(), &number, sizeof(number));  // little-endian: of any width
    const ValueId id = define(name);
    attach(id, {prefix_ + name, type, {}, place.data(), size_of(type)});
  };
  scalar(body.input(0).name(), DType::kInt64, 0);
  if (loop.input(1).empty()) {
    scalar(body.input(1).name(), DType::kBool, 1);
  } else {
    ids_[body.input(1).name()] = around.resolve(loop.input(1));
  }
  for (int i = 2; i < loop.input_size(); ++i) {
    ids_[body.input(i).name()] = around.resolve(loop.input(i));
  }
}

std::optional<int64_t> Reader::constant(const std::string& name) const {
  const ValueId id = name.empty() ? kNone : resolve(name);
  const WeightId weight = id == kNone ? WeightId() : graph_.value(id).weight;
  if (weight == kNone || is_floating(graph_.weight(weight).dtype)) return std::nullopt;
  if (graph_.weight(weight).data == nullptr || graph_.weight(weight).count() != 1) {
    return std::nullopt;
  }
  return to_host(graph_.weight(weight)).ints[0];
}

const onnx::GraphProto* Reader::only_turn(const onnx::NodeProto& node) const {
  if (!is_standard(node, "Loop") || node.input_size() < 2 || node.attribute_size() != 1) {
    return nullptr;
  }
  const onnx::GraphProto& body = node.attribute(0).g();
  const bool collects_nothing =
      body.output_size() + 1 == node.input_size() && body.input_size() == node.input_size();
  const bool runs = node.input(1).empty() || constant(node.input(1)).value_or(0) != 0;
  return collects_nothing && runs && constant(node.input(0)) == 1 ? &body : nullptr;
}

void Reader::read_turn(const onnx::NodeProto& loop, const onnx::GraphProto& body) {
  try {
    Reader turn(*this, loop, body);
    turn.read();
    for (int o = 0; o < loop.output_size(); ++o) {
      if (loop.output(o).empty()) continue;
      const std::string& name = body.output(o + 1).name();
      ValueId id = turn.written_as(name);
      if (id == kNone) id = turn.resolve(name);
      if (id == kNone) throw errors::missing_output(name);
      Node& node = graph_.nodes.emplace_back();
      node.op = "Identity";
      node.opset = kLowestOpset;
      node.inputs = {id};
      node.outputs = {written_as(loop.output(o))};
      node.body = body_;
      node.calls = calls_;
    }
  } catch (const ModelError& error) {
    throw in_subgraph(label_of(loop), "body", error);
  }
}

void Reader::hold(ValueId id, std::string why) {
  graph_.value(id).captured = true;
  graph_.pinned_values.emplace_back(id, std::move(why));
}

void Reader::pin_reads(const onnx::NodeProto& node) {
  const auto pin = [&](const std::string& name) {
    const ValueId id = resolve(name);
    if (id != kNone) hold(id, "an operand of \"" + label_of(node) + "\", which has no results");
  };
  for (const std::string& name : node.input()) pin(name);
  for_each_body(node, [&](const std::string&, const onnx::GraphProto& proto) {
    for (const auto& inner : proto.node()) pin_reads(inner);
    for (const auto& output : proto.output()) pin(output.name());
  });
}

bool Reader::knows(std::string_view name) const {
  return ids_.contains(name) || (around_ != nullptr && around_->knows(name));
}

ValueId Reader::written_as(std::string_view name) const {
  const auto own = own_outputs_.find(name);
  return own == own_outputs_.end() ? read_as(name) : own->second;
}

void Reader::add_node(size_t n) {
  if (left_out_[n]) return;
  const onnx::NodeProto& from = *nodes_[n];
  if (key_of(from).empty()) return pin_reads(from);
  const int function = reading_.functions.called_by(from);
  if (function >= 0) return read_call(from, function);
  if (const onnx::GraphProto* turn = only_turn(from)) return read_turn(from, *turn);
  Node node;
  if (!from.name().empty()) node.name = prefix_ + from.name();
  node.body = body_;
  node.calls = calls_;
  node.op = from.op_type();
  node.domain = canonical_domain(from.domain());
  const auto opset = opsets_.find(node.domain);
  if (opset != opsets_.end()) node.opset = opset->second;
  for (const std::string& name : from.input()) {
    const ValueId id = name.empty() ? kNone : resolve(name);
    if (id == kNone && !name.empty() && !knows(name))
      throw errors::missing_tensor(label_of(from), name);
    node.inputs.push_back(id);
  }
  for (const std::string& name : from.output()) {
    node.outputs.push_back(name.empty() ? kNone : written_as(name));
  }
  read_attributes(from, impl_.external, node);
  for_each_body(from, [&](const std::string& attribute, const onnx::GraphProto& proto) {
    node.bodies.push_back(read_body(from, attribute, proto));
  });
  graph_.nodes.push_back(std::move(node));
}

void Reader::declare_value(const onnx::ValueInfoProto& info) {
  const ValueId id = written_as(info.name());
  if (id != kNone && graph_.value(id).weight == kNone) declare(info, graph_.value(id));
}

void Reader::declare_types() {
  for (const auto& info : proto_.value_info()) declare_value(info);
  for (const auto& info : proto_.output()) declare_value(info);
  if (is_turn_) return;  // operands have the types of the enclosing graph
  for (const auto& info : proto_.input()) declare_value(info);
}

void Reader::mark_annotated() {
  const auto mark = [&](const std::string& name) {
    const ValueId id = read_as(name);
    if (id != kNone) hold(id, "named by an annotation");
  };
  // One scale for all of a tensor fits what remains of it.
  const auto is_single = [&](const auto& entry) {
    const ValueId id = read_as(entry.value());
    const WeightId weight = id == kNone ? WeightId() : graph_.value(id).weight;
    return weight != kNone && graph_.weight(weight).count() == 1;
  };
  for (const auto& annotation : proto_.quantization_annotation()) {
    const auto& parameters = annotation.quant_parameter_tensor_names();
    if (std::ranges::all_of(parameters, is_single)) continue;
    mark(annotation.tensor_name());
    for (const auto& entry : parameters) mark(entry.value());
  }
}

namespace {

/// Rejects names that look like paths to names in bodies.
void check_paths(const Graph& graph) {
  const bool paths = std::ranges::any_of(
      graph.nodes, [](const Node& node) { return node.body != kNone || node.calls > 0; });
  if (!paths) return;
  absl::flat_hash_set<std::string_view> names;
  for (const Value& value : graph.values) {
    if (!names.insert(value.name).second) throw errors::defined_twice("value", value.name);
  }
}

/// External weights, with pending edits that are applied when they are read.
class FileSource final : public GraphSource {
 public:
  FileSource(const ExternalData& files, Reading& reading)
      : files_(files), edits_(std::move(reading.unmade)), unpacked_(std::move(reading.unpacked)) {}

  void release(const Weight& weight) const override {
    files_.release(weight.data, weight.count() * weight.stride);
  }
  std::vector<std::byte> make(const Weight& weight, int64_t first, int64_t count) const override {
    return edited_rows(*edits_.at(weight.name), weight.dtype, files_, first, count);
  }
  std::vector<std::optional<Shape>> infer(const NodeView& node) const override {
    auto shapes = shapes_by_schema(node);
    return shapes.empty() ? run_once(node) : shapes;
  }

 private:
  /// Inference asks for the same shapes again and again.
  std::vector<std::optional<Shape>> run_once(const NodeView& node) const {
    std::string key = std::to_string(node.graph().nodes.id_of(node.node()).number());
    for (int i = 0; i < node.inputs(); ++i) {
      const Shape* shape = node.in_shape(i);
      key += shape == nullptr ? "?" : to_string(*shape);
      const HostTensor* constant = node.constant(i);
      for (int64_t at = 0; constant != nullptr && at < constant->count(); ++at) {
        key += ' ' + std::to_string(constant->number(at));
      }
    }
    const std::lock_guard lock(mutex_);
    const auto [known, fresh] = runs_.try_emplace(key);
    if (fresh) known->second = shapes_by_running(node);
    return known->second;
  }

  mutable std::mutex mutex_;
  mutable std::map<std::string, std::vector<std::optional<Shape>>> runs_;
  const ExternalData& files_;
  std::map<std::string, const ExternalEdit*> edits_;
  std::deque<std::vector<std::byte>> unpacked_;  // which weights point into
};

constexpr size_t kMostNames = 3;

using Names = absl::flat_hash_set<std::string_view>;

void add_reads(const onnx::GraphProto& graph, Names& names) {
  for (const auto& output : graph.output()) names.insert(output.name());
  for (const onnx::NodeProto& node : graph.node()) {
    names.insert(node.input().begin(), node.input().end());
    for_each_body(
        node, [&](const std::string&, const onnx::GraphProto& body) { add_reads(body, names); });
  }
}

/// Returns a note on initializers that no node reads, if any. @param linked  the finished graph
std::optional<std::string> note_on_unread(const onnx::GraphProto& graph, const Graph& linked) {
  const bool all_read = std::ranges::none_of(linked.values, [](const Value& value) {
    return value.producer == kNone && !value.is_input && value.uses.empty();
  });
  if (all_read) return std::nullopt;
  Names read;
  add_reads(graph, read);
  std::vector<std::string> unread;
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    if (!read.contains(tensor.name())) unread.push_back('"' + tensor.name() + '"');
  }
  if (unread.empty()) return std::nullopt;
  std::string names = unread.front();
  for (size_t i = 1; i < std::min(unread.size(), kMostNames); ++i) names += ", " + unread[i];
  if (unread.size() > kMostNames) names += ", …";
  const bool one = unread.size() == 1;
  return "no node reads " +
         (one ? "initializer" : std::to_string(unread.size()) + " initializers") + " " + names +
         (one ? ", which is kept unchanged" : ", which are kept unchanged");
}

}  // namespace

Graph to_graph(const ModelFile& file, EditedData data) {
  try {
    Graph graph;
    Reading reading{file.impl(), graph, Functions(file.impl().model), {}, data, {}, {}};
    Reader(reading).read();
    graph.source = std::make_shared<FileSource>(file.impl().external, reading);
    const auto notes = static_cast<std::ptrdiff_t>(graph.notes.size());
    check_paths(graph);
    resolve_lists(graph);
    finish(graph);
    if (auto unread = note_on_unread(file.impl().model.graph(), graph)) {
      graph.notes.insert(graph.notes.begin() + notes, std::move(*unread));
    }
    return graph;
  } catch (const ModelError& error) {
    throw errors::bad_model(file.path(), error.what());
  }
}

}  // namespace parsimony::onnx_io
