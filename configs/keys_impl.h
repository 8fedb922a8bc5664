// Every key of a configuration. configs/schema.json lists the same; a test compares.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony::keys {

/// Keys that select layers.
inline constexpr std::array<std::string_view, 6> kSelectors = {
    "op_types",         "op_names",         "op_names_re",
    "exclude_op_types", "exclude_op_names", "exclude_op_names_re"};

/// Keys that say how much goes, and how: of an entry, or of the whole file as a default.
inline constexpr std::array<std::string_view, 9> kRequest = {
    "sparse_ratio", "sparsity", "sparsity_per_layer", "criterion",       "scope",
    "budget",       "round_to", "min_sparse_ratio",   "max_sparse_ratio"};

inline constexpr std::array<std::string_view, 1> kOnlyEntry = {"exclude"};
inline constexpr std::array<std::string_view, 3> kOnlyFile = {"config_list", "granularity",
                                                              "$schema"};

/// Keys of NNI, and ours, that later versions will read. To add one of them, move it to a list
/// above, read it in configs/config.cc and describe it in configs/schema.json.
inline constexpr std::array<std::string_view, 15> kLater = {"align",
                                                            "apply_method",
                                                            "calibration",
                                                            "dependency_group_id",
                                                            "global_group_id",
                                                            "internal_metric_block",
                                                            "keep_at_least",
                                                            "max_sparsity_per_layer",
                                                            "op_partial_names",
                                                            "recover",
                                                            "schedule",
                                                            "sparse_threshold",
                                                            "target_names",
                                                            "target_settings",
                                                            "total_sparsity"};

template <size_t N>
bool contains(const std::array<std::string_view, N>& list, std::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

template <typename... Lists>
std::vector<std::string> joined(const Lists&... lists) {
  std::vector<std::string> result;
  (result.insert(result.end(), lists.begin(), lists.end()), ...);
  std::sort(result.begin(), result.end());
  return result;
}

inline std::vector<std::string> of_entry() { return joined(kSelectors, kRequest, kOnlyEntry); }
inline std::vector<std::string> of_file() { return joined(kRequest, kOnlyFile); }

}  // namespace parsimony::keys
