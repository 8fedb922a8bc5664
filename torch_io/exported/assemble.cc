#include <ATen/ATen.h>
#include <torch/csrc/jit/frontend/source_range.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "parsimony/base/json_reader.h"
#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/exported/modules_impl.h"
#include "parsimony/torch_io/exported/program_impl.h"
#include "parsimony/torch_io/exported/words_impl.h"
#include "parsimony/torch_io/reason.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::torch_io::exported {

namespace jit = torch::jit;

namespace {

using Names = std::unordered_map<std::string, jit::Value*>;

/// Returns the member of a union such as {"as_tensor": {"name": "x"}}.
JsonReader member_of(const JsonReader& one) {
  if (one.size() != 1) one.expected("an object with one member");
  return *one.members().begin();
}

/// Returns "x" for {"name": "x"} and {"as_name": "x"}; empty for a number.
std::string name_in(const JsonReader& value) {
  if (!value.is_object()) return {};
  const auto tensor = value.find("name");
  const auto number = tensor ? tensor : value.find("as_name");
  return number ? number->text() : "";
}

/// Whether the union's member is a list of values.
bool is_list_kind(std::string_view kind) {
  return kind == "as_tensors" || kind == "as_optional_tensors" || kind == "as_sym_ints" ||
         kind == "as_sym_floats" || kind == "as_sym_bools";
}

c10::TypePtr type_of_kind(std::string_view kind) {
  if (kind.find("sym_int") != std::string::npos) return c10::IntType::get();
  if (kind.find("sym_float") != std::string::npos) return c10::FloatType::get();
  if (kind.find("sym_bool") != std::string::npos) return c10::BoolType::get();
  return c10::TensorType::get();
}

/// Returns the line of the user's code, from a trace such as
///     File "net.py", line 12, in forward
///       y = self.fc(x)
jit::SourceRange range_of(const JsonReader& node) {
  const auto metadata = node.find("metadata");
  const auto trace = metadata ? metadata->find("stack_trace") : std::nullopt;
  if (!trace || !trace->is_text()) return {};
  const std::string text = trace->text();
  constexpr std::string_view kFile = "File \"";
  constexpr std::string_view kLine = "\", line ";
  const size_t file = text.rfind(kFile);
  const size_t name_end = file == std::string::npos ? file : text.find(kLine, file);
  if (name_end == std::string::npos) return {};
  const std::string name = text.substr(file + kFile.size(), name_end - file - kFile.size());
  const size_t number = std::strtoul(text.c_str() + name_end + kLine.size(), nullptr, 10);
  const size_t begin = text.find('\n', name_end);
  std::string line = begin == std::string::npos ? "" : text.substr(begin + 1);
  line = line.substr(0, line.find('\n'));
  line.erase(0, line.find_first_not_of(' '));
  const size_t size = line.size();
  return {std::make_shared<jit::Source>(std::move(line), name, number == 0 ? 0 : number - 1), 0,
          size};
}

class Assembler {
 public:
  Assembler(const programs::Archive& archive, const JsonReader& root, const std::string& path)
      : archive_(archive),
        path_(path),
        root_(root),
        graph_(std::make_shared<jit::Graph>()),
        modules_(graph_),
        scopes_(c10::make_intrusive<jit::Scope>()) {}

  Program run() {
    const JsonReader graph_module = root_.at("graph_module");
    const JsonReader graph = graph_module.at("graph");
    define_tensors(graph_module.at("signature"));
    modules_.finalize();
    Names names;
    define_inputs(graph, names);
    follow(graph, kTopGraph, names);
    define_outputs(graph, names);
    program_.module = modules_.finish();
    return std::move(program_);
  }

 private:
  /// Thrown for constructs without an equivalent in TorchScript.
  struct NoForm {};

  /// Creates a tensor for every parameter, buffer and constant of the program, in nested modules.
  void define_tensors(const JsonReader& signature) {
    for (const JsonReader spec : signature.at("input_specs").list()) {
      const JsonReader input = member_of(spec);
      const std::string_view kind = input.own_key();
      for (const std::string_view key : {"parameter_name", "buffer_name", "tensor_constant_name"}) {
        const auto name = input.find(key);
        if (!name) continue;
        const auto tensor = archive_.tensors().find(name->text());
        if (tensor == archive_.tensors().end()) {
          throw ModelError(path_, ": the program reads ", in_quotes(name->text()),
                           ", which is missing in the archive");
        }
        modules_.add(name->text(), tensor_of(tensor->second), kind == "parameter");
        names_of_tensors_[name_in(input.at("arg"))] = name->text();
      }
    }
  }

