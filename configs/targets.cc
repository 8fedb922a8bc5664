// Targets: what of a layer is pruned. Only weights have channels to remove; a bias goes with them.
#include <algorithm>
#include <array>

#include "parsimony/base/errors.h"
#include "parsimony/configs/config.h"
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

// Units of removal: channels on either side, heads, elements, blocks.
namespace {

enum class Kind : uint8_t {
  kDefault,
  kOut,
  kIn,
  kElement,
  kChannel,
  kHead,
  kHeadDim,
  kGroup,
  kExpert
};

constexpr WordTable<Kind, 10> kWords = {{{"default", Kind::kDefault},
                                         {"out_channel", Kind::kOut},
                                         {"per_channel", Kind::kOut},
                                         {"in_channel", Kind::kIn},
                                         {"element", Kind::kElement},
                                         {"channel", Kind::kChannel},
                                         {"head", Kind::kHead},
                                         {"head_dim", Kind::kHeadDim},
                                         {"group", Kind::kGroup},
                                         {"expert", Kind::kExpert}}};

/// [1, -1, -1, -1] are output channels, [-1, 1, -1, -1] input channels, others blocks.
Kind kind_of(const std::vector<int64_t>& block) {
  const auto ones = std::count(block.begin(), block.end(), 1);
  const auto wholes = std::count(block.begin(), block.end(), -1);
  if (ones == 1 && ones + wholes == static_cast<int64_t>(block.size()) && block.size() > 1) {
    if (block[0] == 1) return Kind::kOut;
    if (block[1] == 1) return Kind::kIn;
  }
  return Kind::kElement;
}

std::vector<int64_t> read_block(const JsonReader& value) {
  if (value.size() == 0) value.fail("the list of block sizes is empty");
  std::vector<int64_t> block;
  for (const JsonReader size : value.list()) {
    block.push_back(size.json() == "-1" ? -1 : size.integer(1, kMaxRoundTo));
  }
  if (std::count(block.begin(), block.end(), -1) == static_cast<int64_t>(block.size())) {
    value.fail("a block of the whole weight leaves nothing to choose");
  }
  return block;
}

void set_kind(Kind kind, GivenRequest& given) {
  Request& request = given.request;
  given.block.clear();
  request.in_channels = kind == Kind::kIn;
  request.granularity.reset();
  for (const char* key : {"element_granularity", "channel_granularity"}) given.keys.erase(key);
  if (kind == Kind::kElement) given.keys.insert("element_granularity");
  if (kind != Kind::kElement && kind != Kind::kDefault) given.keys.insert("channel_granularity");
  if (kind == Kind::kChannel) request.granularity = Granularity::kChannel;
  if (kind == Kind::kHead) request.granularity = Granularity::kHead;
  if (kind == Kind::kHeadDim) request.granularity = Granularity::kHeadDim;
  if (kind == Kind::kGroup) request.granularity = Granularity::kGroup;
  if (kind == Kind::kExpert) request.granularity = Granularity::kExpert;
}

/// [4, 1] are blocks of 4 outputs and 1 input of a matrix.
std::string block_criterion(const std::vector<int64_t>& block, std::string_view place) {
  if (block.size() != 2 || block[0] < 1 || block[1] < 1) {
    throw UnsupportedError(place,
                           ": blocks are [outputs, inputs] of a weight matrix, both above 0; "
                           "or [1, -1, …] for output and [-1, 1, …] for input channels");
  }
  return parse_criterion("block:" + std::to_string(block[0]) + 'x' + std::to_string(block[1]),
                         place);
}

}  // namespace

void read_granularity(const JsonReader& value, GivenRequest& given) {
  if (!value.is_list()) {
    if (!value.is_text()) value.expected("a string or a list of sizes");
    return set_kind(parse_word(value.text(), value.place(), kWords), given);
  }
  const std::vector<int64_t> block = read_block(value);
  const Kind kind = kind_of(block);
  set_kind(kind, given);
  const bool single =
      std::count(block.begin(), block.end(), 1) == static_cast<int64_t>(block.size());
  if (kind == Kind::kElement && !single) given.block = block_criterion(block, value.place());
}

}  // namespace parsimony
