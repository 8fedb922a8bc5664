#include "parsimony/onnx_io/export/export.h"

#include <onnx/checker.h>
#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/onnx_io/export/lowering_impl.h"
#include "parsimony/onnx_io/graph_file_impl.h"

namespace parsimony::onnx_io {
namespace {

/// Returns a note on the program line that calls the operator, which may be empty.
std::string where_called(std::string_view line) {
  return line.empty() ? std::string() : ", called in " + std::string(line);
}

/// The operator has a counterpart in ONNX, but not for this use.
UnsupportedError not_lowered(std::string_view op, std::string_view node, std::string_view why) {
  return UnsupportedError("node ", in_quotes(node), " cannot be exported: ", op, ": ", why);
}

/// ONNX's checker rejected the exported model.
ModelError checker_says(std::string_view why) {
  return ModelError("ONNX's checker rejects the exported model: ", why);
}

/// The known sizes of a network during export: with a dynamic batch, those in which two batches
/// agree.
class Sizes {
 public:
  /// @throws UnsupportedError if the batch is dynamic and the graph accepts no other size
  Sizes(const Graph& graph, const std::vector<InputSpec>& inputs, bool open_batch);

  const Facts& facts() const { return facts_; }
  bool open_batch() const { return other_.has_value(); }
  /// Returns the elements if they follow from the sizes alone and are equal for every batch, else
  /// null.
  const HostTensor* constant(ValueId value) const;
  /// Returns whether two dimensions have one size, with every batch.
  bool same(ValueId a, size_t a_dim, ValueId b, size_t b_dim) const {
    const auto in = [&](const Facts& facts) {
      const auto& x = facts.shapes[a];
      const auto& y = facts.shapes[b];
      return x && y && a_dim < x->size() && b_dim < y->size() && (*x)[a_dim] == (*y)[b_dim];
    };
    return in(facts_) && (!other_ || in(*other_));
  }
  size_t rank(ValueId value) const {
    return facts_.shapes[value] ? facts_.shapes[value]->size() : 0;
  }
  /// Returns whether the value is a number that was specified: the network is specialised for it,
  /// so it is no longer an input.
  bool fixed_input(ValueId value) const;
  /// Returns sizes, with -1 for symbolic ones, and their names. Empty if the rank is unknown.
  std::pair<Shape, std::vector<std::string>> declared(ValueId value) const;

 private:
  const Graph& graph_;
  std::vector<InputSpec> inputs_;
  Facts facts_;
  std::optional<Facts> other_;  ///< for another batch
};

// Added to the batch: 1 would turn one image into two, and 2 is a common size in networks.
constexpr int64_t kMore = 2;

Facts facts_for(const Graph& graph, const std::vector<InputSpec>& inputs) {
  Graph sized = graph;
  for (size_t i = 0; i < inputs.size() && i < sized.inputs.size(); ++i) {
    sized.value(sized.inputs[i]).declared = inputs[i].dims;
  }
  return infer(sized, {.inputs = inputs});
}

Sizes::Sizes(const Graph& graph, const std::vector<InputSpec>& inputs, bool open_batch)
    : graph_(graph), inputs_(inputs), facts_(facts_for(graph, inputs)) {
  if (!open_batch) return;
  try {
    other_ = facts_for(graph, with_other_batch(inputs));
  } catch (const ShapeError& error) {
    throw UnsupportedError("the batch cannot be dynamic: ", error.what(),
                           ". Use -1 where the program hard-codes that size, as a trace of C++ "
                           "code does with x.size(0), or export with the required batch");
  }
}

const HostTensor* Sizes::constant(ValueId value) const {
  const auto& known = facts_.constants[value];
  if (!known || graph_.value(value).weight != kNone) return nullptr;
  if (other_ && other_->constants[value] != known) return nullptr;
  return &*known;
}

bool Sizes::fixed_input(ValueId value) const {
  for (size_t i = 0; i < inputs_.size() && i < graph_.inputs.size(); ++i) {
    if (graph_.inputs[i] == value) return inputs_[i].value.has_value();
  }
  return false;
}

std::pair<Shape, std::vector<std::string>> Sizes::declared(ValueId value) const {
  const auto& shape = facts_.shapes[value];
  if (!shape) throw not_lowered("", graph_.value(value).name, "its shape is unknown");
  Shape dims = *shape;
  std::vector<std::string> symbols(dims.size());
  if (!other_) return {dims, symbols};
  const auto& other = other_->shapes[value];
  for (size_t d = 0; d < dims.size(); ++d) {
    if (other && other->size() == dims.size() && (*other)[d] == dims[d]) continue;
    const bool batch =
        other && !inputs_.empty() && !inputs_[0].dims.empty() && dims[d] == inputs_[0].dims[0];
    dims[d] = -1;
    if (batch) symbols[d] = kBatchSymbol;
  }
  return {dims, symbols};
}

std::string text(const Node& node, std::string_view attribute) {
  return attr(node, attribute, std::string_view{});
}

class Exporter {
 public:
  Exporter(const Graph& source, Sizes sizes, const ExportOptions& options)
      : source_(source), sizes_(std::move(sizes)), options_(options) {}

