#include <algorithm>
#include <cctype>
#include <functional>
#include <set>

#include "parsimony/base/errors.h"
#include "parsimony/programs/call.h"
#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/script/interpreter_impl.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

namespace {

/// Returns "x" for "x.1": jit numbers the values of one name.
std::string plain_name(const std::string& debug_name) {
  const size_t dot = debug_name.rfind('.');
  if (dot == std::string::npos || dot == 0) return debug_name;
  const bool number =
      std::all_of(debug_name.begin() + static_cast<std::ptrdiff_t>(dot) + 1, debug_name.end(),
                  [](unsigned char c) { return std::isdigit(c); });
  return number ? debug_name.substr(0, dot) : debug_name;
}

DType declared_type(const jit::Value& value) {
  const auto type = value.type()->cast<c10::TensorType>();
  if (!type || !type->scalarType()) return DType::kUnknown;
  return dtype_of(*type->scalarType());
}

/// Whether it is `with torch.no_grad():`, which does not affect results.
bool only_leaves_gradients_out(const jit::Node& node) {
  const bool begins = node.kind() == c10::prim::CreateObject;
  if (!begins && node.inputs().empty()) return false;
  const c10::TypePtr& type = begins ? node.output()->type() : node.input(0)->type();
  const auto object = type->cast<c10::ClassType>();
  return object && object->name() &&
         object->name()->qualifiedName() == "__torch__.torch.autograd.grad_mode.no_grad";
}

}  // namespace

bool is_in_place(const std::string& op) {
  return op.size() > 1 && op.ends_with('_') && !op.ends_with("__");
}

std::string functional_name(const std::string& op) {
  return is_in_place(op) ? op.substr(0, op.size() - 1) : op;
}

Interpreter::Interpreter(Graph& graph, Origins& origins, Measurements measured, bool holds_computed)
    : graph_(graph),
      origins_(origins),
      builder_(graph, origins),
      numbers_(builder_),
      tensors_(builder_, origins),
      measured_(std::move(measured)),
      holds_computed_(holds_computed) {
  graph_.format = "torchscript";
}

const Binding& Interpreter::of(const jit::Value* value) const {
  static const Binding unknown;
  const auto found = bindings_.find(value);
  return found == bindings_.end() ? unknown : found->second;
}

void Interpreter::run(const std::vector<InputSpec>& inputs) {
  find_written_attributes();
  define_inputs(inputs);
  follow(*origins_.graph->block());
  define_outputs();
  builder_.finish_writes();
  const IdVector<ValueId, ValueId> values = builder_.compact();
  for (Check& check : origins_.checks) {
    for (Size& size : check.sizes) size.value = values[size.value];
  }
  finish(graph_);
  for (const ValueId input : graph_.inputs) {
    Value& value = graph_.value(input);
    if (value.dtype != DType::kUnknown) continue;
    const bool indices = std::any_of(value.uses.begin(), value.uses.end(), [&](const Use& use) {
      return graph_.node(use.node).op == "Gather" && use.input == 1;
    });
    value.dtype = indices ? DType::kInt64 : DType::kFloat32;
  }
}

/// Tensors and numbers become inputs of the Graph. Arguments with defaults may be omitted.
void Interpreter::define_inputs(const std::vector<InputSpec>& inputs) {
  const auto values = origins_.graph->inputs();
  if (values.empty()) throw errors::no_forward();
  const auto& schema = origins_.module.get_method("forward").function().getSchema().arguments();
  Binding self{.kind = BindingKind::kObject};
  self.object = std::make_shared<Object>(Object{origins_.module._ivalue(), ""});
  bindings_[values[0]] = self;
  size_t i = 1;
  for (const Argument& argument : arguments_of(origins_.module, inputs.size())) {
    jit::Value* value = values[i];
    const auto& fallback = schema[i].default_value();
    if (argument.kind != ArgumentKind::kLeftOut) {
      bindings_[value] = given(argument, plain_name(value->debugName()), *value, inputs);
    } else {
      bindings_[value] = fallback ? from_ivalue(*fallback, argument.name) : Binding::none();
    }
    ++i;
  }
}

