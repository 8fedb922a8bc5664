// Error texts of the pruners room.
#pragma once

#include <cstddef>
#include <string_view>

#include "parsimony/graph/errors.h"

namespace parsimony::errors {

ConfigError unknown_criterion(std::string_view name);
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

}  // namespace parsimony::errors
