#include <torch/csrc/jit/api/module.h>

#include <sstream>

#include "parsimony/base/files.h"
#include "parsimony/torch_io/guards.h"
#include "parsimony/torch_io/mirror.h"
#include "parsimony/torch_io/prune.h"
#include "parsimony/torch_io/script/read.h"
#include "parsimony/training/loop/device.h"
#include "parsimony/training/net/trainable_model.h"

namespace parsimony::training {
namespace {

/// Moves tensors to the CPU during its lifetime.
class OnCpu {
 public:
  explicit OnCpu(TrainableModel& net) {
    for (const auto& [name, tensor] : all_tensors(net)) own_.emplace_back(tensor, tensor.detach());
    place(net, c10::kCPU, false);
  }
  ~OnCpu() {
    for (auto& [tensor, own] : own_) tensor.set_data(own);
  }
  OnCpu(const OnCpu&) = delete;
  OnCpu& operator=(const OnCpu&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> own_;
};

class LiveNet final : public TrainableModel {
 public:
  explicit LiveNet(std::function<Live()> make) : make_(std::move(make)), live_(make_()) {}

  at::Tensor forward(const at::Tensor& x) override { return live_.forward(x); }

  std::vector<NamedParameter> parameters() override {
    return live_.module->named_parameters().pairs();
  }
  std::vector<NamedParameter> buffers() override { return live_.module->named_buffers().pairs(); }
  void train(bool on) override { live_.module->train(on); }

  std::vector<ParameterGroup> groups(const at::Tensor& example, Granularity granularity) override {
    const OnCpu on_cpu(*this);
    const std::vector<InputSpec> specs = {spec_of(example)};
    torch_io::ScriptGraph script =
        torch_io::read_script(torch_io::traced(*live_.module, all_forward(), {example.cpu()}),
                              specs, torch_io::Computed::kStay);
    return parameter_groups(script.graph, specs, granularity, parameters());
  }

  PruneResult prune(const at::Tensor& example, const PruneRequest& request,
                    const PruneServices& services) override {
    place(*this, c10::kCPU, false);
    return parsimony::prune(*live_.module, all_forward(), {example.cpu()}, request, services);
  }

  void restore(const Plan& plan) override { parsimony::restore(*live_.module, plan); }

  std::unique_ptr<TrainableModel> clone_architecture() const override {
    return std::make_unique<LiveNet>(make_);
  }

  void save(const std::string& path, const at::Tensor& example) override {
    const torch_io::Evaluating evaluating(*live_.module);
    const OnCpu on_cpu(*this);
    std::ostringstream out;
    torch_io::traced(*live_.module, all_forward(), {example.cpu()}).save(out);
    write_file(path, out.str());
  }

 private:
  torch_io::Forward all_forward() {
    return [this](const std::vector<at::Tensor>& x) { return live_.forward(x.at(0)); };
  }

  std::function<Live()> make_;
  Live live_;
};

}  // namespace

std::unique_ptr<TrainableModel> live_net(std::function<Live()> make) {
  return std::make_unique<LiveNet>(std::move(make));
}

}  // namespace parsimony::training
