// Operators that libtorch itself computes by others: pairwise_distance by sub, add and norm.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/operator_name.h>
#include <ATen/core/stack.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace parsimony::torch_io::script {

/// A call that an operator makes.
struct InnerCall {
  std::string op;  ///< "sub"; "add_"
  std::vector<c10::IValue> arguments;
  std::vector<c10::IValue> results;
};

struct InnerCalls {
  std::vector<InnerCall> calls;  ///< in order
  std::vector<c10::IValue> results;
};

/// Runs the operator on these arguments and records what it calls. Operators for which `is_known`
/// holds are not looked into. Empty if it is not made of others, or asks for a number of a tensor.
std::optional<InnerCalls> inner_calls(const c10::OperatorName& op, torch::jit::Stack arguments,
                                      const std::function<bool(const std::string&)>& is_known);

}  // namespace parsimony::torch_io::script
