// JSON to ConfigList. What a key means is in configs/schema.json.
#include "parsimony/configs/config.h"

#include <algorithm>
#include <map>

#include "parsimony/base/files.h"
#include "parsimony/configs/carried_impl.h"
#include "parsimony/configs/errors.h"
#include "parsimony/configs/keys_impl.h"
#include "parsimony/configs/request_impl.h"

namespace parsimony {

namespace {

using Json = nlohmann::json;

void check_keys(const Json& object, std::string_view base, const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.items()) {
    if (!std::binary_search(known.begin(), known.end(), key)) {
      throw errors::unknown_key(base, key, known);
    }
  }
}

void read_selectors(const Json& object, ConfigEntry& entry) {
  const auto read = [&](std::string_view key, std::vector<std::string>& list) {
    if (object.contains(key)) list = read_strings(object.at(key), place_of(entry.place, key));
  };
  read("op_types", entry.op_types);
  read("op_names", entry.op_names);
  read("op_names_re", entry.op_names_re);
  read("op_partial_names", entry.op_partial_names);
  read("exclude_op_types", entry.exclude_op_types);
  read("exclude_op_names", entry.exclude_op_names);
  read("exclude_op_names_re", entry.exclude_op_names_re);
}

/// An entry with "exclude": true takes nothing from its layers, so it says nothing else.
void check_exclusion(const Json& object, const ConfigEntry& entry) {
  const auto refuse = [&](const std::string& key) {
    if (!object.contains(key)) return;
    throw errors::contradiction(entry.place,
                                "\"exclude\": true and \"" + key + "\" contradict each other");
  };
  for (const std::string& key : keys::of_target()) refuse(key);
  for (const char* key : {"target_names", "target_settings"}) refuse(key);
  if (entry.op_types.empty() && entry.op_names.empty() && entry.op_names_re.empty() &&
      entry.op_partial_names.empty()) {
    throw errors::contradiction(entry.place,
                                "\"exclude\": true without op_types, op_names, op_names_re or "
                                "op_partial_names excludes all");
  }
}

ConfigEntry read_entry(const Json& object, const GivenRequest& defaults, std::string place) {
  ConfigEntry entry;
  entry.place = std::move(place);
  if (!object.is_object()) throw errors::wrong_type(entry.place, type_name(object), "object");
  check_keys(object, entry.place, keys::of_entry());
  read_selectors(object, entry);
  if (object.contains("exclude")) {
    entry.exclude = read_bool(object.at("exclude"), place_of(entry.place, "exclude"));
  }
  if (entry.exclude) {
    check_exclusion(object, entry);
    return entry;
  }
  GivenRequest given = defaults;
  read_request(object, entry.place, given);
  read_targets(object, entry.place, given);
  complete_request(given, entry.place);
  if (!given.says_how_much()) {
    throw errors::contradiction(entry.place,
                                "no \"sparse_ratio\"; give one, or \"sparse_threshold\", an amount "
                                "in \"budget\", or \"exclude\": true");
  }
  entry.request = std::move(given.request);
  entry.aligned_with = std::move(given.aligned_with);
  return entry;
}

bool same_sharing(const Request& a, const Request& b) {
  return a.ratio == b.ratio && a.amount == b.amount && a.scope == b.scope && a.budget == b.budget;
}

/// Entries that share a budget, or channels, ask for one thing.
void check_sharing(const std::vector<ConfigEntry>& entries) {
  std::map<std::string, const ConfigEntry*> first;
  const auto check = [&](const std::string& what, const ConfigEntry& entry) {
    const auto [place, fresh] = first.try_emplace(what, &entry);
    if (fresh || same_sharing(place->second->request, entry.request)) return;
    throw errors::contradiction(
        entry.place, "asks otherwise than " + place->second->place + ", but both have " + what +
                         ": give them the same ratio or amount, scope and budget");
  };
  for (const ConfigEntry& entry : entries) {
    const Request& request = entry.request;
    if (entry.exclude || !entry.aligned_with.empty()) continue;
    if (!request.global_group.empty()) check("global_group_id " + request.global_group, entry);
    if (!request.dependency_group.empty()) {
      check("dependency_group_id " + request.dependency_group, entry);
    }
    if (!request.amount) continue;
    constexpr const char* kWhat[] = {"channels", "parameters", "MACs", "latency", "weights"};
    check(std::string("an amount of the network's ") + kWhat[static_cast<int>(request.budget)],
          entry);
  }
}

std::vector<ConfigEntry> read_entries(const Json& list, const GivenRequest& defaults,
                                      std::string_view file) {
  const std::string place = std::string(file) + ": config_list";
  if (!list.is_array()) throw errors::wrong_type(place, type_name(list), "array of objects");
  if (list.empty())
    throw errors::contradiction(place, "the list is empty; nothing would be pruned");
  std::vector<ConfigEntry> entries;
  for (const Json& item : list) {
    const std::string index = std::to_string(entries.size());
    entries.push_back(read_entry(item, defaults, place + '[' + index + ']'));
  }
  check_sharing(entries);
  return entries;
}

/// Words about the coupling hold for the whole network; others are defaults of the entries.
bool is_of_network(const Json& granularity) {
  return granularity == "channel" || granularity == "head" || granularity == "head_dim" ||
         granularity == "group";
}

}  // namespace

ConfigList parse_config(std::string_view json, std::string_view file_name) {
  Json document = parse_json(json, file_name);
  ConfigList config;
  if (document.is_array()) {
    config.entries = read_entries(document, {}, file_name);
    return config;
  }
  if (!document.is_object()) {
    throw errors::wrong_type(file_name, type_name(document), "array of entries, or object");
  }
  check_keys(document, file_name, keys::of_file());
  if (!document.contains("config_list")) {
    throw errors::contradiction(file_name, "no \"config_list\"");
  }
  const auto at = [&](std::string_view key) { return place_of(file_name, key); };
  if (document.contains("schedule")) {
    config.schedule = read_schedule(document.at("schedule"), at("schedule"));
  }
  if (document.contains("calibration")) {
    config.calibration = read_calibration(document.at("calibration"), at("calibration"));
  }
  if (document.contains("recover")) {
    config.recover = read_recover(document.at("recover"), at("recover"));
  }
  if (document.contains("granularity") && is_of_network(document.at("granularity"))) {
    config.granularity =
        parse_granularity(document.at("granularity").get<std::string>(), at("granularity"));
    document.erase("granularity");
  }
  GivenRequest defaults;
  read_request(document, file_name, defaults);
  config.entries = read_entries(document.at("config_list"), defaults, file_name);
  return config;
}

ConfigList read_config(const std::string& path) { return parse_config(read_file(path), path); }

}  // namespace parsimony
