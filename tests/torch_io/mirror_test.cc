#include "parsimony/torch_io/mirror.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "parsimony/base/errors.h"

namespace parsimony::torch_io {
namespace {

struct MirroredNet : torch::nn::Module {
  MirroredNet() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)));
    norm = register_module("norm", torch::nn::BatchNorm2d(8));
    dropout = register_module("dropout", torch::nn::Dropout(0.5));
    fc = register_module("fc", torch::nn::Linear(8 * 4 * 4, 5));
  }
  at::Tensor forward(const at::Tensor& x) { return fc(dropout(norm(conv(x)).relu()).flatten(1)); }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Dropout dropout{nullptr};
  torch::nn::Linear fc{nullptr};
};

Forward forward_of(MirroredNet& net) {
  return [&net](const std::vector<at::Tensor>& x) { return net.forward(x.at(0)); };
}

TEST(Mirror, SharesTensorsAndComputesTheSame) {
  MirroredNet net;
  const at::Tensor x = at::rand({2, 3, 4, 4});
  torch::jit::Module script = traced(net, forward_of(net), {x});
  net.eval();
  EXPECT_TRUE(at::equal(script.forward({x}).toTensor(), net.forward(x)));
  EXPECT_EQ(script.attr("conv").toModule().attr("weight").toTensor().unsafeGetTensorImpl(),
            net.conv->weight.unsafeGetTensorImpl());
}

TEST(Mirror, LeavesTheModeOfEveryPart) {
  MirroredNet net;
  net.train();
  net.norm->eval();
  traced(net, forward_of(net), {at::rand({2, 3, 4, 4})});
  EXPECT_TRUE(net.is_training());
  EXPECT_TRUE(net.dropout->is_training());
  EXPECT_FALSE(net.norm->is_training());
  EXPECT_EQ(net.norm->num_batches_tracked.item<int64_t>(), 0);
}

TEST(Mirror, AnExampleThatDoesNotFitIsTheUsersFault) {
  MirroredNet net;
  EXPECT_THROW(traced(net, forward_of(net), {at::rand({2, 4, 4, 4})}), ModelError);
}

}  // namespace
}  // namespace parsimony::torch_io