/// Binds an argument with inputs; `name` is its name in the program.
Binding Interpreter::given(const Argument& argument, const std::string& name,
                           const jit::Value& value, const std::vector<InputSpec>& inputs) {
  if (argument.kind == ArgumentKind::kTensor || argument.kind == ArgumentKind::kNumber) {
    const InputSpec& spec = inputs[argument.input];
    const bool is_number = argument.kind == ArgumentKind::kNumber;
    if (is_number && !spec.value) {
      throw ConfigError("input ", in_quotes(name),
                        " of \"forward\" is a number; expected for example :int64=16000 or "
                        ":float32=0.5");
    }
    const bool is_real = argument.type->kind() == c10::TypeKind::FloatType;
    const DType told = spec.dtype != DType::kUnknown ? spec.dtype : declared_type(value);
    const DType number = is_real ? DType::kFloat32 : DType::kInt64;
    const ValueId id = builder_.input(name, is_number ? number : told, spec);
    return is_number ? Binding::run_time(id) : Binding::tensor(id);
  }
  std::vector<Binding> items;
  for (size_t k = 0; k < argument.items.size(); ++k) {
    const Argument& item = argument.items[k];
    if (argument.kind == ArgumentKind::kDict) {
      items.push_back(Binding::of_text(argument.keys[k]));
    }
    items.push_back(given(item, name + item.name.substr(argument.name.size()), value, inputs));
  }
  Binding result = Binding::list(std::move(items));
  if (argument.kind == ArgumentKind::kDict) result.text = kDictionary;
  return result;
}

void Interpreter::define_outputs() {
  std::vector<ValueId> tensors;
  std::vector<ValueId> numbers;
  for (const jit::Value* output : origins_.graph->outputs()) {
    const Binding& binding = of(output);
    if (binding.is(BindingKind::kUnknown)) {
      throw ModelError("the result ", in_quotes(output->debugName()),
                       " of \"forward\" is not a tensor, nor a tuple, list or dictionary of "
                       "tensors that can be analysed");
    }
    collect_values(binding, BindingKind::kTensor, tensors);
    collect_values(binding, BindingKind::kNumber, numbers);
  }
  for (const ValueId number : numbers) numbers_.pin_source_sizes("return", number);
  result_numbers_ = numbers.size();
  builder_.begin("output");
  for (ValueId value : tensors) {
    if (builder_.is_complex(value)) value = builder_.emit_opaque("complex", {value}, 1, false)[0];
    const bool computed = !graph_.value(value).is_input && graph_.value(value).weight == kNone;
    const bool again =
        std::find(graph_.outputs.begin(), graph_.outputs.end(), value) != graph_.outputs.end();
    if (!computed || again) value = builder_.emit("Identity", {{value}});
    numbers_.pin_source_sizes("return", value);
    graph_.outputs.push_back(value);
  }
  if (graph_.outputs.empty()) throw ModelError("\"forward\" returns no tensor");
}

void Interpreter::collect_values(const Binding& binding, BindingKind kind,
                                 std::vector<ValueId>& values) const {
  if (binding.is(kind)) values.push_back(binding.value);
  if (!binding.is(BindingKind::kList)) return;
  for (const Binding& item : *binding.items) collect_values(item, kind, values);
}

/// Includes numbers that are computed at run time.
void Interpreter::collect_tensors(const Binding& binding, std::vector<ValueId>& values) const {
  collect_values(binding, BindingKind::kTensor, values);
  collect_values(binding, BindingKind::kNumber, values);
}

void Interpreter::follow(jit::Block& block) {
  for (jit::Node* node : block.nodes()) visit(node);
}

void Interpreter::bind(jit::Node* node, std::vector<Binding> results) {
  for (size_t i = 0; i < node->outputs().size() && i < results.size(); ++i) {
    bindings_[node->output(i)] = std::move(results[i]);
  }
}

void Interpreter::visit(jit::Node* node) {
  if (visit_structure(node) || visit_number(node)) return;
  call(node);
}

