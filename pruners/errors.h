// Error texts of the pruners room.
#pragma once

#include <cstddef>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"

namespace parsimony::errors {

ConfigError unknown_criterion(std::string_view name);
/// Exact constants work with masks only; this criterion changes the remaining values.
UnsupportedError exact_values();
/// The criterion reads sums that a training loop accumulates.
ConfigError needs_training(std::string_view criterion);
/// A custom allocator returned another number of counts.
ConfigError wrong_counts(size_t found, size_t wanted);
/// `possible` is the share that may be removed.
ConfigError cannot_anneal(double ratio, double possible);
/// An amount of `unit` that is less than a thousandth of what the network has.
ConfigError too_small_amount(std::string_view key, double amount, double dense,
                             std::string_view unit);
/// The same of a share that may remain.
ConfigError too_small_share(double share);
/// Layers that should lose the same channels have different numbers of channels.
ConfigError channels_differ(std::string_view first, std::string_view second);
/// internal_metric_block parts of a group.
ConfigError blocks_do_not_divide(std::string_view group, int size, int blocks);
/// The criterion reads statistics, and there is no Measurement.
ConfigError needs_data(std::string_view criterion);
UnsupportedError no_meter();
/// Ranking by the outputs needs to run networks, and nothing can.
UnsupportedError no_r_squared();
/// N:M that is not two numbers with N below M.
ConfigError bad_pattern_of(std::string_view criterion);
/// A block without its size.
ConfigError bad_block(std::string_view criterion);
/// Moments of a layer's inputs that are not those of its weight.
ModelError moments_do_not_fit(std::string_view tensor, const Shape& found, const Shape& wanted);
ModelError moments_not_finite(std::string_view tensor);

}  // namespace parsimony::errors
