// What ONNX of opset 17 spells in another way than the readers do. Sorted by domain and name; an
// operator of ONNX that is not listed is written as it is.
#include <algorithm>
#include <array>
#include <utility>

#include "parsimony/onnx_io/export/spelling_impl.h"

namespace parsimony::onnx_io {
namespace {

struct Entry {
  std::string_view domain;
  std::string_view op;
  Spell spell;
};

constexpr auto kTable = std::to_array<Entry>({
    {"", "And", spell_logical},
    {"", "AveragePool", spell_average_pool},
    {"", "ConstantOfShape", spell_filled},
    {"", "Gelu", spell_gelu},
    {"", "GroupNormalization", spell_group_normalization},
    {"", "MaxPool", spell_max_pool},
    {"", "Mish", spell_mish},
    {"", "Mod", spell_mod},
    {"", "Not", spell_logical},
    {"", "Or", spell_logical},
    {"", "ReduceL1", spell_reduce},
    {"", "ReduceL2", spell_reduce},
    {"", "ReduceLogSumExp", spell_reduce},
    {"", "ReduceMax", spell_reduce},
    {"", "ReduceMean", spell_reduce},
    {"", "ReduceMin", spell_reduce},
    {"", "ReduceProd", spell_reduce},
    {"", "ReduceSum", spell_reduce_sum},
    {"", "Resize", spell_resize},
    {"", "Xor", spell_logical},
    {"torch", "AdaptiveAveragePool", spell_adaptive_average_pool},
    {"torch", "AdaptiveMaxPool", spell_adaptive_max_pool},
    {"torch", "Gru", spell_recurrent},
    {"torch", "Lstm", spell_recurrent},
    {"torch", "Rnn", spell_recurrent},
});

constexpr std::pair<std::string_view, std::string_view> key(const Entry& entry) {
  return {entry.domain, entry.op};
}
static_assert(std::ranges::is_sorted(kTable, {}, key));

}  // namespace

Spell find_spelling(std::string_view domain, std::string_view op) {
  const auto* found = std::ranges::lower_bound(kTable, std::pair(domain, op), {}, key);
  const bool same = found != kTable.end() && found->domain == domain && found->op == op;
  return same ? found->spell : nullptr;
}

}  // namespace parsimony::onnx_io
