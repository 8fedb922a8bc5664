// JSON to ConfigList. What a key means is in configs/schema.json.
#include "parsimony/configs/config.h"

#include <cstdio>
#include <map>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/configs/errors.h"
#include "parsimony/configs/keys_impl.h"
#include "parsimony/configs/request_impl.h"

namespace parsimony {

namespace {

void read_selectors(const JsonReader& object, ConfigEntry& entry) {
  const auto read = [&](std::string_view key, std::vector<std::string>& list) {
    const auto value = object.find(key);
    if (!value) return;
    for (const JsonReader item : list_of(*value, "strings")) list.push_back(item.text());
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
void check_exclusion(const JsonReader& object, const ConfigEntry& entry) {
  const auto refuse = [&](const std::string& key) {
    if (object.has(key)) {
      object.fail("\"exclude\": true and \"" + key + "\" contradict each other");
    }
  };
  for (const std::string& key : keys::of_target()) refuse(key);
  for (const char* key : {"target_names", "target_settings"}) refuse(key);
  if (entry.op_types.empty() && entry.op_names.empty() && entry.op_names_re.empty() &&
      entry.op_partial_names.empty()) {
    object.fail(
        "\"exclude\": true without op_types, op_names, op_names_re or op_partial_names excludes "
        "all");
  }
}

ConfigEntry read_entry(const JsonReader& object, const GivenRequest& defaults) {
  ConfigEntry entry;
  entry.source.place = object.place();
  object.only(keys::of_entry());
  read_selectors(object, entry);
  if (const auto exclude = object.find("exclude")) entry.exclude = exclude->flag();
  if (entry.exclude) {
    check_exclusion(object, entry);
    return entry;
  }
  GivenRequest given = defaults;
  read_request(object, given);
  read_targets(object, given);
  complete_request(given, entry.source.place);
  if (!given.says_how_much()) {
    object.fail(
        "no \"sparse_ratio\"; give one, or \"sparse_threshold\", an amount in \"budget\", or "
        "\"exclude\": true");
  }
  entry.request = std::move(given.request);
  entry.aligned_with = std::move(given.aligned_with);
  return entry;
}

bool same_sharing(const Request& a, const Request& b) {
  return a.ratio == b.ratio && a.amount == b.amount && a.scope == b.scope && a.scopes == b.scopes &&
         a.budget == b.budget && a.also == b.also;
}

/// Entries that share a budget, or channels, must agree.
void check_sharing(const std::vector<ConfigEntry>& entries) {
  std::map<std::string, const ConfigEntry*> first;
  const auto check = [&](const std::string& what, const ConfigEntry& entry) {
    const auto [place, fresh] = first.try_emplace(what, &entry);
    if (fresh || same_sharing(place->second->request, entry.request)) return;
    throw ConfigError(entry.source.place, ": has other settings than ", place->second->source.place,
                      ", but both have ", what,
                      ": give them the same ratio or amount, scope and budget");
  };
  for (const ConfigEntry& entry : entries) {
    const Request& request = entry.request;
    if (entry.exclude || !entry.aligned_with.empty()) continue;
    if (!request.global_group.empty()) check("global_group_id " + request.global_group, entry);
    if (!request.dependency_group.empty()) {
      check("dependency_group_id " + request.dependency_group, entry);
    }
    if (!request.equal_width.empty()) check("equal_width_id " + request.equal_width, entry);
    if (!request.amount) continue;
    constexpr const char* kWhat[] = {"channels", "parameters", "MACs", "latency",
                                     "weights",  "weights",    "file", "memory"};
    check(std::string("an amount of the network's ") + kWhat[static_cast<int>(request.budget)],
          entry);
  }
}

std::vector<ConfigEntry> read_entries(const JsonReader& list, const GivenRequest& defaults) {
  if (!list.is_list()) list.expected("a list of objects");
  if (list.size() == 0) list.fail("the list is empty; nothing would be pruned");
  std::vector<ConfigEntry> entries;
  for (const JsonReader item : list.list()) entries.push_back(read_entry(item, defaults));
  check_sharing(entries);
  return entries;
}

/// Words about the coupling hold for the whole network; others are defaults of the entries.
std::optional<Granularity> network_granularity(const JsonReader& document) {
  const auto value = document.find("granularity");
  if (!value || !value->is_text()) return {};
  const std::string word = value->text();
  constexpr std::string_view kWords[] = {"channel", "head", "head_dim", "group", "expert"};
  if (std::ranges::find(kWords, word) == std::end(kWords)) return {};
  return parse_granularity(word, value->place());
}

}  // namespace

ConfigList config_of(const JsonReader& document, bool in_recipe, bool needs_entries) {
  ConfigList config;
  if (!in_recipe) document.only(keys::of_file());
  const auto list = document.find("config_list");
  if (!list && needs_entries) document.fail("no \"config_list\"");
  const auto schedule = document.find("schedule");
  if (schedule && !in_recipe) config.schedule = read_schedule(*schedule);
  if (const auto value = document.find("calibration")) {
    config.calibration = read_calibration(*value);
  }
  if (const auto value = document.find("recover")) config.recover = read_recover(*value);
  if (const auto value = document.find("force")) config.force = value->flag();
  config.granularity = network_granularity(document);
  GivenRequest defaults;
  read_request(document, defaults, config.granularity.has_value());
  const bool has_defaults = defaults.request != Request() || !defaults.keys.empty();
  if (!list && has_defaults) document.fail("no \"config_list\"");
  if (list) config.entries = read_entries(*list, defaults);
  return config;
}

ConfigList parse_config(std::string_view json, std::string_view file_name, bool needs_entries) {
  const JsonDocument document(json, file_name, throw_as<ConfigError>, false, "config_list");
  const JsonReader root = document.root();
  if (root.is_list()) return {.entries = read_entries(root, {})};
  if (!root.is_object()) root.expected("a list of entries, or an object");
  return config_of(root, false, needs_entries);
}

ConfigList read_config(const std::string& path) { return parse_config(read_file(path), path); }

ConfigList from_shorthand(const Shorthand& shorthand) {
  if (!(shorthand.ratio >= 0 && shorthand.ratio < 1)) {
    char number[32];
    std::snprintf(number, sizeof number, "%g", shorthand.ratio);
    throw errors::out_of_range("--ratio", number, "[0, 1)");
  }
  if (shorthand.round_to < 1 || shorthand.round_to > kMaxRoundTo) {
    throw errors::out_of_range("--round-to", std::to_string(shorthand.round_to), "[1, 65536]");
  }
  GivenRequest given;
  const bool has_amount = shorthand.budget.find('=') != std::string::npos;
  if (has_amount && shorthand.ratio > 0) {
    throw ConfigError("--budget: an amount, as in ", in_quotes(shorthand.budget),
                      ", sets the sparsity, and so does --ratio; pass one of them");
  }
  given.request.ratio = shorthand.ratio;
  read_criterion(shorthand.criterion, "--criterion", given.request);
  read_scope(shorthand.scope, "--scope", given.request);
  parse_budget(shorthand.budget, "--budget", given);
  given.request.round_to = shorthand.round_to;
  if (!shorthand.target.empty()) {
    given.request.target = parse_target(shorthand.target, "--target");
  }
  if (given.request.budget != Budget::kChannels) given.keys.insert("budget");
  if (given.request.round_to != 1 || given.request.target) given.keys.insert("round_to");
  if (given.request.ratio != 0) given.keys.insert("sparse_ratio");
  complete_request(given, "command line");

  ConfigEntry entry;
  entry.op_types = shorthand.op_types;
  entry.exclude_op_names = shorthand.exclude;
  entry.request = given.request;
  entry.source = {.place = "command line", .from_command_line = true};
  ConfigList config;
  config.entries = {std::move(entry)};
  config.force = shorthand.force;
  return config;
}

bool has_choice(const ConfigList& config) {
  return std::ranges::any_of(config.entries, [](const ConfigEntry& entry) {
    return !entry.exclude && entry.request.has_choice();
  });
}

}  // namespace parsimony
