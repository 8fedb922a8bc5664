// Prunes a file in one call, like `parsimony prune`.
#include "parsimony/api/prune_file.h"

#include <cstdio>

int main() {
  const auto result = parsimony::prune_file(EXAMPLES_DIR "/models/mnist_cnn.onnx", "small.onnx",
                                            {.criterion = "l1", .ratio = 0.5});
  result.plan.save("plan.json");
  const parsimony::Proof& proof = result.proof;
  std::printf("%lld of %lld parameters; %s\n", static_cast<long long>(result.small.params),
              static_cast<long long>(result.dense.params),
              proof.ran() ? to_text(*proof.worst()).c_str() : proof.not_run.c_str());
  return 2 * result.small.params < result.dense.params ? 0 : 1;
}
