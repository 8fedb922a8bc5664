// The settings of a pruning, each described once: the options of `parsimony prune`, the keys of a
// request as JSON, Python's keywords and docs/guide/settings.md follow from these tables.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/api/prune_request.h"
#include "parsimony/configs/fields.h"

namespace parsimony {

// In the order of the help.
std::span<const Field<Shorthand>> shorthand_settings();  ///< shorthand for a configuration
std::span<const Field<PruneRequest>> cut_settings();     ///< structures to prune, and how
std::span<const Field<PruneRequest>> run_settings();     ///< inputs, the proof, threads
std::span<const Field<InterfaceOptions>> interface_settings();
std::span<const Field<CalibrationData>> calibration_settings();  ///< all but --loss
std::span<const Field<CalibrationData>> loss_settings();
std::span<const Field<RecoverySettings>> recovery_settings();
std::span<const Field<MatchSettings>> match_settings();
std::span<const Field<EngineChoice>> engine_settings();
std::span<const Field<OnnxRuntimeChoice>> onnx_runtime_settings();
std::span<const Field<LatencySettings>> latency_settings();
std::span<const Field<LatencyCommand>> latency_command_settings();
std::span<const Field<ProofOptions>> proof_settings();

/// Calls `visit(table, part)` with every table and the part of the request that it describes.
template <typename Request, typename Visit>
void visit_settings(Request& request, const Visit& visit) {
  visit(cut_settings(), request);
  visit(run_settings(), request);
  visit(interface_settings(), request.interface);
  visit(calibration_settings(), request.calibration);
  visit(loss_settings(), request.calibration);
  visit(recovery_settings(), request.recovery);
  visit(match_settings(), request.recovery.outputs);
  visit(engine_settings(), request.engine);
  visit(onnx_runtime_settings(), request.engine.onnxruntime);
  visit(latency_settings(), request.latency);
  visit(latency_command_settings(), request.latency.command);
  visit(proof_settings(), request.proof);
}

/// Returns the row of a key that the table contains.
template <typename Settings>
const Field<Settings>& setting(std::span<const Field<Settings>> table, std::string_view key) {
  return *std::ranges::find(table, key, &Field<Settings>::key);
}

/// Parses a number of threads; returns nothing for "auto". @throws ConfigError
std::optional<int> parse_threads(const std::string& text);

/// Parses "NAME" or "NAME=WEIGHT"; names may contain "=".
MatchSettings::Term parse_term(const std::string& text);

}  // namespace parsimony
