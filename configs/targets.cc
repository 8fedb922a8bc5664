// Targets: what of a layer is pruned. Only weights have channels to remove; a bias goes with them.
#include <algorithm>
#include <array>

#include "parsimony/configs/errors.h"
#include "parsimony/configs/keys_impl.h"
#include "parsimony/configs/request_impl.h"

namespace parsimony {

namespace {

constexpr std::array<std::string_view, 2> kTargets = {"bias", "weight"};

void check_target(std::string_view name, std::string_view place) {
  if (name.starts_with("_input_") || name.starts_with("_output_")) {
    throw UnsupportedError(
        place, ": ", in_quotes(name),
        " is data, and a mask on it leaves every weight as large as it was; name \"weight\" of "
        "the layer that makes it, or, for an input, give \"granularity\": \"in_channel\"");
  }
  if (std::find(kTargets.begin(), kTargets.end(), name) == kTargets.end()) {
    throw errors::unknown_word(place, name, kTargets);
  }
}

void read_bias(const JsonReader& setting) {
  for (const JsonReader value : setting.members()) {
    if (value.is_null()) continue;
    if (value.own_key() == "apply_method") {
      check_apply_method(value);
    } else if (value.own_key() == "align") {
      const std::string module = read_align(value);
      if (!module.empty()) {
        throw UnsupportedError(value.place(),
                               ": a bias goes with the weight of its own layer, not with ",
                               in_quotes(module), "'s");
      }
    } else {
      throw UnsupportedError(value.place(),
                             ": a bias is not pruned by itself: it loses what its weight loses");
    }
  }
}

}  // namespace

void read_targets(const JsonReader& entry, GivenRequest& given) {
  std::vector<std::string> names;
  if (const auto list = entry.find("target_names")) {
    for (const JsonReader name : list_of(*list, "strings")) {
      names.push_back(name.text());
      check_target(names.back(), name.place());
    }
    if (std::find(names.begin(), names.end(), "weight") == names.end()) {
      throw UnsupportedError(list->place(),
                             ": a bias is not pruned by itself; name \"weight\" as well");
    }
  }
  const auto settings = entry.find("target_settings");
  if (!settings) return;
  for (const JsonReader value : settings->members()) {
    const std::string target(value.own_key());
    check_target(target, value.place());
    value.only(keys::of_target());
    if (!names.empty() && std::find(names.begin(), names.end(), target) == names.end()) {
      value.fail("\"target_names\" does not name \"" + target + "\"");
    }
    if (target == "bias") {
      read_bias(value);
    } else {
      read_request(value.without_nulls(), given);
    }
  }
}

std::string read_align(const JsonReader& value) {
  value.only({"dims", "module_name", "target_name"});
  if (const auto target = value.find("target_name")) {
    check_target(target->text(), target->place());
    if (target->text() != "weight") {
      throw UnsupportedError(target->place(), ": only weights decide which channels are removed");
    }
  }
  if (const auto dims = value.find("dims"); dims && dims->json() != "[0]") {
    throw UnsupportedError(dims->place(), ": ", dims->json(),
                           ": only [0], the output channels, are removed together");
  }
  const auto module = value.without_nulls().find("module_name");
  return module ? module->text() : "";
}

void check_apply_method(const JsonReader& value) {
  const std::string method = value.text();
  const std::string place = value.place();
  if (method == "mul") return;
  if (method == "add" || method == "movement_add") {
    throw UnsupportedError(place, ": ", in_quotes(method),
                           " adds -1000 where the mask is 0, which is for the scores before a "
                           "softmax; a weight is multiplied by its mask: \"mul\"");
  }
  if (method == "movement_mul" || method == "slim_mul") {
    throw UnsupportedError(place, ": ", in_quotes(method),
                           " is how a criterion learns while it trains; name the criterion "
                           "instead, and leave \"mul\" here");
  }
  if (method == "bypass") {
    throw UnsupportedError(place,
                           ": \"bypass\" prunes nothing; leave the layer out, or exclude it");
  }
  throw errors::unknown_word(place, method, std::array<std::string_view, 1>{"mul"});
}

}  // namespace parsimony
