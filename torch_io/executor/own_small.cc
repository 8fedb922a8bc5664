// A kernel that mixes channels, run on those that remain.
#include <algorithm>
#include <utility>

#include "parsimony/torch_io/executor/own_kernel_impl.h"

namespace parsimony::executor {
namespace {

/// The present indices of an axis, as flags.
using Flags = at::Tensor;

at::Tensor numbers_of(const Flags& flags) { return flags.nonzero().squeeze(1); }

/// Of each axis; empty unless the presence is all combinations of them.
std::optional<std::vector<Flags>> axes_of(const at::Tensor& presence) {
  std::vector<Flags> axes;
  at::Tensor product = at::ones({}, at::kBool);
  for (int64_t d = 0; d < presence.dim(); ++d) {
    axes.push_back(presence.movedim(d, 0).flatten(1).any(1));
    product = product & along(axes.back(), d, presence.dim());
  }
  if (!product.expand(presence.sizes()).equal(presence)) return std::nullopt;
  return axes;
}

class WithoutAbsent {
 public:
  explicit WithoutAbsent(const Call& call) : call_(call) {}

  std::optional<SmallRun> run() {
    Tensors whole = call_.inputs;
    Tensors small = call_.inputs;
    for (size_t i = 0; i < small.size(); ++i) {
      if (!call_.presence(i).defined()) continue;
      const auto axes = axes_of(call_.presence(i));
      if (!axes) return std::nullopt;
      whole[i] = call_.filled(i, 1);
      for (size_t d = 0; d < axes->size(); ++d) {
        if ((*axes)[d].all().item<bool>()) continue;
        small[i] = small[i].index_select(index(d), numbers_of((*axes)[d]));
        cuts_.push_back({i, index(d), (*axes)[d]});
      }
    }
    if (cuts_.empty()) return std::nullopt;
    return spread(on(small), on(whole), on(permuted(whole)));
  }

 private:
  struct Cut {
    size_t operand;
    int64_t axis;
    Flags flags;
  };

  Tensors on(Tensors operands) const {
    Call call = call_.on(std::move(operands));
    call.types = call_.types;
    return run_own_kernel(call);
  }

  /// Any order, the same in every run and for all axes of a size.
  static at::Tensor order_of(int64_t size) {
    const at::Tensor places = at::arange(size, at::kDouble);
    return at::sin(places * places + 1).argsort();
  }

  Tensors permuted(Tensors operands) const {
    for (const auto& [operand, axis, flags] : cuts_) {
      operands[operand] = operands[operand].index_select(axis, order_of(flags.size(0)));
    }
    return operands;
  }

  /// The cut of a result's axis: that of operands, if all of this size are cut alike.
  const Flags* cut_of(int64_t size, int64_t left) const {
    const Flags* found = nullptr;
    for (const Cut& cut : cuts_) {
      if (cut.flags.size(0) != size) continue;
      if (found != nullptr && !found->equal(cut.flags)) return nullptr;
      found = &cut.flags;
    }
    return found != nullptr && found->sum().item<int64_t>() == left ? found : nullptr;
  }

  /// Puts the small results where their channels are among the whole ones.
  std::optional<SmallRun> spread(const Tensors& small, const Tensors& whole,
                                 const Tensors& permuted) const {
    SmallRun run;
    for (size_t i = 0; i < small.size(); ++i) {
      at::Tensor result = small[i];
      at::Tensor present;
      at::Tensor followed = whole[i];
      for (int64_t d = 0; result.defined() && d < result.dim(); ++d) {
        const int64_t size = whole[i].dim() == result.dim() ? whole[i].size(d) : -1;
        if (size == result.size(d)) continue;
        const Flags* cut = cut_of(size, result.size(d));
        if (cut == nullptr) return std::nullopt;
        auto dims = result.sizes().vec();
        dims[d] = size;
        result = at::zeros(dims, result.options()).index_copy(d, numbers_of(*cut), result);
        followed = followed.index_select(d, order_of(size));
        const at::Tensor flags = along(*cut, d, result.dim());
        present = present.defined() ? present & flags : flags;
      }
      if (!follows(followed, permuted[i])) return std::nullopt;
      if (present.defined()) present = present.expand(result.sizes());
      run.results.push_back(std::move(result));
      run.present.push_back(std::move(present));
    }
    return run;
  }

  /// Sums in another order differ by their rounding.
  static bool follows(const at::Tensor& expected, const at::Tensor& found) {
    constexpr double kRounding = 1e-3;
    if (!expected.defined() || !expected.is_floating_point()) return true;
    const double size = expected.abs().max().item<double>();
    return at::allclose(expected, found, kRounding, kRounding * size);
  }

  const Call& call_;
  std::vector<Cut> cuts_;
};

}  // namespace

std::optional<SmallRun> run_without_absent(const Call& call) { return WithoutAbsent(call).run(); }

}  // namespace parsimony::executor
