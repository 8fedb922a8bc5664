// Targets: what of a layer is pruned. Only weights have channels to remove; a bias goes with them.
#include <algorithm>

#include "parsimony/configs/errors.h"
#include "parsimony/configs/keys_impl.h"
#include "parsimony/configs/request_impl.h"

namespace parsimony {

namespace {

using Json = nlohmann::json;

const std::vector<std::string> kTargets = {"bias", "weight"};

void check_target(std::string_view name, std::string_view place) {
  if (name.starts_with("_input_") || name.starts_with("_output_")) {
    throw errors::refused(place, '"' + std::string(name) +
                                     "\" is data, and a mask on it leaves every weight as large as "
                                     "it was; name \"weight\" of the layer that makes it, or, for "
                                     "an input, give \"granularity\": \"in_channel\"");
  }
  if (std::find(kTargets.begin(), kTargets.end(), name) == kTargets.end()) {
    throw errors::unknown_word(place, name, kTargets);
  }
}

/// What is null was not given.
Json without_nulls(const Json& object) {
  Json result = Json::object();
  for (const auto& [key, value] : object.items()) {
    if (!value.is_null()) result[key] = value;
  }
  return result;
}

void read_bias(const Json& setting, const std::string& place) {
  for (const auto& [key, value] : setting.items()) {
    const std::string at = place_of(place, key);
    if (key == "apply_method") {
      check_apply_method(value, at);
    } else if (key == "align") {
      const std::string module = read_align(value, at);
      if (!module.empty()) {
        throw errors::refused(
            at, "a bias goes with the weight of its own layer, not with \"" + module + "\"'s");
      }
    } else {
      throw errors::refused(at, "a bias is not pruned by itself: it loses what its weight loses");
    }
  }
}

}  // namespace

void read_targets(const Json& entry, std::string_view base, GivenRequest& given) {
  std::vector<std::string> names;
  if (entry.contains("target_names")) {
    const std::string place = place_of(base, "target_names");
    names = read_strings(entry.at("target_names"), place);
    for (size_t i = 0; i < names.size(); ++i) {
      check_target(names[i], place + '[' + std::to_string(i) + ']');
    }
    if (std::find(names.begin(), names.end(), "weight") == names.end()) {
      throw errors::refused(place, "a bias is not pruned by itself; name \"weight\" as well");
    }
  }
  if (!entry.contains("target_settings")) return;
  const Json& settings = entry.at("target_settings");
  const std::string place = place_of(base, "target_settings");
  if (!settings.is_object()) throw errors::wrong_type(place, type_name(settings), "object");
  for (const auto& [target, value] : settings.items()) {
    const std::string at = place + '.' + target;
    check_target(target, at);
    if (!value.is_object()) throw errors::wrong_type(at, type_name(value), "object");
    if (!names.empty() && std::find(names.begin(), names.end(), target) == names.end()) {
      throw errors::contradiction(at, "\"target_names\" does not name \"" + target + "\"");
    }
    const std::vector<std::string> known = keys::of_target();
    for (const auto& [key, ignored] : value.items()) {
      if (!std::binary_search(known.begin(), known.end(), key)) {
        throw errors::unknown_key(at, key, known);
      }
    }
    const Json setting = without_nulls(value);
    if (target == "bias") {
      read_bias(setting, at);
    } else {
      read_request(setting, at, given);
    }
  }
}

std::string read_align(const Json& value, std::string_view place) {
  if (!value.is_object()) throw errors::wrong_type(place, type_name(value), "object");
  const std::vector<std::string> known = {"dims", "module_name", "target_name"};
  for (const auto& [key, ignored] : value.items()) {
    if (!std::binary_search(known.begin(), known.end(), key)) {
      throw errors::unknown_key(place, key, known);
    }
  }
  const std::string at = std::string(place) + '.';
  if (value.contains("target_name")) {
    const std::string target = read_string(value.at("target_name"), at + "target_name");
    check_target(target, at + "target_name");
    if (target != "weight") {
      throw errors::refused(at + "target_name", "only weights decide which channels go");
    }
  }
  if (value.contains("dims") && value.at("dims") != Json::array({0})) {
    throw errors::refused(at + "dims", value.at("dims").dump() +
                                           ": only [0], the output channels, are removed together");
  }
  if (!value.contains("module_name") || value.at("module_name").is_null()) return {};
  return read_string(value.at("module_name"), at + "module_name");
}

void check_apply_method(const Json& value, std::string_view place) {
  const std::string method = read_string(value, place);
  if (method == "mul") return;
  if (method == "add" || method == "movement_add") {
    throw errors::refused(place, '"' + method +
                                     "\" adds -1000 where the mask is 0, which is for the scores "
                                     "before a softmax; a weight is multiplied by its mask: "
                                     "\"mul\"");
  }
  if (method == "movement_mul" || method == "slim_mul") {
    throw errors::refused(place, '"' + method +
                                     "\" is how a criterion learns while it trains; name the "
                                     "criterion instead, and leave \"mul\" here");
  }
  if (method == "bypass") {
    throw errors::refused(place, "\"bypass\" prunes nothing; leave the layer out, or exclude it");
  }
  throw errors::unknown_word(place, method, std::vector<std::string>{"mul"});
}

}  // namespace parsimony
