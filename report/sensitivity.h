// Sensitivity curves, as text and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace parsimony {

struct SensitivityRow {
  std::string id;  ///< of the group
  int size = 0;    ///< channels
  std::vector<std::string> layers;
  std::vector<double> ratios;  ///< at which the group could be pruned
  std::vector<double> errors;
  double proposed = 0;  ///< ratio; 0 if none was requested
};

struct SensitivityReport {
  std::string command;  ///< as it was typed
  std::string model;
  std::string criterion;
  std::string measure;   ///< "output error", "accuracy lost", "lost of 0.9, by COMMAND"
  std::string data;      ///< "random inputs", or the spec of the data; empty for a command
  int64_t samples = 0;   ///< compared samples; 0 for a command
  double accuracy = -1;  ///< of the dense network, 0..1; below 0: no labels
  double ratio = 0;      ///< requested overall ratio; 0: no proposal
  double level = 0;      ///< error that every group alone may cause in the proposal
  double reached = 0;    ///< share of the groups' channels that the proposal removes
  std::vector<SensitivityRow> rows;
};

/// Renders a row per group, a column per ratio, and the proposal.
std::string to_text(const SensitivityReport& report);

/// Returns {"parsimony_sensitivity": 1, "groups": [{"ratios": …, "errors": …}, …], …}.
std::string to_json(const SensitivityReport& report);

/// Returns the proposal as a config list: one entry per group that loses channels.
std::string to_config(const SensitivityReport& report);

}  // namespace parsimony
