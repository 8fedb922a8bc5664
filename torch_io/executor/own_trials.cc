// Which elements of a result are absent, found by running the kernel on other numbers.
#include <array>

#include "parsimony/torch_io/executor/own_kernel_impl.h"

namespace parsimony::executor {
namespace {

/// Runs the kernel on other numbers to see what depends on what.
class Trials {
 public:
  explicit Trials(const Call& call) : call_(call) {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const bool numbers = call.has_in(i) && call.in(i).is_floating_point();
      if (numbers && call.presence(i).defined()) cut_.push_back(i);
    }
    operands_ = call.inputs;
    for (const size_t i : cut_) operands_[i] = call.filled(i, 0);
    base_ = results_of(operands_);
  }

  /// Elements of the results that change with present elements of operands that have absent ones.
  Tensors with_present() const {
    Tensors changed(base_.size());
    for (const double factor : {1.0, -1.0, 3.0}) {
      Tensors operands = operands_;
      Tensors scattered = operands_;
      for (const size_t i : cut_) {
        const at::Tensor absent = call_.presence(i).logical_not();
        const at::Tensor& x = operands_[i];
        operands[i] = at::full_like(x, factor).masked_fill(absent, 0);
        // Different everywhere, the same in every run.
        const at::Tensor places = at::arange(x.numel(), x.options()).reshape(x.sizes());
        scattered[i] = (factor * at::sin(places * places + factor)).masked_fill(absent, 0);
      }
      add_changes(operands, changed);
      add_changes(scattered, changed);
    }
    return changed;
  }

  /// The same with absent elements of all these operands.
  Tensors with_absent() const {
    Tensors changed(base_.size());
    for (const double number : kNumbers) {
      Tensors operands = operands_;
      for (const size_t i : cut_) operands[i] = call_.filled(i, number);
      add_changes(operands, changed);
    }
    return changed;
  }

 private:
  static constexpr std::array<double, 3> kNumbers = {1, -1, 3};

  Tensors results_of(Tensors operands) const {
    Call call = call_.on(std::move(operands));
    call.types = call_.types;
    return run_own_kernel(call);
  }

  void add_changes(const Tensors& operands, Tensors& changed) const {
    const Tensors results = results_of(operands);
    for (size_t i = 0; i < results.size(); ++i) {
      if (!base_[i].defined() || base_[i].sizes() != results[i].sizes()) continue;
      const at::Tensor& a = base_[i];
      const at::Tensor& b = results[i];
      const at::Tensor differs = a.ne(b) & (a.eq(a) | b.eq(b));  // NaN is like NaN
      changed[i] = changed[i].defined() ? changed[i] | differs : differs;
    }
  }

  const Call& call_;
  std::vector<size_t> cut_;  ///< operands with absent elements
  Tensors operands_;         ///< with zeros there
  Tensors base_;
};

}  // namespace

Tensors found_by_trial(const Call& call, const Tensors& outputs) {
  const Trials trials(call);
  const Tensors present = trials.with_present();
  const Tensors absent = trials.with_absent();
  Tensors results(outputs.size());
  for (size_t i = 0; i < outputs.size() && i < present.size(); ++i) {
    if (!outputs[i].defined() || !present[i].defined()) continue;
    results[i] = (absent[i] & present[i].logical_not()).logical_not();
  }
  return results;
}

}  // namespace parsimony::executor
