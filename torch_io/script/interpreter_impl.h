// Abstract interpretation of a jit graph: binds each value to a Binding, beginning with the
// arguments of `forward`.
#pragma once

#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/ir/ir.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/interface.h"
#include "parsimony/programs/builder.h"
#include "parsimony/programs/call.h"
#include "parsimony/programs/numbers.h"
#include "parsimony/torch_io/script/origins_impl.h"

namespace parsimony::programs {

/// A module instance and its path: "layer1.0", empty for the root.
struct Object {
  c10::intrusive_ptr<c10::ivalue::Object> object;
  std::string path;
};

}  // namespace parsimony::programs

namespace parsimony::torch_io::script {

/// Kinds of arguments: tensors and numbers, also in tuples, lists and dictionaries. A network's
/// inputs are all of them, flattened in order.
enum class ArgumentKind : uint8_t { kTensor, kNumber, kTuple, kList, kDict, kLeftOut };

struct Argument {
  ArgumentKind kind = ArgumentKind::kLeftOut;
  std::string name;                    ///< "x", "pair.0", "batch.image"
  c10::TypePtr type;                   ///< for optional arguments: of the value
  size_t input = 0;                    ///< index of the tensor or number among the inputs
  std::vector<Argument> items = {};    ///< elements of a tuple, a list or a dictionary
  std::vector<std::string> keys = {};  ///< of a dictionary: keys that the program reads
};

/// Returns all arguments but `self`, for this number of inputs. Optional arguments and those with
/// defaults may be omitted; a list takes the inputs that the others leave.
/// @throws ConfigError if there are too few inputs or too many; UnsupportedError for other types
std::vector<Argument> arguments_of(const torch::jit::Module& module, size_t inputs);

/// Returns the arguments for the inputs; for numbers, the inputs are tensors of one element.
/// Arguments omitted at the end are left out.
std::vector<c10::IValue> values_of(const std::vector<Argument>& arguments,
                                   const std::vector<at::Tensor>& inputs);

struct Measured {
  Shape dims;
  DType dtype = DType::kUnknown;
};

using Measurements = std::unordered_map<const torch::jit::Value*, Measured>;

/// Runs `graph`, the module's `forward`, twice on random numbers and measures `values`, tensors of
/// its outermost block. Data-dependent sizes are omitted, and all if the graph cannot be run.
/// @param inputs of `forward`, in order, with shape and type
Measurements measure(const torch::jit::Module& module,
                     const std::shared_ptr<torch::jit::Graph>& graph,
                     const std::vector<torch::jit::Value*>& values,
                     const std::vector<InputSpec>& inputs);

using programs::Attributes;
using programs::Call;
using programs::find_complex_rule;
using programs::find_rule;
using programs::Rule;
using programs::SettledNumber;
using programs::size_at;
using programs::written_through;

/// The tensors of a module as weights of the Graph. Each tensor is one weight, even if it has
/// several names.
class Tensors {
 public:
  Tensors(Builder& builder, Origins& origins);

  Binding attribute(const at::Tensor& tensor, const std::string& path);
  /// Returns kNone if no attribute with this tensor has been read.
  ValueId known(const at::Tensor& tensor, const std::string& path) const;
  Binding constant(torch::jit::Node* node, const at::Tensor& tensor);
  /// Adds a tensor that the program computes from literals.
  Binding computed(torch::jit::Value* value, const at::Tensor& tensor);

 private:
  std::string key_of(const at::Tensor& tensor, const std::string& path) const;
  Binding define(const at::Tensor& tensor, const std::string& name, torch::jit::Node* constant);

  Builder& builder_;
  Origins& origins_;
  std::unordered_map<std::string, std::string> names_;  // by identity
  std::unordered_map<std::string, Binding> bindings_;   // by identity
  std::unordered_map<torch::jit::Node*, Binding> constants_;
};

class Interpreter {
 public:
  /// @param measured sizes of values that no lowering covers
  /// @param holds_computed whether tensors computed from literals become weights
  Interpreter(Graph& graph, Origins& origins, Measurements measured = {},
              bool holds_computed = true);

  /// @throws ConfigError, ModelError
  void run(const std::vector<InputSpec>& inputs);
  /// Returns the names of the results; call after `run`.
  std::vector<std::string> result_names() const;
  /// Returns the number of results that are numbers computed at run time; call after `run`.
  size_t result_numbers() const { return result_numbers_; }
  /// Returns tensors of the outermost block with unknown sizes; call after `run`.
  const std::vector<torch::jit::Value*>& unmeasured() const { return unmeasured_; }

