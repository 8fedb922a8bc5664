// Every key of a configuration. configs/schema.json and docs/guide/config.md have the same; a test
// compares. To add one: put it into a list, read it in configs/request.cc (config.cc if it is not
// about how much to prune), and describe it in both. Keywords, the values of some keys, are tables
// beside their readers.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/configs/errors.h"

namespace parsimony::keys {

/// Keys that select layers.
inline constexpr std::array<std::string_view, 7> kSelectors = {
    "op_types",         "op_names",         "op_names_re",        "op_partial_names",
    "exclude_op_types", "exclude_op_names", "exclude_op_names_re"};

/// Keys that say how much to prune; the innermost object that has one of them wins.
inline constexpr std::array<std::string_view, 5> kRatios = {
    "sparse_ratio", "sparsity", "sparsity_per_layer", "total_sparsity", "sparse_threshold"};

/// Keys that say how to prune: of a target, of an entry, or of the file as defaults.
inline constexpr std::array<std::string_view, 11> kRequest = {
    "criterion",        "scope",
    "budget",           "round_to",
    "keep_at_least",    "min_sparse_ratio",
    "max_sparse_ratio", "max_sparsity_per_layer",
    "granularity",      "internal_metric_block",
    "apply_method"};

/// Keys of a target, or of an entry.
inline constexpr std::array<std::string_view, 4> kTies = {"global_group_id", "dependency_group_id",
                                                          "equal_width_id", "align"};

inline constexpr std::array<std::string_view, 3> kOnlyEntry = {"exclude", "target_names",
                                                               "target_settings"};
inline constexpr std::array<std::string_view, 6> kOnlyFile = {
    "config_list", "$schema", "schedule", "recover", "calibration", "force"};

template <typename... Lists>
std::vector<std::string> joined(const Lists&... lists) {
  std::vector<std::string> result;
  (result.insert(result.end(), lists.begin(), lists.end()), ...);
  std::sort(result.begin(), result.end());
  return result;
}

inline std::vector<std::string> of_request() { return joined(kRatios, kRequest); }
inline std::vector<std::string> of_target() { return joined(kRatios, kRequest, kTies); }
inline std::vector<std::string> of_entry() {
  return joined(kSelectors, kRatios, kRequest, kTies, kOnlyEntry);
}
inline std::vector<std::string> of_file() { return joined(kRatios, kRequest, kOnlyFile); }

}  // namespace parsimony::keys

namespace parsimony {

template <typename Value, size_t N>
using WordTable = std::array<std::pair<std::string_view, Value>, N>;

/// @throws ConfigError that lists the known keywords
template <typename Value, size_t N>
Value parse_word(std::string_view text, std::string_view place, const WordTable<Value, N>& words) {
  std::vector<std::string_view> known;
  for (const auto& [word, value] : words) {
    if (word == text) return value;
    known.push_back(word);
  }
  throw errors::unknown_word(place, text, known);
}

template <typename Value, size_t N>
std::string_view word_of(Value requested, const WordTable<Value, N>& words) {
  for (const auto& [word, value] : words) {
    if (value == requested) return word;
  }
  return {};
}

}  // namespace parsimony
