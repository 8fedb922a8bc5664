#include "parsimony/training/errors.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace parsimony::training::errors {

UnsupportedError half_needs_cuda() {
  return UnsupportedError("precision fp16 needs a CUDA device; the CPU has bf16 and fp32");
}

ConfigError bad_device(std::string_view device) {
  return ConfigError("--device " + in_quotes(device) + ": wanted auto, cpu or cuda:N");
}

UnsupportedError no_such_device(std::string_view device, std::string_view why) {
  return UnsupportedError("device " + in_quotes(device) + " is not there: " + std::string(why));
}

ModelError does_not_fit(std::string_view why) {
  return ModelError("network and data do not fit each other: " + std::string(why));
}

UnsupportedError fixed_batch(std::string_view path, int64_t batch, std::string_view why) {
  return UnsupportedError(std::string(path) + ": the network does not take " +
                          std::to_string(batch) + " samples at once, so it cannot be trained: " +
                          std::string(why) + ". Export it with an open batch dimension");
}

UnsupportedError several_inputs(std::string_view path, size_t inputs) {
  return UnsupportedError(std::string(path) + ": the network has " + std::to_string(inputs) +
                          " inputs; what is trained has one");
}

UnsupportedError nothing_to_train(std::string_view path) {
  return UnsupportedError(std::string(path) +
                          ": there is nothing to train: the network has no parameters. A frozen "
                          "module keeps its weights as constants; export it unfrozen");
}

ConfigError nothing_to_normalise(std::string_view path) {
  return ConfigError(std::string(path) +
                     ": \"batch_norm\" finds no convolution with a bias and without a "
                     "BatchNormalization behind it. Leave it out: the network trains as it is");
}

ConfigError norms_need_onnx(std::string_view what) {
  return ConfigError(std::string(what) +
                     ": \"batch_norm\" is for ONNX files that `parsimony train`, `finetune` or "
                     "`sweep` trains, where export has folded BatchNorm away. Leave it out");
}

UnsupportedError exported_program(std::string_view path) {
  return UnsupportedError(std::string(path) +
                          ": a program of torch.export is fixed in evaluation mode and is not "
                          "trained here; prune it, and train in Python or as TorchScript");
}

ConfigError norms_keep_no_record(std::string_view what) {
  return ConfigError("\"batch_norm\" does not go with " + std::string(what) +
                     ": what is remembered of a parameter would not follow a cut");
}

ModelError no_tensor(std::string_view path) {
  return ModelError(std::string(path) + ": \"forward\" does not return a tensor first");
}

ModelError other_values(std::string_view name, std::string_view why) {
  return ModelError("tensor " + in_quotes(name) + ": " + std::string(why));
}

ConfigError no_scale() {
  return ConfigError(
      "penalty: slimming: no BatchNorm scales channels that may go; use \"group\" instead");
}

UnsupportedError schedule_needs_run(std::string_view schedule) {
  return UnsupportedError("schedule \"" + std::string(schedule) +
                          "\" changes weights between the cuts or tries cuts on data; `parsimony "
                          "train` and training::Run do it, GradualPruner does not");
}

ConfigError bad_store(std::string_view store) {
  return ConfigError("store " + in_quotes(store) +
                     ": wanted tcp:HOST:PORT, or file:PATH in a folder that all ranks see");
}

UnsupportedError nothing_to_reduce() {
  return UnsupportedError("no parameter of the network requires a gradient");
}

IoError rank_lost(const RankPlace& place, std::string_view doing, const std::vector<int>& lost,
                  std::string_view why) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::string who;
  for (const int rank : lost) who += (who.empty() ? "rank " : ", ") + std::to_string(rank);
  return IoError("rank " + std::to_string(place.rank) + " of " + std::to_string(place.size) +
                 " on " + host + ", " + std::string(doing) + ": " +
                 (who.empty() ? "another rank" : who) +
                 " is lost or did not come in time: " + std::string(why));
}

UnsupportedError unused_parameters(std::string_view why) {
  return UnsupportedError(
      "some parameters had no part in the loss of the step before; ReplicasOptions::find_unused "
      "finds them: " +
      std::string(why));
}

