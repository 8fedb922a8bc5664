#include "parsimony/training/errors.h"

namespace parsimony::training::errors {

UnsupportedError half_needs_cuda() {
  return UnsupportedError("precision fp16 needs a CUDA device; the CPU has bf16 and fp32");
}

ModelError does_not_fit(std::string_view why) {
  return ModelError("network and data do not match: ", why);
}

UnsupportedError fixed_batch(std::string_view path, int64_t batch, std::string_view why) {
  return UnsupportedError(path, ": the network does not accept batches of ", batch,
                          " samples, so it cannot be trained: ", why,
                          ". Export it with a dynamic batch dimension");
}

UnsupportedError nothing_to_train(std::string_view path) {
  return UnsupportedError(path,
                          ": there is nothing to train: the network has no parameters. A frozen "
                          "module keeps its weights as constants; export it unfrozen");
}

ConfigError norms_need_onnx(std::string_view what) {
  return ConfigError(what,
                     ": \"batch_norm\" requires an ONNX file with folded BatchNorms, trained by "
                     "`parsimony train`, `finetune` or `sweep`. Remove it");
}

ModelError other_values(std::string_view name, std::string_view why) {
  return ModelError("tensor ", in_quotes(name), ": ", why);
}

}  // namespace parsimony::training::errors
