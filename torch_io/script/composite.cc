#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <exception>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "parsimony/torch_io/script/composite_impl.h"

namespace parsimony::torch_io::script {
namespace {

// Calls go there first while it is switched on, in this thread only; libtorch has nothing there.
constexpr c10::DispatchKey kRecords = c10::DispatchKey::TESTING_ONLY_GenericMode;

constexpr size_t kMostCalls = 256;

struct Recording {
  const std::function<bool(const std::string&)>& is_known;
  InnerCalls made = {};
  bool outermost = true;
  bool fails = false;
};

std::string plain_name(const c10::OperatorHandle& op) {
  constexpr std::string_view kAten = "aten::";
  const std::string& name = op.operator_name().name;
  return name.starts_with(kAten) ? name.substr(kAten.size()) : name;
}

std::optional<c10::DispatchKey> body_of(const c10::OperatorHandle& op) {
  for (const auto key :
       {c10::DispatchKey::CompositeImplicitAutograd, c10::DispatchKey::CompositeExplicitAutograd}) {
    if (op.hasKernelForDispatchKey(key)) return key;
  }
  return std::nullopt;
}

class Recorder final : public c10::OperatorKernel {
 public:
  explicit Recorder(Recording& recording) : recording_(recording) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/,
                  torch::jit::Stack* stack) {
    const std::string name = plain_name(op);
    const bool outermost = std::exchange(recording_.outermost, false);
    const auto body = body_of(op);
    if (body && (outermost || !recording_.is_known(name))) {
      return op.callBoxedForDispatchKey(*body, *stack);
    }
    // Written to is what nothing else shares.
    const bool writes = op.schema().is_mutable();
    const bool own = writes && name.ends_with('_') && first(op, *stack).isTensor() &&
                     first(op, *stack).toTensor().storage().use_count() == 1;
    recording_.fails |= outermost || !recording_.is_known(name) || (writes && !own);
    std::vector<c10::IValue> arguments(stack->end() - std::ssize(op.schema().arguments()),
                                       stack->end());
    {
      const c10::impl::ExcludeDispatchKeyGuard itself(kRecords);
      op.callBoxed(*stack);
    }
    std::vector<c10::IValue> results(stack->end() - std::ssize(op.schema().returns()),
                                     stack->end());
    recording_.fails |= recording_.made.calls.size() >= kMostCalls;
    if (recording_.fails) return;
    recording_.made.calls.push_back({name, std::move(arguments), std::move(results)});
  }

 private:
  static const c10::IValue& first(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    return stack[stack.size() - op.schema().arguments().size()];
  }

  Recording& recording_;
};

}  // namespace

std::optional<InnerCalls> inner_calls(const c10::OperatorName& op, torch::jit::Stack arguments,
                                      const std::function<bool(const std::string&)>& is_known) {
  static std::mutex one_at_a_time;  // one kernel for the key and the process
  const std::lock_guard lock(one_at_a_time);
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto handle = dispatcher.findSchema(op);
  if (!handle || !body_of(*handle)) return std::nullopt;
  Recording recording{is_known};
  try {
    const auto kernel = dispatcher.registerFallback(
        kRecords, c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<Recorder>(recording)),
        "parsimony");
    const at::NoGradGuard no_grad;
    const c10::impl::IncludeDispatchKeyGuard records(kRecords);
    handle->callBoxed(arguments);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  if (recording.fails) return std::nullopt;
  recording.made.results = std::move(arguments);
  return std::move(recording.made);
}

}  // namespace parsimony::torch_io::script