 private:
  // interpreter.cc
  void define_inputs(const std::vector<InputSpec>& inputs);
  Binding given(const Argument& argument, const std::string& name, const torch::jit::Value& value,
                const std::vector<InputSpec>& inputs);
  void define_outputs();
  void collect_values(const Binding& binding, BindingKind kind, std::vector<ValueId>& values) const;
  void follow(torch::jit::Block& block);
  void visit(torch::jit::Node* node);
  bool visit_structure(torch::jit::Node* node);
  bool visit_number(torch::jit::Node* node);
  void call(torch::jit::Node* node);
  bool lower(torch::jit::Node* node, const std::string& op, std::vector<Binding>& results);
  void bind(torch::jit::Node* node, std::vector<Binding> results);
  void collect_tensors(const Binding& binding, std::vector<ValueId>& values) const;
  void describe(const torch::jit::Node* node, bool effect);

  // values.cc
  void get_attribute(torch::jit::Node* node);
  Binding attribute(const Object& owner, const std::string& name);
  Binding from_ivalue(const c10::IValue& value, const std::string& path);
  void constant(torch::jit::Node* node);
  void find_written_attributes();
  bool list_operator(torch::jit::Node* node, const std::string& op);
  bool change_list(torch::jit::Node* node, const std::string& op, const Binding& list);
  bool dictionary_operator(torch::jit::Node* node, const std::string& op,
                           const Binding& dictionary);
  bool compare(torch::jit::Node* node, const std::string& op);
  void forget_changes(const torch::jit::Node* node);
  Binding equal_lists(const std::vector<Binding>& a, const std::vector<Binding>& b);

  // bodies.cc
  struct OutsideWritten {};  ///< a body writes to a tensor outside of it
  bool branch_with_bodies(torch::jit::Node* node, const Binding& condition);
  bool loop_with_body(torch::jit::Node* node);
  std::optional<std::vector<Binding>> follow_body(torch::jit::Block& block, BodyId body);
  std::vector<ValueId> values_of(const std::string& op, const std::vector<Binding>& all);
  void bind_results(torch::jit::Node* node, const std::vector<ValueId>& values,
                    const std::vector<Binding>& forms);

  // evaluated.cc
  std::optional<c10::IValue> literal_of(const torch::jit::Value& value) const;
  std::optional<c10::IValue> literal_of(const Binding& binding, const c10::Type& type) const;
  bool holds_evaluated(const Binding& binding) const;
  std::optional<c10::IValue> evaluated(torch::jit::Node* node);
  bool hold(torch::jit::Node* node, const std::optional<c10::IValue>& result, bool unknown);
  void remember(const Binding& binding, const c10::IValue& result);

  // inside.cc
  std::optional<at::Tensor> like(ValueId value);
  std::optional<c10::IValue> argument_like(const Binding& binding, const c10::Type& type,
                                           const c10::IValue* stored);
  bool inline_call(torch::jit::Node* node, std::vector<Binding>& results);

  // control.cc
  void branch(torch::jit::Node* node);
  void loop(torch::jit::Node* node);
  void opaque(torch::jit::Node* node);
  void record_shape(torch::jit::Value* of, ValueId value);
  void collect_captures(torch::jit::Block& block, std::vector<ValueId>& values);
  std::optional<int64_t> count(const Binding& number);
  void keep_for_training(torch::jit::Block& block);
  bool collect_for_training(torch::jit::Block& block, std::vector<ValueId>& values);
  void write_to(torch::jit::Node* node, ValueId result);
  bool is_viewed_after(const torch::jit::Node* node, ValueId root,
                       const std::vector<std::pair<ValueId, ValueId>>& written) const;
  void pin_aliases(const std::string& op, ValueId value);

  const Binding& of(const torch::jit::Value* value) const;
  Binding of_input(const torch::jit::Node* node, size_t i) const { return of(node->input(i)); }

  Graph& graph_;
  Origins& origins_;
  Builder builder_;
  programs::Numbers numbers_;
  Tensors tensors_;
  std::unordered_map<const torch::jit::Value*, Binding> bindings_;
  std::unordered_map<std::string, Binding> written_;  ///< attributes since their SetAttr
  std::unordered_set<std::string> written_names_;     ///< written by some method
  Measurements measured_;
  std::vector<torch::jit::Value*> unmeasured_;
  bool holds_computed_;
  std::unordered_map<ValueId, at::Tensor> evaluated_;  ///< computed from literals only
  std::unique_ptr<torch::jit::AliasDb> aliases_;       ///< created on first use
  int loops_ = 0;
  ValueId first_inside_;  ///< values from here on belong to the current body
  size_t result_numbers_ = 0;
};

/// Returns "relu" for aten::relu_, and "__and__" unchanged.
std::string functional_name(const std::string& op);
bool is_in_place(const std::string& op);
/// Whether the operator changes its list or dictionary operand.
bool changes_list(const torch::jit::Node& node);

/// Returns methods that neither `forward` nor that of a submodule calls, such as
/// "encoder.features". Expects graphs that are not inlined.
std::vector<std::string> uncalled_methods(const torch::jit::Module& module);

/// Whether the condition depends on some module's `training` flag.
bool is_made_of_mode(const torch::jit::Value& condition);

}  // namespace parsimony::torch_io::script
