#include "parsimony/cli/options.h"

#include <functional>
#include <utility>

#include "parsimony/api/engine_services.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/parse.h"
#include "parsimony/base/ranges.h"
#include "parsimony/configs/recipe.h"
#include "parsimony/data/dataset.h"
#include "parsimony/engines/errors.h"

namespace parsimony::cli {
namespace {

// More only cost time, whatever the machine.
constexpr int kMostThreads = 256;

constexpr const char* kThreads =
    "Cores that computations side by side may use: a number, or auto (the default): all; what is "
    "written does not depend on it. Where networks are timed, the threads of each; auto measures";

CLI::Validator number_that(const std::function<bool(double)>& holds, const std::string& wanted) {
  return {[=](const std::string& text) {
            double value = 0;
            const bool fits = CLI::detail::lexical_cast(text, value) && holds(value);
            return fits ? std::string() : "found \"" + text + "\", wanted a number " + wanted;
          },
          ""};
}

CLI::Validator share_in(const Interval& interval) {
  return {[=](const std::string& text) {
            const std::optional<double> share = share_of(text);
            if (share && interval.contains(*share)) return std::string();
            return "found \"" + text + "\", wanted a share in " + interval.text() +
                   ", as 0.5 or 50%";
          },
          ""};
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

CLI::Validator any_of(const std::vector<std::string_view>& words) {
  std::string description;
  for (const std::string_view word : words) {
    description += (description.empty() ? "{" : ",") + std::string(word);
  }
  return {[=](const std::string& text) {
            return contains(words, text) ? std::string()
                                         : "found \"" + text + "\", wanted " + one_of(words);
          },
          description + "}"};
}

void add_model_argument(CLI::App& command, std::string& path) {
  add_option(command, "IN", path, "", "The model: ONNX, TorchScript or .pt2")->required();
}

void add_latency_command(CLI::App& command, LatencyCommand& options, const std::string& group) {
  add_option(command, "--latency-command", options.line, "COMMAND",
             "Measures networks where they will run: a shell command with {model}, an ONNX file, "
             "which prints milliseconds: \"ssh board ./time {model}\"")
      ->check(CLI::Validator(
          [](const std::string& line) {
            return line.find("{model}") == std::string::npos
                       ? "found \"" + line + "\", wanted a command with {model} in it"
                       : std::string();
          },
          ""))
      ->group(group);
  add_option(command, "--latency-runs", options.runs, "N",
             "Runs of the command each time that a network is measured (3)")
      ->check(within({.lowest = 1, .highest = 1000}))
      ->group(group);
  add_option(command, "--latency-timeout", options.timeout, "S",
             "Seconds after which a run of the command is stopped (60)")
      ->check(above_zero())
      ->group(group);
  add_option(command, "--latency-retries", options.retries, "N",
             "How often a run that fails is repeated, after 1, 8, 64 seconds (3)")
      ->check(within({.lowest = 0, .highest = 10}))
      ->group(group);
}

void add_onnxruntime_options(CLI::App& command, OnnxRuntimeChoice& choice,
                             const std::string& group) {
  const auto add = [&](const char* name, std::string& value, const char* type,
                       const char* meaning) {
    CLI::Option* option = add_option(command, name, value, type, meaning);
    if (!group.empty()) option->group(group);
  };
  add("--onnxruntime", choice.library, "PATH",
      "Library of ONNX Runtime (PARSIMONY_ONNXRUNTIME, else where it is usually found)");
  add("--provider", choice.provider, "NAME",
      "Execution provider of ONNX Runtime: cuda, tensorrt, openvino, xnnpack, … as its library has "
      "them; openvino:device_type=GPU gives it options (cpu)");
}

void add_own_operator_options(CLI::App& app, OwnOperators& own) {
  const auto add = [&](const char* name, std::vector<std::string>& paths, const char* type,
                       const char* meaning) {
    add_option(app, name, paths, type, meaning)
        ->allow_extra_args(false)
        ->group("Operators of your own, with any command");
  };
  add("--rules", own.rules, "FILE", "What they do to axes, a row each (docs/guide/rules.md)");
  add("--ort-library", own.libraries, "LIB.so",
      "Their kernels for the proof: a library of custom operators for ONNX Runtime");
}

void add_input_option(CLI::App& command, std::vector<std::string>& specs) {
  add_option(command, "--input", specs, "SPEC",
             "Size of a graph input that the model leaves open, in order or by name: 1x3x32x32, "
             "2x8:int64, :int64=16000 (a scalar), mask=1x64; mask=1 gives all elements a value");
}

void add_sample_option(CLI::App& command, std::string& source) {
  add_option(command, "--sample", source, "npz:FILE",
             "Arrays by input name, of which the proof takes the first inputs and varies them for "
             "the others; also safetensors:FILE");
}

std::vector<InputSpec> input_specs(const std::vector<std::string>& specs, const Graph& graph) {
  std::vector<InputSpec> result;
  for (const std::string& spec : specs) result.push_back(parse_input_spec(spec));
  return by_position(result, graph);
}

void add_interface_options(CLI::App& command, InterfaceOptions& options) {
  const char* group = "Inputs and outputs that may become smaller";
  add_option(command, "--states", options.states, "auto|OUT=IN,…",
             "Outputs that the next run takes as inputs, such as caches; both lose the same "
             "channels. auto finds them by names and shapes")
      ->delimiter(',')
      ->group(group);
  add_option(command, "--free", options.free, "NAME[:AXIS]",
             "An input or output, or an axis of it, that may lose channels")
      ->group(group);
}

void add_threads_option(CLI::App& command, std::string& text) {
  add_option(command, "--threads", text, "N", kThreads);
}

void add_threads_option(CLI::App& command, std::optional<int>& threads) {
  const auto parse = [&threads](const std::string& text) { threads = parse_threads(text); };
  command.add_option_function<std::string>("--threads", parse, kThreads)->type_name("N");
}

std::optional<int> parse_threads(const std::string& text) {
  if (text.empty() || text == "auto") return std::nullopt;
  const auto threads = number_of<int>(text);
  if (!threads || *threads < 1 || *threads > kMostThreads) {
    throw machine::errors::bad_threads(text);
  }
  return threads;
}

void add_calibration_options(CLI::App& command, CalibrationData& job) {
  const auto add = [&](const char* name, auto& value, const char* type,
                       const std::string& meaning) {
    return add_option(command, name, value, type, meaning)
        ->group("Data that runs through the network");
  };
  add("--calibration", job.data, "DATA",
      "Data, with labels or without: " + data_forms(/*labelled=*/false));
  add("--samples", job.samples, "N",
      "The first N of its training part (256), or so many random inputs")
      ->check(within({.lowest = 1}));
  add("--image", job.image, "SPEC",
      "What images:DIR does to them: resize=N|HxW, crop=N|HxW, letterbox[=PAD], rgb|bgr|grey, "
      "nchw|nhwc, scale=S, mean=A/B/C, std=A/B/C");
  if (command.get_option_no_throw("--mean") != nullptr) return;  // as settings of training
  add("--device", job.device, "DEVICE", "Where they run: auto, cpu (unless given) or cuda:N");
  add("--mean", job.mean, "M", "Taken from the values, in 0..1, of each channel: 0.5,0.5,…")
      ->delimiter(',');
  add("--std", job.deviation, "S", "What is then divided by, of each channel")
      ->delimiter(',')
      ->check(above_zero());
}

void add_loss_option(CLI::App& command, CalibrationData& job, std::string text,
                     std::vector<std::string> others) {
  text +=
      ": cross_entropy, bce, mse, l1, huber, kl or ctc, with options behind it "
      "(huber:delta=0.5), or for each output its own (boxes=huber,scores=bce)";
  add_option(command, "--loss", job.loss, "WHAT", text)
      ->group("Data that runs through the network")
      ->each([others = std::move(others)](const std::string& given) {
        if (!contains(others, given)) parse_losses(given);
      });
}

CalibrationData resolved(CalibrationData given, const ConfigList& config) {
  take_calibration(given, config);
  if (given.mean.size() != given.deviation.size()) {
    throw ConfigError("--mean has ", given.mean.size(), " numbers and --std ",
                      given.deviation.size(), "; wanted as many of both, one for each channel");
  }
  if (given.data.empty() && !given.mean.empty()) {
    throw ConfigError(
        "--mean says how calibration data are read; give them with --calibration DATA");
  }
  return given;
}

}  // namespace parsimony::cli
