#include "parsimony/configs/latency_file.h"

#include <nlohmann/json.hpp>

#include "parsimony/base/errors.h"
#include "parsimony/base/json_reader.h"

namespace parsimony {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;

void check(std::string_view key, const std::string& found, const std::string& expected,
           std::string_view file_name) {
  if (found != expected) {
    throw ConfigError(
        file_name, ": ", in_quotes(key), ": found ", found, ", expected ", expected,
        "; times hold for one machine, engine and number of threads: name another file");
  }
}

std::vector<int> read_widths(const JsonReader& list) {
  std::vector<int> widths;
  for (const JsonReader width : list.list()) widths.push_back(width.small(1));
  return widths;
}

LatencyTable read_table(const JsonReader& object) {
  LatencyTable table;
  table.what = object.at("what").text();
  table.x = read_widths(object.at("x"));
  table.y = read_widths(object.at("y"));
  table.seconds.clear();
  for (const JsonReader time : object.at("seconds").list()) {
    table.seconds.push_back(time.number(kNotNegative));
  }
  table.measured = object.at("measured").count();
  if (!table.is_sound()) {
    throw ConfigError(object.place(),
                      ": expected ascending widths x and y, and a time for each pair of them");
  }
  return table;
}

Json to_object(const std::string& key, const LatencyTable& table) {
  return {{"what", table.what}, {"key", key},   {"measured", table.measured},
          {"x", table.x},       {"y", table.y}, {"seconds", table.seconds}};
}

}  // namespace

std::string to_json(const LatencyFile& file) {
  Json tables = Json::array();
  for (const auto& [key, table] : file.tables) tables.push_back(to_object(key, table));
  const Json document = {{"parsimony_latency", kVersion},
                         {"machine", file.machine},
                         {"engine", file.engine},
                         {"threads", file.threads},
                         {"tables", std::move(tables)}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

LatencyFile parse_latency_file(std::string_view text, std::string_view file_name) {
  const JsonDocument document(text, file_name);
  const JsonReader root = document.root();
  const auto version = root.find("parsimony_latency");
  check("parsimony_latency", version ? version->json() : "null", std::to_string(kVersion),
        file_name);
  LatencyFile file;
  file.machine = root.at("machine").text();
  file.engine = root.at("engine").text();
  file.threads = root.at("threads").small(1);
  for (const JsonReader object : root.at("tables").list()) {
    file.tables.emplace(object.at("key").text(), read_table(object));
  }
  return file;
}

void check_origin(const LatencyFile& found, const LatencyFile& expected,
                  std::string_view file_name) {
  check("machine", json_text(found.machine), json_text(expected.machine), file_name);
  check("engine", json_text(found.engine), json_text(expected.engine), file_name);
  check("threads", std::to_string(found.threads), std::to_string(expected.threads), file_name);
}

}  // namespace parsimony