  Graph& run() {
    refuse_effects();
    find_live();
    define_inputs();
    for (const NodeId n : source_.nodes.ids()) {
      if (live_[n]) write(source_.nodes[n]);
    }
    define_outputs();
    if (options_.fold_batchnorm) fold_batchnorm(out_);
    return out_.graph();
  }

 private:
  void refuse_effects() const {
    for (const Node& node : source_.nodes) {
      if (!text(node, "effect").empty()) {
        // What the next run reads does not matter to one run of what is known.
        if (options_.keeps_weights && followed_schema(node) != nullptr) continue;
        if (node.has_subgraph) refuse(node);
        throw UnsupportedError(text(node, "call"),
                               " cannot be exported: it writes into a tensor or an attribute that "
                               "is visible elsewhere",
                               where_called(text(node, "line")),
                               ". Return the new tensor instead, and let state be an input and an "
                               "output of \"forward\"");
      }
    }
  }

  /// Finds the nodes that outputs depend on and that are not constant.
  void find_live() {
    live_.assign(source_.nodes.size(), false);
    for (const ValueId output : source_.outputs) read_.insert(output);
    for (const NodeId n : source_.nodes.reversed_ids()) {
      const Node& node = source_.nodes[n];
      live_[n] = std::ranges::any_of(node.outputs, [&](ValueId v) {
        return read_.contains(v) && sizes_.constant(v) == nullptr;
      });
      if (!live_[n]) continue;
      const std::vector<ValueId> inputs = inputs_of(node);
      read_.insert(inputs.begin(), inputs.end());
      for (const BodyId body : node.bodies) {
        const std::vector<ValueId>& results = source_.bodies[body].outputs;
        read_.insert(results.begin(), results.end());
      }
    }
  }

  /// Returns what the node reads in the exported graph.
  std::vector<ValueId> inputs_of(const Node& node) const {
    std::vector<ValueId> inputs = node.inputs;
    if (node.op != "MatMul" || !node.domain.empty()) return inputs;
    // One of the two has to keep the leading axes.
    inputs[1] = unrepeated(node.inputs[1], node.inputs[0]);
    if (inputs[1] == node.inputs[1]) inputs[0] = unrepeated(node.inputs[0], node.inputs[1]);
    return inputs;
  }

  /// Returns what `x` repeats along leading axes that `other` has, too, else `x`: MatMul broadcasts
  /// it. Decomposed programs repeat a weight for each position, which costs memory only in ONNX.
  ValueId unrepeated(ValueId x, ValueId other) const {
    const size_t rank = sizes_.rank(x);
    if (rank < 3 || sizes_.rank(other) != rank) return x;
    for (size_t d = 0; d + 2 < rank; ++d) {
      if (!sizes_.same(x, d, other, d)) return x;
    }
    for (ValueId whole = x; source_.value(whole).producer != kNone;) {
      const Node& made = source_.nodes[source_.value(whole).producer];
      const bool expands = made.op == "Expand";
      if (!made.domain.empty() || (!expands && made.op != "Reshape")) return x;
      whole = made.inputs[0];
      const size_t before = sizes_.rank(whole);
      if (before < 2 || (!expands && before != rank)) return x;
      for (size_t d = expands ? rank - 2 : 0; d < rank; ++d) {
        if (!sizes_.same(x, d, whole, d + before - rank)) return x;
      }
      if (expands) return whole;
    }
    return x;
  }

  void define_inputs() {
    for (const ValueId id : source_.inputs) {
      if (sizes_.fixed_input(id)) continue;
      const auto [dims, symbols] = sizes_.declared(id);
      const Value& input = source_.value(id);
      values_[id] = out_.input(input.name, input.dtype, dims, symbols);
    }
  }

  ValueId value(ValueId id) {
    if (id == kNone) return kNone;
    if (const auto known = values_.find(id); known != values_.end()) return known->second;
    const Value& value = source_.value(id);
    out_.begin(value.name);
    if (value.weight != kNone) {
      Weight weight = source_.weight(value.weight);
      weight.name = value.name;
      return values_[id] = out_.weight(std::move(weight));
    }
    const HostTensor* constant = sizes_.constant(id);
    if (constant == nullptr) throw not_lowered("", value.name, "nothing computes it");
    HostTensor typed = *constant;  // sizes are evaluated as int64, whatever their type
    if (value.dtype == DType::kBool) typed.dtype = DType::kBool;
    const ValueId result = out_.constant(typed);
    out_.rename(result, value.name);
    return values_[id] = result;
  }

