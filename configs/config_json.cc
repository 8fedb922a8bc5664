// ConfigList to JSON.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/json_reader.h"
#include "parsimony/configs/config.h"
#include "parsimony/configs/fields.h"
#include "parsimony/configs/request_impl.h"

namespace parsimony {
namespace {

/// The members of an object, in the order in which they are added.
class Members {
 public:
  void add(std::string_view key, const std::string& json) {
    text_.append(text_.empty() ? "" : ",").append(json_text(key)).append(":").append(json);
  }
  void add_text(std::string_view key, std::string_view text) {
    if (!text.empty()) add(key, json_text(text));
  }
  void add_texts(std::string_view key, const std::vector<std::string>& texts) {
    if (!texts.empty()) add(key, list_of(texts, [](const auto& text) { return json_text(text); }));
  }

  template <typename Values, typename Json>
  static std::string list_of(const Values& values, const Json& json) {
    std::string list;
    for (const auto& value : values) list.append(list.empty() ? "" : ",").append(json(value));
    return '[' + list + ']';
  }
  std::string object() const { return '{' + text_ + '}'; }

 private:
  std::string text_;
};

/// Returns the percentage that remains when a ratio is removed.
std::string remaining(double ratio) {
  return percentage(100 * (1 - static_cast<long double>(ratio)),
                    [&](std::string_view text) { return removed_beside(text) == ratio; });
}

void add_amount(const Request& request, Members& members) {
  if (request.amount || !request.also.empty()) {
    Members limits;
    const auto add = [&](Budget budget, std::optional<double> amount, double ratio) {
      limits.add(name_of(budget), amount ? json_text(*amount) : json_text(remaining(ratio)));
    };
    add(request.budget, request.amount, request.ratio);
    for (const Limit& limit : request.also) add(limit.budget, limit.amount, limit.ratio);
    members.add("budget", limits.object());
  } else if (request.threshold) {
    members.add("sparse_threshold", json_text(*request.threshold));
  } else {
    members.add("sparse_ratio", json_text(request.ratio));
    if (request.budget != Budget::kChannels) members.add_text("budget", name_of(request.budget));
  }
}

/// Returns names, or the only one if there are not several, as "obs,fisher".
template <typename Name, typename Text>
std::string joined(std::vector<Name> names, const Name& only, const Text& text_of) {
  if (names.empty()) names = {only};
  std::string text(text_of(names.front()));
  for (size_t i = 1; i < names.size(); ++i) (text += ',') += text_of(names[i]);
  return text;
}

void add_request(const Request& request, Members& members) {
  const Request usual;
  const auto add = [&](const char* key, auto value, auto by_default) {
    if (value != by_default) members.add(key, std::to_string(value));
  };
  members.add_text("criterion", joined(request.criteria, request.criterion, std::identity()));
  if (request.scope != Scope::kLocal || !request.scopes.empty()) {
    const auto name = [](Scope scope) { return name_of(scope); };
    members.add_text("scope", joined(request.scopes, request.scope, name));
  }
  if (request.in_channels) members.add_text("granularity", "in_channel");
  if (request.granularity) members.add_text("granularity", name_of(*request.granularity));
  if (request.min_ratio != usual.min_ratio) {
    members.add("min_sparse_ratio", json_text(request.min_ratio));
  }
  if (request.max_ratio != usual.max_ratio) {
    members.add("max_sparse_ratio", json_text(request.max_ratio));
  }
  add("keep_at_least", request.keep_at_least, usual.keep_at_least);
  if (request.target) members.add_text("round_to", name_of(*request.target));
  if (!request.target) add("round_to", request.round_to, usual.round_to);
  add("internal_metric_block", request.metric_blocks, usual.metric_blocks);
  if (!request.global_group.empty()) members.add("global_group_id", request.global_group);
  if (!request.dependency_group.empty()) {
    members.add("dependency_group_id", request.dependency_group);
  }
  if (!request.equal_width.empty()) members.add("equal_width_id", request.equal_width);
}

std::string to_json(const ConfigEntry& entry) {
  Members members;
  members.add_texts("op_types", entry.op_types);
  members.add_texts("op_names", entry.op_names);
  members.add_texts("op_names_re", entry.op_names_re);
  members.add_texts("op_partial_names", entry.op_partial_names);
  members.add_texts("exclude_op_types", entry.exclude_op_types);
  members.add_texts("exclude_op_names", entry.exclude_op_names);
  members.add_texts("exclude_op_names_re", entry.exclude_op_names_re);
  if (entry.exclude) {
    members.add("exclude", "true");
    return members.object();
  }
  if (entry.aligned_with.empty()) {
    add_amount(entry.request, members);
  } else {
    Members align;
    align.add_text("module_name", entry.aligned_with);
    members.add("align", align.object());
  }
  add_request(entry.request, members);
  return members.object();
}

}  // namespace

std::string to_json(const Request& request) {
  Members members;
  add_amount(request, members);
  add_request(request, members);
  return members.object();
}

std::string to_json(const ConfigList& config) {
  Members members;
  if (!config.entries.empty()) {
    members.add("config_list",
                Members::list_of(config.entries, [](const auto& entry) { return to_json(entry); }));
  }
  if (config.granularity) members.add_text("granularity", name_of(*config.granularity));
  if (config.force) members.add("force", "true");
  if (config.schedule) {
    members.add("schedule", '{' + json_members(schedule_fields(), *config.schedule) + '}');
  }
  if (config.calibration) {
    Members data;
    data.add_text("data", config.calibration->data);
    data.add("samples", std::to_string(config.calibration->samples));
    data.add_text("image", config.calibration->image);
    members.add("calibration", data.object());
  }
  members.add_texts("recover", config.recover);
  return members.object();
}

}  // namespace parsimony