  /// A copy; tensors of the same elements are one.
  at::Tensor tensor_of(const programs::ArchivedTensor& archived) {
    const TypeRow* type = type_of_name(archived.type->name);
    if (type == nullptr) throw errors::not_exported(path_, "this libtorch lacks a tensor's type");
    at::Tensor& tensor = tensors_[{archived.elements.data(), archived.dims}];
    if (tensor.defined() && tensor.numel() > 0) return tensor;
    tensor = at::empty(archived.dims, type->type);
    std::memcpy(tensor.data_ptr(), archived.elements.data(), archived.elements.size());
    return tensor;
  }

  void define_inputs(const JsonReader& graph, Names& names) {
    for (const JsonReader input : graph.at("inputs").list()) {
      const JsonReader value = member_of(input);
      const std::string_view kind = value.own_key();
      const std::string name = name_in(value);
      if (const auto tensor = names_of_tensors_.find(name); tensor != names_of_tensors_.end()) {
        names[name] = modules_.read(tensor->second);
        program_.placeholders[tensor->second] = name;
      } else if (!name.empty()) {
        const c10::TypePtr type = type_of_kind(kind);
        if (type->kind() != c10::TypeKind::TensorType && type->kind() != c10::TypeKind::IntType) {
          throw UnsupportedError("input ", in_quotes(name), " is ", kind,
                                 "; only tensors and integers are supported as inputs");
        }
        names[name] = graph_->addInput(name)->setType(type);
        program_.inputs.push_back(spec_of(graph, name, type));
      }
    }
  }

  /// Returns the spec; dynamic dimensions have the size that the program was exported with.
  static InputSpec spec_of(const JsonReader& graph, const std::string& name,
                           const c10::TypePtr& type) {
    if (type->kind() == c10::TypeKind::IntType) {
      return {.dims = {},
              .value = hint_of(graph.at("sym_int_values").at(name)),
              .dtype = DType::kInt64};
    }
    const JsonReader meta = graph.at("tensor_values").at(name);
    InputSpec spec;
    for (const JsonReader size : meta.at("sizes").list()) spec.dims.push_back(hint_of(size));
    const TypeRow* row = type_of_code(meta.at("dtype").count());
    if (row != nullptr) spec.dtype = dtype_of(row->type);
    return spec;
  }

  static int64_t hint_of(const JsonReader& size) {
    if (const auto fixed = size.find("as_int")) return fixed->count();
    const auto hint = size.at("as_expr").find("hint");
    return hint && hint->is_object() ? hint->at("as_int").count() : 1;
  }

  /// Adds the calls of a graph, which is at `place`, at the insertion point.
  void follow(const JsonReader& graph, const std::string& place, Names& names) {
    size_t i = 0;
    for (const JsonReader node : graph.at("nodes").list()) {
      visit(node, place + "/nodes/" + std::to_string(i++), names);
    }
  }

  void visit(const JsonReader& node, const std::string& place, Names& names) {
    const Target target = target_of(node.at("target").text());
    if (target.passes) return;
    if (target.inlines && inlined(node, place, names)) return;
    Step step{.place = place, .arguments = {}, .outputs = {}};
    jit::Node* call = nullptr;
    try {
      call = target.branches ? branch(node, place, names) : known_call(node, target, step, names);
    } catch (const NoForm&) {
      step.arguments.clear();
      call = unknown_call(node, target, step, names);
    }
    call->setSourceRange(range_of(node));
    define_results(node, call, step, names);
    mark(call);
    program_.steps.push_back(std::move(step));
  }

  /// Marks the node as part of the next step.
  void mark(jit::Node* node) {
    node->setScope(scopes_->push(c10::Symbol::scope(std::to_string(program_.steps.size()))));
  }

