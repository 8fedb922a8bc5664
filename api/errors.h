// Error texts of api/.
#pragma once

#include <cstdint>
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

}  // namespace parsimony::errors
