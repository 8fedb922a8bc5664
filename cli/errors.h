// Error texts of the command.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::cli::errors {

/// `message` is CLI11's; `command` may be empty.
ConfigError usage(std::string_view command, std::string_view message);
ConfigError unknown_command(std::string_view name, std::span<const std::string> known);
ConfigError unexpected(std::string_view command, std::string_view argument,
                       std::span<const std::string> known);

/// One of --checkpoint and --checkpoint-out without the other.
ConfigError half_a_checkpoint();
/// A checkpoint in place of the model, and --checkpoint.
ConfigError two_checkpoints(std::string_view path);
/// `import` of a checkpoint that is not the model's; `first` is the first weight without a tensor.
ModelError not_imported(size_t weights, std::string_view first);
/// `import` wrote weights that are not the checkpoint's.
VerificationError imported_otherwise(std::string_view weight);
ConfigError nothing_asked();
/// A launcher started several processes, and nothing says where they meet.
ConfigError no_store();
/// `option` is about calibration data, and there are none.
ConfigError no_calibration(std::string_view option);
/// --mean and --std must be given together, with one number per channel.
ConfigError mean_without_deviation(size_t means, size_t deviations);
/// "{model}" does not occur.
/// Neither a command with {model} nor a built-in metric.
ConfigError unknown_metric(std::string_view found);
/// Where no file is written that a command could read.
ConfigError metric_without_labels(std::string_view metric);
/// `output` is what it printed.
ConfigError bad_metric_budget(std::string_view found);
/// A budget of a metric needs one metric, and options in place of a config file.
ConfigError metric_budget_without_metric(size_t metrics);
ConfigError metric_budget_with_config();
/// No cut is within the budget: with the share `macs` left the metric is still `found`.
ModelError metric_budget_missed(std::string_view metric, double bound, double macs,
                                std::string_view found);
/// The system does not accept a bound.
UnsupportedError limit_refused(std::string_view option, std::string_view why);
/// --sandbox on, with commands of the user's.
ConfigError sandbox_with_programs();
/// --sandbox on, on a kernel without `what`.
UnsupportedError no_sandbox(std::string_view what);
ConfigError both_asked(std::string_view option);
ConfigError preset_without_data(std::string_view preset);
/// --config-out without a ratio to propose.
ConfigError config_without_ratio();
ConfigError same_file(std::string_view path, std::string_view one, std::string_view other);
/// The same where --in-place allows it.
ConfigError not_in_place(std::string_view path, std::string_view input, std::string_view output);
/// A path that ends as files of another format than the result's do; `ending` would be right.
ConfigError wrong_ending(std::string_view path, std::string_view format, std::string_view ending);
IoError not_a_file(std::string_view path);

VerificationError differs(std::string_view what);
/// A report's figures, each with what it was.
VerificationError worse_than(std::string_view baseline, const std::vector<std::string>& figures);

/// Neither `option` nor the recipe gives it.
ConfigError nothing_named(std::string_view option);
ConfigError bad_shard(std::string_view found);
IoError cannot_start(std::string_view what, std::string_view why);

ConfigError bad_batch(std::string_view found);
/// The argument of `export` is not TorchScript.
UnsupportedError no_torchscript(std::string_view path);
/// `reasons`: one for each model and engine.
UnsupportedError nothing_runs(std::span<const std::string> reasons);

}  // namespace parsimony::cli::errors