/// Handles packing and unpacking of values, and control flow.
bool Interpreter::visit_structure(jit::Node* node) {
  const std::string kind = node->kind().toQualString();
  if (kind == "prim::Constant") {
    constant(node);
  } else if (kind == "prim::GetAttr") {
    get_attribute(node);
  } else if (only_leaves_gradients_out(*node)) {
    return true;
  } else if (kind == "prim::SetAttr") {
    const Binding value = of_input(node, 1);
    const Binding owner = of_input(node, 0);
    std::vector<ValueId> tensors;
    collect_tensors(value, tensors);
    builder_.pin("SetAttr", tensors);
    describe(node, true);
    const std::string path = owner.is(BindingKind::kObject) ? owner.object->path : "";
    const std::string name = node->s(c10::attr::name);
    written_[path.empty() ? name : path + "." + name] = value;
  } else if (kind == "prim::ListConstruct" || kind == "prim::TupleConstruct" ||
             kind == "prim::DictConstruct") {
    std::vector<Binding> items;
    for (const jit::Value* input : node->inputs()) items.push_back(of(input));
    Binding& list = bindings_[node->output()] = Binding::list(std::move(items));
    if (kind == "prim::DictConstruct") list.text = kDictionary;
  } else if (kind == "prim::ListUnpack" || kind == "prim::TupleUnpack") {
    const Binding list = of_input(node, 0);
    if (!list.is(BindingKind::kList) || list.items->size() != node->outputs().size()) return false;
    bind(node, *list.items);
  } else if (kind == "prim::If") {
    branch(node);
  } else if (kind == "prim::Loop") {
    loop(node);
  } else if (kind == "prim::unchecked_cast" || kind == "prim::unchecked_unwrap_optional" ||
             kind == "prim::data" || kind == "aten::_unwrap_optional") {
    bindings_[node->output()] = of_input(node, 0);
  } else {
    // Messages of exceptions, and exceptions in blocks that are not taken.
    return kind == "prim::RaiseException" || kind == "aten::format" || kind == "aten::warn" ||
           kind == "prim::Print" || kind == "prim::Uninitialized";
  }
  return true;
}

bool Interpreter::visit_number(jit::Node* node) {
  const std::string op = node->kind().toUnqualString();
  if (list_operator(node, op)) return true;
  if (node->outputs().size() != 1) return false;
  programs::NumberCall call{op, node->kind().is_prim(), {}};
  for (const jit::Value* input : node->inputs()) call.args.push_back(of(input));
  const std::optional<Binding> result = numbers_.computed(call);
  if (result) bindings_[node->output()] = *result;
  return result.has_value();
}

namespace {

bool holds_complex(const Builder& builder, const Binding& binding) {
  if (binding.is(BindingKind::kTensor)) return builder.is_complex(binding.value);
  return binding.is(BindingKind::kList) &&
         std::any_of(binding.items->begin(), binding.items->end(),
                     [&](const Binding& item) { return holds_complex(builder, item); });
}

}  // namespace

bool Interpreter::lower(jit::Node* node, const std::string& op, std::vector<Binding>& results) {
  std::vector<Binding> arguments;
  for (const jit::Value* input : node->inputs()) arguments.push_back(of(input));
  const bool complex = std::any_of(arguments.begin(), arguments.end(),
                                   [&](const Binding& x) { return holds_complex(builder_, x); });
  const Rule* rule = complex ? find_complex_rule(op) : find_rule(op);
  if (rule == nullptr || !node->kind().is_aten()) return false;
  const auto mark = builder_.mark();
  const std::function<void(const Binding&)> set_complex = [&](const Binding& binding) {
    if (binding.is(BindingKind::kTensor)) builder_.set_complex(binding.value);
    if (binding.is(BindingKind::kList)) {
      std::for_each(binding.items->begin(), binding.items->end(), set_complex);
    }
  };
  const auto id = static_cast<int>(origins_.calls.size());
  origins_.calls.push_back(node);
  try {
    Call call(builder_, id, *rule, std::move(arguments), node->outputs().size());
    rule->lower(call);
    results = std::move(call.results);
    for (const SettledNumber& number : call.settled()) numbers_.settle(op, number);
    if (rule->moves) std::for_each(results.begin(), results.end(), set_complex);
    return true;
  } catch (const NotLowered&) {
    builder_.roll_back(mark);
    return false;
  }
}

