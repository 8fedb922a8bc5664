// Error texts of api/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::errors {

/// `place` is where it was asked for: "--layers".
ConfigError bad_depth(std::string_view place, std::string_view found);
/// `excluded` of the network's `blocks` stay because the configuration leaves layers in them whole.
ConfigError too_few_blocks(int64_t wanted, size_t blocks, size_t excluded);
/// Which number of blocks is best depends on what may remain.
ConfigError depth_without_budget();
UnsupportedError depth_of_latency();
/// What --constants exact folds was computed with the scales as they were.
UnsupportedError exact_scales();
/// Recovery changes what --constants exact has computed.
UnsupportedError recovery_of_exact();
/// `worst` is of to_text(OutputDifference); `guilty` a group, or empty.
VerificationError not_proven(std::string_view worst, std::string_view guilty);
/// --recover runs data through the network, and none were named.
ConfigError recovery_without_data();
/// --layers ranks blocks by data, and none were named.
ConfigError depth_without_data();
/// There is no file where the libtorch component should be.
UnsupportedError no_component(std::string_view path);
/// The file is there; `why` it cannot be used.
UnsupportedError bad_component(std::string_view path, std::string_view why);
ConfigError unknown_engine(std::string_view name, std::span<const std::string> known);
/// ONNX Runtime has no masks of its own.
UnsupportedError not_maskable();

}  // namespace parsimony::errors
