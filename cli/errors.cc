#include "parsimony/cli/errors.h"

#include <filesystem>
#include <vector>

#include "parsimony/api/output_metrics.h"
#include "parsimony/report/text.h"

namespace parsimony::cli::errors {
namespace {

std::string help_hint(std::string_view command) {
  const std::string name = command.empty() ? std::string() : " " + std::string(command);
  return "See `parsimony" + name + " --help`.";
}

std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

}  // namespace

ConfigError usage(std::string_view command, std::string_view message) {
  std::string text(message);
  while (!text.empty() && (text.back() == '\n' || text.back() == '.')) text.pop_back();
  return ConfigError(text + ". " + help_hint(command));
}

ConfigError unknown_command(std::string_view name, std::span<const std::string> known) {
  return ConfigError("unknown command " + quoted(name) + "." + did_you_mean(name, known) + " " +
                     help_hint({}));
}

ConfigError unexpected(std::string_view command, std::string_view argument,
                       std::span<const std::string> known) {
  const char* what = argument.starts_with('-') ? "unknown option " : "unexpected argument ";
  return ConfigError(what + quoted(argument) + "." + did_you_mean(argument, known) + " " +
                     help_hint(command));
}

ConfigError nothing_asked() {
  return ConfigError(
      "prune: nothing says how much to remove; give --config CFG.json or --ratio, for example "
      "--ratio 0.5");
}

ConfigError no_store() {
  return ConfigError(
      "the launcher does not say where its processes meet; give --store file:PATH in a folder that "
      "all see, --store tcp:HOST:PORT, or MASTER_ADDR and MASTER_PORT");
}

ConfigError no_calibration(std::string_view option) {
  return ConfigError(std::string(option) +
                     " says how calibration data are read; give them with --calibration DATA");
}

ConfigError mean_without_deviation(size_t means, size_t deviations) {
  return ConfigError("--mean has " + std::to_string(means) + " numbers and --std " +
                     std::to_string(deviations) + "; wanted as many of both, one for each channel");
}

ConfigError unknown_metric(std::string_view found) {
  std::vector<std::string> names;
  for (const OutputMetric& metric : output_metrics()) names.emplace_back(metric.name);
  return ConfigError("--metric " + quoted(found) +
                     ": wanted a command that says where the model's path goes, with {model} in "
                     "it, or one of " +
                     listed(names, names.size()) + "." + did_you_mean(found, names));
}

ConfigError metric_without_labels(std::string_view metric) {
  return ConfigError("--metric " + std::string(metric) + " needs labels; the data have none");
}

ConfigError bad_metric_budget(std::string_view found) {
  return ConfigError("--budget " + quoted(found) +
                     ": wanted metric=-1% (worse by that share of the dense network's), "
                     "metric=-0.5 (worse by so much) or metric=0.9 (its value)");
}

ConfigError metric_budget_without_metric(size_t metrics) {
  return ConfigError("--budget metric=…: wanted one --metric, found " + std::to_string(metrics));
}

ConfigError metric_budget_with_config() {
  return ConfigError(
      "--budget metric=… looks for a share of the MACs; give --criterion, --scope and the like in "
      "place of a --config that says how much, and no --ratio");
}

ModelError metric_budget_missed(std::string_view metric, double bound, double macs,
                                std::string_view found) {
  return ModelError("--budget metric=…: no cut is within it: with " +
                    formatted("%.4g%% of the MACs ", 100 * macs) + std::string(metric) + " gives " +
                    std::string(found) + formatted(", wanted %.6g", bound));
}

UnsupportedError limit_refused(std::string_view option, std::string_view why) {
  return UnsupportedError(std::string(option) + ": the system refuses: " + std::string(why));
}

ConfigError sandbox_with_programs() {
  return ConfigError(
      "--sandbox on: a command of yours (--metric, --latency-command), --processes or the driver "
      "of "
      "a --provider cannot run in it; leave it at auto");
}

UnsupportedError no_sandbox(std::string_view what) {
  return UnsupportedError("--sandbox on: this kernel has no " + std::string(what));
}

ConfigError both_asked(std::string_view option) {
  return ConfigError("prune: " + std::string(option) +
                     " is for pruning without a config file; with --config, write it there");
}

ConfigError preset_without_data(std::string_view preset) {
  return ConfigError("prune: --preset " + std::string(preset) +
                     " matches the dense network's outputs: it needs --calibration DATA");
}

ConfigError config_without_ratio() {
  return ConfigError(
      "sensitivity: --config-out writes the proposed ratios; give --ratio too, for example "
      "--ratio 0.5");
}

ConfigError same_file(std::string_view path, std::string_view one, std::string_view other) {
  return ConfigError(std::string(one) + " and " + std::string(other) +
                     " are the same file: " + std::string(path));
}

ConfigError not_in_place(std::string_view path, std::string_view input, std::string_view output) {
  return ConfigError(std::string(output) + " is " + std::string(input) + ": " + std::string(path) +
                     ". With --in-place it is replaced");
}

ConfigError wrong_ending(std::string_view path, std::string_view format, std::string_view ending) {
  const std::string name = std::filesystem::path(path).stem().string() + std::string(ending);
  return ConfigError(std::string(path) + ": what is written is of the format " +
                     std::string(format) + ", and the name says another; wanted for example " +
                     name);
}

IoError not_a_file(std::string_view path) {
  return IoError(std::string(path) + ": cannot be written: it exists and is not a regular file");
}

VerificationError differs(std::string_view what) {
  return VerificationError("verification failed: " + std::string(what));
}

VerificationError worse_than(std::string_view baseline, const std::vector<std::string>& figures) {
  std::string text = "worse than " + std::string(baseline) + ":";
  for (const std::string& figure : figures) text += "\n  " + figure;
  return VerificationError(text);
}

ConfigError nothing_named(std::string_view option) {
  return ConfigError(std::string(option) + " is missing, and the recipe does not say it");
}

ConfigError bad_shard(std::string_view found) {
  return ConfigError("--shard \"" + std::string(found) + "\": wanted I/N with 1 <= I <= N");
}

IoError cannot_start(std::string_view what, std::string_view why) {
  return IoError(std::string(what) + " cannot be started: " + std::string(why));
}

ConfigError half_a_checkpoint() {
  return ConfigError(
      "--checkpoint and --checkpoint-out go together: what is read, and what is written");
}

ConfigError two_checkpoints(std::string_view path) {
  return ConfigError(std::string(path) +
                     " is a checkpoint itself, so that --checkpoint has no meaning; its network is "
                     "known by the names of its tensors");
}

ModelError not_imported(size_t weights, std::string_view first) {
  return ModelError("the checkpoint is not one of this model: it lacks " + std::to_string(weights) +
                    " of its weights, first " + std::string(first) +
                    ". With --partial they stay as they are");
}

VerificationError imported_otherwise(std::string_view weight) {
  return VerificationError("weight " + quoted(weight) +
                           " of the new model is not the checkpoint's; nothing was written");
}

ConfigError bad_batch(std::string_view found) {
  return ConfigError("--batch: found " + quoted(found) +
                     ", wanted numbers from 1 on, for example 1,64");
}

UnsupportedError no_torchscript(std::string_view path) {
  return UnsupportedError(std::string(path) +
                          " is no TorchScript, which is what `export` writes as ONNX; an ONNX "
                          "model is pruned as it is");
}

UnsupportedError nothing_runs(std::span<const std::string> reasons) {
  std::string text = "bench: no engine runs any of the models";
  for (const std::string& reason : reasons) text += "\n  " + reason;
  return UnsupportedError(text);
}

}  // namespace parsimony::cli::errors