void Interpreter::call(jit::Node* node) {
  const std::string written = node->kind().toUnqualString();
  const std::string op = functional_name(written);
  builder_.begin(op);
  const std::optional<c10::IValue> literal = evaluated(node);
  if (hold(node, literal, /*unknown=*/false)) return;
  std::vector<Binding> results;
  if (!lower(node, op, results)) {
    if (hold(node, literal, /*unknown=*/true)) return;
    if (!inline_call(node, results)) return opaque(node);
  }
  if (literal) remember(results[0], *literal);
  // In evaluation mode the output of dropout_ is already in place.
  const bool writes = is_in_place(written) && results[0].is(BindingKind::kTensor) &&
                      results[0].value != of_input(node, 0).value;
  if (writes) write_to(node, results[0].value);
  bind(node, std::move(results));
}

namespace {

/// Returns "net.py:12: y = torch.foo(x)"; empty if the source is unknown.
std::string line_of(const jit::Node& node) {
  jit::SourceRange range = node.sourceRange();
  if (const auto python = range.findSourceRangeThatGenerated()) range = *python;
  const auto location = range.file_line_col();
  if (!location) return {};
  const auto& [file, line, column] = *location;
  std::string text = range.text().str();
  text = text.substr(0, text.find('\n'));
  return file + ":" + std::to_string(line) + ": " + text;
}

/// Returns the names of a tuple's fields; empty if they have none.
std::vector<std::string> fields_of(const c10::TypePtr& type) {
  const auto tuple = type->cast<c10::TupleType>();
  std::vector<std::string> names;
  if (!tuple || !tuple->schema()) return names;
  for (const c10::Argument& field : tuple->schema()->arguments()) names.push_back(field.name());
  return names;
}

std::string inside(const std::string& outer, const std::string& name) {
  return outer.empty() ? name : outer + "." + name;
}

void collect(const Binding& binding, const std::vector<std::string>& fields,
             const std::string& name, std::vector<std::string>& names) {
  if (binding.is(BindingKind::kTensor)) names.push_back(name);
  if (!binding.is(BindingKind::kList)) return;
  const std::vector<Binding>& items = *binding.items;
  const bool dictionary = binding.text == kDictionary;
  for (size_t i = 0; i < items.size(); ++i) {
    const bool keyed = dictionary && i % 2 == 1 && items[i - 1].is(BindingKind::kString);
    const std::string own = keyed               ? items[i - 1].text
                            : i < fields.size() ? fields[i]
                                                : std::to_string(dictionary ? i / 2 : i);
    collect(items[i], {}, inside(name, own), names);
  }
}

}  // namespace

/// Records which call the last emitted node stands for. `effect`: the call has side effects that
/// the Graph does not show.
void Interpreter::describe(const jit::Node* node, bool effect) {
  auto& attributes = graph_.nodes.back().attributes;
  attributes.emplace_back("call", std::string(node->kind().toQualString()));
  if (std::string line = line_of(*node); !line.empty()) {
    attributes.emplace_back("line", std::move(line));
  }
  if (effect) attributes.emplace_back("effect", std::string("writes"));
}

std::vector<std::string> Interpreter::result_names() const {
  std::vector<std::string> names;
  for (const jit::Value* output : origins_.graph->outputs()) {
    collect(of(output), fields_of(output->type()), "", names);
  }
  std::set<std::string> taken;
  for (const ValueId input : graph_.inputs) taken.insert(graph_.value(input).name);
  for (std::string& name : names) {
    const bool plain = std::all_of(
        name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
    if (plain) name = "output" + name;
    const std::string base = name;
    for (int i = 2; !taken.insert(name).second; ++i) name = base + "_" + std::to_string(i);
  }
  return names;
}

}  // namespace parsimony::torch_io::script