  jit::Node* known_call(const JsonReader& node, const Target& target, Step& step, Names& names) {
    std::vector<jit::Value*> values;
    if (target.schema == nullptr) {
      if (!target.is_number) throw NoForm();
      for (const JsonReader input : node.at("inputs").list()) {
        values.push_back(value_of(input.at("arg"), nullptr, names));
        step.arguments.push_back(input.at("name").text());
      }
    } else {
      const auto& arguments = target.schema->arguments();
      values.resize(arguments.size(), nullptr);
      for (const JsonReader input : node.at("inputs").list()) {
        const std::string name = input.at("name").text();
        const auto at = std::ranges::find(arguments, name, &c10::Argument::name);
        if (at == arguments.end()) throw NoForm();
        values[at - arguments.begin()] = value_of(input.at("arg"), at->type(), names);
      }
      for (size_t i = 0; i < values.size(); ++i) {
        step.arguments.push_back(arguments[i].name());
        if (values[i] != nullptr) continue;
        values[i] = constant(default_of(arguments[i]));
      }
    }
    const size_t results =
        target.schema == nullptr ? node.at("outputs").size() : target.schema->returns().size();
    jit::Node* call = graph_->insertNode(
        graph_->create(c10::Symbol::fromQualString(target.kind), values, results));
    if (call->maybeOperator() != nullptr) return call;
    call->destroy();
    throw NoForm();
  }

  /// Handles defaults of newer versions: for the step of a range, too.
  static c10::IValue default_of(const c10::Argument& argument) {
    if (argument.default_value()) return *argument.default_value();
    return argument.name() == "step" ? c10::IValue(int64_t{1}) : c10::IValue();
  }

  /// Emits a call that only records its operands; it cannot be run.
  jit::Node* unknown_call(const JsonReader& node, const Target& target, Step& step, Names& names) {
    std::vector<jit::Value*> values;
    const auto read = [&](const JsonReader& value) {
      const auto found = names.find(name_in(value));
      if (found != names.end()) values.push_back(found->second);
    };
    for (const JsonReader input : node.at("inputs").list()) {
      const JsonReader value = member_of(input.at("arg"));
      if (!value.is_list()) {
        read(value);
        continue;
      }
      for (const JsonReader item : value.list()) {
        if (item.is_object()) read(item.size() == 1 && !item.has("name") ? member_of(item) : item);
      }
    }
    step.arguments.resize(values.size());
    return graph_->insertNode(
        graph_->create(c10::Symbol::fromQualString(target.kind), values, outputs_of(node).size()));
  }

  jit::Value* constant(const c10::IValue& value) {
    if (value.isNone()) return graph_->insertNode(graph_->createNone())->output();
    return graph_->insertConstant(value);
  }

  jit::Value* named(const JsonReader& value, const Names& names) const {
    const auto found = names.find(name_in(value));
    if (found == names.end()) {
      throw ModelError(value.place(), ": there is no earlier value named ",
                       in_quotes(name_in(value)));
    }
    return found->second;
  }

  /// Returns an element of a list of sizes or of optional tensors.
  jit::Value* item_of(const JsonReader& item, const Names& names) {
    if (!name_in(item).empty()) return named(item, names);
    const JsonReader inner = member_of(item);
    if (inner.own_key() == "as_none") return constant({});
    if (!name_in(inner).empty()) return named(inner, names);
    const auto literal = literal_of(item, nullptr);
    if (!literal) throw NoForm();
    return constant(*literal);
  }

  jit::Value* value_of(const JsonReader& arg, const c10::TypePtr& type, const Names& names) {
    if (const auto literal = literal_of_arg(arg, type)) return constant(*literal);
    const JsonReader value = member_of(arg);
    const std::string_view kind = value.own_key();
    if (is_list_kind(kind)) {
      std::vector<jit::Value*> items;
      for (const JsonReader item : value.list()) items.push_back(item_of(item, names));
      const bool optional = kind == "as_optional_tensors";
      const c10::TypePtr element =
          optional ? static_cast<c10::TypePtr>(c10::OptionalType::ofTensor()) : type_of_kind(kind);
      return graph_->insertNode(graph_->createList(element, items))->output();
    }
    if (kind == "as_optional_tensor") return named(member_of(value), names);
    if (name_in(value).empty()) throw NoForm();
    return named(value, names);
  }

