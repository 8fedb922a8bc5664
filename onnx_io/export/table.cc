// Operators that have to be lowered to ONNX opset 17. Sorted by domain and name; ONNX operators
// that are not listed are written unchanged.
#include <algorithm>
#include <array>
#include <utility>

#include "parsimony/onnx_io/export/lowering_impl.h"

namespace parsimony::onnx_io {
namespace {

struct Entry {
  std::string_view domain;
  std::string_view op;
  Lower lower;
};

constexpr auto kTable = std::to_array<Entry>({
    {"", "And", lower_logical},
    {"", "AveragePool", lower_average_pool},
    {"", "ConstantOfShape", lower_filled},
    {"", "Gelu", lower_gelu},
    {"", "GroupNormalization", lower_group_normalization},
    {"", "MaxPool", lower_max_pool},
    {"", "Mish", lower_mish},
    {"", "Mod", lower_mod},
    {"", "Not", lower_logical},
    {"", "Or", lower_logical},
    {"", "ReduceL1", lower_reduce},
    {"", "ReduceL2", lower_reduce},
    {"", "ReduceLogSumExp", lower_reduce},
    {"", "ReduceMax", lower_reduce},
    {"", "ReduceMean", lower_reduce},
    {"", "ReduceMin", lower_reduce},
    {"", "ReduceProd", lower_reduce},
    {"", "ReduceSum", lower_reduce_sum},
    {"", "Resize", lower_resize},
    {"", "Xor", lower_logical},
    {"torch", "AdaptiveAveragePool", lower_adaptive_average_pool},
    {"torch", "AdaptiveMaxPool", lower_adaptive_max_pool},
    {"torch", "Gru", lower_recurrent},
    {"torch", "Lstm", lower_recurrent},
    {"torch", "Rnn", lower_recurrent},
});

constexpr std::pair<std::string_view, std::string_view> key(const Entry& entry) {
  return {entry.domain, entry.op};
}
static_assert(std::ranges::is_sorted(kTable, {}, key));

}  // namespace

Lower find_lowering(std::string_view domain, std::string_view op) {
  const auto* found = std::ranges::lower_bound(kTable, std::pair(domain, op), {}, key);
  const bool same = found != kTable.end() && found->domain == domain && found->op == op;
  return same ? found->lower : nullptr;
}

}  // namespace parsimony::onnx_io
