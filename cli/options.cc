#include "parsimony/cli/options.h"

#include <functional>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/parse.h"
#include "parsimony/base/ranges.h"
#include "parsimony/configs/recipe.h"
#include "parsimony/data/dataset.h"

namespace parsimony::cli {
namespace {

CLI::Validator number_that(const std::function<bool(double)>& holds, const std::string& expected) {
  return {[=](const std::string& text) {
            double value = 0;
            const bool fits = CLI::detail::lexical_cast(text, value) && holds(value);
            return fits ? std::string() : "found \"" + text + "\", expected a number " + expected;
          },
          ""};
}

CLI::Validator share_in(const Interval& interval) {
  return {[=](const std::string& text) { return share_fault(text, interval); }, ""};
}

}  // namespace

CLI::Option* add_share_option(CLI::App& command, const std::string& name, double& share,
                              const char* type, const std::string& meaning,
                              const Interval& interval) {
  const auto parse = [&share](const std::string& text) { share = share_of(text).value(); };
  return command.add_option_function<std::string>(name, parse, meaning)
      ->type_name(type)
      ->check(share_in(interval));
}

CLI::Option* add_share_option(CLI::App& command, const std::string& name,
                              std::vector<double>& shares, const char* type,
                              const std::string& meaning, const Interval& interval) {
  const auto parse = [&shares](const std::vector<std::string>& texts) {
    shares.clear();
    for (const std::string& text : texts) shares.push_back(share_of(text).value());
  };
  return command.add_option_function<std::vector<std::string>>(name, parse, meaning)
      ->type_name(type)
      ->check(share_in(interval));
}

CLI::Validator above_zero() {
  return number_that([](double x) { return x > 0; }, "above 0");
}

CLI::Validator not_below_zero() {
  return number_that([](double x) { return x >= 0; }, "not below 0");
}

CLI::Validator within(const Interval& interval) {
  return number_that([=](double x) { return interval.contains(x); }, "in " + interval.text());
}

CLI::Validator in_range(const Interval& interval) {
  const bool open = interval.highest >= kAnyUnsigned.highest;
  if (open && interval.lowest == 0) return interval.with_lowest ? not_below_zero() : above_zero();
  return within(interval);
}

CLI::Validator any_of(const std::vector<std::string_view>& words) {
  std::string description;
  for (const std::string_view word : words) {
    description += (description.empty() ? "{" : ",") + std::string(word);
  }
  return {[=](const std::string& text) {
            return contains(words, text) ? std::string()
                                         : "found \"" + text + "\", expected " + one_of(words);
          },
          description + "}"};
}

void add_model_argument(CLI::App& command, std::string& path) {
  add_option(command, "IN", path, "", "The model: ONNX, TorchScript or .pt2")->required();
}

void add_own_operator_options(CLI::App& app, OwnOperators& own) {
  const auto add = [&](const char* name, std::vector<std::string>& paths, const char* type,
                       const char* meaning) {
    add_option(app, name, paths, type, meaning)
        ->allow_extra_args(false)
        ->group("Custom operators, with any command");
  };
  add("--rules", own.rules, "FILE",
      "File with axis rules for custom operators, one per line (docs/guide/rules.md)");
  add("--ort-library", own.libraries, "LIB.so",
      "Library of custom operators for ONNX Runtime, with their kernels for verification");
}

void add_input_option(CLI::App& command, std::vector<std::string>& specs) {
  const Field<PruneRequest>& input = setting(run_settings(), "input");
  add_option(command, "--input", specs, std::string(input.value).c_str(), help_of(input));
}

void add_sample_option(CLI::App& command, std::string& source) {
  add_option(command, "--sample", source, "npz:FILE",
             "Arrays by input name, which verification uses as the first inputs and varies for the "
             "others; also safetensors:FILE");
}

std::vector<InputSpec> input_specs(const std::vector<std::string>& specs, const Graph& graph) {
  std::vector<InputSpec> result;
  for (const std::string& spec : specs) result.push_back(parse_input_spec(spec));
  return by_position(result, graph);
}

void add_threads_option(CLI::App& command, std::optional<int>& threads) {
  const Field<PruneRequest>& field = setting(run_settings(), "threads");
  const auto parse = [&threads](const std::string& text) { threads = parse_threads(text); };
  command.add_option_function<std::string>("--threads", parse, help_of(field))
      ->type_name(std::string(field.value));
}

void add_loss_option(CLI::App& command, CalibrationData& job, const std::string& of_what,
                     std::vector<std::string> others) {
  const Field<CalibrationData>& field = loss_settings().front();
  const std::string help = help_of(field);
  command.add_option("--loss", job.loss, of_what + help.substr(help.find(": ")))
      ->type_name(std::string(field.value))
      ->group(std::string(field.group))
      ->each([others = std::move(others)](const std::string& given) {
        if (!contains(others, given)) parse_losses(given);
      });
}

}  // namespace parsimony::cli
