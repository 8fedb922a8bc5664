#include "parsimony/training/loop/device.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "parsimony/engines/interleaved.h"
#include "parsimony/training/errors.h"
#include "parsimony/training/loop/class_rows.h"
#include "parsimony/training/loop/random_state.h"

namespace parsimony::training {
namespace {

double seconds_of_step(Net& net, const at::Tensor& inputs, const at::Tensor& labels,
                       int64_t classes) {
  const double begin = machine::steady_seconds();
  cross_entropy(class_rows(net.forward(inputs), labels, classes), labels).backward();
  for (auto& [name, parameter] : net.parameters()) parameter.mutable_grad().reset();
  return machine::steady_seconds() - begin;
}

}  // namespace

c10::Device parse_device(const std::string& text) {
  if (text == "auto") return {at::hasCUDA() ? c10::kCUDA : c10::kCPU};
  try {
    const c10::Device device(text);
    if (device.is_cuda() && !at::hasCUDA()) {
      throw errors::no_such_device(text, "libtorch finds no CUDA here");
    }
    if (!device.is_cuda() && !device.is_cpu()) throw errors::bad_device(text);
    return device;
  } catch (const c10::Error&) {
    throw errors::bad_device(text);
  }
}

void place(Net& net, c10::Device device, bool channels_last) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : all_tensors(net)) {
    at::Tensor placed = tensor.detach().to(device);
    if (placed.dim() == 4) {
      placed = placed.contiguous(channels_last ? at::MemoryFormat::ChannelsLast
                                               : at::MemoryFormat::Contiguous);
    }
    at::Tensor(tensor).set_data(placed);
  }
}

bool channels_last_is_quicker(const Net& net, const at::Tensor& inputs, const at::Tensor& labels,
                              int64_t classes) {
  if (inputs.dim() != 4) return false;
  const RandomState kept;
  const at::AutoGradMode gradients(true);
  std::array<std::unique_ptr<Net>, 2> nets;
  std::array<double, 2> least = {std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::infinity()};
  constexpr int kRounds = 4;  // the first warms up
  for (int round = 0; round < kRounds; ++round) {
    for (const bool last : {false, true}) {
      std::unique_ptr<Net>& own = nets[last ? 1 : 0];
      if (own == nullptr) {
        own = net.clone_architecture();
        own->train(true);
        place(*own, inputs.device(), last);
      }
      const at::Tensor x =
          inputs.contiguous(last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
      const double seconds = seconds_of_step(*own, x, labels, classes);
      if (round > 0) least[last ? 1 : 0] = std::min(least[last ? 1 : 0], seconds);
    }
  }
  return least[1] < least[0];
}

}  // namespace parsimony::training
