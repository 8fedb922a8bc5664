#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "parsimony/base/errors.h"
#include "parsimony/base/words.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/processes.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/cli/torch_commands.h"
#include "parsimony/engines/machine/report.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

using Json = nlohmann::ordered_json;
using machine::Finding;
using machine::MachineReport;

struct Diagnosis {
  MachineReport report;
  std::string not_measured;  ///< why libtorch was not asked; empty if it was
};

Diagnosis diagnose() {
  try {
    return {torch_commands().doctor(), {}};
  } catch (const UnsupportedError& error) {
    return {machine::facts_without_torch(), error.what()};
  }
}

std::string times(double cost) { return formatted("%.1f times", cost); }

std::string to_text(const Diagnosis& diagnosis) {
  const MachineReport& report = diagnosis.report;
  std::string text;
  size_t width = 0;
  for (const Finding& finding : report.findings) width = std::max(width, finding.subject.size());
  const std::string indent(width + 2, ' ');
  int advice = 0;
  for (const Finding& finding : report.findings) {
    text += finding.subject + std::string(width + 2 - finding.subject.size(), ' ') +
            printable(finding.found) + "\n";
    if (!finding.measured.empty()) text += indent + finding.measured + "\n";
    if (finding.cost > 1) {
      text += indent +
              coloured("takes " + times(finding.cost) + " as long as necessary", Colour::kRed,
                       Stream::kOut) +
              "\n";
    }
    if (finding.advice.empty()) continue;
    ++advice;
    text += indent + coloured("do: ", Colour::kYellow, Stream::kOut) + finding.advice + "\n";
  }
  if (!diagnosis.not_measured.empty()) {
    text += note_mark() + "no measurements: " + printable(diagnosis.not_measured) + "\n";
  } else {
    text += "Measured in " + duration(report.seconds) + ". ";
    text += advice == 0 ? "No advice.\n" : counted(advice, "thing") + " to do.\n";
  }
  return text;
}

Json to_json(const machine::TorchFacts& torch) {
  Json steps = Json::array();
  for (const machine::ThreadTime& time : torch.steps) {
    steps.push_back({{"threads", time.threads}, {"seconds", time.seconds}});
  }
  return {{"version", torch.version},
          {"capability", torch.capability},
          {"onednn", torch.onednn},
          {"threads", torch.aten_threads},
          {"openmp_threads", torch.openmp_threads},
          {"best_threads", torch.best_threads},
          {"product_gflops", torch.product_gflops},
          {"convolution_gflops", torch.convolution_gflops},
          {"faults_per_step", torch.faults_per_step},
          {"seconds_per_fault", torch.seconds_per_fault},
          {"step_seconds", torch.seconds_with_aten_threads},
          {"steps", std::move(steps)}};
}

std::string to_json(const Diagnosis& diagnosis) {
  const MachineReport& report = diagnosis.report;
  Json json;
  json["processor"] = {{"model", report.processor.model},
                       {"vectors", machine::name_of(vectors_of(report.processor))}};
  json["cores"] = {{"online", report.cores.online},
                   {"allowed", report.cores.allowed},
                   {"usable", report.cores.usable()},
                   {"load", report.cores.load}};
  if (std::isfinite(report.cores.quota)) json["cores"]["quota"] = report.cores.quota;
  json["allocator"] = report.allocator;
  json["torch"] = report.torch ? to_json(*report.torch) : Json();
  json["findings"] = Json::array();
  for (const Finding& finding : report.findings) {
    json["findings"].push_back({{"subject", finding.subject},
                                {"found", finding.found},
                                {"measured", finding.measured},
                                {"cost", finding.cost},
                                {"advice", finding.advice}});
  }
  json["seconds"] = report.seconds;
  if (!diagnosis.not_measured.empty()) json["not_measured"] = diagnosis.not_measured;
  // File names may be of any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

struct DoctorOptions {
  bool json = false;
  RankOptions ranks;
};

void add_options(CLI::App& command, DoctorOptions& options) {
  command.add_flag("--json", options.json, "Print one JSON object instead of text");
  add_rank_options(command, options.ranks);
}

void run_doctor(const DoctorOptions& options, const Session& session) {
  const RankPlace place = ranks_of(options.ranks, session);
  std::vector<Finding> of_ranks;
  if (place.several()) of_ranks = torch_commands().doctor_of_ranks(place);
  if (place.rank > 0) return;
  Diagnosis diagnosis = diagnose();
  std::ranges::move(of_ranks, std::back_inserter(diagnosis.report.findings));
  print(options.json ? to_json(diagnosis) : to_text(diagnosis));
}

}  // namespace

void add_doctor(CLI::App& app, Session& session) {
  add_command<DoctorOptions>(
      app, session, "doctor",
      "Checks the performance of this machine and its libraries, and gives advice",
      "parsimony doctor", add_options, run_doctor);
}

}  // namespace parsimony::cli
