#include "parsimony/speedup/recovery.h"

#include <array>

#include "parsimony/base/errors.h"
#include "parsimony/base/words.h"

namespace parsimony {
namespace {

constexpr std::string_view kNoCloser =
    "no epoch came closer to the dense network; a smaller --recover-lr, or more epochs or samples, "
    "may";

// In the order of the enumeration.
constexpr auto kKinds = std::to_array<RecoveryKind>({
    {.method = RecoveryMethod::kBias, .name = "bias", .closed_form = true, .fits_layers = true},
    {.method = RecoveryMethod::kBatchNorm,
     .name = "bn",
     .closed_form = true,
     .reason_for_nothing = "the network has no BatchNormalization of its own"},
    {.method = RecoveryMethod::kLeastSquares,
     .name = "least-squares",
     .closed_form = true,
     .fits_layers = true},
    {.method = RecoveryMethod::kOutputs, .name = "outputs", .reason_for_nothing = kNoCloser},
    {.method = RecoveryMethod::kBlocks, .name = "outputs:blocks", .reason_for_nothing = kNoCloser},
    {.method = RecoveryMethod::kFinetune, .name = "finetune", .matches_outputs = false},
});

}  // namespace

const RecoveryKind& recovery_kind(RecoveryMethod method) {
  return kKinds[static_cast<size_t>(method)];
}

std::string_view name_of(RecoveryMethod method) { return recovery_kind(method).name; }

std::vector<std::string> recovery_names() {
  std::vector<std::string> names;
  for (const RecoveryKind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

RecoveryMethod parse_recovery(std::string_view text, std::string_view place) {
  for (const RecoveryKind& kind : kKinds) {
    if (kind.name == text) return kind.method;
  }
  const std::vector<std::string> names = recovery_names();
  throw ConfigError(place, ": unknown recovery ", in_quotes(text), "; expected ",
                    listed(names, names.size()), ".", did_you_mean(text, names));
}

}  // namespace parsimony
