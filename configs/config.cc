// JSON to ConfigList. What a key means is in configs/schema.json.
#include "parsimony/configs/config.h"

#include "parsimony/configs/errors.h"
#include "parsimony/configs/keys_impl.h"
#include "parsimony/configs/request_impl.h"
#include "parsimony/graph/files.h"

namespace parsimony {

namespace {

using Json = nlohmann::json;

void check_keys(const Json& object, std::string_view base, const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    if (keys::contains(keys::kLater, key)) throw errors::later_key(base, key);
    throw errors::unknown_key(base, key, known);
  }
}

void read_selectors(const Json& object, ConfigEntry& entry) {
  const auto read = [&](std::string_view key, std::vector<std::string>& list) {
    if (object.contains(key)) list = read_strings(object.at(key), place_of(entry.place, key));
  };
  read("op_types", entry.op_types);
  read("op_names", entry.op_names);
  read("op_names_re", entry.op_names_re);
  read("exclude_op_types", entry.exclude_op_types);
  read("exclude_op_names", entry.exclude_op_names);
  read("exclude_op_names_re", entry.exclude_op_names_re);
}

/// An entry with "exclude": true takes nothing from its layers, so it says nothing else.
void check_exclusion(const Json& object, const ConfigEntry& entry) {
  for (std::string_view key : keys::kRequest) {
    if (object.contains(key)) {
      throw errors::contradiction(
          entry.place, "\"exclude\": true and \"" + std::string(key) + "\" contradict each other");
    }
  }
  if (entry.op_types.empty() && entry.op_names.empty() && entry.op_names_re.empty()) {
    throw errors::contradiction(
        entry.place, "\"exclude\": true without op_types, op_names or op_names_re excludes all");
  }
}

ConfigEntry read_entry(const Json& object, const GivenRequest& defaults, std::string place) {
  ConfigEntry entry;
  entry.place = std::move(place);
  if (!object.is_object()) throw errors::wrong_type(entry.place, type_name(object), "object");
  if (object.contains("granularity")) {
    throw errors::later_value(place_of(entry.place, "granularity"),
                              "a granularity per entry, not for the whole file,");
  }
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
  check_request(given, entry.place);
  if (!given.has_ratio()) {
    throw errors::contradiction(entry.place, "no \"sparse_ratio\"; give one, or \"exclude\": true");
  }
  entry.request = given.request;
  return entry;
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
  return entries;
}

}  // namespace

ConfigList parse_config(std::string_view json, std::string_view file_name) {
  const Json document = parse_json(json, file_name);
  if (document.is_array()) return {read_entries(document, {}, file_name), std::nullopt};
  if (!document.is_object()) {
    throw errors::wrong_type(file_name, type_name(document), "array of entries, or object");
  }
  check_keys(document, file_name, keys::of_file());
  if (!document.contains("config_list")) {
    throw errors::contradiction(file_name, "no \"config_list\"");
  }
  ConfigList config;
  if (document.contains("granularity")) {
    const std::string place = place_of(file_name, "granularity");
    if (document.at("granularity").is_array()) throw errors::later_value(place, "a block list");
    config.granularity = parse_granularity(read_string(document.at("granularity"), place), place);
  }
  GivenRequest defaults;
  read_request(document, file_name, defaults);
  config.entries = read_entries(document.at("config_list"), defaults, file_name);
  return config;
}

ConfigList read_config(const std::string& path) { return parse_config(read_file(path), path); }

}  // namespace parsimony
