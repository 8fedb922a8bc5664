// Numbers of a program: queries of tensors, arithmetic on them, and the sizes that a number comes
// from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parsimony/programs/builder.h"
#include "parsimony/programs/call.h"
#include "parsimony/programs/sources.h"

namespace parsimony::programs {

/// A call with one result, of an operator that may compute a number.
struct NumberCall {
  std::string op;  ///< "size"
  bool is_prim = false;
  std::vector<Binding> args;
};

class Numbers {
 public:
  explicit Numbers(Builder& builder) : builder_(builder) {}

  /// The result; empty for operators that do not compute numbers of such arguments, kUnknown for a
  /// number that is known at run time only.
  std::optional<Binding> computed(const NumberCall& call);

  /// The number as a value of the Graph.
  Binding run_time(const Binding& number);

  /// Whether a condition holds; empty if that is known at run time only.
  std::optional<bool> decided(const Binding& condition) const;

  /// The sizes that a number was computed from.
  std::vector<Size> source_sizes(ValueId number) const;

  /// Pins the sizes from which a number that leaves the graph or controls it was computed. A
  /// dimension that is indexed at one position is pinned.
  void pin_source_sizes(const std::string& op, ValueId number);

  /// Treats a number that the Graph holds fixed. One that comes from a single size becomes a
  /// literal of the program if that size changes; the sizes of others are pinned.
  void settle(const std::string& op, const SettledNumber& number);

 private:
  bool question(const NumberCall& call, Binding& result);
  bool conversion(const NumberCall& call, Binding& result);
  bool arithmetic(const NumberCall& call, Binding& result);
  Binding size_of(ValueId value, int64_t dim);
  std::optional<int64_t> literal(const Binding& binding) const;
  static Binding range_number(const std::string& op, const Binding& start, const Binding& second,
                              const Binding& third);
  Graph& graph() const { return builder_.graph(); }

  Builder& builder_;
};

}  // namespace parsimony::programs