  /// Returns the body of the exported graph for one of the source, whose inputs it defines.
  BodyId body(BodyId id) {
    if (id == kNone) return kNone;
    if (const auto known = bodies_.find(id); known != bodies_.end()) return known->second;
    const Body& source = source_.bodies[id];
    Body made;
    made.attribute = source.attribute;
    made.around = body(source.around);
    // Of a loop: its iteration, whether it goes on, and what iterations hand on.
    for (size_t i = 0; i < source.inputs.size(); ++i) {
      const DType dtype = i == 0   ? DType::kInt64
                          : i == 1 ? DType::kBool
                                   : out_.dtype(value(source_.nodes[source.owner].inputs[i]));
      const ValueId input = out_.value(source_.value(source.inputs[i]).name, dtype);
      if (i < 2) out_.graph().value(input).declared = Shape();
      values_[source.inputs[i]] = input;
      made.inputs.push_back(input);
    }
    return bodies_[id] = out_.graph().bodies.push_back(std::move(made));
  }

  void write(const Node& node) {
    const BodyId around = body(node.body);
    const NodeId first = out_.graph().nodes.next_id();
    if (node.bodies.empty()) {
      write_operator(node);
    } else {
      write_control(node);
    }
    put_into(around, first);
  }

  /// The nodes from this one on that are in no body.
  void put_into(BodyId body, NodeId first) {
    for (NodeId n = first; n < out_.graph().nodes.next_id(); ++n) {
      Node& made = out_.graph().nodes[n];
      if (made.body == kNone) made.body = body;
    }
  }

  /// If and Loop, whose bodies have been written. Bodies have results of one type: a loop's are
  /// those of its states, and whether it goes on.
  void write_control(const Node& node) {
    out_.begin(node.name.empty() ? key_of(source_, node) : node.name);
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(value(input));
    const bool loops = node.op == "Loop";
    if (loops) inputs[0] = out_.cast(inputs[0], DType::kInt64);
    inputs[loops ? 1 : 0] = out_.cast(inputs[loops ? 1 : 0], DType::kBool);
    std::vector<DType> types;
    if (loops) types.push_back(DType::kBool);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      types.push_back(
          out_.dtype(loops ? inputs[i + 2] : value(source_.bodies[node.bodies[0]].outputs[i])));
    }
    std::vector<BodyId> bodies;
    for (const BodyId id : node.bodies) {
      bodies.push_back(body(id));
      const NodeId first = out_.graph().nodes.next_id();
      std::vector<ValueId> results;
      for (size_t i = 0; i < types.size(); ++i) {
        ValueId result = value(source_.bodies[id].outputs[i]);
        if (loops && i == 0) result = out_.cast(result, DType::kBool);
        if (out_.dtype(result) != types[i]) {
          throw not_lowered(node.op, label_of(source_, node), "its blocks return different types");
        }
        // What stands outside of a body cannot be its result.
        results.push_back(out_.emit("Identity", {result}));
        out_.set_dtype(results.back(), types[i]);
      }
      put_into(bodies.back(), first);
      out_.graph().bodies[bodies.back()].outputs = std::move(results);
    }
    const std::vector<ValueId> made = out_.emit_many(node.op, inputs, node.outputs.size());
    Node& control = out_.graph().nodes.back();
    control.has_subgraph = true;
    control.bodies = bodies;
    for (const BodyId id : bodies) {
      out_.graph().bodies[id].owner = out_.graph().nodes.id_of(control);
    }
    for (size_t i = 0; i < made.size(); ++i) {
      out_.set_dtype(made[i], types[types.size() - made.size() + i]);
    }
    bind(node, made);
  }

  void write_operator(const Node& node) {
    const NodeView view(source_, node, sizes_.facts());
    const Lower lower = find_lowering(node.domain, node.op);
    if (lower == nullptr && (node.has_subgraph || !node.domain.empty())) refuse(node);
    Lowering lowering{.view = view, .out = out_, .inputs = {}, .requested = {}, .results = {}};
    lowering.open_batch = sizes_.open_batch();
    lowering.keeps_weights = options_.keeps_weights;
    for (const ValueId input : inputs_of(node)) lowering.inputs.push_back(value(input));
    for (const ValueId output : node.outputs) lowering.requested.push_back(read_.contains(output));
    lowering.results.assign(node.outputs.size(), kNone);
    out_.begin(node.name.empty() ? key_of(source_, node) : node.name);
    promote(lowering);
    if (lower != nullptr) {
      lower(lowering);
    } else {
      lowering.results =
          out_.emit_many(node.op, lowering.inputs, node.outputs.size(), node.attributes);
    }
    bind(node, lowering.results);
  }

