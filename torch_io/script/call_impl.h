// One call of an aten operator, for the lowering functions. Anything unsupported throws NotLowered,
// and the call becomes an unknown node.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/torch_io/script/builder_impl.h"

namespace parsimony::torch_io::script {

class Call;
using Lowering = void(Call& call);

/// How an aten operator is lowered.
struct Rule {
  std::string_view op;
  Lowering* lower = nullptr;
  std::string_view onnx = {};  ///< its name in ONNX, for functions that lower several
  bool moves = false;          ///< of complex tensors: the results are complex, too
};

/// Null for an unknown operator.
const Rule* find_rule(std::string_view op);
/// Of complex tensors.
const Rule* find_complex_rule(std::string_view op);

/// A number that was computed from sizes, where the Graph has its value.
struct SettledNumber {
  SourceLocation location;
  ValueId number = kNone;
};

class Call {
 public:
  Call(Builder& builder, int id, const Rule& rule, std::vector<Binding> arguments,
       size_t result_count)
      : out(builder),
        op(rule.op),
        onnx(rule.onnx),
        args(std::move(arguments)),
        results(result_count),
        id_(id) {}

  Builder& out;
  const std::string op;    ///< "conv2d"
  const std::string onnx;  ///< of the rule
  const std::vector<Binding> args;
  std::vector<Binding> results;

  size_t size() const { return args.size(); }
  const std::vector<SettledNumber>& settled() const { return settled_; }
  const Binding& arg(size_t i) const;
  bool none(size_t i) const { return arg(i).is(BindingKind::kNone); }
  SourceLocation location(size_t i, int item = kNone) const {
    return {id_, static_cast<int>(i), item};
  }
  void require(bool holds) const {
    if (!holds) throw NotLowered();
  }

  Operand tensor(size_t i) const;           ///< a tensor
  Operand optional_tensor(size_t i) const;  ///< kNone for None
  Operand tensor_or_number(size_t i);       ///< a number becomes a constant
  std::vector<Operand> tensors(size_t i) const;
  /// What was computed from sizes is taken as it is with these.
  int64_t integer(size_t i) const;
  int64_t integer(size_t i, int64_t fallback) const;  ///< if it is None or omitted
  double number(size_t i) const;
  double number(size_t i, double fallback) const;
  double single(size_t i) const;  ///< a number, or the one that a tensor is known to hold
  bool flag(size_t i) const;
  const std::string& text(size_t i) const;
  /// A list of integers; a single integer is a list of one.
  std::vector<Element> elements(size_t i) const;
  Element element(size_t i) const;
  std::vector<int64_t> integers(size_t i) const;
  /// As `integers`; a single number is repeated `n` times.
  std::vector<int64_t> integers(size_t i, size_t n) const;

  /// Without the axis of real and imaginary part.
  size_t rank(ValueId value);
  Shape shape(ValueId value);
  /// Counted from the left.
  int64_t axis(int64_t axis, size_t rank) const;

  void give(ValueId value) { give(0, Binding::tensor(value)); }
  void give_node(const std::string& op_name, const std::vector<Operand>& inputs,
                 Attributes attributes = {}, const std::string& domain = "") {
    give(out.emit(op_name, inputs, std::move(attributes), domain));
  }
  void give_complex(ValueId value) {
    out.set_complex(value);
    give(value);
  }
  void give(size_t i, Binding binding) { results.at(i) = std::move(binding); }
  /// The result may share memory with the operand.
  void give_view(ValueId view, ValueId base) {
    out.alias(view, base);
    give(view);
  }

 private:
  int64_t settle(ValueId number, SourceLocation location) const;

  int id_;
  mutable std::vector<SettledNumber> settled_;  // a reader of arguments need not know
};

}  // namespace parsimony::torch_io::script
