#include "parsimony/cli/oracle.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "parsimony/cli/command.h"
#include "parsimony/cli/errors.h"
#include "parsimony/cli/process.h"

namespace parsimony::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kMostNotes = 5;

/// Where the environment says, beside the installed command, or in the source tree.
std::string find_script() {
  if (const char* path = std::getenv("PARSIMONY_ORT_COMPARE"); path != nullptr && *path != '\0') {
    if (!fs::exists(path)) throw errors::no_oracle(path);
    return path;
  }
  std::error_code error;
  const fs::path command = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed = command.parent_path() / PARSIMONY_SHARE_FROM_BIN / "ort_compare.mjs";
  if (!error && fs::exists(installed)) return installed.string();
  const fs::path source = fs::path(PARSIMONY_TOOLS_DIR) / "ort_compare.mjs";
  if (!fs::exists(source)) throw errors::no_oracle(installed.lexically_normal().string());
  return source.string();
}

std::vector<std::string> arguments_of(const OracleJob& job) {
  const auto node = find_program("node");
  if (!node) throw errors::no_node();
  std::vector<std::string> arguments{*node, find_script(), "--json", "--seed",
                                     std::to_string(job.seed)};
  if (job.inputs > 0) arguments.insert(arguments.end(), {"--inputs", std::to_string(job.inputs)});
  for (const std::string& spec : job.specs) arguments.insert(arguments.end(), {"--input", spec});
  // Behind --, so that a file whose name begins with a dash is no option.
  arguments.insert(arguments.end(), {"--", job.original, job.small, job.plan});
  return arguments;
}

/// The script's own message, without its name and without its usage text.
std::string message_of(const std::string& text) {
  constexpr std::string_view kName = "ort_compare.mjs: ";
  const size_t at = text.find(kName);
  std::string message = at == std::string::npos ? text : text.substr(at + kName.size());
  message.erase(std::min(message.find("\n\n"), message.size()));
  while (!message.empty() && message.back() == '\n') message.pop_back();
  return message;
}

[[noreturn]] void refuse(const Finished& finished) {
  const std::string message = message_of(finished.err);
  if (message.find("ONNX Runtime is not in") != std::string::npos) throw errors::no_onnx_runtime();
  switch (static_cast<Exit>(finished.exit_code)) {
    case Exit::kUsage:
      throw errors::usage("verify", message);
    case Exit::kUnsupported:
      throw errors::not_runnable(message);
    default:
      throw errors::oracle_failed(message.empty() ? "ort_compare.mjs ended with exit code " +
                                                        std::to_string(finished.exit_code)
                                                  : message);
  }
}

/// JSON knows no infinity; null stands for it.
double number(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<double>()
                                               : std::numeric_limits<double>::infinity();
}

std::string brief(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

/// What is wrong, beginning with the output that is furthest beyond its tolerance.
std::string describe_worst(const Json& result, const OracleVerdict& verdict) {
  const auto beyond = [](const Json& output) {
    return number(output, "difference") / number(output, "tolerance");
  };
  const auto& outputs = result.at("outputs");
  const auto worst =
      std::max_element(outputs.begin(), outputs.end(),
                       [&](const Json& a, const Json& b) { return beyond(a) < beyond(b); });
  std::string text;
  if (worst != outputs.end() && beyond(*worst) > 1) {
    text = "output \"" + worst->at("name").get<std::string>() + "\" differs by " +
           brief(number(*worst, "difference")) + " of its largest value, tolerance " +
           brief(number(*worst, "tolerance"));
    if (worst->contains("at") && worst->at("at").is_number()) {
      text += "; element " + worst->at("at").dump() + ": found " +
              worst->value("found", Json()).dump() + ", wanted " +
              worst->value("wanted", Json()).dump();
    }
  }
  const size_t shown = std::min(verdict.notes.size(), kMostNotes);
  for (size_t i = 0; i < shown; ++i) text += (text.empty() ? "" : "\n  ") + verdict.notes[i];
  if (shown < verdict.notes.size()) {
    text += "\n  and " + std::to_string(verdict.notes.size() - shown) + " more";
  }
  return text.empty() ? "the verdict is " + result.at("verdict").get<std::string>() : text;
}

OracleVerdict read_verdict(const std::string& text) {
  const Json result = Json::parse(text);
  OracleVerdict verdict;
  const auto word = result.at("verdict").get<std::string>();
  verdict.mixes = word == "mixes";
  verdict.weak = word == "weak";
  verdict.fine = verdict.mixes || verdict.weak || word == "exact";
  verdict.difference = number(result, "difference");
  verdict.tolerance = number(result, "tolerance");
  verdict.probes = result.value("probes", int64_t{0});
  for (const Json& output : result.at("outputs")) {
    verdict.outputs.push_back({output.at("name").get<std::string>(), number(output, "difference"),
                               number(output, "tolerance")});
  }
  verdict.notes = result.value("notes", std::vector<std::string>{});
  if (!verdict.fine) verdict.worst = describe_worst(result, verdict);
  return verdict;
}

}  // namespace

OracleVerdict ask_oracle(const OracleJob& job) {
  const Finished finished = run_program(arguments_of(job));
  if (finished.exit_code > static_cast<int>(Exit::kVerification)) refuse(finished);
  try {
    return read_verdict(finished.out);
  } catch (const Json::exception&) {
    throw errors::oracle_failed(finished.err.empty() ? "ort_compare.mjs gave no verdict"
                                                     : message_of(finished.err));
  }
}

}  // namespace parsimony::cli
