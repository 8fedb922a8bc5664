#include "tests/cli/sweep_place.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

namespace parsimony::test {

void SweepPlace::recipe(const std::string& sweep) const {
  write("r.json", R"({"model": "cnn", "data": "shapes:64,32", "train": {"epochs": 1, "batch": 32},
      "prune": {"config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]},
      "sweep": {)" + sweep +
                      "}}");
}

Outcome SweepPlace::sweep(const std::string& arguments) const { return run(command(arguments)); }

std::string SweepPlace::command(const std::string& arguments) {
  return "sweep --config r.json --threads 1 --memory-format contiguous " + arguments;
}

Names SweepPlace::points(const std::string& folder) const {
  Names names;
  std::istringstream lines(bytes(folder + "/ledger.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const Json point = Json::parse(line).at("point");
    std::ostringstream name;
    name << point.at("criterion").get<std::string>() << ' ' << point.at("sparsity").get<double>()
         << ' ' << point.at("seed");
    names.push_back(name.str());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Json SweepPlace::report(const std::string& folder) const {
  return Json::parse(bytes(folder + "/report.json"));
}

Json SweepPlace::lasting_report(const std::string& folder) const {
  Json report = this->report(folder);
  for (Json& setting : report.at("settings")) {
    for (const char* key : {"train_seconds", "train_speedup", "phases", "front"}) {
      setting.erase(key);
    }
  }
  for (Json& point : report.at("points")) {
    for (const char* key : {"seconds", "latency_ms", "command"}) point.erase(key);
    for (Json& epoch : point.at("epochs")) epoch.erase("seconds");
    if (point.at("compared").is_object()) point.at("compared").erase("train_speedup");
  }
  Json& headline = report.at("headline");
  headline.erase(std::remove_if(headline.begin(), headline.end(),
                                [](const Json& line) {
                                  return line.at("what") == "latency" ||
                                         line.at("what") == "training time";
                                }),
                 headline.end());
  return report;
}

int SweepPlace::files(const std::string& folder, const std::string& ending) const {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*this / folder)) {
    if (entry.path().string().ends_with(ending)) ++count;
  }
  return count;
}

}  // namespace parsimony::test
