// Error texts of onnx_io/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::onnx_io::errors {

using namespace parsimony::errors;  // NOLINT(google-build-using-namespace): one name for both

IoError cannot_read(std::string_view path, std::string_view why);
IoError cannot_write(std::string_view path, std::string_view why);

ModelError bad_model(std::string_view path, std::string_view why);
ModelError truncated(std::string_view path, int64_t stopped_at, int64_t size);
ModelError too_large(std::string_view path, int64_t bytes);
UnsupportedError bad_ir_version(std::string_view path, int64_t found, int64_t lowest,
                                int64_t highest);
UnsupportedError bad_opset(std::string_view path, int64_t found, int64_t lowest, int64_t highest);

/// `what` is "initializer" or "graph input".
ModelError defined_twice(std::string_view what, std::string_view name);
ModelError missing_output(std::string_view name);
ModelError wrong_data_size(std::string_view tensor, std::string_view dims, std::string_view dtype,
                           int64_t wanted_bytes, int64_t found_bytes);
ModelError bad_location(std::string_view tensor, std::string_view location, std::string_view why);
ModelError bad_range(std::string_view tensor, std::string_view location, int64_t offset,
                     int64_t bytes, int64_t file_bytes);
ModelError bad_entry(std::string_view tensor, std::string_view key, std::string_view value);

ModelError in_subgraph(std::string_view node, std::string_view attribute, const ModelError& error);

ModelError unknown_tensor(std::string_view name, std::span<const std::string> candidates);
ModelError unknown_node(std::string_view key, std::span<const std::string> candidates);
ModelError no_such_input(std::string_view node, int input, int inputs);
ModelError name_taken(std::string_view tensor);
/// A copy must be in the same body as its source.
ModelError copy_outside(std::string_view tensor, std::string_view of);
ModelError not_dense(std::string_view tensor);
ModelError too_many_zeros(std::string_view tensor, int64_t wanted, int64_t elements);

/// Of the masked original, in engines that read files.
UnsupportedError other_channels(std::string_view tensor);
UnsupportedError old_opset(int found, int wanted);
UnsupportedError not_gathered(std::string_view node);
UnsupportedError own_operator_mixes(std::string_view op);

/// Cannot be written as a separate model.
/// A known network's stored graph.
ModelError no_skeleton();
ModelError unfilled_weight(std::string_view name);
UnsupportedError not_writable(std::string_view what, std::string_view why);

/// `call` is "aten::foo"; `line` where the program calls it, and may be empty.
UnsupportedError no_counterpart(std::string_view call, std::string_view node,
                                std::string_view line);
/// Data-dependent control flow: `call` is "prim::If" or "prim::Loop".
UnsupportedError undecided(std::string_view call, std::string_view line);
/// The call has side effects on a tensor that others see, or on an attribute.
UnsupportedError has_effect(std::string_view call, std::string_view line);
/// The operator has a counterpart, but not for this use of it.
UnsupportedError not_lowered(std::string_view op, std::string_view node, std::string_view why);
/// A size that is fixed in the graph does not fit another batch.
UnsupportedError batch_is_fixed(std::string_view why);
UnsupportedError too_large_for_one_file(int64_t bytes);
ConfigError bad_output_names(size_t given, size_t wanted);
/// Message of ONNX's checker about an exported model.
ModelError checker_says(std::string_view why);

}  // namespace parsimony::onnx_io::errors
