// Which operator of TorchScript a target of torch.export is.
#pragma once

#include <ATen/core/function_schema.h>

#include <string>

namespace parsimony::torch_io::exported {

struct Target {
  std::string kind;                             ///< "aten::conv2d"; "unknown::…" if it is not run
  const c10::FunctionSchema* schema = nullptr;  ///< null for other operators and functions
  bool is_number = false;                       ///< a function of Python on numbers
  bool passes = false;                          ///< it only checks, or hints at, what is so anyhow
  bool inlines = false;                         ///< it runs a sub-graph as it is
  bool branches = false;                        ///< torch.cond
};

/// For "torch.ops.aten.conv2d.default" or "_operator.mul".
Target target_of(const std::string& text);

}  // namespace parsimony::torch_io::exported