ConfigError ranks_differ(std::string_view what, int rank) {
  return ConfigError("rank " + std::to_string(rank) + " and rank 0 differ in " + std::string(what) +
                     "; all ranks need the same");
}

ModelError cut_failed(size_t rank, std::string_view why) {
  return ModelError("rank " + std::to_string(rank) + ": " + std::string(why));
}

ModelError bad_checkpoint(std::string_view path, std::string_view why) {
  return ModelError(std::string(path) + ": no checkpoint of this version: " + std::string(why));
}

ConfigError other_run(std::string_view path) {
  return ConfigError(std::string(path) +
                     ": the checkpoint is of another run: recipe, data or model differ. "
                     "Remove it, or name another with --checkpoint");
}

ConfigError bad_loader_option(std::string_view option, std::string_view found,
                              std::string_view wanted) {
  return ConfigError("loader: " + std::string(option) + " is " + std::string(found) + ", wanted " +
                     std::string(wanted));
}

UnsupportedError only_trained(std::string_view what) {
  return UnsupportedError("a network under recovery can be trained, not " + std::string(what));
}

ConfigError needs_labels(std::string_view what) {
  return ConfigError(std::string(what) + " needs labels, and the data have none: give an array " +
                     in_quotes("labels") + ", or one of the data sets with classes");
}

ConfigError loss_of_no_output(std::string_view name, const std::vector<std::string>& outputs) {
  std::string known;
  for (const std::string& output : outputs)
    known += (known.empty() ? "" : ", ") + in_quotes(output);
  return ConfigError("loss: the network has no output " + in_quotes(name) + "; its outputs are " +
                     known);
}

ConfigError no_targets(std::string_view output) {
  return ConfigError("loss: the data have no targets for the output " + in_quotes(output) +
                     "; give an array of that name, with as many samples as the inputs have");
}

ModelError target_does_not_fit(std::string_view output, std::string_view loss, const Shape& target,
                               const Shape& found) {
  return ModelError("loss " + std::string(loss) + ": the output " + in_quotes(output) + " is " +
                    to_string(found) + ", its target " + to_string(target));
}

ModelError target_beyond(std::string_view output, std::string_view loss, double found,
                         double lowest, double highest) {
  char text[96];
  std::snprintf(text, sizeof text, " contains %g, wanted numbers in [%g, %g]", found, lowest,
                highest);
  return ModelError("loss " + std::string(loss) + ": the target of the output " +
                    in_quotes(output) + text);
}

UnsupportedError no_numbers_out() {
  return UnsupportedError(
      "criteria by gradient: the data have no labels, and no floating-point output of the network "
      "depends on its weights");
}

UnsupportedError calibration_inputs(size_t inputs, size_t found) {
  return UnsupportedError("calibration: the network has " + std::to_string(inputs) +
                          " inputs, and the data feed " + std::to_string(found) +
                          "; npz:FILE gives an array for each");
}

ModelError calibration_dims(const Shape& found, const Shape& wanted) {
  return ModelError("calibration: the samples are of shape " + to_string(found) +
                    ", the network takes " + to_string(wanted));
}

ConfigError no_value_to_match(std::string_view value) {
  return ConfigError("--match " + in_quotes(value) +
                     ": the pruned network computes no value of that name; "
                     "prune --html draws them");
}

ModelError other_outputs(size_t wanted, size_t found) {
  return ModelError("the dense network has " + std::to_string(wanted) +
                    " outputs, the one to be trained has " + std::to_string(found));
}

ModelError no_classes(const Shape& found, int64_t samples) {
  return ModelError("calibration: criteria by gradient need outputs of shape [" +
                    std::to_string(samples) + ", classes], found " + to_string(found) +
                    "; use a criterion by weights or activations");
}

UnsupportedError needs_single_samples(int64_t batch) {
  return UnsupportedError(
      "calibration: criteria fisher and obd look at one sample at a time, and "
      "the network takes " +
      std::to_string(batch) +
      " at once; use taylor, or export it with an open "
      "batch dimension");
}

ModelError label_beyond(int64_t label, int64_t classes) {
  return ModelError("calibration: the data have label " + std::to_string(label) +
                    ", the network has " + std::to_string(classes) + " classes");
}

}  // namespace parsimony::training::errors
