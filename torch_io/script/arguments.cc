#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/inliner.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/torch_io/script/interpreter_impl.h"
#include "parsimony/torch_io/script/origins_impl.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

namespace {

bool is_number(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::IntType || type->kind() == c10::TypeKind::BoolType ||
         type->kind() == c10::TypeKind::FloatType;
}

/// Returns the keys by which the program reads a dictionary, each once.
std::vector<std::string> keys_read(const jit::Module& module, size_t argument) {
  const std::shared_ptr<jit::Graph> graph = module.get_method("forward").graph()->copy();
  jit::Inline(*graph);
  const jit::Value* dictionary = graph->inputs()[argument];
  std::vector<std::string> keys;
  for_each_node(*graph->block(), [&](const jit::Node* node) {
    if (node->kind() != c10::aten::__getitem__ || node->input(0) != dictionary) return;
    const auto key = jit::toIValue(node->input(1));
    if (key && key->isString() && !contains(keys, key->toStringRef())) {
      keys.push_back(key->toStringRef());
    }
  });
  return keys;
}

class Arguments {
 public:
  Arguments(const jit::Module& module, size_t inputs)
      : module_(module),
        schema_(module.get_method("forward").function().getSchema().arguments()),
        inputs_(inputs) {}

  std::vector<Argument> all() {
    std::vector<Argument> result;
    for (position_ = 1; position_ < schema_.size(); ++position_) {
      const c10::Argument& argument = schema_[position_];
      const bool may_go = argument.default_value().has_value() ||
                          argument.type()->kind() == c10::TypeKind::OptionalType;
      if (may_go && next_ >= inputs_) {
        result.push_back({.name = argument.name(), .type = argument.type()});
      } else {
        result.push_back(made(argument.name(), argument.type()));
      }
    }
    if (next_ < inputs_) {
      throw ConfigError(inputs_, " inputs were passed, but \"forward\" takes ", next_);
    }
    return result;
  }

 private:
  Argument made(const std::string& name, const c10::TypePtr& type) {
    if (const auto optional = type->cast<c10::OptionalType>()) {
      return made(name, optional->getElementType());
    }
    Argument argument{.name = name, .type = type};
    if (type->kind() == c10::TypeKind::TensorType || is_number(type)) {
      if (next_ >= inputs_) {
        throw ConfigError("TorchScript files do not specify input shapes: \"forward\" takes ",
                          in_quotes(name), " as input ", next_ + 1, ", but ", inputs_,
                          " were passed; expected for example 1x3x32x32");
      }
      argument.kind = is_number(type) ? ArgumentKind::kNumber : ArgumentKind::kTensor;
      argument.input = next_++;
    } else if (const auto tuple = type->cast<c10::TupleType>()) {
      argument.kind = ArgumentKind::kTuple;
      for (const c10::TypePtr& item : tuple->elements()) add(argument, item);
    } else if (const auto list = type->cast<c10::ListType>()) {
      argument.kind = ArgumentKind::kList;
      const size_t after = arguments_after();
      const size_t count = inputs_ > next_ + after ? inputs_ - next_ - after : 1;
      for (size_t i = 0; i < count; ++i) add(argument, list->getElementType());
    } else if (const auto dictionary = type->cast<c10::DictType>()) {
      if (dictionary->getKeyType()->kind() != c10::TypeKind::StringType) throw refused(argument);
      argument.kind = ArgumentKind::kDict;
      argument.keys = keys_read(module_, position_);
      for (const std::string& key : argument.keys) {
        argument.items.push_back(made(name + "." + key, dictionary->getValueType()));
      }
    } else {
      throw refused(argument);
    }
    return argument;
  }

  void add(Argument& to, const c10::TypePtr& type) {
    to.items.push_back(made(to.name + "." + std::to_string(to.items.size()), type));
  }

  /// Returns the minimum number of inputs for the arguments after this one.
  size_t arguments_after() const {
    size_t requested = 0;
    for (size_t i = position_ + 1; i < schema_.size(); ++i) {
      if (!schema_[i].default_value()) requested += leaves(schema_[i].type());
    }
    return requested;
  }

  static size_t leaves(const c10::TypePtr& type) {
    if (type->kind() == c10::TypeKind::OptionalType) return 0;
    const auto tuple = type->cast<c10::TupleType>();
    if (!tuple) return 1;
    size_t count = 0;
    for (const c10::TypePtr& item : tuple->elements()) count += leaves(item);
    return count;
  }

  static UnsupportedError refused(const Argument& argument) {
    return UnsupportedError("input ", in_quotes(argument.name), " of \"forward\" is of type ",
                            argument.type->str(),
                            "; only tensors and numbers are supported, and tuples, lists and "
                            "dictionaries of them");
  }

  const jit::Module& module_;
  const std::vector<c10::Argument>& schema_;
  size_t inputs_;
  size_t next_ = 0;
  size_t position_ = 0;
};

c10::IValue number_of(const c10::TypePtr& type, const at::Tensor& tensor) {
  if (type->kind() == c10::TypeKind::IntType) return tensor.item<int64_t>();
  if (type->kind() == c10::TypeKind::BoolType) return tensor.item<bool>();
  return tensor.item<double>();
}

c10::IValue value_of(const Argument& argument, const std::vector<at::Tensor>& inputs) {
  std::vector<c10::IValue> items;
  for (const Argument& item : argument.items) items.push_back(value_of(item, inputs));
  switch (argument.kind) {
    case ArgumentKind::kTensor:
      return inputs.at(argument.input);
    case ArgumentKind::kNumber:
      return number_of(argument.type, inputs.at(argument.input));
    case ArgumentKind::kTuple:
      return c10::ivalue::Tuple::create(std::move(items));
    case ArgumentKind::kList: {
      c10::impl::GenericList list(argument.type->expect<c10::ListType>()->getElementType());
      for (c10::IValue& item : items) list.push_back(std::move(item));
      return list;
    }
    case ArgumentKind::kDict: {
      const auto type = argument.type->expect<c10::DictType>();
      c10::impl::GenericDict dictionary(type->getKeyType(), type->getValueType());
      for (size_t i = 0; i < items.size(); ++i) dictionary.insert(argument.keys[i], items[i]);
      return dictionary;
    }
    case ArgumentKind::kLeftOut:
      break;
  }
  return {};
}

}  // namespace

std::vector<Argument> arguments_of(const jit::Module& module, size_t inputs) {
  return Arguments(module, inputs).all();
}

std::vector<c10::IValue> values_of(const std::vector<Argument>& arguments,
                                   const std::vector<at::Tensor>& inputs) {
  std::vector<c10::IValue> values;
  for (const Argument& argument : arguments) {
    if (argument.kind == ArgumentKind::kLeftOut) break;
    values.push_back(value_of(argument, inputs));
  }
  return values;
}

}  // namespace parsimony::torch_io::script