  void bind(const Node& node, const std::vector<ValueId>& results) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId result = results[i];
      if (result == kNone) continue;
      values_[node.outputs[i]] = result;
      const Value& known = out_.graph().value(result);
      if (known.weight == kNone && !known.is_input) {
        out_.rename(result, source_.value(node.outputs[i]).name);
      }
    }
  }

  [[noreturn]] void refuse(const Node& node) const {
    const std::string call = text(node, "call");
    if (node.has_subgraph) {
      throw UnsupportedError(call.empty() ? node.op : call,
                             " cannot be exported: its control flow depends on data",
                             where_called(text(node, "line")),
                             ". What can are torch.cond, and blocks of TorchScript that change "
                             "nothing outside of them");
    }
    throw UnsupportedError("node ", in_quotes(label_of(source_, node)),
                           " cannot be exported: ", call.empty() ? node.op : call,
                           " has no known counterpart in ONNX", where_called(text(node, "line")),
                           ". Rewrite the line with operators that docs/guide/export.md lists");
  }

  void define_outputs() {
    const std::vector<std::string>& names = options_.outputs;
    if (names.size() > source_.outputs.size()) {
      throw ConfigError(names.size(), " output names were passed, but the network has ",
                        source_.outputs.size());
    }
    Graph& graph = out_.graph();
    for (size_t i = 0; i < source_.outputs.size(); ++i) {
      const ValueId id = source_.outputs[i];
      ValueId result = value(id);
      if (graph.value(result).weight != kNone || graph.value(result).is_input ||
          graph.value(result).is_output) {
        out_.begin("output");
        result = out_.emit("Identity", {result});
      }
      if (i < names.size() && !names[i].empty()) out_.rename(result, names[i]);
      const auto [dims, symbols] = sizes_.declared(id);
      Value& made = graph.value(result);
      made.is_output = true;
      made.declared = dims;
      made.symbols = symbols;
      graph.outputs.push_back(result);
    }
    for (Node& node : graph.nodes) node.name = graph.value(node.outputs.front()).name;
  }

  const Graph& source_;
  Sizes sizes_;
  const ExportOptions& options_;
  ExportBuilder out_;
  IdVector<NodeId, bool> live_;
  std::unordered_set<ValueId> read_;
  std::unordered_map<ValueId, ValueId> values_;
  std::unordered_map<BodyId, BodyId> bodies_;
};

}  // namespace

std::vector<InputSpec> with_other_batch(std::vector<InputSpec> inputs) {
  if (inputs.empty() || inputs[0].dims.empty()) return inputs;
  const int64_t batch = inputs[0].dims[0];
  for (InputSpec& input : inputs) {
    if (!input.dims.empty() && input.dims[0] == batch) input.dims[0] += kMore;
  }
  return inputs;
}

const Shape& Lowering::shape(int i) const {
  const Shape* known = view.in_shape(i);
  require(known != nullptr, "the shape of its operand is unknown");
  return *known;
}

void Lowering::require(bool holds, std::string_view why) const {
  if (!holds) throw not_lowered(node().op, view.label(), why);
}

std::vector<int64_t> Lowering::known_integers(int i) const {
  const HostTensor* known = view.constant(i);
  require(known != nullptr && !known->floating(), "its sizes or axes are unknown");
  return known->ints;
}

std::string export_onnx(const Graph& graph, const std::vector<InputSpec>& inputs,
                        const ExportOptions& options) {
  Exporter exporter(graph, Sizes(graph, inputs, options.dynamic_batch), options);
  const Graph& made = exporter.run();
  onnx::ModelProto model = model_of(made, options.place);
  model.set_producer_name("parsimony");
  for (size_t i = 0; i < made.outputs.size(); ++i) {
    set_type(made.value(made.outputs[i]),
             *model.mutable_graph()->mutable_output(static_cast<int>(i)));
  }
  const auto bytes = static_cast<int64_t>(model.ByteSizeLong());
  if (bytes > std::numeric_limits<int32_t>::max()) {
    throw UnsupportedError("the model needs ", bytes,
                           " bytes, but an ONNX file is limited to 2147483647");
  }
  std::string text = model.SerializeAsString();
  if (!options.place) check(text);
  return text;
}

void check(const std::string& model) {
  onnx::ModelProto proto;
  if (!proto.ParseFromString(model)) throw checker_says("it cannot be parsed");
  try {
    onnx::checker::check_model(proto);
    const onnx::ShapeInferenceOptions strict(/*check_type=*/true, /*error_mode=*/1,
                                             /*data_propagation=*/false);
    onnx::shape_inference::InferShapes(proto, onnx::OpSchemaRegistry::Instance(), strict);
  } catch (const std::exception& error) {
    throw checker_says(error.what());
  }
}

}  // namespace parsimony::onnx_io
