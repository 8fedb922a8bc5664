#include "parsimony/training/errors.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace parsimony::training::errors {

UnsupportedError half_needs_cuda() {
  return UnsupportedError("precision fp16 needs a CUDA device; the CPU has bf16 and fp32");
}

ModelError does_not_fit(std::string_view why) {
  return ModelError("network and data do not fit each other: ", why);
}

UnsupportedError fixed_batch(std::string_view path, int64_t batch, std::string_view why) {
  return UnsupportedError(path, ": the network does not take ", batch,
                          " samples at once, so it cannot be trained: ", why,
                          ". Export it with an open batch dimension");
}

UnsupportedError nothing_to_train(std::string_view path) {
  return UnsupportedError(path,
                          ": there is nothing to train: the network has no parameters. A frozen "
                          "module keeps its weights as constants; export it unfrozen");
}

ConfigError norms_need_onnx(std::string_view what) {
  return ConfigError(what,
                     ": \"batch_norm\" is for ONNX files that `parsimony train`, `finetune` or "
                     "`sweep` trains, where export has folded BatchNorm away. Leave it out");
}

ModelError no_tensor(std::string_view path) {
  return ModelError(path, ": \"forward\" does not return a tensor first");
}

ModelError other_values(std::string_view name, std::string_view why) {
  return ModelError("tensor ", in_quotes(name), ": ", why);
}

ConfigError no_scale() {
  return ConfigError(
      "penalty: slimming: no BatchNorm scales channels that may go; use \"group\" instead");
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

ConfigError loss_of_no_output(std::string_view name, const std::vector<std::string>& outputs) {
  std::string known;
  for (const std::string& output : outputs)
    known += (known.empty() ? "" : ", ") + in_quotes(output);
  return ConfigError("loss: the network has no output " + in_quotes(name) + "; its outputs are " +
                     known);
}

ModelError target_beyond(std::string_view output, std::string_view loss, double found,
                         double lowest, double highest) {
  char text[96];
  std::snprintf(text, sizeof text, " contains %g, wanted numbers in [%g, %g]", found, lowest,
                highest);
  return ModelError("loss " + std::string(loss) + ": the target of the output " +
                    in_quotes(output) + text);
}

ModelError no_classes(const Shape& found, int64_t samples) {
  return ModelError("calibration: criteria by gradient need outputs of shape [", samples,
                    ", classes], found ", to_string(found),
                    "; use a criterion by weights or activations");
}

}  // namespace parsimony::training::errors
