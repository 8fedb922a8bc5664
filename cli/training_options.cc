#include "parsimony/cli/training_options.h"

#include <cstdio>
#include <limits>
#include <type_traits>
#include <utility>

#include "parsimony/cli/errors.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/cli/threads_option.h"
#include "parsimony/cli/validators.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

/// An option that replaces a number of the recipe.
template <typename Number>
CLI::Option* add_number(CLI::App& command, TrainingOptions& options, const char* name,
                        Number TrainSettings::*member, const char* what) {
  return command
      .add_option_function<Number>(
          name,
          [&options, member](const Number& value) {
            options.changes.push_back([=](Recipe& recipe) { recipe.train.*member = value; });
          },
          what)
      ->type_name("N");
}

/// An option that replaces one of the recipe's words.
template <typename Parse>
void add_word(
    CLI::App& command, TrainingOptions& options, const char* name, Parse parse,
    std::invoke_result_t<Parse, std::string_view, std::string_view> TrainSettings::*member,
    const char* what) {
  command
      .add_option_function<std::string>(
          name,
          [&options, member, parse, place = std::string(name)](const std::string& text) {
            const auto value = parse(text, place);
            options.changes.push_back([=](Recipe& recipe) { recipe.train.*member = value; });
          },
          what)
      ->type_name("WORD");
}

}  // namespace

void add_model_option(CLI::App& command, TrainingOptions& options) {
  command
      .add_option("--model", options.model,
                  "cnn, resnet18, resnet20, resnet56, mobilenet_v2, vgg16_bn, vit_tiny, or a file")
      ->type_name("NAME");
}

void add_options(CLI::App& command, TrainingOptions& options) {
  command.add_option("--config", options.config, "The recipe; the options below go before it")
      ->type_name("FILE");
  command
      .add_option("--data", options.data,
                  "cifar10:DIR, cifar100:DIR, mnist:DIR, folder:DIR, npy:X,Y, or shapes")
      ->type_name("SPEC");
  const auto positive = CLI::Range(1, std::numeric_limits<int>::max());
  const auto share = CLI::Range(0.0, 1.0);
  add_number(command, options, "--epochs", &TrainSettings::epochs, "Epochs after the last cut")
      ->check(not_below_zero());
  add_number(command, options, "--batch", &TrainSettings::batch, "Samples per step")
      ->check(positive);
  add_word(command, options, "--optimizer", parse_optimizer, &TrainSettings::optimizer,
           "sgd, adam, adamw or muon");
  add_number(command, options, "--lr", &TrainSettings::lr, "Learning rate, the highest")
      ->check(above_zero());
  add_number(command, options, "--momentum", &TrainSettings::momentum, "Of sgd and muon")
      ->check(share);
  add_number(command, options, "--weight-decay", &TrainSettings::weight_decay, "Weight decay")
      ->check(not_below_zero());
  add_word(command, options, "--schedule", parse_rate_schedule, &TrainSettings::schedule,
           "constant, cosine, step or one_cycle");
  add_number(command, options, "--label-smoothing", &TrainSettings::label_smoothing,
             "Share of the loss that all classes get")
      ->check(share);
  add_number(command, options, "--flip", &TrainSettings::flip, "Mirror every other image: 0 or 1");
  add_number(command, options, "--crop", &TrainSettings::crop, "Pixels that images are moved by")
      ->check(not_below_zero());
  add_number(command, options, "--cutout", &TrainSettings::cutout, "Side of a blanked square")
      ->check(not_below_zero());
  add_number(command, options, "--normalise", &TrainSettings::normalise,
             "Inputs of mean 0 and deviation 1: 0 or 1");
  add_number(command, options, "--early-stop", &TrainSettings::early_stop,
             "Stop after so many epochs without a better accuracy")
      ->check(not_below_zero());
  add_number(command, options, "--batch-norm", &TrainSettings::batch_norm,
             "Normalise behind convolutions while training: 0 or 1");
  add_number(command, options, "--distill", &TrainSettings::distill,
             "Weight of a teacher's answers in the loss")
      ->check(share);
  add_number(command, options, "--temperature", &TrainSettings::temperature,
             "Of the teacher's answers")
      ->check(above_zero());
  command
      .add_option_function<uint64_t>(
          "--seed",
          [&options](const uint64_t& seed) {
            options.changes.push_back([seed](Recipe& recipe) {
              recipe.train.seed = seed;
              if (recipe.sweep) recipe.sweep->seed = {seed};
            });
          },
          "Of weights and order")
      ->type_name("N")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()));
  add_word(command, options, "--precision", parse_precision, &TrainSettings::precision,
           "fp32, bf16, or fp16 on CUDA");
  add_word(command, options, "--memory-format", parse_memory_format, &TrainSettings::memory_format,
           "contiguous, channels_last, or auto: measured");
  command.add_option("--device", options.device, "auto, cpu or cuda:N")->type_name("DEVICE");
  add_threads_option(command, options.threads);
  command.add_flag("--deterministic", options.deterministic,
                   "Only operators that always give the same bits");
  command.add_flag("!--no-verify", options.verify, "Do not prove the cuts");
  command.add_option("--train-samples", options.train_samples, "No more than the first N")
      ->type_name("N")
      ->check(positive);
  command.add_option("--test-samples", options.test_samples, "No more than the first N")
      ->type_name("N")
      ->check(positive);
  command.add_option("--image-size", options.image_size, "Side that a folder's images are given")
      ->type_name("N")
      ->check(positive);
}

void fill(TrainingOrder& order, const TrainingOptions& options, const Session& session) {
  fill(order, options, session, options.config.empty() ? Recipe() : read_recipe(options.config));
}

void fill(TrainingOrder& order, const TrainingOptions& options, const Session& session,
          Recipe recipe) {
  order.recipe = std::move(recipe);
  if (!options.model.empty()) order.recipe.model = options.model;
  if (!options.data.empty()) order.recipe.data = options.data;
  for (const auto& change : options.changes) change(order.recipe);
  check_settings(order.recipe.train, "command line");
  if (order.recipe.model.empty()) throw errors::nothing_named("--model");
  if (order.recipe.data.empty()) throw errors::nothing_named("--data");
  order.device = options.device;
  order.threads = parse_threads(options.threads);
  order.deterministic = options.deterministic;
  order.verify = options.verify;
  order.train_samples = options.train_samples;
  order.test_samples = options.test_samples;
  order.image_size = options.image_size;
  order.command = session.command_line;
  if (session.quiet) return;
  order.say = [](const std::string& line) {
    std::fprintf(stderr, "%s\n", printable(line).c_str());
  };
}

}  // namespace parsimony::cli
