#include "parsimony/cli/training_options.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <type_traits>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/configs/fields.h"
#include "parsimony/data/dataset.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

/// Neither `option` nor the recipe specifies a value.
ConfigError nothing_named(std::string_view option) {
  return ConfigError(option, " is required, as the recipe does not specify it");
}

/// Returns the first part of the schema's description.
std::string in_short(std::string_view meaning) {
  return std::string(meaning.substr(0, std::min(meaning.find("; "), meaning.find('.'))));
}

template <typename Value>
CLI::Option* add_change(CLI::App& command, RecipeOptions& options, const std::string& name,
                        const std::string& meaning, void (*change)(Recipe&, const Value&)) {
  const auto add = [&options, change](const Value& value) {
    options.changes.push_back([=](Recipe& recipe) { change(recipe, value); });
  };
  return command.add_option_function<Value>(name, add, meaning);
}

/// An option that replaces a member of the recipe's `train`.
class FieldOption {
 public:
  FieldOption(CLI::App& command, RecipeOptions& options, const Field<TrainSettings>& field)
      : command_(command), options_(options), field_(field), name_(option_of(field.key)) {}

  void operator()(const WordMember<TrainSettings>& member) const {
    const auto add = [&options = options_, member, name = name_](const std::string& text) {
      const size_t word = word_in(member.words, text, name);
      options.changes.push_back([=](Recipe& recipe) { member.set(recipe.train, word); });
    };
    std::string meaning = in_short(field_.meaning) + ": ";
    for (const std::string_view word : member.words) meaning.append(word).append(", ");
    command_.add_option_function<std::string>(name_, add, meaning.substr(0, meaning.size() - 2))
        ->type_name("WORD");
  }

  template <typename Value>
  void operator()(Value TrainSettings::*member) const {
    const auto add = [&options = options_, member, sweeps = field_.key == "seed"](const Value& to) {
      options.changes.push_back([=](Recipe& recipe) {
        recipe.train.*member = to;
        if (sweeps && recipe.sweep) recipe.sweep->seed = {recipe.train.seed};
      });
    };
    constexpr bool kIsFlag = std::is_same_v<Value, bool>;
    constexpr bool kIsText = std::is_same_v<Value, std::string>;
    const std::string meaning = in_short(field_.meaning) + (kIsFlag ? ": 0 or 1" : "");
    CLI::Option* option = command_.add_option_function<Value>(name_, add, meaning);
    constexpr bool kIsList = std::is_same_v<Value, std::vector<double>>;
    option->type_name(kIsText ? "WHAT" : kIsList ? "N,…" : "N");
    if constexpr (kIsList) option->delimiter(',');
    if constexpr (!kIsFlag && !kIsText) {
      Interval interval = field_.interval;
      if (!kIsList && !std::is_same_v<Value, double>)
        interval.highest = std::numeric_limits<int>::max();
      option->check(within(interval));
    }
  }

 private:
  CLI::App& command_;
  RecipeOptions& options_;
  const Field<TrainSettings>& field_;
  std::string name_;
};

}  // namespace

CLI::Option* add_model_option(CLI::App& command, const std::string& name, RecipeOptions& options) {
  return add_change<std::string>(
      command, options, name,
      "cnn, resnet18, resnet20, resnet56, mobilenet_v2, vgg16_bn, vit_tiny, gpt_tiny, llama_tiny, "
      "or a file",
      [](Recipe& recipe, const std::string& model) { recipe.model = model; });
}

void add_options(CLI::App& command, TrainingRequest& request, RecipeOptions& options) {
  add_option(command, "--config", options.config, "FILE",
             "Recipe; the options below take precedence");
  add_change<std::string>(command, options, "--data", data_forms(/*labelled=*/true),
                          [](Recipe& recipe, const std::string& data) { recipe.data = data; })
      ->type_name("SPEC");
  for (const Field<TrainSettings>& field : train_fields()) {
    if (command.get_option_no_throw(option_of(field.key)) != nullptr) continue;  // has its own
    const FieldOption add(command, options, field);
    const auto add_if = [&](const auto& member) {
      if constexpr (requires { add(member); }) add(member);  // other kinds configure pruning
    };
    std::visit(add_if, field.member);
  }
  add_option(command, "--device", request.device, "DEVICE", "auto, cpu or cuda:N");
  add_threads_option(command, request.threads);
  command.add_flag("--deterministic", request.deterministic, "Use deterministic operators only");
  command.add_flag("!--no-verify", request.verify, "Skip verification of the cuts");
  const auto add_size = [&](const char* name, std::optional<int64_t>& size, const char* meaning) {
    add_option(command, name, size, "N", meaning)->check(within({.lowest = 1}));
  };
  add_size("--train-samples", request.train_samples, "Use the first N only");
  add_size("--test-samples", request.test_samples, "Use the first N only");
  add_size("--image-size", request.image_size,
           "Size to which the images of a folder are resized, in pixels");
}

void complete(TrainingRequest& request, const RecipeOptions& options, const Session& session) {
  complete(request, options, session,
           options.config.empty() ? Recipe() : read_recipe(options.config));
}

void complete(TrainingRequest& request, const RecipeOptions& options, const Session& session,
              Recipe recipe) {
  for (const auto& change : options.changes) change(recipe);
  check_settings(recipe.train, "command line");
  if (recipe.model.empty()) throw nothing_named("--model");
  if (recipe.data.empty()) throw nothing_named("--data");
  request.recipe = std::move(recipe);
  request.command = session.command_line;
  if (session.quiet) return;
  request.say = log_line;
}

}  // namespace parsimony::cli
