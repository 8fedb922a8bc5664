// Trains a byte-level language model, prunes it, recovers it without labels, and generates text
// before and after.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <parsimony/configs/config.h>
#include <parsimony/data/dataset.h>
#include <parsimony/torch_io/prune.h>
#include <parsimony/training/loader/loader.h>
#include <parsimony/training/loop/target_loss.h>
#include <parsimony/training/recovery/recover.h>
#include <torch/optim/adamw.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "models/llama.h"

namespace {

using parsimony::Dataset;
using parsimony::training::Batch;
using parsimony::training::Loader;
using parsimony::training::with_scale_of;

/// Mean cross-entropy of the next bytes.
at::Tensor loss_of(examples::Llama& model, const Batch& batch) {
  using namespace parsimony::training;
  return cross_entropy(class_rows(model->forward(batch.inputs), batch.labels), batch.labels);
}

void train(examples::Llama& model, const Dataset& text, int epochs) {
  constexpr double kRate = 3e-3;
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(kRate));
  Loader loader(text.train, with_scale_of(text, {.batch = 8}));
  for (int epoch = 0; epoch < epochs; ++epoch) {
    loader.start(epoch);
    while (const auto batch = loader.next()) {
      optimizer.zero_grad();
      loss_of(model, *batch).backward();
      optimizer.step();
    }
  }
}

double perplexity(examples::Llama& model, const Dataset& text) {
  const torch::NoGradGuard no_grad;
  Loader loader(text.test, with_scale_of(text, {.batch = text.test.count(), .shuffle = false}));
  loader.start(0);
  return std::exp(loss_of(model, *loader.next()).item<double>());
}

/// Samples bytes one after the other.
std::string continued(examples::Llama& model, const std::string& prompt, int bytes) {
  const torch::NoGradGuard no_grad;
  constexpr double kTemperature = 0.7;
  at::Tensor ids = at::empty({1, 0}, at::kLong);
  for (const char c : prompt) {
    ids = at::cat({ids, at::full({1, 1}, static_cast<uint8_t>(c), at::kLong)}, 1);
  }
  std::string text = prompt;
  for (int i = 0; i < bytes; ++i) {
    const at::Tensor last = model->forward(ids).select(1, -1) / kTemperature;
    const at::Tensor next = last.softmax(-1).multinomial(1);
    ids = at::cat({ids, next}, 1);
    text += static_cast<char>(next.item<int64_t>());
  }
  return text;
}

void print(const char* when, examples::Llama& model, const Dataset& text) {
  std::printf("%-14s perplexity %6.2f   %s\n", when, perplexity(model, text),
              continued(model, "The ", 60).c_str());
}

}  // namespace

int main() {
  using namespace parsimony;
  torch::manual_seed(1);
  const Dataset text =
      read_dataset("text:" EXAMPLES_DIR "/../LICENSE,length=64", {.test_share = 0.05});
  examples::Llama model(examples::LlamaOptions{.embedding = 96, .depth = 2, .mlp = 256});
  const double untrained = perplexity(model, text);
  train(model, text, 12);
  print("trained", model, text);
  const double dense = perplexity(model, text);

  RecoverySettings steps;
  steps.steps = {RecoveryMethod::kLeastSquares, RecoveryMethod::kOutputs};
  const at::Tensor example = at::zeros({1, 64}, at::kLong);
  const Pruned pruned = prune(model, example, from_shorthand({.ratio = 0.3}),
                              {.recover = training::recovery(text, steps)});
  print("pruned", model, text);
  std::printf("%lld -> %lld MACs\n", static_cast<long long>(pruned.dense.macs),
              static_cast<long long>(pruned.small.macs));
  const double small = perplexity(model, text);
  return dense < untrained && small < 2 * dense && pruned.small.macs < pruned.dense.macs ? 0 : 1;
}
