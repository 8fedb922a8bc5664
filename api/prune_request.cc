#include "parsimony/api/prune_request.h"

#include <utility>

#include "parsimony/api/prune_settings.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/json_reader.h"
#include "parsimony/engines/machine/processor.h"

namespace parsimony {
namespace {

Target this_target() {
#if defined(__aarch64__)
  return Target::kArmNeon;
#endif
  const machine::Vectors vectors = vectors_of(machine::this_processor());
  if (vectors == machine::Vectors::kAvx512) return Target::kX86Avx512;
  return vectors == machine::Vectors::kAvx2 ? Target::kX86Avx2 : Target::kGeneric;
}

/// Returns the default settings of finetune, with the epochs of `recover_epochs`.
TrainSettings usual_finetune(const RecoverySettings& recovery) {
  TrainSettings usual = gentle_training();
  if (recovery.outputs.epochs != MatchSettings().epochs) usual.epochs = recovery.outputs.epochs;
  return usual;
}

std::vector<std::string> known_keys() {
  std::vector<std::string> keys = {"config", "finetune"};
  const auto add = [&](const auto& table, const auto&) {
    for (const auto& field : table) keys.emplace_back(field.key);
  };
  add(shorthand_settings(), Shorthand());
  const PruneRequest request;
  visit_settings(request, add);
  return keys;
}

ConfigList config_in(const JsonReader& root) {
  const auto config = root.find("config");
  Shorthand shorthand;
  bool has_shorthand = false;
  for (const Field<Shorthand>& field : shorthand_settings()) {
    const auto value = root.find(field.key);
    if (!value) continue;
    if (config) value->fail("cannot be combined with \"config\"; set it there");
    read_field(*value, field, shorthand);
    has_shorthand = true;
  }
  if (config && config->is_text()) return read_config(config->text());
  if (config) return parse_config(config->json(), config->place(), /*needs_entries=*/false);
  return has_shorthand ? config_here(std::move(shorthand)) : ConfigList();
}

void check_flags(const JsonReader& root) {
  const auto is_set = [&](std::string_view key) {
    const auto value = root.find(key);
    return value && value->flag();
  };
  for (const Field<PruneRequest>& field : cut_settings()) {
    const auto* flag = std::get_if<FlagMember<PruneRequest>>(&field.member);
    if (flag == nullptr || !is_set(field.key) || !is_set(flag->excludes)) continue;
    root.fail(in_quotes(field.key) + " and " + in_quotes(flag->excludes) + " cannot be combined");
  }
}

}  // namespace

void check_calibration(const CalibrationData& calibration) {
  if (calibration.mean.size() != calibration.deviation.size()) {
    throw ConfigError("--mean has ", calibration.mean.size(), " values and --std ",
                      calibration.deviation.size(), "; expected the same number, one per channel");
  }
  if (calibration.data.empty() && !calibration.mean.empty()) {
    throw ConfigError("--mean requires --calibration DATA");
  }
}

CalibrationData calibration_of(const PruneRequest& request) {
  CalibrationData data = request.calibration;
  if (const auto& usual = request.config.calibration; usual && data.data.empty()) {
    data.data = usual->data;
    if (!data.samples) data.samples = usual->samples;
    if (data.image.empty()) data.image = usual->image;
  }
  check_calibration(data);
  return data;
}

RecoverySettings recovery_of(const PruneRequest& request) {
  RecoverySettings recovery = request.recovery;
  if (!recovery.steps.empty()) return recovery;
  for (const std::string& step : request.config.recover) {
    recovery.steps.push_back(parse_recovery(step, "--recover"));
  }
  return recovery;
}

ConfigList config_here(Shorthand shorthand) {
  if (!shorthand.round_to_target && !shorthand.target.empty()) {
    throw ConfigError("--target requires --round-to auto");
  }
  if (shorthand.round_to_target && shorthand.target.empty()) {
    shorthand.target = name_of(this_target());
  }
  return from_shorthand(shorthand);
}

std::string to_json(const PruneRequest& request) {
  const bool has_tensors = !request.masks.empty() || !request.scores.empty() ||
                           !request.sample.empty() || !request.keep_tokens.empty();
  if (has_tensors || request.calibration.ranks) {
    throw ConfigError(
        "a request with masks, scores, a sample, kept words, or of one of several processes cannot "
        "be written as text");
  }
  std::string members;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) members.append(members.empty() ? "" : ",").append(text);
  };
  if (request.config != ConfigList()) add("\"config\":" + to_json(request.config));
  visit_settings(request, [&](const auto& table, const auto& part) {
    const std::decay_t<decltype(part)> usual;
    add(json_members(table, part, &usual));
  });
  if (request.recovery.finetune != usual_finetune(request.recovery)) {
    add("\"finetune\":{" + json_members(train_fields(), request.recovery.finetune) + '}');
  }
  return '{' + members + '}';
}

PruneRequest parse_request(std::string_view json, std::string_view file_name) {
  const JsonDocument document(json, file_name);
  const JsonReader root = document.root();
  root.only(known_keys());
  check_flags(root);
  PruneRequest request(config_in(root));
  visit_settings(request, [&](const auto& table, auto& part) { read_fields(root, table, part); });
  if (const auto finetune = root.find("finetune")) {
    TrainSettings& train = request.recovery.finetune;
    finetune->only(keys_of(train_fields()));
    read_fields(*finetune, train_fields(), train);
    check_settings(train, finetune->place());
  }
  static_cast<void>(calibration_of(request));  // may throw
  return request;
}

}  // namespace parsimony
