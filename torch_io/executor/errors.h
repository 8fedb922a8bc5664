// Error texts of graph execution.
#pragma once

#include <string>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/graph/graph.h"

namespace parsimony::executor {

/// The node's name, or its operator if it has none.
const std::string& label(const Node& node);

namespace errors {

using namespace parsimony::errors;  // NOLINT(google-build-using-namespace): one name for both

UnsupportedError cannot_run(const Node& node, std::string_view why);
/// Masked execution reached an operator without presence rule.
UnsupportedError cannot_mask(const Node& node);
ModelError run_failed(const Node& node, std::string_view why);
ModelError wrong_inputs(size_t wanted, size_t found);
ModelError undefined_input(std::string_view input);
ModelError no_such_weight(std::string_view weight);
/// The addition whose block the plan removes does not exist.
ModelError no_such_block(std::string_view add);
/// The plan says that values change, but does not contain them.
UnsupportedError updates(std::string_view weight);
ModelError slice_does_not_fit(std::string_view weight, int axis, int64_t size, const Shape& found);

}  // namespace errors
}  // namespace parsimony::executor
