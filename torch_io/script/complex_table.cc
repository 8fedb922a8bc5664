// Every aten operator that is lowered for complex tensors.
#include <string_view>
#include <unordered_map>
#include <vector>

#include "parsimony/torch_io/script/lowerings_impl.h"
#include "parsimony/torch_io/script/table_impl.h"

namespace parsimony::torch_io::script {
namespace {

/// What only moves elements is lowered as for real tensors.
std::unordered_map<std::string_view, Rule> complex_rules() {
  const std::vector<Family> movers = {
      {lower_same, {"alias", "detach", "dropout", "lift_fresh", "resolve_conj"}},
      {lower_copy, {"clone"}},
      {lower_copy_into, {"copy"}},
      {lower_maybe_copy, {"contiguous"}},
      {lower_full_like, {"zeros_like"}},
      {lower_unary, {{"neg", "Neg"}}},
      {lower_view, {"reshape", "view"}},
      {lower_flatten, {"flatten"}},
      {lower_permute, {"permute"}},
      {lower_transpose, {"swapaxes", "swapdims", "transpose"}},
      {lower_movedim, {"moveaxis", "movedim"}},
      {lower_squeeze, {"squeeze"}},
      {lower_unsqueeze, {"unsqueeze"}},
      {lower_expand, {"broadcast_to", "expand"}},
      {lower_cat, {"cat", "concat"}},
      {lower_stack, {"stack"}},
      {lower_chunk, {"chunk"}},
      {lower_split, {"split", "split_with_sizes"}},
      {lower_unbind, {"unbind"}},
      {lower_slice, {"slice"}},
      {lower_narrow, {"narrow"}},
      {lower_flip, {"flip"}},
      {lower_roll, {"roll"}},
      {lower_select, {"select"}},
  };
  const std::vector<Family> others = {
      {lower_complex_mul, {"mul", "multiply"}},
      {lower_complex_div, {"div", "true_divide"}},
      {lower_complex_add, {{"add", "Add"}, {"sub", "Sub"}}},
      {lower_complex_matmul, {"bmm", "matmul", "mm"}},
      {lower_complex_einsum, {"einsum"}},
      {lower_conj, {"conj"}},
      {lower_complex_abs, {"abs"}},
      {lower_part_of_complex, {"imag", "real"}},
      {lower_view_as_real, {"view_as_real"}},
      {lower_fft,
       {"fft_fft", "fft_fft2", "fft_fftn", "fft_ifft", "fft_ifft2", "fft_ifftn", "fft_irfft",
        "fft_irfft2", "fft_irfftn"}},
      {lower_inner_fft, {"_fft_c2c", "_fft_c2r"}},
  };
  auto all = by_name(others);
  for (auto& [name, rule] : by_name(movers)) {
    rule.moves = true;
    all.emplace(name, rule);
  }
  return all;
}

}  // namespace

const Rule* find_complex_rule(std::string_view op) {
  static const std::unordered_map<std::string_view, Rule> known = complex_rules();
  const auto found = known.find(op);
  return found == known.end() ? nullptr : &found->second;
}

}  // namespace parsimony::torch_io::script
