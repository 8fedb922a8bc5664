// The options of a latency budget.
#pragma once

#include <CLI/CLI.hpp>

#include "parsimony/api/latency/budget.h"

namespace parsimony::cli {

/// Adds --engine, --onnxruntime, --latency-table and --batch.
void add_latency_options(CLI::App& command, LatencyBudgetOptions& options);

}  // namespace parsimony::cli
