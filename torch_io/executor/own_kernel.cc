#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "parsimony/engines/onnx_runtime.h"
#include "parsimony/graph/operators/notation.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/onnx_io/graph_file.h"
#include "parsimony/torch_io/executor/operators_impl.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::executor {
namespace {

/// Returns the node as a separate model, with inputs of any shape.
Graph alone(const Call& call) {
  Graph graph;
  Node node = call.node;
  node.body = kNone;
  node.opset = std::max(node.opset, 1);
  const auto add = [&](const std::string& name, DType dtype) {
    Value& value = graph.values.emplace_back();
    value.name = name;
    value.dtype = dtype;
    return ValueId(graph.values.size() - 1);
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!call.has_in(i)) {
      node.inputs[i] = kNone;
      continue;
    }
    node.inputs[i] = add("x" + std::to_string(i), call.type_in(i));
    graph.inputs.push_back(node.inputs[i]);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNone) continue;
    node.outputs[i] = add("y" + std::to_string(i), DType::kUnknown);
    graph.outputs.push_back(node.outputs[i]);
  }
  graph.nodes.push_back(std::move(node));
  return graph;
}

/// Opens each model once.
Network& session_of(const Graph& graph) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Network>> sessions;
  const std::lock_guard lock(mutex);
  static const runtime::OnnxRuntime library = runtime::find_onnx_runtime();
  std::string model = onnx_io::to_onnx(graph);
  std::unique_ptr<Network>& session = sessions[model];
  if (!session) {
    session = library.open_bytes(std::move(model), {.threads = at::get_num_threads()});
  }
  return *session;
}

/// Converts to the file's type, which ONNX Runtime expects.
at::Tensor as_in_file(const Call& call, size_t i) {
  const at::Tensor& tensor = call.in(i);
  return tensor.to(torch_io::scalar_type_of(call.type_in(i)));
}

}  // namespace

Tensors run_own_kernel(const Call& call) {
  const Graph graph = alone(call);
  Tensors operands;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.has_in(i)) continue;
    if (at::GradMode::is_enabled() && call.in(i).requires_grad()) {
      call.unsupported("its kernel is ONNX Runtime's, which computes no gradients");
    }
    operands.push_back(as_in_file(call, i));
  }
  TensorList inputs = torch_io::to_bytes(operands);
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i].name = graph.value(graph.inputs[i]).name;
  Tensors found = torch_io::to_tensors(session_of(graph).run({std::move(inputs)}).front());
  Tensors results(call.outputs());
  size_t next = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (call.node.outputs[i] != kNone) results[i] = std::move(found.at(next++));
  }
  return results;
}

namespace {

bool says_that_it_mixes(const OpSchema& row) {
  const notation::Line* line = compiled(row);
  return line != nullptr && std::ranges::any_of(line->alternatives, [](const auto& each) {
           return !each.mixes.empty();
         });
}

/// Runs without absent elements if the plan allows that they change other results. If no rule is
/// known, as when a plan is verified without it, this is tried.
std::optional<SmallRun> run_mixing(const Call& call) {
  if (!call.mixes) return std::nullopt;
  const OpSchema* row = find_schema(call.node.domain, call.node.op);
  if (row != nullptr && !says_that_it_mixes(*row)) return std::nullopt;
  return run_without_absent(call);
}

Tensors kernel(const Call& call) {
  auto small = run_mixing(call);
  return small ? std::move(small->results) : run_own_kernel(call);
}

Tensors presence(const Operator& /*op*/, const Call& call, const Tensors& outputs) {
  if (auto small = run_mixing(call)) return std::move(small->present);
  if (call.mixes && says_that_it_mixes(schema_of(call.node))) {
    call.unsupported(
        "it mixes channels, and it is unknown which results belong to the removed ones");
  }
  return found_by_trial(call, outputs);
}

}  // namespace

const Operator* own_operator() {
  static constexpr Operator kOwn = {.kernel = kernel, .presence = presence, .own_types = true};
  return runtime::has_kernel_libraries() ? &kOwn : nullptr;
}

// Absent elements of a result, found by running the kernel on modified operands.

namespace {

/// Runs the kernel on modified operands to find dependencies.
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

  /// Returns elements of the results that change with present elements of partly absent operands.
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

  /// Returns elements of the results that change with absent elements of all these operands.
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

// A mixing kernel, run without absent channels.

namespace {

/// The present indices of an axis, as flags.
using Flags = at::Tensor;

at::Tensor numbers_of(const Flags& flags) { return flags.nonzero().squeeze(1); }

/// Returns flags of each axis; empty unless the presence is their product.
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

  /// Returns an arbitrary order, the same in every run and for all axes of a size.
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

  /// Returns the cut of a result's axis: that of operands, if all axes of this size are cut alike.
  const Flags* cut_of(int64_t size, int64_t left) const {
    const Flags* found = nullptr;
    for (const Cut& cut : cuts_) {
      if (cut.flags.size(0) != size) continue;
      if (found != nullptr && !found->equal(cut.flags)) return nullptr;
      found = &cut.flags;
    }
    return found != nullptr && found->sum().item<int64_t>() == left ? found : nullptr;
  }

  /// Puts the small results at the positions of their channels in the whole ones.
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

  /// Summation in a different order changes the rounding.
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