  static std::optional<c10::IValue> literal_of_arg(const JsonReader& arg,
                                                   const c10::TypePtr& type) {
    const JsonReader value = member_of(arg);
    return name_in(value).empty() && !is_list_kind(value.own_key()) ? literal_of(arg, type)
                                                                    : std::nullopt;
  }

  /// Returns the unions of the results.
  static std::vector<JsonReader> outputs_of(const JsonReader& node) {
    std::vector<JsonReader> outputs;
    for (const JsonReader output : node.at("outputs").list()) outputs.push_back(output);
    return outputs;
  }

  void define_results(const JsonReader& node, jit::Node* call, Step& step, Names& names) {
    size_t i = 0;
    for (const JsonReader output : outputs_of(node)) {
      const JsonReader value = member_of(output);
      const std::string_view kind = value.own_key();
      if (!is_list_kind(kind)) {
        if (i < call->outputs().size()) {
          call->output(i)->setType(type_of_kind(kind));
          name_result(call->output(i), name_in(value), step, names);
        }
        ++i;
        continue;
      }
      std::vector<jit::Value*> items = call->outputs().vec();  // of a branch
      if (call->blocks().empty()) {
        call->output(i)->setType(c10::ListType::ofTensors());
        jit::Node* unpacked =
            graph_->insertNode(graph_->createListUnpack(call->output(i), value.size()));
        mark(unpacked);
        items = unpacked->outputs().vec();
        ++i;
      }
      size_t at = 0;
      for (const JsonReader item : value.list()) {
        if (at < items.size()) name_result(items[at++], name_in(item), step, names);
      }
    }
    for (; i < call->outputs().size(); ++i) {
      if (call->output(i)->type()->kind() != c10::TypeKind::ListType) step.outputs.emplace_back();
    }
  }

  static void name_result(jit::Value* value, std::string name, Step& step, Names& names) {
    if (!name.empty()) names[name] = value;
    step.outputs.push_back(std::move(name));
  }

  /// Returns the subgraphs among the node's inputs, with their places.
  static std::vector<std::pair<JsonReader, std::string>> graphs_in(const JsonReader& node,
                                                                   const std::string& place) {
    std::vector<std::pair<JsonReader, std::string>> graphs;
    size_t i = 0;
    for (const JsonReader input : node.at("inputs").list()) {
      const std::string at = place + "/inputs/" + std::to_string(i++) + "/arg/as_graph/graph";
      const auto graph = input.at("arg").find("as_graph");
      if (graph) graphs.emplace_back(graph->at("graph"), at);
    }
    return graphs;
  }

  /// Returns the names of the subgraph's operands: of all values after it.
  static std::vector<std::string> operands_of(const JsonReader& node) {
    std::vector<std::string> operands;
    bool after = false;
    for (const JsonReader input : node.at("inputs").list()) {
      const JsonReader value = member_of(input.at("arg"));
      if (value.own_key() == "as_graph") {
        after = true;
        continue;
      }
      if (!after) continue;
      append_names(value, operands);
    }
    return operands;
  }

  static void append_names(const JsonReader& value, std::vector<std::string>& names) {
    if (!value.is_list()) return names.push_back(name_in(value));
    for (const JsonReader item : value.list()) names.push_back(name_in(item));
  }

  /// Returns the names that a graph declares for its inputs or outputs.
  static std::vector<std::string> declared(const JsonReader& graph, const char* which) {
    std::vector<std::string> names;
    for (const JsonReader one : graph.at(which).list()) names.push_back(name_in(member_of(one)));
    return names;
  }

  /// Binds the values `from` of one graph to the names `to` in another.
  static void rename(const std::vector<std::string>& from, const Names& there,
                     const std::vector<std::string>& to, Names& here) {
    for (size_t i = 0; i < from.size() && i < to.size(); ++i) {
      const auto value = there.find(from[i]);
      if (value != there.end()) here[to[i]] = value->second;
    }
  }

  void add_aliases(const std::string& from_graph, const std::vector<std::string>& from,
                   const std::string& to_graph, const std::vector<std::string>& to) {
    for (size_t i = 0; i < from.size() && i < to.size(); ++i) {
      program_.aliases.push_back({from_graph, from[i], to_graph, to[i]});
    }
  }

