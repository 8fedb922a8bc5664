// The libtorch component's work for the command: training, built-in networks, calibration data.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/api/network_error.h"
#include "parsimony/api/prune_request.h"
#include "parsimony/cli/torch_commands.h"
#include "parsimony/data/dataset.h"
#include "parsimony/graph/graph.h"
#include "parsimony/training/net/trainable_model.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::component {

LedgerPoint train(const cli::TrainRequest& request);

std::vector<cli::TrainBenchRow> bench_training(const cli::TrainBenchRequest& request);

/// @returns the number of points that other processes are working on
int sweep(const cli::SweepRequest& request);

/// Opens data of any format: see SampleSource.
/// @param whole  whether to read the training part beyond the samples used for calibration
/// @throws ConfigError for an invalid spec, and for arrays that do not fit the graph; IoError,
/// ModelError for the files
training::Calibration calibration_of(const CalibrationData& job, const Graph& graph,
                                     bool whole = false);

/// Like calibration_of, for work that the job's ranks share: all call it with the same network and
/// data. @throws ConfigError if these differ; UnsupportedError for data with states
training::Calibration calibration_of_ranks(const CalibrationData& job, const Graph& graph,
                                           bool whole = false);

/// Calibration data in host memory, in batches of the size that the graph declares, or of 64; an
/// incomplete last batch of declared size is dropped.
/// @param unseen  whether to return the samples not used for calibration instead, if there are any
ErrorData calibration_samples(const CalibrationData& job, const Graph& graph, bool unseen);

using MakeNet = std::function<std::unique_ptr<training::TrainableModel>()>;

/// Names of the networks that `--model` accepts: for images of any size and number of classes, and
/// for text.
std::vector<std::string> built_in_names();
bool is_built_in(const std::string& name);

/// Returns a factory for these samples and classes; null if no network has this name.
/// @throws ConfigError if the network does not accept such samples
MakeNet built_in(const std::string& name, const Dataset& data);

}  // namespace parsimony::component
