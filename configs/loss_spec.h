// Which losses training and criteria by gradient take between outputs and targets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony {

enum class LossKind : uint8_t { kCrossEntropy, kBce, kMse, kL1, kHuber, kKl, kCtc };

/// The loss of one output, or of all that the data have targets for.
struct LossTerm {
  std::string output = {};  ///< empty: all
  LossKind kind = LossKind::kCrossEntropy;
  double weight = 1;
  std::optional<int64_t> ignore = {};  ///< cross_entropy: targets that do not count
  double delta = 1;                    ///< huber: where it becomes linear
  int64_t blank = 0;                   ///< ctc: the class between two others
};

/// Reads "huber" or "boxes=huber:delta=0.1:weight=2,scores=cross_entropy:ignore=255".
/// @throws ConfigError naming the part
std::vector<LossTerm> parse_losses(std::string_view text);

std::string_view name_of(LossKind kind);

}  // namespace parsimony