  /// Inlines a subgraph, such as one without gradients.
  bool inlined(const JsonReader& node, const std::string& place, Names& names) {
    const auto graphs = graphs_in(node, place);
    if (graphs.size() != 1) return false;
    const auto& [graph, at] = graphs.front();
    const std::string around = graph_of(place);
    const auto given = operands_of(node);
    const auto taken = declared(graph, "inputs");
    Names inner;
    rename(given, names, taken, inner);
    add_aliases(around, given, at, taken);
    follow(graph, at, inner);
    const auto results = declared(graph, "outputs");
    std::vector<std::string> known;
    for (const JsonReader output : node.at("outputs").list()) {
      append_names(member_of(output), known);
    }
    rename(results, inner, known, names);
    add_aliases(at, results, around, known);
    return true;
  }

  /// torch.cond(predicate, graph, graph, operands)
  jit::Node* branch(const JsonReader& node, const std::string& place, Names& names) {
    const auto graphs = graphs_in(node, place);
    const std::vector<std::string> operands = operands_of(node);
    if (graphs.size() != 2) throw NoForm();
    jit::Value* condition = value_of((*node.at("inputs").list().begin()).at("arg"), nullptr, names);
    if (condition->type()->isSubtypeOf(*c10::TensorType::get())) {
      condition = graph_->insert(c10::Symbol::fromQualString("aten::Bool"), {condition});
    }
    jit::Node* choice = graph_->insertNode(graph_->create(c10::prim::If, {condition}, 0));
    for (const auto& [graph, at] : graphs) {
      jit::Block* block = choice->addBlock();
      const jit::WithInsertPoint within(block);
      Names inner;
      const auto taken = declared(graph, "inputs");
      rename(operands, names, taken, inner);
      add_aliases(graph_of(place), operands, at, taken);
      follow(graph, at, inner);
      for (const JsonReader output : graph.at("outputs").list()) {
        jit::Value* value = named(member_of(output), inner);
        block->registerOutput(value);
        if (block == choice->blocks()[0]) choice->addOutput()->setType(value->type());
      }
      if (block->outputs().size() != choice->outputs().size()) {
        graph.fail("the branches have different numbers of results");
      }
    }
    return choice;
  }

  void define_outputs(const JsonReader& graph, const Names& names) {
    std::vector<jit::Value*> results;
    for (const JsonReader output : graph.at("outputs").list()) {
      const JsonReader value = member_of(output);
      if (!name_in(value).empty()) results.push_back(named(value, names));
    }
    jit::Value* result = results.size() == 1
                             ? results.front()
                             : graph_->insertNode(graph_->createTuple(results))->output();
    graph_->registerOutput(result);
  }

  const programs::Archive& archive_;
  const std::string& path_;
  JsonReader root_;
  std::shared_ptr<jit::Graph> graph_;
  Modules modules_;
  jit::ScopePtr scopes_;
  Program program_;
  std::map<std::pair<const std::byte*, Shape>, at::Tensor> tensors_;  // by their elements
  std::unordered_map<std::string, std::string> names_of_tensors_;
};

}  // namespace

std::optional<size_t> step_of(const jit::Node& node) {
  const jit::ScopePtr scope = const_cast<jit::Node&>(node).scope();
  if (!scope || scope->isRoot() || scope->isBlank()) return std::nullopt;
  return std::strtoul(scope->name().toUnqualString(), nullptr, 10);
}

std::string graph_of(const std::string& place) { return place.substr(0, place.rfind("/nodes/")); }

std::string attribute_path(const jit::Value& value) {
  const jit::Node* node = value.node();
  if (node->kind() != c10::prim::GetAttr) return {};
  const std::string owner = attribute_path(*node->input());
  const std::string& name = node->s(c10::attr::name);
  return owner.empty() ? name : owner + "." + name;
}

Program assemble(const programs::Archive& archive, const std::string& path) {
  const JsonDocument document(archive.program(), path, throw_as<ModelError>);
  try {
    return Assembler(archive, document.root(), path).run();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // libtorch has several kinds
    throw errors::not_exported(path, reason_of(error));
  }
}

}  // namespace parsimony::torch_io::exported
