// Validators with short descriptions: CLI11's would print the largest double.
#pragma once

#include <CLI/CLI.hpp>

#include "parsimony/base/json_reader.h"

namespace parsimony::cli {

CLI::Validator above_zero();
CLI::Validator not_below_zero();
CLI::Validator within(const Interval& interval);

}  // namespace parsimony::cli
