// Error texts of the pruners room.
#pragma once

#include <cstddef>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"

namespace parsimony::errors {

ConfigError unknown_criterion(std::string_view name);
/// Exact constants are about masks; a criterion changes what stays.
UnsupportedError exact_values();
/// The criterion reads what a training loop adds up.
ConfigError needs_training(std::string_view criterion);
/// An allocator of the user's own gave another number of counts.
ConfigError wrong_counts(size_t found, size_t wanted);
/// `possible` is the share that may go.
ConfigError cannot_anneal(double ratio, double possible);
/// Layers that are to lose the same channels do not have the same.
ConfigError channels_differ(std::string_view first, std::string_view second);
/// internal_metric_block parts of a group.
ConfigError blocks_do_not_divide(std::string_view group, int size, int blocks);
/// The criterion reads statistics, and nobody can measure them.
ConfigError needs_data(std::string_view criterion);
UnsupportedError no_meter();
/// Ranking by what outputs lose, and nobody can run networks.
UnsupportedError no_fidelity();
/// N:M that is not two numbers with N below M.
ConfigError bad_pattern_of(std::string_view criterion);
/// A block without its size.
ConfigError bad_block(std::string_view criterion);
/// Moments of a layer's inputs that are not those of its weight.
ModelError moments_do_not_fit(std::string_view tensor, const Shape& found, const Shape& wanted);
ModelError moments_not_finite(std::string_view tensor);

}  // namespace parsimony::errors
