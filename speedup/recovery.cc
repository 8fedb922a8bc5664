#include "parsimony/speedup/recovery.h"

#include <array>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/words.h"

namespace parsimony {
namespace {

constexpr std::array<std::pair<RecoveryMethod, std::string_view>, 6> kNames = {{
    {RecoveryMethod::kBias, "bias"},
    {RecoveryMethod::kBatchNorm, "bn"},
    {RecoveryMethod::kLeastSquares, "least-squares"},
    {RecoveryMethod::kOutputs, "outputs"},
    {RecoveryMethod::kBlocks, "outputs:blocks"},
    {RecoveryMethod::kFinetune, "finetune"},
}};

}  // namespace

std::string_view name_of(RecoveryMethod method) {
  return kNames[static_cast<size_t>(method)].second;
}

std::vector<std::string> recovery_names() {
  std::vector<std::string> names;
  for (const auto& [method, name] : kNames) names.emplace_back(name);
  return names;
}

RecoveryMethod parse_recovery(std::string_view text, std::string_view place) {
  for (const auto& [method, name] : kNames) {
    if (name == text) return method;
  }
  const std::vector<std::string> names = recovery_names();
  throw ConfigError(place, ": unknown recovery ", in_quotes(text), "; wanted ",
                    listed(names, names.size()), ".", did_you_mean(text, names));
}

}  // namespace parsimony
