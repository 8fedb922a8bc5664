#include "parsimony/configs/latency_file.h"

#include "parsimony/base/files.h"
#include "parsimony/configs/errors.h"
#include "parsimony/configs/json_impl.h"

namespace parsimony {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;

void check(const Json& document, std::string_view key, const Json& wanted,
           std::string_view file_name) {
  const auto it = document.find(key);
  const Json found = it == document.end() ? Json() : *it;
  if (found != wanted) {
    throw errors::other_latency(file_name, key, found.dump(), wanted.dump());
  }
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

LatencyTables parse_latency_file(std::string_view text, std::string_view file_name,
                                 const LatencyFile& wanted) {
  const Json document = parse_json(text, file_name);
  if (!document.is_object()) {
    throw errors::wrong_type(file_name, type_name(document), "object");
  }
  check(document, "parsimony_latency", kVersion, file_name);
  check(document, "machine", wanted.machine, file_name);
  check(document, "engine", wanted.engine, file_name);
  check(document, "threads", wanted.threads, file_name);
  LatencyTables tables;
  try {
    for (const Json& object : document.at("tables")) {
      LatencyTable table;
      object.at("what").get_to(table.what);
      object.at("x").get_to(table.x);
      object.at("y").get_to(table.y);
      object.at("seconds").get_to(table.seconds);
      object.at("measured").get_to(table.measured);
      const std::string place =
          std::string(file_name) + ": tables[" + std::to_string(tables.size()) + "]";
      if (!table.is_sound()) throw errors::bad_latency_table(place);
      tables.emplace(object.at("key").get<std::string>(), std::move(table));
    }
  } catch (const Json::exception& error) {
    throw errors::bad_latency_table(std::string(file_name) + ": tables[" +
                                    std::to_string(tables.size()) + "]");
  }
  return tables;
}

LatencyTables read_latency_file(const std::string& path, const LatencyFile& wanted, bool strict) {
  try {
    return parse_latency_file(read_file(path), path, wanted);
  } catch (const ConfigError&) {
    if (strict) throw;
    return {};
  }
}

}  // namespace parsimony
