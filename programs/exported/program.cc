#include "parsimony/programs/exported/program.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/json_reader.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/elements.h"
#include "parsimony/programs/builder.h"
#include "parsimony/programs/call.h"
#include "parsimony/programs/element_types.h"
#include "parsimony/programs/numbers.h"
#include "parsimony/programs/schema.h"

namespace parsimony::programs {
namespace {

using Names = std::unordered_map<std::string, Binding>;

/// An operator or a function of Python, as a program names it.
struct Target {
  std::string op;                  ///< "conv2d"
  std::string call;                ///< for messages: "aten::conv2d"
  const Schema* schema = nullptr;  ///< null for functions, and for operators that are not known
  bool is_number = false;          ///< a function on numbers
  bool is_prim = false;            ///< max and min of numbers
  bool passes = false;             ///< it only checks, or hints at, what holds anyway
  bool inlines = false;            ///< it runs a sub-graph unchanged
  bool branches = false;           ///< torch.cond
};

/// Functions of Python on numbers, and what they are in TorchScript.
const std::unordered_map<std::string_view, std::string_view>& number_functions() {
  static const std::unordered_map<std::string_view, std::string_view> functions = {
      {"add", "add"},         {"sub", "sub"},
      {"mul", "mul"},         {"floordiv", "floordiv"},
      {"mod", "remainder"},   {"truediv", "div"},
      {"pow", "pow"},         {"neg", "neg"},
      {"eq", "eq"},           {"ne", "ne"},
      {"lt", "lt"},           {"le", "le"},
      {"gt", "gt"},           {"ge", "ge"},
      {"and_", "__and__"},    {"or_", "__or__"},
      {"sym_max", "max"},     {"sym_min", "min"},
      {"sym_not", "__not__"}, {"sym_int", "Int"},
      {"sym_float", "Float"}, {"ceil", "ceil"},
      {"floor", "floor"},     {"_sym_sqrt", "sqrt"},
      {"trunc", "Int"},       {"sym_size", "size"},
      {"sym_numel", "numel"},
  };
  return functions;
}

constexpr auto kPassing =
    std::to_array<std::string_view>({"_assert_async", "_assert_scalar", "_assert_tensor_metadata",
                                     "sym_constrain_range", "sym_constrain_range_for_size"});
constexpr auto kInlining =
    std::to_array<std::string_view>({"wrap_with_autocast", "wrap_with_set_grad_enabled"});

/// For "torch.ops.aten.conv2d.default" or "_operator.mul".
Target target_of(const std::string& text) {
  constexpr std::string_view kOps = "torch.ops.";
  Target target;
  std::string space;
  if (text.starts_with(kOps)) {
    const size_t name = std::min(text.find('.', kOps.size()), text.size());
    const size_t end = std::min(text.find('.', name + 1), text.size());
    space = text.substr(kOps.size(), name - kOps.size());
    target.op = text.substr(std::min(name + 1, text.size()), end - std::min(name + 1, end));
    const std::string overload = text.substr(std::min(end + 1, text.size()));
    target.call = space + "::" + target.op;
    if (target.op == "_unsafe_view") target.op = "view";
    target.schema = find_schema(space == "aten" ? target.op : target.call, overload);
    target.passes = space == "aten" && std::ranges::find(kPassing, target.op) != kPassing.end();
    const bool higher = space == "higher_order";
    target.branches = higher && target.op == "cond";
    target.inlines = higher && std::ranges::find(kInlining, target.op) != kInlining.end();
    if (space != "aten") return target;
  } else {
    target.op = text.substr(text.rfind('.') + 1);
    target.call = text;
  }
  const auto number = number_functions().find(target.op);
  const bool of_tensors = target.schema != nullptr && !target.op.starts_with("sym_");
  if (number == number_functions().end() || of_tensors) return target;
  target.is_number = true;
  target.is_prim = target.op == "sym_max" || target.op == "sym_min";
  target.op = number->second;
  target.schema = nullptr;
  return target;
}

/// The member of a union such as {"as_tensor": {"name": "x"}}.
JsonReader member_of(const JsonReader& one) {
  if (one.size() != 1) one.expected("an object with one member");
  return *one.members().begin();
}

/// "x" of {"name": "x"} and of {"as_name": "x"}; empty for a number.
std::string name_in(const JsonReader& value) {
  if (!value.is_object()) return {};
  const auto tensor = value.find("name");
  const auto number = tensor ? tensor : value.find("as_name");
  return number ? number->text() : "";
}

/// Infinite ones are texts, in newer versions or because `Archive` quotes them.
double real_of(const JsonReader& value) {
  if (!value.is_text()) return value.number();
  const std::string text = value.text();
  if (text.ends_with("-Infinity")) return -std::numeric_limits<double>::infinity();
  if (text.ends_with("Infinity")) return std::numeric_limits<double>::infinity();
  if (text.ends_with("NaN")) return std::numeric_limits<double>::quiet_NaN();
  value.expected("a number");
}

int64_t integer_of(const JsonReader& value) {
  return value.integer(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
}

/// The size that a dimension had when the program was exported; empty where data decide it.
std::optional<int64_t> size_of(const JsonReader& size) {
  if (const auto fixed = size.find("as_int")) return fixed->count();
  const auto hint = size.at("as_expr").find("hint");
  if (!hint || !hint->is_object()) return std::nullopt;
  return hint->at("as_int").count();
}

/// That, and 1 where it is not said.
int64_t hint_of(const JsonReader& size) { return size_of(size).value_or(1); }

/// "net.py:12: y = self.fc(x)" from the last frame of a trace:
///     File "net.py", line 12, in forward
///       y = self.fc(x)
std::string line_of(const JsonReader& node) {
  const auto metadata = node.find("metadata");
  const auto trace = metadata ? metadata->find("stack_trace") : std::nullopt;
  if (!trace || !trace->is_text()) return {};
  const std::string text = trace->text();
  constexpr std::string_view kFile = "File \"";
  constexpr std::string_view kLine = "\", line ";
  const size_t file = text.rfind(kFile);
  const size_t end = file == std::string::npos ? file : text.find(kLine, file);
  if (end == std::string::npos) return {};
  const std::string name = text.substr(file + kFile.size(), end - file - kFile.size());
  const size_t number = std::strtoul(text.c_str() + end + kLine.size(), nullptr, 10);
  const size_t begin = text.find('\n', end);
  std::string line = begin == std::string::npos ? "" : text.substr(begin + 1);
  line = line.substr(0, line.find('\n'));
  line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
  return name + ":" + std::to_string(number) + ": " + line;
}

Weight weight_of(const ArchivedTensor& tensor) {
  Weight weight{.name = tensor.name,
                .dtype = tensor.type->dtype,
                .dims = tensor.dims,
                .data = tensor.elements.data(),
                .stride = tensor.type->bytes};
  if (tensor.type->name != "complex64" && tensor.type->name != "complex128") return weight;
  weight.dtype = tensor.type->name == "complex64" ? DType::kFloat32 : DType::kFloat64;
  weight.stride /= 2;
  weight.dims.push_back(2);
  return weight;
}

/// The newest schema that is known.
/// @source torch/_export/serde/schema.py of PyTorch 2.15, SCHEMA_VERSION
constexpr int64_t kMajor = 8;
constexpr int64_t kMinor = 20;

class ProgramReader {
 public:
  ProgramReader(const std::map<std::string, ArchivedTensor>& tensors, const std::string& path,
                const JsonReader& root, const std::vector<InputSpec>& inputs, Literals literals,
                Program& program)
      : tensors_(tensors),
        path_(path),
        root_(root),
        given_(inputs),
        literals_(literals),
        program_(program),
        graph_(program.graph),
        builder_(program.graph, program.sources),
        numbers_(builder_) {
    graph_.format = "torch.export";
  }

  void run() {
    check_version();
    const JsonReader module = root_.at("graph_module");
    const JsonReader graph = module.at("graph");
    find_tensors(module.at("signature"));
    Names names;
    define_inputs(graph, names);
    follow(graph, kTopGraph, names);
    define_outputs(graph, names);
    builder_.finish_writes();
    const IdVector<ValueId, ValueId> values = builder_.compact();
    for (ProgramValue& value : program_.values) value.value = values[value.value];
    finish(graph_);
  }

 private:
  /// A call that cannot be followed.
  struct NotKnown {};

  void find_tensors(const JsonReader& signature) {
    for (const JsonReader spec : signature.at("input_specs").list()) {
      const JsonReader input = member_of(spec);
      for (const std::string_view key : {"parameter_name", "buffer_name", "tensor_constant_name"}) {
        const auto name = input.find(key);
        if (!name) continue;
        const auto tensor = tensors_.find(name->text());
        if (tensor == tensors_.end()) {
          throw ModelError(path_, ": the program reads ", in_quotes(name->text()),
                           ", which is missing in the archive");
        }
        builder_.reserve(name->text());
        tensor_of_[name_in(input.at("arg"))] = &tensor->second;
        if (key == "parameter_name") program_.parameters.push_back(name->text());
      }
    }
    const auto outputs = signature.find("output_specs");
    if (!outputs) return;
    for (const JsonReader spec : outputs->list()) {
      std::string& written = becomes_.emplace_back();
      for (const std::string_view kind : {"parameter", "buffer"}) {
        const auto mutation = spec.find(std::string(kind) + "_mutation");
        if (mutation) written = mutation->at(std::string(kind) + "_name").text();
      }
    }
  }

  /// The weight; tensors of the same elements are one.
  Binding weight(const ArchivedTensor& tensor) {
    const auto key = std::pair(tensor.elements.data(), tensor.dims);
    const auto known = weights_.find(key);
    if (!tensor.elements.empty() && known != weights_.end()) return known->second;
    Weight weight = weight_of(tensor);
    if (weight.dtype == DType::kUnknown) {
      builder_.begin(tensor.name);
      return Binding::tensor(builder_.emit_opaque("tensor", {}, 1, false).front());
    }
    const bool is_complex = weight.dims.size() != tensor.dims.size();
    const Binding binding = Binding::tensor(builder_.weight(std::move(weight)));
    if (is_complex) builder_.set_complex(binding.value);
    return weights_[key] = binding;
  }

  /// Minor versions add to the schema, major ones change it.
  void check_version() {
    const auto version = root_.find("schema_version");
    if (!version || !version->is_object()) return;
    const int64_t major = version->at("major").count();
    const int64_t minor = version->at("minor").count();
    const std::string text = std::to_string(major) + "." + std::to_string(minor);
    if (major > kMajor) {
      throw UnsupportedError(path_, ": schema version ", text,
                             " of a newer PyTorch; versions up to ", kMajor, ".", kMinor,
                             " are read");
    }
    if (major == kMajor && minor > kMinor) {
      graph_.notes.push_back("the program has schema version " + text + ", newer than " +
                             std::to_string(kMajor) + "." + std::to_string(kMinor) +
                             ", which is known");
    }
  }

  void define_inputs(const JsonReader& graph, Names& names) {
    size_t position = 0;
    for (const JsonReader input : graph.at("inputs").list()) {
      const JsonReader value = member_of(input);
      const std::string name = name_in(value);
      if (name.empty() || value.own_key() == "as_token") continue;
      if (const auto tensor = tensor_of_.find(name); tensor != tensor_of_.end()) {
        names[name] = weight(*tensor->second);
        program_.placeholders[tensor->second->name] = name;
      } else {
        names[name] = input_of(graph, value, name, position++);
      }
      remember(kTopGraph, name, names[name]);
    }
    if (!given_.empty() && given_.size() != position) {
      throw ConfigError("--input was given ", given_.size(), " times, but the program takes ",
                        position, position == 1 ? " input" : " inputs");
    }
  }

  /// Dynamic dimensions have the size that the program was exported with.
  Binding input_of(const JsonReader& graph, const JsonReader& value, const std::string& name,
                   size_t position) {
    const std::string_view kind = value.own_key();
    InputSpec spec;
    if (kind == "as_sym_int") {
      spec = {.dims = {},
              .value = static_cast<double>(hint_of(graph.at("sym_int_values").at(name))),
              .dtype = DType::kInt64};
    } else if (kind == "as_tensor") {
      const JsonReader meta = graph.at("tensor_values").at(name);
      for (const JsonReader size : meta.at("sizes").list()) spec.dims.push_back(hint_of(size));
      const ElementType* type = type_of_code(meta.at("dtype").count());
      if (type != nullptr) spec.dtype = type->dtype;
    } else {
      throw UnsupportedError("input ", in_quotes(name), " is ", kind,
                             "; only tensors and integers can be passed to the program");
    }
    program_.inputs.push_back(spec);
    if (position < given_.size()) {
      const InputSpec& given = given_[position];
      if (!given.open) spec.dims = given.dims;
      if (given.value) spec.value = given.value;
      if (given.dtype != DType::kUnknown) spec.dtype = given.dtype;
      as_exported_ = as_exported_ && spec.dims == program_.inputs.back().dims;
    }
    program_.sizes.push_back(spec);
    const ValueId id = builder_.input(name, spec.dtype, spec);
    return kind == "as_sym_int" ? Binding::run_time(id) : Binding::tensor(id);
  }

  void remember(const std::string& graph, const std::string& name, const Binding& binding) {
    if (!binding.is(BindingKind::kTensor)) return;
    std::optional<Shape> dims;
    if (const Shape* known = builder_.shape(binding.value)) dims = *known;
    if (dims && builder_.is_complex(binding.value)) dims->pop_back();
    program_.values.push_back({graph, name, binding.value, std::move(dims)});
  }

  void define_outputs(const JsonReader& graph, const Names& names) {
    builder_.begin("output");
    size_t position = 0;
    for (const JsonReader output : graph.at("outputs").list()) {
      const size_t at = position++;
      const JsonReader value = member_of(output);
      if (name_in(value).empty()) continue;
      const Binding& binding = named(value, names);
      if (at < becomes_.size() && !becomes_[at].empty()) {
        const auto held = names.find(program_.placeholders[becomes_[at]]);
        if (held != names.end() && binding.is(BindingKind::kTensor)) {
          builder_.note_write(held->second.value, binding.value);
        }
        continue;
      }
      if (binding.is(BindingKind::kNumber)) numbers_.pin_source_sizes("return", binding.value);
      if (!binding.is(BindingKind::kTensor)) continue;
      ValueId result = binding.value;
      if (builder_.is_complex(result)) {
        result = builder_.emit_opaque("complex", {result}, 1, false).front();
      }
      const Value& made = graph_.value(result);
      const bool again = std::ranges::find(graph_.outputs, result) != graph_.outputs.end();
      if (made.is_input || made.weight != kNone || again) {
        result = builder_.emit("Identity", {{result}});
      }
      numbers_.pin_source_sizes("return", result);
      graph_.outputs.push_back(result);
    }
    if (graph_.outputs.empty()) throw ModelError(path_, ": the program returns no tensor");
  }

  void follow(const JsonReader& graph, const std::string& place, Names& names) {
    scopes_.push_back(&names);
    size_t i = 0;
    for (const JsonReader node : graph.at("nodes").list()) {
      visit(graph, node, place + "/nodes/" + std::to_string(i++), names);
    }
    scopes_.pop_back();
  }

  void visit(const JsonReader& graph, const JsonReader& node, const std::string& place,
             Names& names) {
    const Target target = target_of(node.at("target").text());
    if (target.passes || (target.inlines && inlined(node, place, names))) return;
    std::vector<Binding> results;
    const std::vector<Names*> scopes = scopes_;
    try {
      results = target.branches ? branch(node, place, names) : call(target, node, place, names);
    } catch (const NotKnown&) {
      scopes_ = scopes;
      results = opaque(target, graph, node, names);
    }
    bind(node, results, graph_of(place), names);
  }

  /// Names the results of a node. A list is one result, whose items have names.
  void bind(const JsonReader& node, const std::vector<Binding>& results, const std::string& graph,
            Names& names) {
    size_t i = 0;
    const auto name = [&](const JsonReader& value, const Binding& binding) {
      const std::string own = name_in(value);
      if (own.empty()) return;
      names[own] = binding;
      remember(graph, own, binding);
    };
    for (const JsonReader output : node.at("outputs").list()) {
      const JsonReader value = member_of(output);
      const Binding binding = i < results.size() ? results[i] : Binding{};
      ++i;
      if (!value.is_list()) {
        name(value, binding);
        continue;
      }
      size_t item = 0;
      for (const JsonReader one : value.list()) {
        const bool known = binding.is(BindingKind::kList) && item < binding.items->size();
        name(one, known ? (*binding.items)[item] : Binding{});
        ++item;
      }
    }
  }

  static bool writes(const Target& target) {
    return target.op.ends_with('_') && !target.op.ends_with("__");
  }

  std::vector<Binding> call(const Target& target, const JsonReader& node, const std::string& place,
                            Names& names) {
    std::vector<Binding> arguments = arguments_of(target, node, names);
    const size_t count = target.schema == nullptr ? 1 : target.schema->results;
    if (count == 1) {
      const auto number = numbers_.computed({target.op, target.is_prim, arguments});
      if (number) return {*number};
    }
    if (target.is_number) return {Binding{}};
    const bool in_place = writes(target);
    const std::string op = in_place ? target.op.substr(0, target.op.size() - 1) : target.op;
    const bool is_literal = is_literal_call(op, arguments);
    if (!is_literal && literals_ == Literals::kAreWeights) hold_computed(arguments);
    builder_.begin(op);
    std::vector<Binding> results = lowered(op, arguments, count, {place, target.schema});
    for (const Binding& result : results) {
      if (is_literal && result.is(BindingKind::kTensor)) computed_.insert(result.value);
    }
    if (in_place) write_to(arguments.at(0), results.at(0));
    return results;
  }

  std::vector<Binding> arguments_of(const Target& target, const JsonReader& node,
                                    const Names& names) {
    std::vector<Binding> arguments;
    if (target.schema == nullptr) {
      if (!target.is_number) throw NotKnown();
      for (const JsonReader input : node.at("inputs").list()) {
        arguments.push_back(value_of(input.at("arg"), {}, names));
      }
      return arguments;
    }
    const std::vector<Parameter>& parameters = target.schema->parameters;
    std::vector<std::optional<Binding>> given(parameters.size());
    for (const JsonReader input : node.at("inputs").list()) {
      const auto found = std::ranges::find(parameters, input.at("name").text(), &Parameter::name);
      if (found == parameters.end()) throw NotKnown();
      given[static_cast<size_t>(found - parameters.begin())] =
          value_of(input.at("arg"), *found, names);
    }
    for (size_t i = 0; i < parameters.size(); ++i) {
      arguments.push_back(given[i] ? *given[i] : parameters[i].fallback.value_or(Binding::none()));
    }
    return arguments;
  }

  const Binding& named(const JsonReader& value, const Names& names) {
    const auto found = names.find(name_in(value));
    if (found == names.end()) {
      throw ModelError(value.place(), ": there is no earlier value named ",
                       in_quotes(name_in(value)));
    }
    const Binding& binding = found->second;
    if (binding.is(BindingKind::kTensor)) {
      const auto stale = stale_.find(binding.value);
      if (stale != stale_.end()) {
        builder_.pin("write", {binding.value, stale->second});
        graph_.nodes.back().attributes = {{"call", "a write into a part of a tensor"},
                                          {"effect", "writes"}};
      }
    }
    return binding;
  }

  Binding list_of(const JsonReader& values, const std::function<Binding(const JsonReader&)>& item) {
    std::vector<Binding> items;
    for (const JsonReader value : values.list()) items.push_back(item(value));
    return Binding::list(std::move(items));
  }

  /// An item of a list of sizes or of optional tensors: {"name": "x"}, {"as_int": 3},
  /// {"as_tensor": {"name": "x"}}.
  Binding item_of(const JsonReader& item, const Names& names) {
    if (!name_in(item).empty()) return named(item, names);
    return value_of(item, {}, names);
  }

  /// What `arg`, a union of one member such as {"as_ints": [1, 1]}, is for a parameter.
  Binding value_of(const JsonReader& arg, const Parameter& parameter, const Names& names) {
    const JsonReader value = member_of(arg);
    const std::string_view kind = value.own_key();
    if (!name_in(value).empty() && kind != "as_graph" && kind != "as_custom_obj") {
      return named(value, names);
    }
    if (kind == "as_none") return Binding::none();
    if (kind == "as_int") {
      const Binding one = Binding::of_int(integer_of(value));
      if (parameter.is_list) return Binding::list({one});
      return parameter.kind == Parameter::Kind::kReal ? Binding::of_float(one.as_double()) : one;
    }
    if (kind == "as_float") return Binding::of_float(real_of(value));
    if (kind == "as_bool") {
      const bool is_scalar = parameter.kind == Parameter::Kind::kScalar;
      return is_scalar ? Binding::of_int(value.flag() ? 1 : 0) : Binding::of_bool(value.flag());
    }
    if (kind == "as_string") return Binding::of_text(value.text());
    if (kind == "as_ints") {
      return list_of(value, [](const JsonReader& one) { return Binding::of_int(integer_of(one)); });
    }
    if (kind == "as_floats") {
      return list_of(value, [](const JsonReader& one) { return Binding::of_float(real_of(one)); });
    }
    if (kind == "as_bools") {
      return list_of(value, [](const JsonReader& one) { return Binding::of_bool(one.flag()); });
    }
    if (kind == "as_strings") {
      return list_of(value, [](const JsonReader& one) { return Binding::of_text(one.text()); });
    }
    if (value.is_list()) {  // tensors, optional tensors, symbolic numbers
      return list_of(value, [&](const JsonReader& one) { return item_of(one, names); });
    }
    if (kind == "as_scalar_type") {
      const ElementType* type = type_of_code(value.count());
      if (type == nullptr) throw NotKnown();
      if (type->name == "complex64") return Binding::of_int(kComplexFloat);
      return Binding::of_int(torch_type_of(type->dtype));
    }
    if (kind == "as_layout" || kind == "as_device") return {};
    if (kind == "as_memory_format") {
      constexpr auto kFormats = std::to_array<int64_t>({0, 2, 3, 1});  // contiguous, …, preserve
      const int64_t code = value.count();
      if (code < 1 || code > std::ssize(kFormats)) throw NotKnown();
      return Binding::of_int(kFormats[static_cast<size_t>(code - 1)]);
    }
    const bool nested = kind == "as_optional_tensor" || kind.starts_with("as_sym_");
    if (nested && value.is_object()) return value_of(value, parameter, names);
    throw NotKnown();
  }

  bool is_complex(const Binding& binding) const {
    if (binding.is(BindingKind::kTensor)) return builder_.is_complex(binding.value);
    return binding.is(BindingKind::kList) &&
           std::ranges::any_of(*binding.items, [&](const Binding& x) { return is_complex(x); });
  }

  void set_complex(const Binding& binding) {
    if (binding.is(BindingKind::kTensor)) builder_.set_complex(binding.value);
    if (!binding.is(BindingKind::kList)) return;
    for (const Binding& item : *binding.items) set_complex(item);
  }

  std::vector<Binding> lowered(const std::string& op, const std::vector<Binding>& arguments,
                               size_t count, const ProgramCall& at) {
    const bool complex =
        std::ranges::any_of(arguments, [&](const Binding& x) { return is_complex(x); });
    const Rule* rule = complex ? find_complex_rule(op) : find_rule(op);
    if (rule == nullptr) throw NotKnown();
    const auto mark = builder_.mark();
    const auto id = static_cast<int>(program_.calls.size());
    program_.calls.push_back(at);
    try {
      Call call(builder_, id, *rule, arguments, count);
      rule->lower(call);
      std::vector<Binding> results = std::move(call.results);
      for (const SettledNumber& number : call.settled()) numbers_.settle(op, number);
      if (rule->moves) std::ranges::for_each(results, [&](const Binding& x) { set_complex(x); });
      return results;
    } catch (const NotLowered&) {
      builder_.roll_back(mark);
      program_.calls.pop_back();
      throw NotKnown();
    }
  }

  /// Whether a call computes from literals alone.
  bool is_literal_call(const std::string& op, const std::vector<Binding>& arguments) const {
    constexpr auto kSources = std::to_array<std::string_view>(
        {"arange", "bartlett_window", "blackman_window", "eye", "full", "hamming_window",
         "hann_window", "kaiser_window", "linspace", "logspace", "ones", "zeros"});
    std::vector<ValueId> read;
    for (const Binding& argument : arguments) collect(argument, read);
    const bool begins = std::ranges::find(kSources, op) != kSources.end();
    return (begins || !read.empty()) &&
           std::ranges::all_of(read, [&](ValueId value) { return computed_.contains(value); });
  }

  /// Makes weights of tensors that the program computes from literals alone, if their elements
  /// differ.
  void hold_computed(std::vector<Binding>& arguments) {
    for (Binding& argument : arguments) {
      if (argument.is(BindingKind::kTensor) && computed_.contains(argument.value)) {
        argument = held(argument);
      }
    }
  }

  Binding held(const Binding& computed) {
    constexpr int64_t kMostElements = 65536;
    const auto known_weight = held_.find(computed.value);
    if (known_weight != held_.end()) return known_weight->second;
    const HostTensor* known = builder_.known(computed.value);
    if (known == nullptr || !known->floating() || known->count() > kMostElements) return computed;
    const std::vector<double>& numbers = known->floats;
    const bool differ = std::ranges::any_of(numbers, [&](double x) { return x != numbers[0]; });
    const bool finite = std::ranges::all_of(numbers, [](double x) { return std::isfinite(x); });
    const std::string& name = graph_.value(computed.value).name;
    if (!differ || !finite) return computed;
    const DType dtype = graph_.value(computed.value).dtype;
    const auto size = static_cast<size_t>(size_of(dtype));
    std::vector<std::byte>& bytes = program_.sources.storage.emplace_back(numbers.size() * size);
    for (size_t i = 0; i < numbers.size(); ++i) write_number(numbers[i], dtype, &bytes[i * size]);
    const Shape dims = known->dims;
    const std::string own = name;
    builder_.begin(own);
    builder_.rename(computed.value, builder_.unused_name());
    std::ranges::copy_if(program_.values, std::back_inserter(program_.computed[own]),
                         [&](const ProgramValue& value) { return value.value == computed.value; });
    return held_[computed.value] =
               Binding::tensor(builder_.weight({.name = own,
                                                .dtype = dtype,
                                                .dims = dims,
                                                .data = bytes.data(),
                                                .stride = static_cast<int64_t>(size)}));
  }

  /// x.relu_(): from here on the names of x mean the result. If x is a part of p, as in
  /// p[1:3].relu_(), those of p mean p put together anew. Whoever else sees the same memory sees it
  /// change, too: see `named`.
  void write_to(const Binding& written, const Binding& result) {
    if (!written.is(BindingKind::kTensor) || !result.is(BindingKind::kTensor)) throw NotKnown();
    if (result.value == written.value) return;  // dropout_ in evaluation mode
    if (is_empty(builder_, written.value)) return;
    const ValueId root = builder_.root(written.value);
    const bool same_memory =
        builder_.root(result.value) == root;  // squeeze_: the view alone changes
    const bool owned = graph_.value(root).weight == kNone;
    std::vector<std::pair<ValueId, ValueId>> changed{{written.value, result.value}};
    if (owned && !same_memory) changed = written_through(builder_, written.value, result.value);
    if (!same_memory) builder_.note_write(written.value, result.value);
    for (const auto& [before, after] : changed) {
      if (!same_memory) builder_.alias(after, changed.back().second);
      if (computed_.contains(before) && computed_.contains(result.value)) computed_.insert(after);
    }
    const std::map<ValueId, ValueId> now(changed.begin(), changed.end());
    for (Names* scope : scopes_) {
      for (auto& [name, binding] : *scope) {
        if (!binding.is(BindingKind::kTensor)) continue;
        if (const auto known = now.find(binding.value); known != now.end()) {
          binding.value = known->second;
        } else if (!same_memory && builder_.root(binding.value) == root) {
          stale_[binding.value] = result.value;
        }
      }
    }
  }

  void collect(const Binding& binding, std::vector<ValueId>& values) const {
    if (binding.is(BindingKind::kTensor) || binding.is(BindingKind::kNumber)) {
      values.push_back(binding.value);
    }
    if (!binding.is(BindingKind::kList)) return;
    for (const Binding& item : *binding.items) collect(item, values);
  }

  /// All values that a node reads, in sub-graphs through its operands.
  std::vector<ValueId> values_read(const JsonReader& node, const Names& names) const {
    std::vector<ValueId> values;
    const std::function<void(const JsonReader&)> read = [&](const JsonReader& value) {
      if (value.is_list()) {
        for (const JsonReader item : value.list()) read(item);
      } else if (value.is_object() && !value.has("graph")) {
        const auto found = names.find(name_in(value));
        if (found != names.end()) return collect(found->second, values);
        for (const JsonReader member : value.members()) read(member);
      }
    };
    for (const JsonReader input : node.at("inputs").list()) read(input.at("arg"));
    sort_unique(values);
    return values;
  }

  std::vector<Binding> opaque(const Target& target, const JsonReader& graph, const JsonReader& node,
                              const Names& names) {
    const std::vector<ValueId> values = values_read(node, names);
    for (const ValueId value : values) numbers_.pin_source_sizes(target.op, value);
    size_t count = 0;
    for (const JsonReader output : node.at("outputs").list()) {
      const JsonReader value = member_of(output);
      count += value.is_list() ? value.size() : 1;
    }
    builder_.begin(target.op);
    const bool has_graphs = !graphs_in(node, "").empty();
    const std::vector<ValueId> made = builder_.emit_opaque(target.op, values, count, has_graphs);
    auto& attributes = graph_.nodes.back().attributes;
    attributes.emplace_back("call", target.call);
    if (writes(target)) attributes.emplace_back("effect", std::string("writes"));
    if (std::string line = line_of(node); !line.empty()) {
      attributes.emplace_back("line", std::move(line));
    }
    // What data decide is assumed for the first result: several have to fit each other.
    const bool assumes = made.size() == 1 && std::ranges::all_of(values, [&](ValueId value) {
                           return builder_.shape(value) != nullptr;
                         });
    auto next = made.begin();
    const auto result = [&](const JsonReader& value, std::string_view kind) {
      const ValueId id = *next++;
      if (!kind.starts_with("as_tensor")) return Binding{};
      declare(graph, name_in(value), id, assumes);
      return Binding::tensor(id);
    };
    std::vector<Binding> results;
    for (const JsonReader output : node.at("outputs").list()) {
      const JsonReader value = member_of(output);
      results.push_back(
          value.is_list()
              ? list_of(value, [&](const JsonReader& one) { return result(one, value.own_key()); })
              : result(value, value.own_key()));
    }
    return results;
  }

  /// Nothing that the value was made of can shrink: its sizes are those that the program declares.
  void declare(const JsonReader& graph, const std::string& name, ValueId id, bool assumes) {
    const auto meta = graph.at("tensor_values").find(name);
    if (!meta || !as_exported_) return;
    Value& value = graph_.value(id);
    const ElementType* type = type_of_code(meta->at("dtype").count());
    if (type != nullptr) value.dtype = type->dtype;
    Shape dims;
    for (const JsonReader size : meta->at("sizes").list()) {
      if (!assumes && !size_of(size)) return;
      dims.push_back(hint_of(size));
    }
    value.declared = std::move(dims);
    value.symbols.resize(value.declared->size());
  }

  /// The sub-graphs among a node's inputs, and where they are.
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

  /// What is passed to a sub-graph: the values that follow it.
  std::vector<Binding> operands_of(const JsonReader& node, const Names& names) {
    std::vector<Binding> operands;
    bool after = false;
    for (const JsonReader input : node.at("inputs").list()) {
      const JsonReader value = member_of(input.at("arg"));
      if (value.own_key() == "as_graph") {
        after = true;
      } else if (after && value.is_list()) {
        for (const JsonReader item : value.list()) operands.push_back(item_of(item, names));
      } else if (after) {
        operands.push_back(value_of(input.at("arg"), {}, names));
      }
    }
    return operands;
  }

  /// A sub-graph's own names for what is passed to it.
  Names inner_names(const JsonReader& graph, const std::string& place,
                    const std::vector<Binding>& operands) {
    Names names;
    size_t i = 0;
    for (const JsonReader input : graph.at("inputs").list()) {
      if (i == operands.size()) break;
      const std::string name = name_in(member_of(input));
      names[name] = operands[i++];
      remember(place, name, names[name]);
    }
    return names;
  }

  std::vector<Binding> results_of(const JsonReader& graph, const Names& names) {
    std::vector<Binding> results;
    for (const JsonReader output : graph.at("outputs").list()) {
      results.push_back(value_of(output, {}, names));
    }
    return results;
  }

  /// A sub-graph that runs unchanged, such as one without gradients.
  bool inlined(const JsonReader& node, const std::string& place, Names& names) {
    const auto graphs = graphs_in(node, place);
    if (graphs.size() != 1) return false;
    const auto& [graph, at] = graphs.front();
    Names inner = inner_names(graph, at, operands_of(node, names));
    follow(graph, at, inner);
    std::vector<Binding> results = results_of(graph, inner);
    // Its results are the node's, one by one, also where the node has one list.
    const auto outputs = node.at("outputs");
    const bool is_list = outputs.size() == 1 && member_of(*outputs.list().begin()).is_list();
    if (is_list) results = {Binding::list(std::move(results))};
    bind(node, results, graph_of(place), names);
    return true;
  }

  /// torch.cond(predicate, graph, graph, operands)
  std::vector<Binding> branch(const JsonReader& node, const std::string& place, Names& names) {
    const auto graphs = graphs_in(node, place);
    if (graphs.size() != 2) throw NotKnown();
    const std::vector<Binding> operands = operands_of(node, names);
    Binding condition = value_of((*node.at("inputs").list().begin()).at("arg"), {}, names);
    if (condition.is(BindingKind::kTensor)) {
      condition = numbers_.computed({"Bool", false, {condition}}).value_or(Binding{});
    }
    if (const auto taken = numbers_.decided(condition)) {
      if (condition.is(BindingKind::kNumber)) numbers_.pin_source_sizes("If", condition.value);
      const auto& [graph, at] = graphs[*taken ? 0 : 1];
      std::vector<ValueId> others;
      for (const Binding& operand : operands) collect(operand, others);
      builder_.pin("If", others);  // the other branch reads them, too
      Names inner = inner_names(graph, at, operands);
      follow(graph, at, inner);
      return listed(node, results_of(graph, inner));
    }
    if (!condition.is(BindingKind::kNumber)) throw NotKnown();
    const std::vector<BodyId> bodies = {builder_.body("then_branch"), builder_.body("else_branch")};
    const std::vector<Names*> around_both = std::exchange(scopes_, {});  // neither surely writes
    for (size_t b = 0; b < bodies.size(); ++b) {
      const auto& [graph, at] = graphs[b];
      const BodyId around = builder_.enter(bodies[b]);
      Names inner = inner_names(graph, at, operands);
      follow(graph, at, inner);
      const std::vector<Binding> results = results_of(graph, inner);
      std::vector<ValueId> values;
      for (const Binding& result : results) {
        const bool is_tensor = result.is(BindingKind::kTensor);
        if (!is_tensor && !result.is_number())
          throw UnsupportedError(node.place(),
                                 ": a branch returns something other than a tensor or number");
        values.push_back(is_tensor ? result.value : numbers_.run_time(result).value);
      }
      builder_.finish_body(bodies[b], values);
      builder_.enter(around);
    }
    scopes_ = around_both;
    if (graph_.bodies[bodies[0]].outputs.size() != graph_.bodies[bodies[1]].outputs.size()) {
      node.fail("the branches have different numbers of results");
    }
    std::vector<Binding> results;
    for (const ValueId value : builder_.emit_control("If", {condition.value}, bodies)) {
      results.push_back(Binding::tensor(value));
    }
    auto& attributes = graph_.nodes.back().attributes;
    attributes.emplace_back("call", std::string("higher_order::cond"));
    return listed(node, std::move(results));
  }

  /// As the node names them: one by one, or as one list.
  static std::vector<Binding> listed(const JsonReader& node, std::vector<Binding> results) {
    const auto outputs = node.at("outputs");
    const bool is_list = outputs.size() == 1 && member_of(*outputs.list().begin()).is_list();
    if (is_list) return {Binding::list(std::move(results))};
    return results;
  }

  static constexpr int64_t kComplexFloat = 9;

  const std::map<std::string, ArchivedTensor>& tensors_;
  const std::string& path_;
  JsonReader root_;
  const std::vector<InputSpec>& given_;
  const Literals literals_;
  Program& program_;
  Graph& graph_;
  Builder builder_;
  Numbers numbers_;
  std::unordered_map<std::string, const ArchivedTensor*> tensor_of_;  ///< by placeholder
  std::vector<std::string> becomes_;  ///< per output: the tensor of the module that it becomes
  std::map<std::pair<const std::byte*, Shape>, Binding> weights_;
  std::set<ValueId> computed_;       ///< from literals alone
  std::map<ValueId, Binding> held_;  ///< weights for these
  std::map<ValueId, ValueId>
      stale_;                   ///< what shows memory that was written since, and what was written
  std::vector<Names*> scopes_;  ///< of the graph that is followed and those around it
  bool as_exported_ = true;     ///< the inputs have the sizes with which it was exported
};

}  // namespace

std::string graph_of(const std::string& place) { return place.substr(0, place.rfind("/nodes/")); }

Program read_program(const JsonReader& json, const std::map<std::string, ArchivedTensor>& tensors,
                     const std::string& path, const std::vector<InputSpec>& inputs,
                     Literals literals) {
  Program program;
  ProgramReader(tensors, path, json, inputs, literals, program).run();
  return program;
}

Program read_program(const Archive& archive, const std::vector<InputSpec>& inputs) {
  return read_program(archive.program(), archive.tensors(), archive.path(), inputs,
                      literals_of(archive));
}

}  // namespace parsimony::programs
